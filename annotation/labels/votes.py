"""Who said what of each target, in whichever way it was asked: alone, or among all of a document
read whole.

Both ask yes or no of each of its sentences (`Interface.asked`); what they mean differs. Asked
alone, what most deny does not hold. Of a document, what too few marked is missing and never false:
people overlook things.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from annotation.interfaces.registry import interface_of
from annotation.models import Question, Response
from kbpo.instances.models import Label
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of


@dataclass(frozen=True)
class Votes:
    """What people said of one target in one question, and what their latest label says of it."""

    question: Question
    target: int
    names: str
    """What it is, where the question is about more than this one"""
    sentences: Mapping[str, Sequence[str]]
    """What was asked yes or no -> the parts that it stands for"""
    shown: Sequence[str]
    """What is settled, in the order of the page: one sentence stands for all parts that say the
    same"""
    workers: tuple[int, ...]
    yes: Mapping[str, frozenset[int]]
    """Sentence -> who said that it holds, where anybody did"""
    holds: tuple[str, ...] = ()

    def expanded(self, held: Collection[str]) -> tuple[str, ...]:
        """Return the parts that hold, given the sentences that do."""
        found = {
            part for sentence, parts in self.sentences.items() if sentence in held for part in parts
        }
        return tuple(part for part in self.shown if part in found)

    def by_majority(self) -> tuple[str, ...]:
        """Return what more than half say."""
        return self.expanded(
            {part for part, who in self.yes.items() if 2 * len(who) > len(self.workers)}
        )

    def answer_of_worker(self, worker: int) -> tuple[str, ...]:
        """Return what one of them says."""
        return self.expanded({part for part, who in self.yes.items() if worker in who})


def votes(track: Track, interface: str) -> list[Votes]:
    """Return the answers that count to all settled questions of a track, target by target; flags
    are no votes.
    """
    questions = Question.objects.filter(
        track=track, interface=interface, status="settled", gold=None
    ).in_bulk()
    said = _holding_parts(questions, interface)
    labels = _labels(track, questions, interface)
    answered = []
    for pk, question in sorted(questions.items()):
        if (
            pk not in said or (pk, question.target_id) not in labels
        ):  # nobody answered, or most flagged it
            continue
        for of_target in votes_of(question, said[pk]):
            holds = labels.get((pk, of_target.target), ())
            answered.append(replace(of_target, holds=holds))
    return answered


def _holding_parts(
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


def votes_of(
    question: Question, said: Mapping[int, Mapping[str, Sequence[str]]]
) -> Iterator[Votes]:
    """Return the targets of a question with what its workers said of each."""
    workers = tuple(sorted(said))
    for asked in interface_of(question.interface).asked(question):
        yes: dict[str, set[int]] = defaultdict(set)
        for worker, holds in said.items():
            held = set(holds.get(str(asked.target), ()))
            for sentence in asked.sentences if held else ():
                if sentence in held:
                    yes[sentence].add(worker)
        frozen = {sentence: frozenset(who) for sentence, who in yes.items()}
        yield Votes(
            question, asked.target, asked.names, asked.sentences, asked.shown, workers, frozen
        )


def _labels(
    track: Track, questions: Mapping[int, Question], interface: str
) -> dict[tuple[int, int], tuple[str, ...]]:
    """(question, target) -> what the latest label from that question says. Left out are flags,
    which say nothing, and what was before answers that were re-aggregated to nothing. That of a
    whole document holds nothing itself.
    """
    page, kind = interface_of(interface), kind_of(track)
    if not page.reads:
        labels = Label.objects.filter(
            target__in={one.target_id for one in questions.values()}, source=page.source
        )
    else:
        documents = Question.objects.filter(pk__in=list(questions)).values("target__document")
        labels = Label.objects.filter(target__document__in=documents, source=page.source)
    found: dict[tuple[int, int], tuple[str, ...]] = {}
    labels = labels.filter(question__in=questions).order_by("created_at", "pk")
    for target, value, number, again in labels.values_list("target", "value", "question", "again"):
        question = questions.get(number or 0)
        if question is None or (not value and again is None):
            continue
        says = kind.yes_or_no(value)
        if says or (value and target == question.target_id):
            found[question.pk, target] = tuple(part for part, holds in says.items() if holds)
        elif not value:
            found.pop((question.pk, target), None)
    return found
