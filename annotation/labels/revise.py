"""Adds a track's answers up anew: by majority, or by Dawid and Skene's model of who errs how;
labels are only appended.

The model is fitted to all answers of a track at once, for each interface by itself that asks yes or
no: each sentence about each target is one (`votes`). What mentions refer to, and names in
documents, stay with the majority. What a document's readers marked is said anew in the
place of what was said before (`Label.again`): what is not marked any more is missing again, and not
false.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import Avg

from annotation.budget.promises import committed, one_publisher
from annotation.hits.batch import one_more
from annotation.interfaces.registry import asking_yes_or_no, interface_of, reading
from annotation.interfaces.shared.majority import holding
from annotation.labels.votes import Votes, votes, votes_on
from annotation.models import Policy, Question
from annotation.questions.limits import most_asked, somebody_else
from annotation.questions.order import round_up
from estimators.agreement import dawid_skene
from kbpo import clock
from kbpo.accounts.audit import note
from kbpo.accounts.models import User
from kbpo.instances.record import NewLabel, record
from kbpo.money.purpose import Purpose
from kbpo.money.spend import balance
from kbpo.queue import nudge, one_at_a_time
from kbpo.tracks.models import Track
from kbpo.tracks.recall import RELATION, kind_with_recall

MAJORITY, MODEL = "majority", "dawid_skene"
UNSURE = (0.1, 0.9)  # a posterior between them asks one more worker
UNSURE_SHARE = 0.1
"""A whole document is read once more if the model is unsure of a greater share of its targets: it
costs dollars."""
PAUSE = timedelta(minutes=10)  # between two fits
COMMITTING = timedelta(
    seconds=10
)  # at most from when a question says that it is settled until others see that
TYPICAL = ((0.9, 0.1), (0.15, 0.85))
"""Of somebody of whom the last fit knew nothing: the chances that they say no and yes, where no
and where yes holds."""
Sentence = tuple[int, int, str]
"""A question, a target that it asks about, and a sentence about that on its page"""


@dataclass(frozen=True)
class Flip:
    """A label that another way of aggregating would change."""

    question: Question
    names: str
    """The target, where the question is about more than one"""
    before: tuple[str, ...]
    after: tuple[str, ...]
    posterior: dict[str, float]
    """part -> probability that it holds, of those that change; empty for the
    majority"""
    label: NewLabel


@dataclass(frozen=True)
class Revision:
    """What a way of aggregating makes of a track's answers."""

    method: str
    judgments: int
    """Targets, asked about alone or in documents"""
    flips: list[Flip]
    unsure: int
    """Targets with a posterior in between"""
    model: dict[str, Any] = field(default_factory=dict)
    """Interface -> the fit"""
    reasons: list[str] = field(default_factory=list)
    """Why the model was not fitted to an interface, which then keeps the majority"""


def revision(track: Track, method: str, number: int) -> Revision:
    """Return the labels that would change if a track's answers were aggregated by this method;
    nothing is written.
    """
    if method not in (MAJORITY, MODEL):
        raise ValueError(
            f"There is no way of aggregating called {method!r}; there are {MAJORITY} and {MODEL}."
        )
    flips: list[Flip] = []
    model: dict[str, Any] = {}
    reasons: list[str] = []
    judgments = unsure = 0
    for interface in asking_yes_or_no():
        said, posterior = votes(track, interface), dict[Sentence, float]()
        if method == MODEL and said:
            fitted, posterior, reason = _fit(said)
            if reason:
                reasons.append(f"{interface_of(interface).title}: {reason}")
            else:
                model[interface] = fitted
            unsure += sum(
                any(_between(chance) for chance in _chances(tally, posterior).values())
                for tally in said
            )
        judgments += len(said)
        flips += _flips(said, posterior if interface in model else None, method, number)
    return Revision(method, judgments, flips, unsure, model, reasons)


