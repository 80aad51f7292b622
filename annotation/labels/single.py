"""What single people said of targets that are rated, for whoever takes the judgments elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from django.db.models import Exists, OuterRef

from annotation.models import Response
from kbpo import clock
from kbpo.instances.models import Label


class SingleRating(NamedTuple):
    """One person's rating of one target; of the person a keyed hash."""

    target: int
    worker: str
    criterion: str
    value: float
    seconds: float | None


def single_ratings(targets: Collection[int], *, public: bool = False) -> Iterator[SingleRating]:
    """Yield the ratings of these targets that count, in the order in which they came; those alone
    whose question has a public label if asked.
    """
    responses = Response.objects.filter(
        target__in=targets, counts=True, value__has_key="value"
    ).order_by("pk")
    if public:
        labels = Label.objects.filter(target=OuterRef("target"), question=OuterRef("question"))
        said = labels.filter(again=None, public_at__lte=clock.now()).exclude(method="nonresponse")
        responses = responses.filter(Exists(said))
    columns = (
        "target",
        "assignment__worker__handle",
        "criterion",
        "value__value",
        "assignment__seconds",
    )
    for target, handle, criterion, value, seconds in responses.values_list(*columns).iterator():
        if isinstance(value, int | float):
            yield SingleRating(target, handle, criterion, float(value), seconds)
