"""What tells that what some submissions predict has not changed."""

from __future__ import annotations

from collections.abc import Sequence

from kbpo.submissions.models import Submission


def state_of(submissions: Sequence[int]) -> tuple[object, ...] | None:
    """Return what tells some submissions, in their order, from all others; None if one of them was
    never sampled: what is read of its file may still be replaced. What was sampled predicts the
    same for ever, but for kinds whose systems predict more as others come: then its predictions
    grow in number, which its distributions hold. One that is sampled again after a restore of the
    database has other rows.
    """
    sampled = Submission.objects.filter(pk__in=submissions, sampled_at__isnull=False)
    facts = sampled.values_list(
        "pk", "received_at", "sampled_at", "file_digest", "distributions__n"
    )
    facts_of = {values[0]: values for values in facts}
    if not submissions or facts_of.keys() != set(submissions):
        return None
    return tuple(facts_of[pk] for pk in submissions)
