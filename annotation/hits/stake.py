"""What the teams of a worker have at stake in a HIT: nobody judges what a team of theirs pays for,
predicts, or says something about.
"""

from __future__ import annotations

from functools import cache

from kbpo.prepared import Prepared
from kbpo.submissions.interest import at_stake

STAKE = """
    SELECT 1
    FROM annotation_hit_questions oq
    JOIN annotation_question o ON o.id = oq.question_id
    CROSS JOIN LATERAL (SELECT o.payload, %(teams)s::bigint[]) AS asked (payload, teams)
    JOIN instances_target t ON t.id = o.target_id
    WHERE oq.hit_id = h.id AND (
        o.payer_kind = 'submission' AND o.payer_number IN (
            SELECT s.id FROM submissions_submission s WHERE s.team_id = ANY(asked.teams))
        OR {at_stake})
"""
TEAMS = Prepared("""
    SELECT m.team_id FROM accounts_team_members m JOIN annotation_worker w ON w.user_id = m.user_id
    WHERE w.id = %(worker)s
    UNION
    SELECT f.team_id FROM accounts_team_former f JOIN annotation_worker w ON w.user_id = f.user_id
    WHERE w.id = %(worker)s
""")


def stake() -> str:
    """Return the SQL of what `teams` have at stake in a HIT `h`, a row for each question: they pay
    for it, or say something that it touches.
    """
    return STAKE.format(at_stake=at_stake())


def has_stake(worker: int | None, hit: int) -> bool:
    """Whether a team of a worker, be it one that they left, has a stake in a HIT."""
    teams = [team for (team,) in TEAMS.rows(worker=worker)]
    return bool(teams) and _asked(stake()).rows(teams=teams, hit=hit) == [(True,)]


@cache
def _asked(rows: str) -> Prepared:
    """Return the statement that asks whether a HIT has any of these rows."""
    return Prepared(f"SELECT EXISTS ({rows}) FROM annotation_hit h WHERE h.id = %(hit)s")
