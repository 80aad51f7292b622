"""Reads the votes, the label and the expert's answer of a judgment, and why the expert
was asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from annotation.desk.experts import (
    NEAR,
    disputes_closed_with,
    paired_ratings,
    question_about_target,
    question_of,
)
from annotation.interfaces.base import parts_by_target as held_by
from annotation.interfaces.registry import interface_of, reading
from annotation.interfaces.shared.payload import mentions_beside, sentences
from annotation.models import Question, Response
from annotation.quality.describe import title_of
from kbpo.instances.merge import RATINGS, Value, merged_value, parts_that_hold
from kbpo.instances.models import Label
from kbpo.sampling.models import ExpertCheck
from kbpo.tracks.measures import Criterion
from kbpo.tracks.models import Track
from kbpo.tracks.recall import RELATION, recall_of
from kbpo.tracks.registry import kind_of


@dataclass(frozen=True)
class Ratings:
    """The ratings of a text under a criterion, on its scale: by the crowd, their mean, and by the
    expert.
    """

    label: str
    each: list[float]
    now: float
    expert: float | None
    near: bool

    @classmethod
    def of(
        cls, criterion: Criterion, said: Sequence[float], both: tuple[float, float] | None
    ) -> Ratings:
        """Convert ratings between 0 and 1 to the scale of the criterion."""
        scaled = [criterion.to_scale(rating) for rating in said]
        expert = criterion.to_scale(both[1]) if both else None
        near = both is None or abs(both[0] - both[1]) <= NEAR
        return cls(criterion.label, scaled, sum(scaled) / len(scaled), expert, near)


@dataclass(frozen=True)
class Trail:
    """An answered check or dispute, with the crowd's answers."""

    row: ExpertCheck
    disputes: list[ExpertCheck]
    """Disputes of other teams that the same answer closed"""
    title: str
    asked: int | None
    """The question that people answered about it alone, if there was one"""
    parts: list[tuple[str, int, bool | None, bool]]
    """(part, votes for it, whether it counts as holding now, whether the expert says that it
    holds); of what readers of the document did not mark nothing counts"""
    voters: int
    flagged: bool
    """The expert says that it cannot be answered"""
    sentences: dict[str, str]
    """part -> what it says, in words"""
    links: list[tuple[str, str, str, bool]]
    """(name, what it refers to as it counts now, what it refers to as the expert says, whether
    that is the same)"""
    ratings: list[Ratings]
    """The ratings of a text under each criterion"""

    @property
    def rows(self) -> list[tuple[str, int, bool | None, bool]]:
        """The parts with their sentences."""
        return [(self.sentences.get(part, part), n, now, says) for part, n, now, says in self.parts]


def trail_of(track: Track, pk: int) -> Trail | None:
    """Return the trail of an entry; None if there is none or it is open."""
    adjudications = ExpertCheck.objects.filter(track=track, pk=pk).exclude(status="open")
    people = ("raised_by", "expert", "submission__team", "round")
    entry = adjudications.select_related("track", "target__document", *people).first()
    if entry is None:
        return None
    asked = question_about_target(entry.target_id)
    votes, voters = _votes(entry, asked)
    kind = kind_of(track)
    value = merged_value(Label.objects.filter(target=entry.target_id), kind.merge)
    expert = (entry.value or {}).get(str(entry.target_id), {})
    now, says = parts_that_hold(value), parts_that_hold(expert)
    parts = []
    for part in entry.shown:
        if now.get(part) or says.get(part) or votes[part]:
            parts.append((part, votes[part], now.get(part), says.get(part, False)))
    return Trail(
        entry,
        list(disputes_closed_with(entry).select_related("raised_by", "submission__team")),
        title_of(question_of(entry)),
        asked.pk if asked else None,
        parts,
        voters,
        entry.status == "answered" and not expert,
        sentences(entry.payload),
        _links(entry),
        _ratings(entry, value, expert),
    )


def _votes(row: ExpertCheck, asked: Question | None) -> tuple[Counter[str], int]:
    """Return part -> number of people who said that it holds, and the number of people asked;
    nothing for texts.
    """
    if recall_of(row.track) is None:
        return Counter(), 0  # people rated a text, whatever its questions are called
    questions = [asked] if asked is not None else _readings(row)
    held = []
    for question in questions:
        criterion = interface_of(question.interface).criterion
        responses = Response.objects.filter(question=question, criterion=criterion, counts=True)
        for target, value in responses.order_by("pk").values_list("target", "value"):
            about = row.target_id if asked is not None else target
            held.append(set(held_by(about, value).get(str(row.target_id), ())))
    if held:
        return Counter(part for parts in held for part in parts), len(held)
    labels = Label.objects.filter(target=row.target_id, source="document").exclude(value={})
    if (read := labels.order_by("-pk").first()) is None:
        return Counter(), 0
    return Counter(read.value.get("votes", {})), read.n or 0


def _readings(row: ExpertCheck) -> list[Question]:
    """Return the settled questions about all relations of the target's document."""
    return list(
        Question.objects.filter(
            track=row.track,
            interface__in=reading(RELATION),
            status="settled",
            gold=None,
            target__document=row.target.document_id,
        )
    )


def _ratings(row: ExpertCheck, value: Value, expert: Value) -> list[Ratings]:
    """Return the ratings of the crowd and of the expert under each criterion."""
    people, both = value.get(RATINGS, {}), paired_ratings(value, expert)
    return [
        Ratings.of(criterion, people[criterion.name], both.get(criterion.name))
        for criterion in kind_of(row.track).measures.criteria
        if people.get(criterion.name)
    ]


def _links(row: ExpertCheck) -> list[tuple[str, str, str, bool]]:
    """Return the referents of both mentions by the current labels and by the expert, where both
    exist.
    """
    kind, links = kind_of(row.track), []
    for target, words in mentions_beside(row.payload).items():
        now = merged_value(Label.objects.filter(target=target), kind.merge)
        says = (row.value or {}).get(str(target), {})
        if (referred := kind.compare_references(row.target, now, says)) is not None:
            links.append((words, *referred))
    return links