def _fit(said: Sequence[Votes]) -> tuple[dict[str, Any], dict[Sentence, float], str]:
    """Return the model as it is stored, the probability that each sentence holds, and why the model
    could not be fitted (empty if it was).
    """
    kinds = _alike(said)
    if not kinds:
        return {}, {}, "Nobody answered yet."
    answers = [
        (at, worker, int(worker in yes))
        for at, (workers, yes) in enumerate(kinds)
        for worker in workers
    ]
    unit, worker, told = np.array(answers, dtype=np.int64).T
    times = [len(some) for some in kinds.values()]
    result = dawid_skene(told, unit, worker, n_classes=2, times=times)
    if result.reason:
        return {}, {}, result.reason
    posterior: dict[Sentence, float] = {}
    for kind, row in zip(kinds.values(), result.posterior, strict=True):
        posterior |= dict.fromkeys(kind, float(row[1]))
    people = zip(result.annotator.tolist(), result.confusion.tolist(), strict=True)
    model = {
        "prior": result.prior.tolist(),
        "confusion": {str(one): matrix for one, matrix in people},
        "units": sum(times),
        "converged": result.converged,
    }
    return model, posterior, ""


def _alike(said: Sequence[Votes]) -> dict[tuple[tuple[int, ...], frozenset[int]], list[Sentence]]:
    """(who was asked, who of them said yes) -> the sentences. In documents nearly all have nobody's
    yes: to the model those that the same people read are one, many times.
    """
    kinds: dict[tuple[tuple[int, ...], frozenset[int]], list[Sentence]] = {}
    for tally in said:
        for sentence in tally.sentences:
            key = (tally.workers, tally.yes.get(sentence, frozenset()))
            kinds.setdefault(key, []).append((tally.question.pk, tally.target, sentence))
    return kinds


def _chances(tally: Votes, posterior: dict[Sentence, float]) -> dict[str, float]:
    """Sentence -> the probability that it holds, of a target."""
    keys = [(sentence, (tally.question.pk, tally.target, sentence)) for sentence in tally.sentences]
    return {sentence: posterior[key] for sentence, key in keys if key in posterior}


def _flips(
    said: Sequence[Votes], posterior: dict[Sentence, float] | None, method: str, number: int
) -> list[Flip]:
    """Return the labels that change, by the model's posterior or, without one, by majority."""
    flips = []
    for tally in said:
        chances = _chances(tally, posterior or {})
        likely = tally.expanded({part for part, chance in chances.items() if chance > 0.5})
        after = tally.by_majority() if posterior is None else likely
        changed = set(after) ^ set(tally.holds)
        if changed:
            told = {part: chance for part, chance in chances.items() if part in changed}
            label = _label(tally, after, method, number)
            flips.append(Flip(tally.question, tally.names, tally.holds, after, told, label))
    return flips


def _label(tally: Votes, holds: tuple[str, ...], method: str, number: int) -> NewLabel:
    _, counted, disagreement = holding(
        [tally.answer_of_worker(worker) for worker in tally.workers], tally.shown
    )
    page = interface_of(tally.question.interface)
    origin = f"{tally.question.origin}/{method}-{number}"
    return NewLabel(
        target_id=tally.target,
        value=page.value_of(tally.shown, holds, counted),
        source=page.source,
        method=method,
        n=len(tally.workers),
        origin=f"{origin}/again-0" if page.reads else origin,
        disagreement=disagreement,
        question=tally.question.pk,
        again=0 if page.reads else None,
    )


@transaction.atomic
def switch(track: Track, method: str, who: User | None, why: str) -> Revision:
    """Return the revision, applied: from now on the track's answers are aggregated by this method.
    Labels are appended.
    """
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
        after=f"{method}: {len(made.flips)} of {made.judgments} labels changed",
    )
    return made


def _apply(track: Track, policy: Policy, method: str) -> Revision:
    begun = (
        clock.now()
    )  # a question that is settled during the fit may not be in it: it is due for the next
    made = revision(track, method, policy.revision + 1)
    policy.revision += 1
    policy.aggregation, policy.model, policy.fitted_at = method, made.model, begun - COMMITTING
    policy.save(update_fields=["revision", "aggregation", "model", "fitted_at"])
    record(flip.label for flip in made.flips)
    of_documents = reading(RELATION)
    questions = {flip.question for flip in made.flips if flip.question.interface in of_documents}
    for number in {question.pk for question in questions}:
        kind_with_recall(track).store_facts(number)
    return made


