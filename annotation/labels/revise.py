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

from annotation.interfaces.base import Interface, label_value, parts_by_target
from annotation.interfaces.registry import interface_by_name, yes_no_interfaces
from annotation.interfaces.shared.majority import parts_by_majority
from annotation.models import Policy, Question, Response
from estimators.agreement import dawid_skene
from kbpo import clock
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.models import User
from kbpo.instances.merge import parts_that_hold
from kbpo.instances.models import Label
from kbpo.instances.record import NewLabel, record_labels
from kbpo.queue import take_transaction_lock
from kbpo.tracks.models import Track
from kbpo.tracks.recall import kind_with_recall

MAJORITY, MODEL = "majority", "dawid_skene"
PAUSE = timedelta(minutes=10)
"""Time between two fits"""
COMMITTING = timedelta(seconds=10)
"""Longest time from settling a question until other transactions see it"""
Sentence = tuple[int, int, str]
"""A question, one of its targets, and a statement about that target on its page"""


@dataclass(frozen=True)
class TargetVotes:
    """The answers to one question about one target, and the parts (directed relations) that hold by
    the latest label.
    """

    question: Question
    target: int
    sentences: Mapping[str, Sequence[str]]
    """Yes-or-no statement -> the parts that the statement represents"""
    shown: Sequence[str]
    """The parts that the question settles, in page order; one statement stands for all equivalent
    parts"""
    workers: tuple[int, ...]
    yes: Mapping[str, frozenset[int]]
    """Statement -> the workers who affirmed it"""
    holds: tuple[str, ...] = ()

    def parts_implied_by(self, statements_that_hold: Collection[str]) -> tuple[str, ...]:
        """Return the shown parts (directed relations) that follow from the statements that hold."""
        parts = set().union(
            *(self.sentences[one] for one in statements_that_hold if one in self.sentences)
        )
        return tuple(part for part in self.shown if part in parts)

    def majority_parts(self) -> tuple[str, ...]:
        """Return the parts (directed relations) that a majority affirmed."""
        return self.parts_implied_by(
            {part for part, who in self.yes.items() if 2 * len(who) > len(self.workers)}
        )


def read_votes(track: Track, interface: str) -> list[TargetVotes]:
    """Return the counted answers to all questions of a track that have labels, target by target.
    Questions that nobody answered, or that most flagged, are left out.
    """
    questions = Question.objects.filter(
        track=track, interface=interface, status="settled", gold=None
    ).in_bulk()
    responses = Response.objects.filter(
        question__in=list(questions), criterion=interface_by_name(interface).criterion, counts=True
    ).order_by("pk")
    answers: dict[int, dict[int, Mapping[str, Sequence[str]]]] = defaultdict(dict)
    columns = ("question", "assignment__worker", "target", "value")
    for pk, worker, target, value in responses.values_list(*columns):
        answers[pk][worker] = parts_by_target(target, value)
    labels = _latest_holds(questions, interface)
    votes = []
    for pk, question in sorted(questions.items()):
        if pk in answers and (pk, question.target_id) in labels:
            for of_target in question_votes(question, answers[pk]):
                holds = labels.get((pk, of_target.target), ())
                votes.append(replace(of_target, holds=holds))
    return votes


def question_votes(
    question: Question, answers: Mapping[int, Mapping[str, Sequence[str]]]
) -> Iterator[TargetVotes]:
    """Yield the votes about each target of a question. `answers` maps worker -> target (as text) ->
    parts (directed relations) that hold.
    """
    workers = tuple(sorted(answers))
    for asked in interface_by_name(question.interface).asked_statements(question):
        yes: dict[str, set[int]] = defaultdict(set)
        for worker, holds in answers.items():
            for sentence in holds.get(str(asked.target), ()):
                if sentence in asked.sentences:
                    yes[sentence].add(worker)
        frozen = {sentence: frozenset(who) for sentence, who in yes.items()}
        yield TargetVotes(question, asked.target, asked.sentences, asked.shown, workers, frozen)


def _latest_holds(
    questions: Mapping[int, Question], interface: str
) -> dict[tuple[int, int], tuple[str, ...]]:
    """Return (question, target) -> parts (directed relations) that hold by the latest label from
    that question. Labels of flagged questions, and those that were replaced by an empty label, are
    left out.
    """
    page = interface_by_name(interface)
    labels = Label.objects.filter(source=label_source(page), question__in=questions)
    if page.reads:
        documents = Question.objects.filter(pk__in=list(questions)).values("target__document")
        labels = labels.filter(target__document__in=documents)
    else:
        labels = labels.filter(target__in={one.target_id for one in questions.values()})
    latest: dict[tuple[int, int], tuple[str, ...]] = {}
    labels = labels.order_by("created_at", "pk")
    for target, value, number, again in labels.values_list("target", "value", "question", "again"):
        if number is None:
            continue
        says = parts_that_hold(value)
        if says or (value and target == questions[number].target_id):
            latest[number, target] = tuple(part for part, holds in says.items() if holds)
        elif not value and again is not None:
            latest.pop((number, target), None)
    return latest


@dataclass(frozen=True)
class Revision:
    """The effect of an aggregation method on the labels of a track."""

    method: str
    judgments: int
    """Number of targets"""
    labels: list[NewLabel]
    """The labels that change"""
    reasons: list[str]
    """Why an interface keeps the majority"""

    def __str__(self) -> str:
        return f"{self.method}: {len(self.labels)} of {self.judgments} labels changed"


