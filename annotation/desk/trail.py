"""Reads the trail of a judgment that an expert was asked about: who said what, and why it was
asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from annotation.desk.adjudicate import (
    NEAR,
    PICKED,
    answered_with,
    question_of,
    rated,
)
from annotation.interfaces.base import Line
from annotation.interfaces.registry import interface_of
from annotation.models import Response
from annotation.quality.describe import title_of
from annotation.quality.judged import votes_in
from kbpo.instances.merge import RATINGS, Value, merged
from kbpo.instances.models import Label
from kbpo.sampling.models import ExpertCheck
from kbpo.tracks.base import Criterion
from kbpo.tracks.models import Track
from kbpo.tracks.recall import NAME, recall_of
from kbpo.tracks.registry import kind_of


@dataclass(frozen=True)
class Ratings:
    """What people said of a text under a criterion, on its scale: each, their mean, the expert."""

    label: str
    each: list[float]
    now: float
    expert: float | None
    near: bool

    @classmethod
    def of(
        cls, criterion: Criterion, said: Sequence[float], both: tuple[float, float] | None
    ) -> Ratings:
        """Return the same of ratings between 0 and 1, and of the two that are held against each
        other.
        """
        scaled = [criterion.on_scale(rating) for rating in said]
        expert = criterion.on_scale(both[1]) if both else None
        near = both is None or abs(both[0] - both[1]) <= NEAR
        return cls(criterion.label, scaled, sum(scaled) / len(scaled), expert, near)


@dataclass(frozen=True)
class Trail:
    """Everything about one entry, for after it was answered: what was asked, with votes, label and
    expert.
    """

    row: ExpertCheck
    disputes: list[ExpertCheck]
    """Those of other teams that the same answer closed"""
    title: str
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
    marks: list[Line]
    """Of all names of a document: what is settled and what the expert marked"""
    ratings: list[Ratings]
    """Of a text: what people said under each criterion"""

    @property
    def rows(self) -> list[tuple[str, int, bool | None, bool]]:
        """The parts as sentences."""
        return [(self.sentences.get(part, part), n, now, says) for part, n, now, says in self.parts]

    @property
    def of_names(self) -> bool:
        """Whether a document's names were asked about, and no pair."""
        return interface_of(self.row.interface).reads == NAME

    @property
    def differing(self) -> list[Line]:
        """The names about which the expert says something else."""
        return [mark for mark in self.marks if not mark.same]


def trail_of(track: Track, pk: int) -> Trail | None:
    """Return the trail of an entry; None if there is none or nobody has answered it yet."""
    adjudications = ExpertCheck.objects.filter(track=track, pk=pk, kind__in=PICKED).exclude(
        status="open"
    )
    people = ("raised_by", "expert", "submission__team", "round")
    entry = adjudications.select_related("track", "target__document", *people).first()
    if entry is None:
        return None
    question = question_of(entry)
    votes, voters = _votes(entry)
    kind = kind_of(track)
    value = merged(Label.objects.filter(target=entry.target_id), kind.merge)
    expert = (entry.value or {}).get(str(entry.target_id), {})
    now, says = kind.yes_or_no(value), kind.yes_or_no(expert)
    parts = []
    for part in entry.shown:
        if now.get(part) or says.get(part) or votes[part]:
            parts.append((part, votes[part], now.get(part), says.get(part, False)))
    return Trail(
        entry,
        list(answered_with(entry).select_related("raised_by", "submission__team")),
        title_of(question),
        parts,
        voters,
        entry.status == "answered" and not expert,
        interface_of(entry.interface).sentences(entry.payload),
        _links(entry),
        _marks(entry),
        _ratings(entry, value, expert),
    )


def _votes(row: ExpertCheck) -> tuple[Counter[str], int]:
    """part -> how many said that it holds, and how many were asked; of documents, how many read
    them. Nothing of texts.
    """
    if recall_of(row.track) is None:
        return Counter(), 0  # people rated a text, whatever its questions are called
    page = interface_of(row.interface)
    responses = Response.objects.filter(
        question=row.question, criterion=page.criterion, counts=True
    )
    if values := list(responses.values_list("value", flat=True)):
        held = [page.held(row.target_id, value)[str(row.target_id)] for value in values]
        return Counter(part for parts in held for part in set(parts)), len(values)
    if (marked := votes_in(row.track, [row.target_id]).get(row.target_id)) is not None:
        return Counter(part for marked_parts in marked for part in marked_parts), len(marked)
    read = (
        Label.objects.filter(target=row.target_id, source="document")
        .exclude(value={})
        .order_by("-pk")
        .first()
    )
    return (
        (Counter(read.value.get("votes", {})), read.n or 0) if read is not None else (Counter(), 0)
    )


def _marks(row: ExpertCheck) -> list[Line]:
    """Return what counts now of a document's names beside what the expert says; nothing of a
    flag.
    """
    value = (row.value or {}).get(str(row.target_id))
    return interface_of(row.interface).compared(question_of(row), value) if value else []


def _ratings(row: ExpertCheck, value: Value, expert: Value) -> list[Ratings]:
    """Return what people said of a text and what the expert does, under each criterion."""
    people, both = value.get(RATINGS, {}), rated(value, expert)
    return [
        Ratings.of(criterion, people[criterion.name], both.get(criterion.name))
        for criterion in kind_of(row.track).criteria
        if people.get(criterion.name)
    ]


def _links(row: ExpertCheck) -> list[tuple[str, str, str, bool]]:
    """Return what each name that was asked about refers to, where labels and the expert both say
    so.
    """
    kind, links = kind_of(row.track), []
    for target, words in interface_of(row.interface).besides(row.payload).items():
        now = merged(Label.objects.filter(target=target), kind.merge)
        says = (row.value or {}).get(str(target), {})
        if (referred := kind.referred(row.target, now, says)) is not None:
            links.append((words, *referred))
    return links
