"""Adds a track's answers up anew: by majority, or by Dawid and Skene's model of who errs how; labels are only appended.

The model is fitted to all answers of a track at once: each directed predicate of each question is one yes or no. So it
is for interfaces that ask such things (`relation`); what mentions refer to stays with the majority.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np
from django.db import transaction
from django.utils import timezone

from annotation.batch import one_more
from annotation.interfaces.base import Unit
from annotation.interfaces.majority import holding
from annotation.interfaces.payload import Pair, parts_of
from annotation.interfaces.registry import interface_of
from annotation.models import Policy, Question, Response
from annotation.publish import committed
from estimators.agreement import dawid_skene
from kbpo.accounts.audit import note
from kbpo.accounts.models import User
from kbpo.instances.merge import AGAIN
from kbpo.instances.models import Label
from kbpo.instances.record import NewLabel, record
from kbpo.money.spend import balance
from kbpo.queue import nudge, one_at_a_time
from kbpo.tracks.models import Track

INTERFACE = "relation"
MAJORITY, MODEL = "majority", "dawid_skene"
UNSURE = (0.1, 0.9)  # a posterior between them asks one more worker
CAP = 5  # answers to one question, however divided people are
PAUSE = timedelta(minutes=10)  # between two fits
TYPICAL = ((0.9, 0.1), (0.15, 0.85))
"""Of somebody of whom the last fit knew nothing: the chances that they say no and yes, where no and where yes holds."""


@dataclass(frozen=True)
class Votes:
    """What one question's workers said: unit -> worker -> yes; and the label that counts of the crowd now."""

    question: Question
    said: dict[Unit, dict[int, bool]]
    holds: tuple[str, ...]


@dataclass(frozen=True)
class Flip:
    """A label that another way of adding up would change."""

    question: Question
    before: tuple[str, ...]
    after: tuple[str, ...]
    posterior: dict[str, float]
    """directed predicate -> probability that it holds, of those that change; empty for the majority"""
    label: NewLabel


@dataclass(frozen=True)
class Revision:
    """What a way of adding up makes of a track's answers."""

    method: str
    questions: int
    flips: list[Flip]
    unsure: int
    """Questions with a posterior in between"""
    model: dict[str, Any] = field(default_factory=dict)


def revision(track: Track, method: str, number: int) -> Revision:
    """The labels that would change if a track's answers were added up by this method; nothing is written."""
    votes = _votes(track)
    if method == MAJORITY:
        found = {one.question.pk: _by_majority(one) for one in votes}
        return Revision(method, len(votes), _flips(votes, found, {}, method, number), 0)
    if method != MODEL:
        raise ValueError(f"There is no way of adding up called {method!r}; there are {MAJORITY} and {MODEL}.")
    model, posterior = _fit(votes)
    found = {one.question.pk: _likely(one, posterior) for one in votes}
    unsure = sum(any(_between(posterior[one.question.pk, unit]) for unit in one.said) for one in votes)
    return Revision(method, len(votes), _flips(votes, found, posterior, method, number), unsure, model)


def _votes(track: Track) -> list[Votes]:
    """The answers that count to all settled questions of a track; flags are no votes."""
    questions = Question.objects.filter(track=track, interface=INTERFACE, status="settled", gold=None).in_bulk()
    said: dict[int, dict[Unit, dict[int, bool]]] = defaultdict(lambda: defaultdict(dict))
    interface = interface_of(INTERFACE)
    rows = Response.objects.filter(question__in=questions, criterion="relation", excluded_reason="")
    for response in rows.select_related("assignment").order_by("pk"):
        for unit, value in interface.units(questions[response.question_id], response):
            if unit[0] == "relation":
                said[response.question_id][unit][response.assignment.worker_id] = value == "yes"
    labels = _crowd_labels(questions)
    return [
        Votes(question, dict(said[pk]), labels[pk])
        for pk, question in sorted(questions.items())
        if said[pk] and pk in labels
    ]