def refit(track: Track) -> int:
    """Return how many labels of a track change since its model is fitted anew, to the answers that
    count now. Runs in the transaction in which these changed; nothing where the track does not use
    the model.
    """
    one_at_a_time("annotation.labels.revise", track.pk)
    policy = Policy.objects.filter(track=track, aggregation=MODEL).first()
    return len(_apply(track, policy, MODEL).flips) if policy is not None else 0


def tick() -> int:
    """Return how many labels changed where tracks use the model and new answers have come since it
    was fitted.
    """
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
                changed += len(made.flips)
                note(
                    "add up again",
                    f"track:{policy.track.slug}",
                    track=policy.track.slug,
                    after=f"{MODEL}: {len(made.flips)} of {made.judgments} labels changed",
                    why="New answers have come since the last fit",
                )
    return changed


class LockHeld(Exception):
    """Somebody else is promising a payer's money at this moment: whoever holds questions must not
    wait for that.
    """


def ask_one_more(
    question: Question, models: dict[str, Any], free: dict[Purpose, Decimal], *, tied: bool = False
) -> bool:
    """Return whether an answered question goes back to people: they are `tied` over what a mention
    refers to and somebody else may answer, or its model is unsure of it; fewer than five answered,
    and the money reaches. The caller holds the question's lock, and keeps for each payer what is
    `free` of its money: that is counted once in a transaction. Raises LockHeld.
    """
    if question.answers_wanted >= most_asked(question):
        return False
    model = models.get(question.interface)
    unsure = _is_unsure(question, model) if model else False
    if not unsure and not (tied and somebody_else(question)):
        return False
    if question.payer not in free:
        if not one_publisher(question.payer, wait=False):
            raise LockHeld
        free[question.payer] = balance(purpose=question.payer).open - committed(question.payer)
    if free[question.payer] < question.price:
        return False
    free[question.payer] -= question.price
    one_more([question])
    question.move("published", "People are divided: one more is asked.", asked_again=False)
    nudge("publish")
    return True


def _is_unsure(question: Question, model: dict[str, Any]) -> bool:
    """Return whether one more answer is worth its price: about one target, if the model is unsure
    of any of its sentences; about a whole document, if it is unsure of more than a tenth of its
    targets.
    """
    said = votes_on(question)
    unsure = sum(
        any(_between(chance) for chance in posterior_of(tally, model).values()) for tally in said
    )
    is_whole = bool(interface_of(question.interface).reads)
    return unsure > (UNSURE_SHARE * len(said) if is_whole else 0)


def posterior_of(tally: Votes, model: dict[str, Any]) -> dict[str, float]:
    """Sentence -> probability that it holds, by the last fit; of workers whom that did
    not know, the typical ones.
    """
    prior = np.log(np.array(model["prior"]))
    of = {
        worker: np.log(np.array(model["confusion"].get(str(worker), TYPICAL)))
        for worker in tally.workers
    }
    found = {}
    for sentence in tally.sentences:
        yes = tally.yes.get(sentence, frozenset())
        logs = prior + sum(matrix[:, int(worker in yes)] for worker, matrix in of.items())
        found[sentence] = float(1 / (1 + np.exp(logs[0] - logs[1])))
    return found


def _between(chance: float) -> bool:
    return UNSURE[0] < chance < UNSURE[1]


def price_of_reader(track: Track) -> Decimal | None:
    """Return what one more reader of a whole document costs on a track, on average; None if none
    was asked yet.
    """
    questions = Question.objects.filter(track=track, interface__in=reading(RELATION), gold=None)
    found = questions.aggregate(Avg("price"))["price__avg"]
    return None if found is None else round_up(found)
