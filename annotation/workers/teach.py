"""Teaches an interface: a tutorial of explained questions with two attempts, stored by version, and
paid once if promised.

A tutorial is a file `tutorial.json` in the directory of its interface: its version, how many
answers must be right, and questions. Each question has the payload as a track would write it, the
right answer as the form would send it, and an explanation. Answers are compared as the interface
parses them, so a new interface needs only its file.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_UP, Decimal
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef

from annotation import interfaces
from annotation.interfaces.base import ParsedResponse
from annotation.interfaces.registry import INTERFACES, interface_by_name
from annotation.interfaces.shared.statements import SideBySide, side_by_side
from annotation.models import (
    UNLISTED,
    Assignment,
    Bonus,
    Payment,
    Qualification,
    Question,
    Worker,
)
from annotation.platforms.registry import local_platform_names, platform_fee_rate
from annotation.workers.intake import tutorial_rewards
from annotation.workers.models import TutorialRun
from annotation.workers.worker import belongs_to_worker_filter, has_sent_in
from kbpo import clock
from kbpo.money.models import Ledger, Purpose
from kbpo.money.spend import (
    ZERO,
    OverBudget,
    release_money,
    remaining_allowance,
    reserve_money,
    spend_money,
)
from kbpo.tracks.texts import declared

HOME = Path(interfaces.__file__).parent
"""Each interface has its tutorial in its own directory."""
ATTEMPTS = 2
MOST_UNCLAIMED = 50
"""Greatest number of promises at one time to people who have never submitted a HIT. Invented ids on
task pages can reserve no more money than that.
"""
CENT = Decimal("0.01")


@dataclass(frozen=True)
class Tutorial:
    """The tutorial of one interface."""

    interface: str
    version: int
    needed: int
    minutes: int
    """Approximate minutes, including the explanations"""
    intro: list[str]
    criteria: dict[str, str]
    questions: list[dict[str, Any]]
    again: list[dict[str, Any]] = field(default_factory=list)
    """As many questions for the second attempt, different ones if there are any; empty: the same"""
    payload: dict[str, Any] = field(default_factory=dict)
    """The fields that the payloads of all questions share"""

    @property
    def seconds(self) -> int:
        """Return the approximate duration of the tutorial in seconds."""
        return 60 * self.minutes

    @property
    def has_others(self) -> bool:
        """Return whether the second attempt has only different questions."""
        return bool(self.again) and not any(one in self.questions for one in self.again)

    def asked(self, attempt: int = 1) -> list[dict[str, Any]]:
        """Return the questions of an attempt. The second attempt has different ones, if there are
        any, so that nobody passes from memory.
        """
        return self.again if attempt > 1 and self.again else self.questions

    def key(self, number: int, attempt: int = 1) -> str:
        """Return the key of the number-th question of an attempt, the same in all versions."""
        return f"{self.interface}/{attempt}/{number}"

    def question(self, number: int, attempt: int = 1) -> Question:
        """Return the number-th question (from 1) of an attempt, unsaved."""
        interface = interface_by_name(self.interface)
        return Question(
            interface=self.interface,
            payload=self.payload | self.asked(attempt)[number - 1]["payload"],
            target_id=0,
            reward=interface.terms.reward,
            extra=interface.terms.extra,
            seconds=interface.terms.seconds,
        )


def tutorials() -> dict[str, Tutorial]:
    """Return interface -> tutorial, for built-in interfaces and declared forms."""
    return builtin_tutorials() | _tutorials_of_forms(declared.declared_tutorials())


def _tutorials_of_forms(declared: Mapping[str, dict[str, Any] | None]) -> dict[str, Tutorial]:
    """Return interface -> tutorial of declared forms."""
    return {name: Tutorial(**fields) for name, fields in declared.items() if fields is not None}


@cache
def builtin_tutorials() -> dict[str, Tutorial]:
    """Return interface -> tutorial of the built-in interfaces."""
    by_interface = {}
    for path in sorted(HOME.glob("*/tutorial.json")):
        tutorial = Tutorial(**json.loads(path.read_text(encoding="utf-8")))
        if tutorial.interface in INTERFACES:
            by_interface[tutorial.interface] = tutorial
    return by_interface


def interfaces_worker_may_answer(worker: Worker, assignment: str = "") -> list[str]:
    """Return the interfaces through which a worker may be asked while they hold this assignment:
    those without a tutorial, and those whose tutorial they passed.
    """
    runs = TutorialRun.objects.filter(
        belongs_to_worker_filter(assignment), worker=worker, passed=True
    )
    passed = set(runs.values_list("interface", "version"))
    return interfaces_passed(passed, declared.declared_tutorials())


def interfaces_passed(
    passed_versions: set[tuple[str, int]], of_forms: Mapping[str, dict[str, Any] | None]
) -> list[str]:
    """Return the interfaces open to a worker who passed these versions of tutorials; `of_forms` has
    the tutorials of declared forms.
    """
    versions = {
        name: tutorial.version
        for name, tutorial in (builtin_tutorials() | _tutorials_of_forms(of_forms)).items()
    }
    return [
        name
        for name in (*INTERFACES, *of_forms)
        if name not in versions or (name, versions[name]) in passed_versions
    ]


def tutorial_attempts(
    worker: Worker, tutorial: Tutorial, assignment: str = ""
) -> list[TutorialRun]:
    """Return a worker's attempts at this version of a tutorial in order, while they hold this
    assignment.
    """
    tutorial_runs = TutorialRun.objects.filter(
        belongs_to_worker_filter(assignment),
        worker=worker,
        interface=tutorial.interface,
        version=tutorial.version,
    )
    return list(tutorial_runs.order_by("attempt", "pk"))


def learnable_interfaces(worker: Worker) -> list[str]:
    """Return the interfaces whose tutorial the worker has not passed and may still attempt."""
    runs: dict[tuple[str, int], list[TutorialRun]] = defaultdict(list)
    for run in TutorialRun.objects.filter(belongs_to_worker_filter(""), worker=worker):
        runs[run.interface, run.version].append(run)
    return [
        name
        for name, tutorial in tutorials().items()
        if attempts_left(runs[name, tutorial.version])
    ]


def attempts_left(runs: list[TutorialRun]) -> int:
    """Return how many attempts are left, including the current one; 0 once the tutorial
    is passed.
    """
    if any(run.passed for run in runs):
        return 0
    return ATTEMPTS - sum(run.passed is False for run in runs)


@transaction.atomic
def begin_tutorial(worker: Worker, tutorial: Tutorial, assignment: str = "") -> TutorialRun | None:
    """Return the current attempt, or begin one; None if the tutorial is passed or no attempt is
    left.

    The reward is reserved here, before the work, so that every promise can be kept.
    """
    Worker.objects.select_for_update(of=("self",), no_key=True).get(pk=worker.pk)
    runs = tutorial_attempts(worker, tutorial, assignment)
    if runs and runs[-1].passed is None:
        return renew_promise(runs[-1])
    if len(runs) >= ATTEMPTS or any(run.passed for run in runs):
        return None
    run = TutorialRun.objects.create(
        worker=worker,
        interface=tutorial.interface,
        version=tutorial.version,
        attempt=len(runs) + 1,
        assignment=assignment,
    )
    if not runs or not _move_promise(runs[-1], run):
        _reserve_reward(run)
    return run


@transaction.atomic
def renew_promise(run: TutorialRun) -> TutorialRun:
    """Return the current attempt; if its promise was released meanwhile, promise the reward again
    if there is money.
    """
    if run.passed is not None or run.promised > 0:
        return run
    Worker.objects.select_for_update(of=("self",), no_key=True).get(pk=run.worker_id)
    row = TutorialRun.objects.select_for_update(of=("self",)).get(pk=run.pk)
    if row.passed is None and row.promised <= 0:
        _reserve_reward(row)
        if row.promised > 0:  # a promise lasts a fortnight from its creation
            row.started_at = clock.now()
            row.save(update_fields=["started_at"])
    return row


def _move_promise(first: TutorialRun, run: TutorialRun) -> bool:
    """Move the promise of the first attempt to the second, and return whether there was one."""
    before = TutorialRun.objects.select_for_update(of=("self",)).get(pk=first.pk)
    if before.promised <= 0:
        return False
    run.promised, run.track, run.promise = before.promised, before.track, before.promise
    run.save(update_fields=["promised", "track", "promise"])
    TutorialRun.objects.filter(pk=before.pk).update(promised=ZERO)
    return True


def payment_key(worker: int, interface: str) -> str:
    """Return the key of the payment for an interface's tutorial, which is paid once whatever its
    version.
    """
    return f"tutorial:{interface}:{worker}"


def passed_reason(run: TutorialRun) -> str:
    """Return the reason of the payment for a tutorial."""
    return f"Tutorial passed: {interface_by_name(run.interface).terms.offered_as}"


def grant_token(key: str) -> str:
    """Return the token of the bonus that is granted once under this key."""
    return sha256(f"grant:{key}".encode()).hexdigest()


def tutorials_paid_for(worker: Worker, interfaces: Iterable[str]) -> set[str]:
    """Return the interfaces whose tutorial was paid to the worker: by a payment, by a bonus, or by
    a bonus that waits for their first HIT.
    """
    keys = {payment_key(worker.pk, interface): interface for interface in interfaces}
    granted = {grant_token(key): interface for key, interface in keys.items()}
    listed = Payment.objects.filter(token__in=list(keys)).values_list("token", flat=True)
    given = Bonus.objects.filter(token__in=list(granted)).values_list("token", flat=True)
    waiting = TutorialRun.objects.filter(
        worker=worker, interface__in=list(keys.values()), passed=True, promised__gt=0
    ).values_list("interface", flat=True)
    return {keys[key] for key in listed} | {granted[token] for token in given} | set(waiting)


def reward_after_attempts(
    worker: Worker, tutorial: Tutorial, runs: Sequence[TutorialRun]
) -> Decimal:
    """Return the reward after these attempts: what the last one was promised, else what would be
    promised if the worker began now; 0 if the tutorial was paid before, or no track can pay.
    """
    last = runs[-1] if runs else None
    if last is None or (not last.passed and last.promised <= 0):
        return rewards_offered(worker, [tutorial.interface])[tutorial.interface]
    return last.promised


def rewards_offered(worker: Worker, interfaces: Sequence[str]) -> dict[str, Decimal]:
    """Return interface -> reward that is promised if the worker begins now."""
    offered = dict.fromkeys(interfaces, ZERO)
    tracks_of = tutorial_rewards(worker, interfaces)
    if not any(tracks_of.values()) or _are_too_many_unclaimed(worker):
        return offered
    paid = tutorials_paid_for(worker, interfaces)
    left: dict[int, Decimal | None] = {}
    for interface, tracks in tracks_of.items():
        for track, reward in tracks if interface not in paid else ():
            if track.pk not in left:
                left[track.pk] = remaining_allowance(track, None, Purpose("tutorial")).left
            rest = left[track.pk]
            if rest is None or _cost_with_fee(worker, reward) <= rest:
                offered[interface] = reward
                break
    return offered


def tutorial_notice(interface: str, reward: Decimal) -> str:
    """Return the description of a tutorial for people who have not accepted work yet; empty if the
    interface has no tutorial.
    """
    lesson = tutorials().get(interface)
    if lesson is None:
        return ""
    pays = f"paid ${reward} once, by a bonus" if reward > 0 else "not paid"
    return (
        f"Who is new does a tutorial first: {len(lesson.questions)} questions, about"
        f" {lesson.minutes} min, {pays}."
    )


def _are_too_many_unclaimed(worker: Worker) -> bool:
    """Return whether a new promise of tutorial pay is refused to a worker because `MOST_UNCLAIMED`
    workers of marketplaces who never sent in a HIT have one already. Workers of local platforms,
    and those who have sent in a HIT, are never refused.
    """
    if worker.platform in local_platform_names() or has_sent_in(worker):
        return False
    assignments = Assignment.objects.filter(worker=OuterRef("worker")).exclude(status__in=UNLISTED)
    promised = TutorialRun.objects.filter(promised__gt=0, promise__isnull=False)
    strangers = promised.exclude(worker__platform__in=local_platform_names()).exclude(
        Exists(assignments)
    )
    return strangers.count() >= MOST_UNCLAIMED


def _cost_with_fee(worker: Worker, reward: Decimal) -> Decimal:
    """Return the cost of a reward, with the fee of a marketplace."""
    return reward + (reward * platform_fee_rate(worker.platform)).quantize(CENT, ROUND_UP)


def _reserve_reward(run: TutorialRun) -> None:
    """Reserve the reward on the first track that pays for this tutorial and has the money; if there
    is none, no reward is promised.
    """
    if tutorials_paid_for(run.worker, [run.interface]) or _are_too_many_unclaimed(run.worker):
        return
    purpose = Purpose("tutorial", run.pk)
    for track, reward in tutorial_rewards(run.worker, [run.interface])[run.interface]:
        cost = _cost_with_fee(run.worker, reward)
        key, why = _next_key(purpose, "reserve"), f"Tutorial, {run.interface}"
        try:
            reserve_money(track, None, purpose, cost, key=key, why=why)
        except OverBudget:
            continue
        run.promised, run.track, run.promise = reward, track, run
        run.save(update_fields=["promised", "track", "promise"])
        return


@transaction.atomic
def forget_attempts(worker: Worker, tutorial: Tutorial) -> bool:
    """Delete the failed attempts of a worker, so that they may begin again, and return whether
    there were any.
    """
    Worker.objects.select_for_update(of=("self",), no_key=True).get(pk=worker.pk)
    runs = tutorial_attempts(worker, tutorial)
    if len(runs) < ATTEMPTS or any(run.passed is not False for run in runs):
        return False
    TutorialRun.objects.filter(pk__in=[run.pk for run in runs]).delete()
    return True


@transaction.atomic
def store_tutorial_answer(run: TutorialRun, number: int, raw: dict[str, Any]) -> TutorialRun:
    """Store the answer to the number-th question and return the attempt. The first answer counts,
    and one out of turn changes nothing. Raises BadAnswer.
    """
    tutorial = tutorials()[run.interface]
    asked = tutorial.question(number, run.attempt)
    responses = interface_by_name(run.interface).parse(asked, raw)
    row = TutorialRun.objects.select_for_update(of=("self",)).select_related("track").get(pk=run.pk)
    if number != len(row.answers) + 1 or row.passed is not None:
        return row
    missed = missed_criteria(tutorial, number, responses, run.attempt)
    row.answers.append({"right": not missed, "missed": missed, "raw": raw})
    if len(row.answers) == len(tutorial.questions):
        row.passed = sum(answered["right"] for answered in row.answers) >= tutorial.needed
        row.ended_at = clock.now()
        if row.passed:
            _pay_tutorial(row)
        elif row.attempt == ATTEMPTS:
            release_promise(row, "The tutorial was not passed")
    row.save()
    return row


def right_answer(tutorial: Tutorial, number: int, attempt: int = 1) -> list[ParsedResponse]:
    """Return the parsed right answer to a question."""
    return interface_by_name(tutorial.interface).parse(
        tutorial.question(number, attempt), tutorial.asked(attempt)[number - 1]["right"]
    )


def answer_beside_right_one(run: TutorialRun, number: int) -> SideBySide:
    """Return a comparison of the answer to the number-th question with the right one."""
    tutorial = tutorials()[run.interface]
    interface, asked = interface_by_name(run.interface), tutorial.question(number, run.attempt)
    responses = interface.parse(asked, run.answers[number - 1]["raw"])
    return side_by_side(interface, asked, responses, right_answer(tutorial, number, run.attempt))


def missed_criteria(
    tutorial: Tutorial, number: int, given_answer: list[ParsedResponse], attempt: int = 1
) -> list[str]:
    """Return the criteria under which an answer is wrong, among those that the question tests (by
    default all).
    """
    interface, asked = interface_by_name(tutorial.interface), tutorial.question(number, attempt)
    tested = tutorial.asked(attempt)[number - 1].get("tests")
    value_of = {
        (response.target_id, response.criterion): response.value for response in given_answer
    }
    wrong = [
        right.criterion
        for right in right_answer(tutorial, number, attempt)
        if (tested is None or right.criterion in tested)
        and not interface.is_right(
            asked, value_of.get((right.target_id, right.criterion), {}), right
        )
    ]
    return sorted(set(wrong))


def _pay_tutorial(run: TutorialRun) -> None:
    """Spend the promised money and record what is owed, once for each worker and interface. On a
    marketplace a bonus is paid once the platform lists the worker (`pay_out.py`); until then the
    promise is kept.
    """
    if run.worker.platform not in local_platform_names():
        if not run.assignment:
            _give_qualification(run.worker)
        return
    if run.promised <= 0 or run.track is None:
        return
    key = payment_key(run.worker_id, run.interface)
    spend_money(run.track, run.purpose, run.promised, key=key, why=f"Tutorial, {run.interface}")
    Payment.objects.get_or_create(
        token=key,
        defaults={
            "status": "owed",
            "worker_id": run.worker_id,
            "amount": run.promised,
            "why": passed_reason(run),
        },
    )


def qualify_after_listed_assignment(worker: Worker, assignment: str) -> None:
    """Give a worker the qualification if they passed a tutorial with this assignment and the
    platform lists the assignment as theirs.
    """
    if TutorialRun.objects.filter(worker=worker, assignment=assignment, passed=True).exists():
        _give_qualification(worker)


def _give_qualification(worker: Worker) -> None:
    Qualification.objects.update_or_create(
        worker=worker, name="tutorial", defaults={"wanted": True, "wanted_at": clock.now()}
    )


def _next_key(purpose: Purpose, kind: str) -> str:
    """Return the next free ledger key of this kind, since a reward can be reserved again after a
    release: ``tutorial:7/reserve``, then ``tutorial:7/reserve/2``. The caller holds a lock on the
    attempt.
    """
    n = Ledger.objects.filter(kind=kind, **purpose.filter_condition("purpose")).count()
    return f"{purpose}/{kind}/{n + 1}" if n else f"{purpose}/{kind}"


def release_promise(run: TutorialRun, why: str) -> None:
    """Release the promise of an attempt."""
    if run.promised > 0 and run.track is not None:
        release_money(run.track, run.purpose, key=_next_key(run.purpose, "release"), why=why)
        run.promised = Decimal(0)
        run.save(update_fields=["promised"])
