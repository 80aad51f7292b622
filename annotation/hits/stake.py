"""Finds conflicts of interest: nobody judges on a track where a team of theirs has a run, except in
their own study.
"""

from __future__ import annotations

from kbpo.prepared import Prepared

STAKE = """
    SELECT 1
    FROM annotation_hit_questions oq
    JOIN annotation_question o ON o.id = oq.question_id
    JOIN submissions_submission s ON s.track_id = o.track_id
    JOIN tracks_track k ON k.id = o.track_id
    WHERE oq.hit_id = h.id AND s.team_id = ANY(%(teams)s) AND s.deleted_at IS NULL
        AND NOT k.is_study
"""
"""A row for each run that `teams` have on the track of a HIT `h`"""
TEAMS = Prepared("""
    SELECT m.team_id FROM accounts_team_members m JOIN annotation_worker w ON w.user_id = m.user_id
    WHERE w.id = %(worker)s
    UNION
    SELECT f.team_id FROM accounts_team_former f JOIN annotation_worker w ON w.user_id = f.user_id
    WHERE w.id = %(worker)s
""")
ASKED = Prepared(f"SELECT EXISTS ({STAKE}) FROM annotation_hit h WHERE h.id = %(hit)s")


def has_stake(worker: int | None, hit: int) -> bool:
    """Return whether a current or former team of a worker has a run on the track of a HIT."""
    teams = [team for (team,) in TEAMS.rows(worker=worker)]
    return bool(teams) and ASKED.rows(teams=teams, hit=hit) == [(True,)]
