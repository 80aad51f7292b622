"""Publish, answer, return, expire, crash, restart in any order: afterwards both books agree.

The long version: `make kills`, which also kills real processes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

import pytest
from annotation_world import make_submission
from django.db import transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from mturk_world import Refusal, Turk, check_books, due, rounds

from annotation import ask, collect, publish, remit, settle
from annotation.models import HIT, Assignment, Payment, Question
from annotation.platforms.mturk.platform import MTurk
from kbpo.instances.models import Label, Target
from kbpo.money.spend import balance
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db

WORKERS = ["W1", "W2", "W3", "W4"]
STEPS: dict[str, Callable[[], int]] = {
    "publish": publish.tick, "collect": collect.tick, "settle": settle.tick, "remit": remit.tick,
}  # fmt: skip
CALLS = ["publish", "collect", "approve", "expire", "renew", "dispose", "extend", "survey"]
OPERATIONS = [
    "CreateHITWithHITType", "ListHITs", "ListAssignmentsForHIT", "ApproveAssignment", "UpdateExpirationForHIT",
    "DeleteHIT",
]  # fmt: skip
KINDS = ["throttle", "error", "error_after", "duplicate"]


class Killed(BaseException):
    """The process is gone."""


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
        self.submission: Submission = make_submission(self.track, self.targets[:3])
        ask.tick()
        self.drafts: list[dict[str, Any]] = []

    def teardown(self) -> None:
        try:
            with self.turk.store.begin() as books:
                books.run("DELETE FROM fault")
            Payment.objects.filter(status="sent").update(status_since="2026-01-01T00:00:00Z")
            rounds(30)
            check_books(self.turk)
            self.check_money()
        finally:
            transaction.set_rollback(True)
            self.atomic.__exit__(None, None, None)

    def check_money(self) -> None:
        assert not Payment.objects.exclude(status="paid").exists()
        prices = sum(question.price for a in Assignment.objects.filter(payment__isnull=False).select_related("hit")
                     for question in a.hit.questions.all())  # fmt: skip
        sums = balance(purpose=self.submission.purpose)
        assert sums.spent == prices and sums.open >= 0
        for question in Question.objects.filter(status="settled"):
            assert Label.objects.filter(target=question.target, origin=question.origin).count() == 1

    @rule(step=st.sampled_from(sorted(STEPS)))
    def the_clock_comes_round(self, step: str) -> None:
        due()
        STEPS[step]()

    @rule(step=st.sampled_from(sorted(STEPS)), call=st.sampled_from(CALLS), before=st.booleans())
    def we_die_at_a_call(self, step: str, call: str, before: bool) -> None:
        """A step that dies right before or right after its first call of one kind; what it has committed stays."""
        real = getattr(MTurk, call)

        def dying(*args: Any, **kwargs: Any) -> Any:
            if not before:
                real(*args, **kwargs)
            raise Killed

        due()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(MTurk, call, dying)
            with contextlib.suppress(Killed):
                STEPS[step]()
        Payment.objects.filter(status="sent").update(status_since="2026-01-01T00:00:00Z")

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
        for row in self.turk.rows("SELECT id, worker FROM assignment WHERE status = 'Accepted' LIMIT 1"):
            self.turk.give_back(row["worker"], row["id"])

    @rule(worker=st.sampled_from(WORKERS))
    def somebody_sends_nonsense(self, worker: str) -> None:
        if offered := self.turk.offered(worker):
            assignment, _ = self.turk.accept(worker, offered[0])
            self.turk.send({"assignmentId": assignment, "answer": "nonsense"})

    @rule(hours=st.sampled_from([1, 25, 80]))
    def time_passes(self, hours: int) -> None:
        self.turk.advance(hours=hours)

    @invariant()
    def no_hit_is_there_twice(self) -> None:
        rows = self.turk.rows("SELECT annotation FROM hit WHERE annotation LIKE 'kbpo:%'")
        assert len({row["annotation"] for row in rows}) == len(rows)
        assert len(rows) <= HIT.objects.count()


def test_both_books_agree_after_anything_in_any_order(turk: Turk, track: Track, targets: list[Target]) -> None:
    Crowd.turk, Crowd.track, Crowd.targets = turk, track, targets
    run_state_machine_as_test(
        Crowd,
        settings=settings(
            max_examples=int(os.environ.get("KILLS", "8")), stateful_step_count=20, deadline=None, derandomize=True,
            suppress_health_check=list(HealthCheck), phases=(Phase.explicit, Phase.generate, Phase.shrink),
            database=None,
        ),
    )  # fmt: skip
