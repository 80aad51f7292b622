"""What tells that what some submissions predict has not changed."""

from __future__ import annotations

from collections.abc import Sequence

from kbpo.submissions.models import Submission


def state_of(submissions: Sequence[int]) -> tuple[object, ...] | None:
    """Return a value that identifies the stored predictions of some submissions, in their order;
    None if one of them was never sampled, since its file may still be replaced. A sampled
    submission's predictions are fixed, except for kinds whose systems gain predictions as others
    come: then their number grows, which the distributions contain. A submission that is sampled
    again after a restore of the database has other rows.
    """
    sampled = Submission.objects.filter(pk__in=submissions, sampled_at__isnull=False)
    facts = sampled.values_list(
        "pk", "received_at", "sampled_at", "file_digest", "distributions__n"
    )
    facts_of = {values[0]: values for values in facts}
    if not submissions or facts_of.keys() != set(submissions):
        return None
    return tuple(facts_of[pk] for pk in submissions)