def _crowd_labels(questions: dict[int, Question]) -> dict[int, tuple[str, ...]]:
    """What the crowd's latest label from each question says; flagged ones, which say nothing, are left out, and so is
    what was before an answer that was added up again to nothing."""
    targets = {question.target_id: pk for pk, question in questions.items()}
    found: dict[int, tuple[str, ...]] = {}
    for label in Label.objects.filter(target__in=targets, source="crowd").order_by("created_at", "pk"):
        origin = label.origin.split("/")[0]
        pk = int(origin.partition(":")[2]) if origin.startswith("question:") else 0
        if pk in questions and label.target_id == questions[pk].target_id:
            if "holds" in label.value:
                found[pk] = tuple(label.value["holds"])
            elif AGAIN in label.origin:
                found.pop(pk, None)
    return found


def _by_majority(one: Votes) -> tuple[str, ...]:
    return _expanded(one.question, {unit: 2.0 * sum(said.values()) > len(said) for unit, said in one.said.items()})


def _likely(one: Votes, posterior: dict[tuple[int, Unit], float]) -> tuple[str, ...]:
    return _expanded(one.question, {unit: posterior[one.question.pk, unit] > 0.5 for unit in one.said})


def _expanded(question: Question, yes: dict[Unit, bool]) -> tuple[str, ...]:
    """The parts that hold, in the order of the page: one sentence stands for all that say the same."""
    pair = Pair.of(question.payload)
    held = {part for one in pair.data["predicates"] if yes.get(("relation", one["part"])) for part in parts_of(one)}
    return tuple(part for part in (question.shown or pair.parts) if part in held)


def _fit(votes: Sequence[Votes]) -> tuple[dict[str, Any], dict[tuple[int, Unit], float]]:
    """The model, as it is stored, and the probability that each unit holds."""
    units = [(one.question.pk, unit) for one in votes for unit in one.said]
    place = {unit: at for at, unit in enumerate(units)}
    flat = [
        (place[one.question.pk, unit], worker, yes)
        for one in votes for unit, said in one.said.items() for worker, yes in said.items()
    ]  # fmt: skip
    if not flat:
        return {}, {}
    table = np.array(flat, dtype=np.int64)
    result = dawid_skene(table[:, 2], table[:, 0], table[:, 1], n_classes=2)
    posterior = {units[code]: float(row[1]) for code, row in zip(result.unit, result.posterior, strict=True)}
    workers = zip(result.annotator.tolist(), result.confusion.tolist(), strict=True)
    model = {
        "prior": result.prior.tolist(),
        "confusion": {str(worker): matrix for worker, matrix in workers},
        "units": len(units),
        "converged": result.converged,
    }
    return model, posterior


def _flips(
    votes: Sequence[Votes], found: dict[int, tuple[str, ...]], posterior: dict[tuple[int, Unit], float], method: str,
    number: int,
) -> list[Flip]:  # fmt: skip
    flips = []
    for one in votes:
        question, after = one.question, found[one.question.pk]
        if set(after) != set(one.holds):
            changed = set(after) ^ set(one.holds)
            chances = {part: posterior[question.pk, unit] for unit in one.said
                       if (part := unit[1]) in changed and (question.pk, unit) in posterior}  # fmt: skip
            flips.append(Flip(question, one.holds, after, chances, _label(one, after, method, number)))
    return flips


def _label(one: Votes, holds: tuple[str, ...], method: str, number: int) -> NewLabel:
    shown = one.question.shown or Pair.of(one.question.payload).parts
    workers = sorted({worker for said in one.said.values() for worker in said})
    answers = [_expanded(one.question, {unit: said.get(worker, False) for unit, said in one.said.items()})
               for worker in workers]  # fmt: skip
    _, votes, disagreement = holding(answers, shown)
    value = {"shown": list(shown), "holds": list(holds), "votes": votes}
    origin = f"{one.question.origin}/{method}-{number}"
    return NewLabel(one.question.target_id, value, "crowd", method, len(workers), origin, disagreement)


