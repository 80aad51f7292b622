"""Makes labels of ratings with every person's value, since a mean would hide the disagreement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from annotation.interfaces.base import AggregatedLabel
from annotation.interfaces.shared.flag import flagged_label
from kbpo.instances.merge import PEOPLE, RATINGS

if TYPE_CHECKING:
    from annotation.models import Question, Response

METHOD = "ratings"


def ratings_label(
    question: Question, responses: Sequence[Response], criteria: Iterable[str]
) -> list[AggregatedLabel]:
    """Return the label that holds what each person said under these criteria, as ``{"ratings":
    {criterion: [numbers in [0, 1]]}, "people": {criterion: [keyed hashes]}}``; an empty one if most
    flagged the question, none if nobody said anything. A response's value has its number under
    ``value``.
    """
    ratings: dict[str, list[float]] = {}
    people: dict[str, list[str]] = {}
    for criterion in criteria:
        responses_to = [response for response in responses if response.criterion == criterion]
        if responses_to:
            ratings[criterion] = [float(response.value["value"]) for response in responses_to]
            people[criterion] = [_handle(response) for response in responses_to]
    if not ratings and not any(response.criterion == "flag" for response in responses):
        return []
    empty = flagged_label(question, responses, next(iter(ratings), ""))
    if empty is not None:
        return [empty]
    n = max(len(values) for values in ratings.values())
    spread = max(max(values) - min(values) for values in ratings.values())
    return [
        AggregatedLabel(question.target_id, {RATINGS: ratings, PEOPLE: people}, METHOD, n, spread)
    ]


def _handle(response: Response) -> str:
    """Return the keyed hash of the annotator; empty for an answer without one."""
    assignment = getattr(response, "assignment", None)
    return assignment.worker.handle if assignment is not None else ""
