"""Who was asked about which targets: who judges learns what was drawn, and of it what is right
(`kbpo.inclusion.disclosure`).
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from kbpo.prepared import Prepared

WAS_ASKED = """
    SELECT q.target_id, min(coalesce(a.first_accepted_at, a.accepted_at)) AS since
    FROM annotation_worker w
    JOIN annotation_assignment a ON a.worker_id = w.id
    JOIN annotation_hit_questions hq ON hq.hit_id = a.hit_id
    JOIN annotation_question q ON q.id = hq.question_id
    WHERE {whose} GROUP BY q.target_id
"""
ASKED = Prepared(f"""
    SELECT target_id FROM ({WAS_ASKED.format(whose="w.user_id = ANY(%(people)s::bigint[])")}) AS own
    WHERE since <= %(until)s
    UNION SELECT target_id FROM annotators_wasasked
    WHERE user_id = ANY(%(people)s::bigint[]) AND since <= %(until)s
""")
KEEP = Prepared(f"""
    INSERT INTO annotators_wasasked (user_id, target_id, since)
    SELECT %(user)s::bigint, target_id, since
    FROM ({WAS_ASKED.format(whose="w.id = %(worker)s")}) AS own
    ON CONFLICT (user_id, target_id) DO NOTHING
""")


def asked_about(people: Collection[int], until: datetime) -> set[int]:
    """Return the targets about which any of these people had a question in hand by a moment,
    whether or not they answered it.
    """
    return {target for (target,) in ASKED.rows(people=list(people), until=until)}


def keep_asked(worker: int, user: int) -> int:
    """Return how many targets are noted that a worker was asked about. The worker is known no more
    after that, and the teams of the account still know what they were asked.
    """
    return KEEP.run(worker=worker, user=user)
