"""What the teams of a worker have at stake in a HIT: nobody judges what a team of theirs pays for
or predicts.
"""

from __future__ import annotations

from kbpo.prepared import Prepared
from kbpo.submissions.interest import OTHER_CANDIDATE

STAKE = f"""
    SELECT 1
    FROM annotation_hit_questions oq
    JOIN annotation_question o ON o.id = oq.question_id
    JOIN instances_target t ON t.id = o.target_id
    WHERE oq.hit_id = h.id AND (
        o.payer_kind = 'submission' AND o.payer_number IN (
            SELECT s.id FROM submissions_submission s
            WHERE s.team_id = ANY(%(teams)s))
        OR EXISTS (
            SELECT 1 FROM instances_instance i
            JOIN submissions_prediction p ON p.instance_id = i.id
            JOIN submissions_submission s ON s.id = p.submission_id
            WHERE i.target_id = t.id AND s.team_id = ANY(%(teams)s))
        OR EXISTS (
            SELECT 1 FROM instances_instance i
            JOIN submissions_prediction p ON p.instance_id = i.id
            JOIN submissions_submission s ON s.id = p.submission_id
            JOIN (VALUES ('a', t.a_begin, t.a_end), ('b', t.b_begin, t.b_end))
                AS side (letter, mention_begin, mention_end)
                ON (mention_begin, mention_end) IN (
                    (i.subject_begin, i.subject_end), (i.object_begin, i.object_end),
                    (p.subject_canonical_begin, p.subject_canonical_end),
                    (p.object_canonical_begin, p.object_canonical_end))
            WHERE i.document_id = t.document_id AND s.team_id = ANY(%(teams)s)
              AND jsonb_path_exists(o.payload -> side.letter, '{OTHER_CANDIDATE}'))
        OR t.kind = 'document' AND EXISTS (
            SELECT 1 FROM instances_instance i
            JOIN submissions_prediction p ON p.instance_id = i.id
            JOIN submissions_submission s ON s.id = p.submission_id
            WHERE i.document_id = t.document_id
              AND s.team_id = ANY(%(teams)s))
        OR t.content ? 'texts' AND EXISTS (
            SELECT 1 FROM submissions_submission s
            JOIN generation_written w ON w.submission_id = s.id
            WHERE s.team_id = ANY(%(teams)s) AND w.key = t.content->>'input'
              AND t.content->'texts' ? w.text))
"""
"""What teams have at stake in a HIT: they pay for one of its questions, predict its target or
anything in the document that it is, say something about a mention of which it asks what that refers
to, or wrote one of two texts that are compared, be it in a pair of another team's private run that
they do not predict themselves."""
TEAMS = Prepared("""
    SELECT m.team_id FROM accounts_team_members m JOIN annotation_worker w ON w.user_id = m.user_id
    WHERE w.id = %(worker)s
    UNION
    SELECT f.team_id FROM accounts_team_former f JOIN annotation_worker w ON w.user_id = f.user_id
    WHERE w.id = %(worker)s
""")
HAS_STAKE = Prepared(f"SELECT EXISTS ({STAKE}) FROM annotation_hit h WHERE h.id = %(hit)s")


def has_stake(worker: int | None, hit: int) -> bool:
    """Whether a team of a worker, be it one that they left, has a stake in a HIT."""
    teams = [team for (team,) in TEAMS.rows(worker=worker)]
    return bool(teams) and HAS_STAKE.rows(teams=teams, hit=hit) == [(True,)]
