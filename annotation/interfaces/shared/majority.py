"""Aggregates votes by majority, part by part (Chaganty 2018, section 4.4), and measures
disagreement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from annotation.interfaces.base import AggregatedLabel
from annotation.interfaces.shared.fields import flagged_label
from kbpo.instances.merge import PEOPLE, RATINGS

if TYPE_CHECKING:
    from annotation.models import Question, Response

METHOD = "ratings"


@dataclass(frozen=True)
class Majority:
    """The most frequent answer, its votes, and the share of other answers."""

    value: str
    votes: dict[str, int]
    n: int

    @property
    def disagreement(self) -> float:
        return 1.0 - self.votes[self.value] / self.n


def most_frequent(answers: Sequence[str]) -> Majority | None:
    """Return the most frequent answer, among ties the first in alphabetical order; None without
    answers.
    """
    if not answers:
        return None
    votes = Counter(answers)
    best = min(votes, key=lambda answer: (-votes[answer], answer))
    return Majority(best, dict(votes), len(answers))


def more_than_half(answers: Sequence[str], voters: int) -> str | None:
    """Return the answer of more than half of the voters, including voters without an answer; None
    if there is none.
    """
    best = most_frequent(answers)
    return best.value if best is not None and 2 * best.votes[best.value] > voters else None


def parts_by_majority(
    answers: Sequence[Iterable[str]], parts: Sequence[str]
) -> tuple[list[str], dict[str, int], float]:
    """Return the parts (directed relations) in more than half of the answers, the votes of each
    part, and the largest minority's share. A tied part does not hold.
    """
    votes = Counter(part for answer in answers for part in set(answer))
    holds = [part for part in parts if 2 * votes[part] > len(answers)]
    minority = max((min(votes[part], len(answers) - votes[part]) for part in parts), default=0)
    return holds, {part: votes[part] for part in parts if votes[part]}, minority / len(answers)


def ratings_label(
    question: Question, responses: Sequence[Response], criteria: Iterable[str]
) -> list[AggregatedLabel]:
    """Return one label with the ratings of each person under these criteria, as ``{"ratings":
    {criterion: [numbers in [0, 1]]}, "people": {criterion: [keyed hashes]}}``. The label is empty
    if most people flagged the question; without ratings there is no label. A response's value has
    its number under ``value``.
    """
    ratings: dict[str, list[float]] = {}
    people: dict[str, list[str]] = {}
    for criterion in criteria:
        responses_to = [response for response in responses if response.criterion == criterion]
        if responses_to:
            ratings[criterion] = [float(response.value["value"]) for response in responses_to]
            people[criterion] = [_annotator_handle(response) for response in responses_to]
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


def _annotator_handle(response: Response) -> str:
    """Return the keyed hash of the annotator; empty for an answer without one."""
    assignment = getattr(response, "assignment", None)
    return assignment.worker.handle if assignment is not None else ""
