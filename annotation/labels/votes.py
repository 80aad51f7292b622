"""Who said what of each pair, in whichever way it was asked: alone, or among all pairs of a
document read whole.

Both ask yes or no of each directed predicate; what they mean differs. Asked alone, what most deny
does not hold. Of a document, what too few marked is missing and never false: people overlook
things.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from annotation.interfaces.registry import interface_of
from annotation.interfaces.shared.payload import PredicatePayload, parts_of
from annotation.models import Question, Response
from kbpo.instances.models import Label
from kbpo.tracks.models import Track


@dataclass(frozen=True)
class Votes:
    """What people said of one pair in one question, and what their latest label says of it."""

    question: Question
    target: int
    names: str
    """The two mentions, where the question is about more than this pair"""
    predicates: Sequence[PredicatePayload]
    shown: Sequence[str]
    """What is settled, in the order of the page: one sentence stands for all parts that say the
    same"""
    workers: tuple[int, ...]
    yes: Mapping[str, frozenset[int]]
    """Directed predicate -> who said that it holds, where anybody did"""
    holds: tuple[str, ...] = ()

    def expanded(self, held: Collection[str]) -> tuple[str, ...]:
        """The parts that hold, given the sentences that do."""
        found = {
            part
            for predicate in self.predicates
            if predicate["part"] in held
            for part in parts_of(predicate)
        }
        return tuple(part for part in self.shown if part in found)

    def by_majority(self) -> tuple[str, ...]:
        """What more than half say."""
        return self.expanded(
            {part for part, who in self.yes.items() if 2 * len(who) > len(self.workers)}
        )

    def said_by(self, worker: int) -> tuple[str, ...]:
        """What one of them says."""
        return self.expanded({part for part, who in self.yes.items() if worker in who})


def votes(track: Track, interface: str) -> list[Votes]:
    """The answers that count to all settled questions of a track, pair by pair; flags are no
    votes.
    """
    questions = Question.objects.filter(
        track=track, interface=interface, status="settled", gold=None
    ).in_bulk()
    said = _said(questions, interface)
    labels = _labels(questions, interface)
    answered = []
    for pk, question in sorted(questions.items()):
        if (
            pk not in said or (pk, question.target_id) not in labels
        ):  # nobody answered, or most flagged it
            continue
        for pair in pairs_of(question, said[pk]):
            answered.append(
                Votes(
                    pair.question,
                    pair.target,
                    pair.names,
                    pair.predicates,
                    pair.shown,
                    pair.workers,
                    pair.yes,
                    labels.get((pk, pair.target), ()),
                )
            )
    return answered


def votes_on(question: Question) -> list[Votes]:
    """The answers that count to one question, pair by pair."""
    said = _said({question.pk: question}, question.interface)
    return list(pairs_of(question, said[question.pk])) if said else []


def _said(
    questions: Mapping[int, Question], interface: str
) -> dict[int, dict[int, Mapping[str, Sequence[str]]]]:
    """Question -> worker -> target, as text -> the parts that hold."""
    page = interface_of(interface)
    responses = Response.objects.filter(
        question__in=list(questions), criterion=page.criterion, counts=True
    ).order_by("pk")
    said: dict[int, dict[int, Mapping[str, Sequence[str]]]] = defaultdict(dict)
    for pk, worker, target, value in responses.values_list(
        "question", "assignment__worker", "target", "value"
    ):
        said[pk][worker] = page.held(target, value)
    return dict(said)


def pairs_of(
    question: Question, said: Mapping[int, Mapping[str, Sequence[str]]]
) -> Iterator[Votes]:
    """The pairs of a question with what its workers said of each."""
    workers = tuple(sorted(said))
    for pair in interface_of(question.interface).pairs(question):
        yes: dict[str, set[int]] = defaultdict(set)
        for worker, holds in said.items():
            held = set(holds.get(str(pair.target), ()))
            for predicate in pair.predicates if held else ():
                if predicate["part"] in held:
                    yes[predicate["part"]].add(worker)
        frozen = {part: frozenset(who) for part, who in yes.items()}
        yield Votes(question, pair.target, pair.names, pair.predicates, pair.shown, workers, frozen)


def _labels(
    questions: Mapping[int, Question], interface: str
) -> dict[tuple[int, int], tuple[str, ...]]:
    """(question, target) -> what the latest label from that question says. Left out are flags,
    which say nothing, and what was before answers that were re-aggregated to nothing. That of a
    whole document holds nothing itself.
    """
    page = interface_of(interface)
    if not page.reads:
        labels = Label.objects.filter(
            target__in={one.target_id for one in questions.values()}, source=page.source
        )
    else:
        documents = Question.objects.filter(pk__in=list(questions)).values("target__document")
        labels = Label.objects.filter(
            target__document__in=documents,
            target__kind__in=["pair", "document"],
            source=page.source,
        )
    found: dict[tuple[int, int], tuple[str, ...]] = {}
    labels = labels.filter(question__in=questions).order_by("created_at", "pk")
    for target, value, number, again in labels.values_list("target", "value", "question", "again"):
        question = questions.get(number or 0)
        if question is None or (not value and again is None):
            continue
        if "holds" in value or (value and target == question.target_id):
            found[question.pk, target] = tuple(value.get("holds", ()))
        elif not value:
            found.pop((question.pk, target), None)
    return found
