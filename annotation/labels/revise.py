"""Aggregates the answers of a track by another method: by majority, or by the model of Dawid and
Skene. Labels are only appended.

The model is fitted to all answers of a track, for each interface with yes-or-no questions
separately: each statement about a target is one unit (`votes`). Referents of mentions, and names in
documents, keep the majority. In documents read in full, a statement that too few marked is missing
and never false, since readers overlook things; later labels replace earlier ones (`Label.again`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np
from django.db import transaction

from annotation.interfaces.base import Interface, parts_by_target, value_of
from annotation.interfaces.registry import asking_yes_or_no, interface_of
from annotation.interfaces.shared.majority import parts_by_majority
from annotation.models import Policy, Question, Response
from estimators.agreement import dawid_skene
from kbpo import clock
from kbpo.accounts.audit import note
from kbpo.accounts.models import User
from kbpo.instances.merge import parts_that_hold
from kbpo.instances.models import Label
from kbpo.instances.record import NewLabel, record
from kbpo.queue import one_at_a_time
from kbpo.tracks.models import Track
from kbpo.tracks.recall import kind_with_recall

MAJORITY, MODEL = "majority", "dawid_skene"
PAUSE = timedelta(minutes=10)  # between two fits
COMMITTING = timedelta(
    seconds=10
)  # at most from when a question says that it is settled until others see that
Sentence = tuple[int, int, str]
"""A question, a target that it asks about, and a sentence about that on its page"""


@dataclass(frozen=True)
class Votes:
    """The answers to one question about one target, and the parts that hold by the latest label."""

    question: Question
    target: int
    sentences: Mapping[str, Sequence[str]]
    """Yes-or-no statement -> the parts that it represents"""
    shown: Sequence[str]
    """What is settled, in the order of the page: one sentence stands for all parts that say the
    same"""
    workers: tuple[int, ...]
    yes: Mapping[str, frozenset[int]]
    """Statement -> the workers who affirmed it"""
    holds: tuple[str, ...] = ()

    def parts_held(self, held: Collection[str]) -> tuple[str, ...]:
        """Return the parts that hold, given the statements that do."""
        found = {
            part for sentence, parts in self.sentences.items() if sentence in held for part in parts
        }
        return tuple(part for part in self.shown if part in found)

    def by_majority(self) -> tuple[str, ...]:
        """Return the parts that hold by majority."""
        return self.parts_held(
            {part for part, who in self.yes.items() if 2 * len(who) > len(self.workers)}
        )

    def answer_of_worker(self, worker: int) -> tuple[str, ...]:
        """Return the parts that hold by the answer of one worker."""
        return self.parts_held({part for part, who in self.yes.items() if worker in who})


def votes(track: Track, interface: str) -> list[Votes]:
    """Return the counted answers to all settled questions of a track, target by target, without
    flags.
    """
    questions = Question.objects.filter(
        track=track, interface=interface, status="settled", gold=None
    ).in_bulk()
    said = _read_worker_answers(questions, interface)
    labels = _latest_holds(questions, interface)
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


def _read_worker_answers(
    questions: Mapping[int, Question], interface: str
) -> dict[int, dict[int, Mapping[str, Sequence[str]]]]:
    """Return the answers that count, as a mapping: question -> worker -> target (as text) -> parts
    that hold according to the worker.
    """
    criterion = interface_of(interface).criterion
    responses = Response.objects.filter(
        question__in=list(questions), criterion=criterion, counts=True
    ).order_by("pk")
    said: dict[int, dict[int, Mapping[str, Sequence[str]]]] = defaultdict(dict)
    for pk, worker, target, value in responses.values_list(
        "question", "assignment__worker", "target", "value"
    ):
        said[pk][worker] = parts_by_target(target, value)
    return dict(said)


def votes_of(
    question: Question, said: Mapping[int, Mapping[str, Sequence[str]]]
) -> Iterator[Votes]:
    """Yield the votes about each target of a question."""
    workers = tuple(sorted(said))
    for asked in interface_of(question.interface).asked(question):
        yes: dict[str, set[int]] = defaultdict(set)
        for worker, holds in said.items():
            held = set(holds.get(str(asked.target), ()))
            for sentence in asked.sentences if held else ():
                if sentence in held:
                    yes[sentence].add(worker)
        frozen = {sentence: frozenset(who) for sentence, who in yes.items()}
        yield Votes(question, asked.target, asked.sentences, asked.shown, workers, frozen)


def _latest_holds(
    questions: Mapping[int, Question], interface: str
) -> dict[tuple[int, int], tuple[str, ...]]:
    """Return (question, target) -> parts that hold by the latest label from that question. Labels
    of flagged questions, and those that were replaced by an empty label, are left out.
    """
    page = interface_of(interface)
    labels = Label.objects.filter(source=source_of(page))
    if page.reads:
        documents = Question.objects.filter(pk__in=list(questions)).values("target__document")
        labels = labels.filter(target__document__in=documents)
    else:
        labels = labels.filter(target__in={one.target_id for one in questions.values()})
    found: dict[tuple[int, int], tuple[str, ...]] = {}
    labels = labels.filter(question__in=questions).order_by("created_at", "pk")
    for target, value, number, again in labels.values_list("target", "value", "question", "again"):
        question = questions.get(number or 0)
        if question is None or (not value and again is None):
            continue
        says = parts_that_hold(value)
        if says or (value and target == question.target_id):
            found[question.pk, target] = tuple(part for part, holds in says.items() if holds)
        elif not value:
            found.pop((question.pk, target), None)
    return found


@dataclass(frozen=True)
class Revision:
    """The effect of an aggregation method on the labels of a track."""

    method: str
    judgments: int
    """Number of targets"""
    labels: list[NewLabel]
    """Number of changed labels"""
    reasons: list[str]
    """Why an interface keeps the majority"""


def revision(track: Track, method: str, number: int) -> Revision:
    """Compute the labels that would change if a track's answers were aggregated by this method;
    nothing is stored.
    """
    if method not in (MAJORITY, MODEL):
        raise ValueError(
            f"There is no way of aggregating called {method!r}; there are {MAJORITY} and {MODEL}."
        )
    labels: list[NewLabel] = []
    reasons: list[str] = []
    judgments = 0
    for interface in asking_yes_or_no():
        said = votes(track, interface)
        posterior = None
        if method == MODEL and said:
            posterior, reason = _fit(said)
            if reason:
                reasons.append(f"{interface_of(interface).title}: {reason}")
        judgments += len(said)
        labels += _changed_labels(said, posterior, method, number)
    return Revision(method, judgments, labels, reasons)


def _fit(said: Sequence[Votes]) -> tuple[dict[Sentence, float] | None, str]:
    """Fit the model, and return the probability that each statement holds; None with the reason if
    it cannot be fitted.
    """
    kinds = _group_sentences(said)
    if not kinds:
        return None, "Nobody answered yet."
    answers = [
        (at, worker, int(worker in yes))
        for at, (workers, yes) in enumerate(kinds)
        for worker in workers
    ]
    unit, worker, told = np.array(answers, dtype=np.int64).T
    times = [len(some) for some in kinds.values()]
    result = dawid_skene(told, unit, worker, n_classes=2, times=times)
    if result.reason:
        return None, result.reason
    posterior: dict[Sentence, float] = {}
    for kind, row in zip(kinds.values(), result.posterior, strict=True):
        posterior |= dict.fromkeys(kind, float(row[1]))
    return posterior, ""


def _group_sentences(
    said: Sequence[Votes],
) -> dict[tuple[tuple[int, ...], frozenset[int]], list[Sentence]]:
    """Return (people asked, people who said yes) -> statements. Equal groups are one unit with a
    multiplicity, which keeps documents tractable.
    """
    kinds: dict[tuple[tuple[int, ...], frozenset[int]], list[Sentence]] = {}
    for tally in said:
        for sentence in tally.sentences:
            key = (tally.workers, tally.yes.get(sentence, frozenset()))
            kinds.setdefault(key, []).append((tally.question.pk, tally.target, sentence))
    return kinds


def _changed_labels(
    said: Sequence[Votes], posterior: dict[Sentence, float] | None, method: str, number: int
) -> list[NewLabel]:
    """Return the labels that change by the posterior or, without one, by majority."""
    labels = []
    for tally in said:
        after = tally.by_majority()
        if posterior is not None:
            keys = [(tally.question.pk, tally.target, sentence) for sentence in tally.sentences]
            after = tally.parts_held({key[2] for key in keys if posterior.get(key, 0.0) > 0.5})
        if set(after) != set(tally.holds):
            labels.append(_new_label(tally, after, method, number))
    return labels


def _new_label(tally: Votes, holds: tuple[str, ...], method: str, number: int) -> NewLabel:
    _, counted, disagreement = parts_by_majority(
        [tally.answer_of_worker(worker) for worker in tally.workers], tally.shown
    )
    page = interface_of(tally.question.interface)
    origin = f"{tally.question.origin}/{method}-{number}"
    return NewLabel(
        target_id=tally.target,
        value=value_of(tally.shown, holds, counted, in_document=bool(page.reads)),
        source=source_of(page),
        method=method,
        n=len(tally.workers),
        origin=f"{origin}/again-0" if page.reads else origin,
        disagreement=disagreement,
        question=tally.question.pk,
        again=0 if page.reads else None,
    )


@transaction.atomic
def switch(track: Track, method: str, who: User | None, why: str) -> Revision:
    """Aggregate a track's answers by this method from now on, and return the revision."""
    one_at_a_time("annotation.labels.revise", track.pk)
    policy, _ = Policy.objects.get_or_create(track=track)
    before = policy.aggregation
    made = _apply(track, policy, method)
    note(
        "add up by",
        f"track:{track.slug}",
        who=who,
        before=before,
        why=why,
        track=track.slug,
        after=f"{method}: {len(made.labels)} of {made.judgments} labels changed",
    )
    return made


