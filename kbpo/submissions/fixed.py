"""What tells that what some submissions state has not changed."""

from __future__ import annotations

from collections.abc import Sequence

from kbpo.submissions.models import Submission


def state_of(submissions: Sequence[int]) -> tuple[object, ...] | None:
    """Return what tells some submissions, in their order, from all others; None if one of them was
    never sampled: what is read of its file may still be replaced. What was sampled states the same
    for ever, but for kinds whose systems state more as others come: then its predictions grow in
    number, which its distributions hold.
    """
    told = Submission.objects.filter(pk__in=submissions, sampled_at__isnull=False)
    facts = told.values_list("pk", "received_at", "file_digest", "distributions__n")
    rows = {row[0]: row for row in facts}
    if not submissions or rows.keys() != set(submissions):
        return None
    return tuple(rows[pk] for pk in submissions)
