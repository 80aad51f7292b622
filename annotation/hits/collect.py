"""Step 7: ends expired leases, and opens their places again."""

from __future__ import annotations

from django.db import connection, transaction

from annotation.models import Assignment
from annotation.platforms.registry import local_platform_names
from kbpo.clock.served import record_beat

REOPEN = """
    UPDATE annotation_hit h SET status = 'open', status_since = now()
    WHERE h.status = 'closed' AND h.platform = ANY(%s)
      AND h.id IN (SELECT u.hit_id FROM annotation_assignment u
          WHERE u.status IN ('failed', 'rejected'))
      AND EXISTS (SELECT 1 FROM annotation_hit_questions hq JOIN annotation_question q
          ON q.id = hq.question_id
                  WHERE hq.hit_id = h.id AND q.status = 'published')
      AND (SELECT count(*) FROM annotation_assignment a WHERE a.hit_id = h.id
           AND a.status IN ('submitted', 'accepted', 'approved', 'paid')) < h.max_assignments
"""
"""Reopens HITs. A HIT closes when all of its places have answers, so a place becomes free only if
an answer turns out not to count."""
CLOSE = """
    UPDATE annotation_hit h SET status = 'closed', status_since = now()
    WHERE h.status = 'open'
      AND h.id IN (SELECT eq.hit_id FROM annotation_question e JOIN annotation_hit_questions eq
          ON eq.question_id = e.id
                   WHERE e.status IN ('waiting', 'answered', 'unanswered', 'cancelled'))
      AND NOT EXISTS (SELECT 1 FROM annotation_hit_questions hq JOIN annotation_question q
          ON q.id = hq.question_id
                      WHERE hq.hit_id = h.id AND (q.status = 'published' OR q.status = 'gold'
                          AND h.platform = ANY(%s)))
"""
"""Closes HITs. A question's HITs are closed when it is settled. On our own pages gold keeps open a
HIT that holds nothing else; on a marketplace gold ends with the other questions."""


def tick() -> int:
    """End expired leases and open or close HITs; return how many assignments and HITs changed."""
    return (
        _end_leases()
        + _execute_update(REOPEN, local_platform_names())
        + _execute_update(CLOSE, local_platform_names())
    )


@transaction.atomic
def _end_leases() -> int:
    """End expired leases, and return their number. Their drafts are kept for the same worker."""
    now = record_beat()
    lost = Assignment.objects.filter(status="leased", leased_until__lte=now).select_for_update(
        skip_locked=True
    )
    ids = list(lost.values_list("pk", flat=True)[:1000])
    return Assignment.objects.filter(pk__in=ids, status="leased").update(
        status="returned", status_since=now, returned_by=Assignment.ReturnedBy.LEASE
    )


def _execute_update(sql: str, *parameters: list[str]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, list(parameters))
        return int(cursor.rowcount)
