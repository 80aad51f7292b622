"""Reads an assignment by the token of its page, with its questions, in one prepared statement:
every request of an annotator begins with this query.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from annotation.models import ANSWERED, Assignment, Question, Worker
from annotation.workers.consent import SHIPPED
from kbpo import clock
from kbpo.prepared import Columns, Prepared

ASSIGNMENT = Columns(Assignment, "a")
QUESTION = Columns(Question, "q")
OF_A_TEAM = """(
    EXISTS (SELECT FROM accounts_team_members m WHERE m.user_id = w.user_id)
    OR EXISTS (SELECT FROM accounts_team_former f WHERE f.user_id = w.user_id))"""
"""Whether a worker belongs or belonged to a team. Most workers do not, and are spared another
statement."""
HELD = Prepared(f"""
    SELECT
        EXISTS (
            SELECT FROM annotators_consent c
            WHERE c.worker_id = w.id AND c.version = coalesce(
                (SELECT max(t.version) FROM annotators_terms t), %(shipped)s)),
        {OF_A_TEAM}, {ASSIGNMENT.sql}, {QUESTION.sql}
    FROM annotation_assignment a
    JOIN annotation_worker w ON w.id = a.worker_id
    JOIN annotation_hit_questions hq ON hq.hit_id = a.hit_id
    JOIN annotation_question q ON q.id = hq.question_id
    WHERE a.token = %(token)s ORDER BY hq.id
""")
OF_HIT = Prepared(f"""
    SELECT {QUESTION.sql} FROM annotation_hit_questions hq
    JOIN annotation_question q ON q.id = hq.question_id
    WHERE hq.hit_id = %(hit)s ORDER BY hq.id
""")
STAKE = """
    SELECT 1
    FROM annotation_hit_questions oq
    JOIN annotation_question o ON o.id = oq.question_id
    JOIN submissions_submission s ON s.track_id = o.track_id
    JOIN tracks_track k ON k.id = o.track_id
    WHERE oq.hit_id = h.id AND s.team_id = ANY(%(teams)s) AND s.deleted_at IS NULL
        AND NOT k.is_study
"""
"""Selects a row for each run that `teams` have on the track of a HIT `h`"""
TEAMS = Prepared("""
    SELECT m.team_id FROM accounts_team_members m JOIN annotation_worker w ON w.user_id = m.user_id
    WHERE w.id = %(worker)s
    UNION
    SELECT f.team_id FROM accounts_team_former f JOIN annotation_worker w ON w.user_id = f.user_id
    WHERE w.id = %(worker)s
""")
ASKED = Prepared(f"SELECT EXISTS ({STAKE}) FROM annotation_hit h WHERE h.id = %(hit)s")
TODAY = Prepared("""
    SELECT count(*), coalesce(sum(h.reward + a.extra), 0.00)
    FROM annotation_assignment a JOIN annotation_hit h ON h.id = a.hit_id
    WHERE a.worker_id = %(worker)s AND a.submitted_at >= %(since)s AND a.status = ANY(%(answered)s)
""")


@dataclass(frozen=True)
class HeldAssignment:
    """An assignment with its questions, whether its worker agreed to the current terms, and whether
    a current or former team of the worker has a run on the track.
    """

    assignment: Assignment
    questions: list[Question]
    consented: bool
    """Whether its worker agreed to the current terms"""
    in_team: bool
    """Whether its worker belongs or belonged to a team"""


def assignment_by_token(token: str) -> HeldAssignment | None:
    """Return the assignment with this token; None if there is none."""
    joined = HELD.fetch_all(token=token, shipped=SHIPPED[-1])
    if not joined:
        return None
    consented, in_team, *of_assignment = joined[0][: 2 + ASSIGNMENT.n]
    questions = [QUESTION.row(row[2 + ASSIGNMENT.n :]) for row in joined]
    return HeldAssignment(ASSIGNMENT.row(of_assignment), questions, consented, in_team)


def questions_of_hit(hit: int) -> list[Question]:
    """Return the questions of a HIT."""
    return [QUESTION.row(row) for row in OF_HIT.fetch_all(hit=hit)]


def has_conflict_of_interest(worker: int | None, hit: int) -> bool:
    """Return whether a current or former team of a worker has a run on the track of a HIT."""
    teams = [team for (team,) in TEAMS.fetch_all(worker=worker)]
    return bool(teams) and ASKED.fetch_all(teams=teams, hit=hit) == [(True,)]


@dataclass(frozen=True)
class AnswersToday:
    """The number of answers that a worker sent since midnight (UTC), and their pay."""

    n: int
    earned: Decimal


def count_answers_today(worker: Worker) -> AnswersToday:
    """Return how many answers a worker sent today, and their pay."""
    midnight = clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    [(n, earned)] = TODAY.fetch_all(worker=worker.pk, since=midnight, answered=list(ANSWERED))
    return AnswersToday(n, earned)
