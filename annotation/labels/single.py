"""What single people said of targets that are rated, for whoever takes the judgments elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from annotation.models import Response


class SingleRating(NamedTuple):
    """One person's rating of one target; of the person a keyed hash."""

    target: int
    worker: str
    criterion: str
    value: float
    seconds: float | None


def single_ratings(targets: Collection[int]) -> Iterator[SingleRating]:
    """Yields the ratings of these targets that count, in the order in which they came."""
    rows = Response.objects.filter(
        target__in=targets, excluded_reason="", value__has_key="value"
    ).order_by("pk")
    columns = (
        "target",
        "assignment__worker__handle",
        "criterion",
        "value__value",
        "assignment__seconds",
    )
    for target, handle, criterion, value, seconds in rows.values_list(*columns).iterator():
        if isinstance(value, int | float):
            yield SingleRating(target, handle, criterion, float(value), seconds)
