"""Publish, answer, return, expire, crash, restart in any order: afterwards both books agree.

The long version: `make soak`, which also kills real processes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from annotation_world import make_neighbour, make_submission
from django.db import transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from mturk_world import (
    NONSENSE,
    Killed,
    Refusal,
    Turk,
    bury,
    check_bonuses,
    check_books,
    check_cleared,
    check_labels,
    check_money,
    collect_and_reconcile,
    due,
    dying,
    rounds,
)

from annotation.budget import halts
from annotation.hits import publish, take_down
from annotation.labels import settle
from annotation.marketplace import give, pay_out
from annotation.models import HIT, Assignment, Bonus, Halt, Payment, Question
from annotation.platforms.mturk import compensate, kinds
from annotation.platforms.mturk.platform import MTurk
from annotation.questions import ask
from kbpo.instances.models import Label, Target
from kbpo.money.spend import balance
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

pytestmark = [pytest.mark.django_db, pytest.mark.soak]

WORKERS = ["W1", "W2", "W3", "W4"]
STEPS: dict[str, Callable[[], int]] = {
    "publish": publish.tick,
    "collect": collect_and_reconcile,
    "settle": settle.tick,
    "pay_out": pay_out.tick,
}
CALLS: dict[str, tuple[Any, str]] = {
    name: (MTurk, name)
    for name in (
        "publish",
        "collect",
        "decide",
        "take_down",
        "offer",
        "survey",
        "pay_bonus",
        "compensate",
    )
} | {
    "compensation made": (compensate, "_make_hit"),
    "compensation's calls": (compensate, "call"),
    "types' calls": (kinds, "call"),
}
OPERATIONS = [
    "CreateHITWithHITType",
    "ListHITs",
    "ListAssignmentsForHIT",
    "ApproveAssignment",
    "UpdateExpirationForHIT",
    "DeleteHIT",
    "CreateAdditionalAssignmentsForHIT",
    "SendBonus",
    "ListBonusPayments",
    "CreateQualificationType",
    "AssociateQualificationWithWorker",
    "DeleteQualificationType",
    "GetHIT",
]
MOST_BONUSES = 6
KINDS = ["throttle", "error", "error_after", "duplicate"]


class Crowd(RuleBasedStateMachine):
    """Workers, the clock, the pipeline's steps, faults and deaths, in any order."""

    turk: Turk
    track: Track
    targets: list[Target]

    def __init__(self) -> None:
        super().__init__()
        self.atomic = transaction.atomic()
        self.atomic.__enter__()
        self.turk.wipe()
        first, second, third = self.targets[:3]
        pairs = [
            first,
            make_neighbour(self.track, first),
            second,
            make_neighbour(self.track, second),
            third,
        ]
        self.submission: Submission = make_submission(self.track, pairs)
        ask.tick()
        self.drafts: list[dict[str, Any]] = []

    def teardown(self) -> None:
        try:
            with self.turk.store.begin() as books:
                books.run("DELETE FROM fault")
            bury()
            self.everything_goes_on()
            rounds(30)
            self.everybody_takes_what_we_owe()
            check_books(self.turk)
            check_labels(self.turk)
            check_bonuses(self.turk)
            check_cleared(self.turk)
            check_money(self.turk)
            self.check_spending()
        finally:
            transaction.set_rollback(True)
            self.atomic.__exit__(None, None, None)

    def everybody_takes_what_we_owe(self) -> None:
        for bonus in Bonus.objects.exclude(status="paid").filter(assignment=None):
            self.turk.do(bonus.worker.identity.external_id, bonus.external_id)
        rounds(30)

    def check_spending(self) -> None:
        assert not Payment.objects.exclude(status="paid").exists()
        prices = sum(
            question.price
            for a in Assignment.objects.filter(payment__isnull=False).select_related("hit")
            for question in a.hit.questions.all()
        )
        sums = balance(purpose=self.submission.purpose)
        assert sums.spent == prices and sums.open >= 0
        for question in Question.objects.filter(status="settled"):
            assert Label.objects.filter(target=question.target, origin=question.origin).count() == 1

    @rule(step=st.sampled_from(sorted(STEPS)))
    def the_clock_comes_round(self, step: str) -> None:
        due()
        STEPS[step]()

    @rule(
        step=st.sampled_from(sorted(STEPS)),
        call=st.sampled_from(sorted(CALLS)),
        before=st.booleans(),
    )
    def we_die_at_a_call(self, step: str, call: str, before: bool) -> None:
        """A step that dies right before or right after its first call of one kind; what it has
        committed stays.
        """
        owner, name = CALLS[call]
        due()
        with contextlib.suppress(Killed), dying(owner, name, before=before):
            STEPS[step]()
        bury()

    @rule(compensated=st.booleans())
    def we_owe_somebody_more(self, compensated: bool) -> None:
        """A bonus for the last answer, or a compensation for whoever gave it."""
        answer = Assignment.objects.exclude(raw=None).order_by("pk").last()
        if answer is not None and Bonus.objects.count() < MOST_BONUSES:
            give.grant_bonus(
                answer.worker,
                self.track,
                Decimal("0.25"),
                "A good find.",
                assignment=None if compensated else answer,
            )

    @rule()
    def everything_is_stopped(self) -> None:
        if not Halt.objects.filter(lifted_at=None).exists():
            take_down.take_down_open_hits(None, None, "Something smells.")

    @rule()
    def everything_goes_on(self) -> None:
        halts.lift_halts(None, None, "It was nothing.")

    @rule(operation=st.sampled_from(OPERATIONS), kind=st.sampled_from(KINDS))
    def the_platform_misbehaves(self, operation: str, kind: str) -> None:
        self.turk.fault(operation, kind)

    @rule(worker=st.sampled_from(WORKERS))
    def somebody_works(self, worker: str) -> None:
        if offered := self.turk.offered(worker):
            self.turk.do(worker, offered[0])

    @rule(worker=st.sampled_from(WORKERS))
    def somebody_begins(self, worker: str) -> None:
        if offered := self.turk.offered(worker):
            _, src = self.turk.accept(worker, offered[-1])
            self.drafts.append(self.turk.fill_in(src))

    @rule(data=st.data())
    def somebody_sends_in_late_or_twice(self, data: st.DataObject) -> None:
        if self.drafts:
            form = data.draw(st.sampled_from(self.drafts), label="form")
            with contextlib.suppress(Refusal):
                self.turk.send(form)

    @rule()
    def somebody_returns(self) -> None:
        for row in self.turk.rows(
            "SELECT id, worker FROM assignment WHERE status = 'Accepted' LIMIT 1"
        ):
            self.turk.give_back(row["worker"], row["id"])

    @rule(worker=st.sampled_from(WORKERS))
    def somebody_sends_nonsense(self, worker: str) -> None:
        if offered := self.turk.offered(worker):
            assignment, _ = self.turk.accept(worker, offered[0])
            self.turk.send({"assignmentId": assignment, "answer": NONSENSE})

    @rule(hours=st.sampled_from([1, 25, 80]))
    def time_passes(self, hours: int) -> None:
        self.turk.advance(hours=hours)

    @invariant()
    def no_hit_is_there_twice(self) -> None:
        rows = self.turk.rows("SELECT annotation FROM hit WHERE annotation LIKE 'kbpo:%'")
        assert len({row["annotation"] for row in rows}) == len(rows)
        assert len(rows) <= HIT.objects.count()


def test_both_books_agree_after_anything_in_any_order(
    turk: Turk, track: Track, targets: list[Target]
) -> None:
    Crowd.turk, Crowd.track, Crowd.targets = turk, track, targets
    run_state_machine_as_test(
        Crowd,
        settings=settings(
            max_examples=int(os.environ.get("KILLS", "8")),
            stateful_step_count=20,
            deadline=None,
            derandomize="KILLS" not in os.environ,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.explicit, Phase.generate, Phase.shrink),
            database=None,
        ),
    )