def _apply(track: Track, policy: Policy, method: str) -> Revision:
    begun = (
        clock.now()
    )  # a question that is settled during the fit may not be in it: it is due for the next
    made = revision(track, method, policy.revision + 1)
    policy.revision += 1
    policy.aggregation, policy.fitted_at = method, begun - COMMITTING
    policy.save(update_fields=["revision", "aggregation", "fitted_at"])
    record(made.labels)
    for number in {label.question for label in made.labels if label.source == "document"}:
        kind_with_recall(track).store_facts(number or 0)
    return made


def refit(track: Track) -> int:
    """Fit the model of a track to the current answers, and return how many labels changed; 0 where
    no model is used. Runs in the transaction that changed the answers.
    """
    one_at_a_time("annotation.labels.revise", track.pk)
    policy = Policy.objects.filter(track=track, aggregation=MODEL).first()
    return len(_apply(track, policy, MODEL).labels) if policy is not None else 0


def tick() -> int:
    """Fit the models of tracks with new answers, and return how many labels changed."""
    changed = 0
    due = Policy.objects.filter(
        aggregation=MODEL, fitted_at__lt=clock.now() - PAUSE
    ).select_related("track")
    for policy in due:
        new = Question.objects.filter(
            track=policy.track, status="settled", status_since__gt=policy.fitted_at
        )
        if new.exists():
            with transaction.atomic():
                one_at_a_time("annotation.labels.revise", policy.track_id)
                made = _apply(policy.track, Policy.objects.get(pk=policy.pk), MODEL)
                changed += len(made.labels)
                note(
                    "add up again",
                    f"track:{policy.track.slug}",
                    track=policy.track.slug,
                    after=f"{MODEL}: {len(made.labels)} of {made.judgments} labels changed",
                    why="New answers have come since the last fit",
                )
    return changed


def source_of(interface: Interface) -> str:
    """Return the source of an interface's labels."""
    return Label.Source.DOCUMENT if interface.reads else Label.Source.CROWD