@transaction.atomic
def switch(track: Track, method: str, who: User | None, why: str) -> Revision:
    """The revision, applied: from now on the track's answers are added up by this method. Labels are appended."""
    one_at_a_time("annotation.revise", track.pk)
    policy, _ = Policy.objects.get_or_create(track=track)
    before = policy.aggregation
    made = _apply(track, policy, method)
    note("add up by", f"track:{track.slug}", who=who, before=before, why=why, track=track.slug,
         after=f"{method}: {len(made.flips)} of {made.questions} labels changed")  # fmt: skip
    return made


def _apply(track: Track, policy: Policy, method: str) -> Revision:
    made = revision(track, method, policy.revision + 1)
    policy.revision += 1
    policy.aggregation, policy.model, policy.fitted_at = method, made.model, timezone.now()
    policy.save(update_fields=["revision", "aggregation", "model", "fitted_at"])
    record(flip.label for flip in made.flips)
    return made


def add_up_with_model(track: Track) -> int:
    """How many labels of a track change since its model is fitted anew, to the answers that count now. Runs in the
    transaction in which these changed; nothing where the track does not use the model."""
    one_at_a_time("annotation.revise", track.pk)
    policy = Policy.objects.filter(track=track, aggregation=MODEL).first()
    return len(_apply(track, policy, MODEL).flips) if policy is not None else 0


def tick() -> int:
    """How many labels changed where tracks use the model and new answers have come since it was fitted."""
    changed = 0
    due = Policy.objects.filter(aggregation=MODEL, fitted_at__lt=timezone.now() - PAUSE).select_related("track")
    for policy in due:
        new = Question.objects.filter(track=policy.track, status="settled", status_since__gt=policy.fitted_at)
        if new.exists():
            with transaction.atomic():
                one_at_a_time("annotation.revise", policy.track_id)
                made = _apply(policy.track, Policy.objects.get(pk=policy.pk), MODEL)
                changed += len(made.flips)
                note("add up again", f"track:{policy.track.slug}", track=policy.track.slug,
                     after=f"{MODEL}: {len(made.flips)} of {made.questions} labels changed",
                     why="New answers have come since the last fit")  # fmt: skip
    return changed


def ask_one_more(question: Question) -> bool:
    """Whether an answered question goes back to people: the model is unsure of it, fewer than five answered, and the
    money reaches. The caller holds the question's lock."""
    policy = Policy.objects.filter(track=question.track_id, aggregation=MODEL).first()
    if policy is None or not policy.model or question.interface != INTERFACE or question.answers_wanted >= CAP:
        return False
    if not any(_between(chance) for chance in posterior_of(question, policy.model).values()):
        return False
    if balance(purpose=question.payer).open - committed(question.payer) < question.price:
        return False
    one_more([question])
    question.move("published", "People are divided: one more is asked.")
    nudge("publish")
    return True


def posterior_of(question: Question, model: dict[str, Any]) -> dict[Unit, float]:
    """unit -> probability that it holds, by the last fit; of workers whom that did not know, the typical ones."""
    interface, prior = interface_of(question.interface), np.log(np.array(model["prior"]))
    rows = question.responses.filter(criterion="relation", excluded_reason="").select_related("assignment")
    logs: dict[Unit, np.ndarray[Any, Any]] = {}
    for response in rows:
        matrix = np.log(np.array(model["confusion"].get(str(response.assignment.worker_id), TYPICAL)))
        for unit, value in interface.units(question, response):
            if unit[0] == "relation":
                logs[unit] = logs.get(unit, prior) + matrix[:, int(value == "yes")]
    return {unit: float(1 / (1 + np.exp(one[0] - one[1]))) for unit, one in logs.items()}


def _between(chance: float) -> bool:
    return UNSURE[0] < chance < UNSURE[1]