def compute_revision(track: Track, method: str, number: int) -> Revision:
    """Compute the labels that would change if a track's answers were aggregated by this method.
    Nothing is stored.
    """
    if method not in (MAJORITY, MODEL):
        raise ValueError(
            f"There is no way of aggregating called {method!r}; there are {MAJORITY} and {MODEL}."
        )
    labels: list[NewLabel] = []
    reasons: list[str] = []
    judgments = 0
    for interface in yes_no_interfaces():
        votes = read_votes(track, interface)
        judgments += len(votes)
        posterior = None
        if method == MODEL and votes:
            posterior, reason = _statement_probabilities(votes)
            if reason:
                reasons.append(f"{interface_by_name(interface).title}: {reason}")
        for tally in votes:
            after = tally.majority_parts()
            if posterior is not None:
                key = (tally.question.pk, tally.target)
                after = tally.parts_implied_by(
                    {one for one in tally.sentences if posterior.get((*key, one), 0.0) > 0.5}
                )
            if set(after) != set(tally.holds):
                labels.append(_new_label(tally, after, method, number))
    return Revision(method, judgments, labels, reasons)


def _statement_probabilities(
    votes: Sequence[TargetVotes],
) -> tuple[dict[Sentence, float] | None, str]:
    """Fit the model, and return the probability that each statement holds; None with the reason if
    it cannot be fitted. Statements that the same people affirmed and denied are one unit with a
    multiplicity, which keeps documents tractable.
    """
    groups: dict[tuple[tuple[int, ...], frozenset[int]], list[Sentence]] = {}
    for tally in votes:
        for sentence in tally.sentences:
            group = (tally.workers, tally.yes.get(sentence, frozenset()))
            groups.setdefault(group, []).append((tally.question.pk, tally.target, sentence))
    if not groups:
        return None, "Nobody answered yet."
    answers = [
        (unit, worker, int(worker in yes))
        for unit, (workers, yes) in enumerate(groups)
        for worker in workers
    ]
    units, workers, values = np.array(answers, dtype=np.int64).T
    times = [len(sentences) for sentences in groups.values()]
    result = dawid_skene(values, units, workers, n_classes=2, times=times)
    if result.reason:
        return None, result.reason
    posterior: dict[Sentence, float] = {}
    for sentences, row in zip(groups.values(), result.posterior, strict=True):
        posterior |= dict.fromkeys(sentences, float(row[1]))
    return posterior, ""


def _new_label(tally: TargetVotes, holds: tuple[str, ...], method: str, number: int) -> NewLabel:
    by_worker = []
    for worker in tally.workers:
        affirmed = {sentence for sentence, who in tally.yes.items() if worker in who}
        by_worker.append(tally.parts_implied_by(affirmed))
    _, counted, disagreement = parts_by_majority(by_worker, tally.shown)
    page = interface_by_name(tally.question.interface)
    origin = f"{tally.question.origin}/{method}-{number}"
    return NewLabel(
        target_id=tally.target,
        value=label_value(tally.shown, holds, counted, in_document=bool(page.reads)),
        source=label_source(page),
        method=method,
        n=len(tally.workers),
        origin=f"{origin}/again-0" if page.reads else origin,
        disagreement=disagreement,
        question=tally.question.pk,
        again=0 if page.reads else None,
    )


@transaction.atomic
def switch_aggregation(track: Track, method: str, who: User | None, why: str) -> Revision:
    """Aggregate a track's answers by this method from now on, and return the revision."""
    take_transaction_lock("annotation.labels.revise", track.pk)
    policy, _ = Policy.objects.get_or_create(track=track)
    before = policy.aggregation
    made = _record_revision(track, policy, method)
    about = f"track:{track.slug}"
    write_audit_entry(
        "add up by", about, who=who, before=before, why=why, track=track.slug, after=str(made)
    )
    return made


def _record_revision(track: Track, policy: Policy, method: str) -> Revision:
    # A question that is settled during the fit may be missing in it, and is due for the next one.
    begun = clock.now()
    made = compute_revision(track, method, policy.revision + 1)
    policy.revision += 1
    policy.aggregation, policy.fitted_at = method, begun - COMMITTING
    policy.save(update_fields=["revision", "aggregation", "fitted_at"])
    record_labels(made.labels)
    for number in {label.question for label in made.labels if label.source == "document"}:
        kind_with_recall(track).store_facts(number or 0)
    return made


def refit_track(track: Track) -> Revision | None:
    """Fit the model of a track to the current answers, in the caller's transaction, and return the
    revision; None where no model is used.
    """
    take_transaction_lock("annotation.labels.revise", track.pk)
    policy = Policy.objects.filter(track=track, aggregation=MODEL).first()
    return None if policy is None else _record_revision(track, policy, MODEL)


def tick() -> int:
    """Fit the models of tracks with new answers, and return how many labels changed."""
    changed = 0
    due = Policy.objects.filter(
        aggregation=MODEL, fitted_at__lt=clock.now() - PAUSE
    ).select_related("track")
    for policy in due:
        track = policy.track
        new = Question.objects.filter(
            track=track, status="settled", status_since__gt=policy.fitted_at
        )
        if new.exists():
            with transaction.atomic():
                if (made := refit_track(track)) is None:
                    continue
                changed += len(made.labels)
                why = "New answers have come since the last fit"
                about = f"track:{track.slug}"
                write_audit_entry("add up again", about, track=track.slug, after=str(made), why=why)
    return changed


def label_source(interface: Interface) -> str:
    """Return the source of an interface's labels."""
    return Label.Source.DOCUMENT if interface.reads else Label.Source.CROWD
