"""Who was asked about which targets: who judges learns what was drawn, and of it what is right
(`kbpo.inclusion.disclosure`).
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from kbpo.prepared import Prepared

ASKED = Prepared("""
    SELECT DISTINCT q.target_id FROM annotation_worker w
    JOIN annotation_assignment a ON a.worker_id = w.id AND a.accepted_at <= %(until)s
    JOIN annotation_hit_questions hq ON hq.hit_id = a.hit_id
    JOIN annotation_question q ON q.id = hq.question_id
    WHERE w.user_id = ANY(%(people)s::bigint[])
""")


def asked_about(people: Collection[int], until: datetime) -> set[int]:
    """Return the targets about which any of these people had a question in hand by a moment,
    whether or not they answered it.
    """
    return {target for (target,) in ASKED.rows(people=list(people), until=until)}
