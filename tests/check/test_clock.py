"""A clock that jumps gives nothing up: deadlines count the time in which the service ran."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from annotation.hits import collect
from annotation.models import HIT, Assignment, Worker
from kbpo import clock, queue
from kbpo.accounts.audit import write_audit_entry
from kbpo.clock import served
from kbpo.clock.models import Heartbeat
from kbpo.submissions.models import Submission

pytestmark = pytest.mark.django_db
START = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


class Time:
    """The database's clock, in the hands of a test."""

    def __init__(self) -> None:
        self.now = START

    def run(self, duration: timedelta) -> None:
        """The service runs: it beats every minute."""
        end = self.now + duration
        while self.now < end:
            self.now = min(end, self.now + timedelta(minutes=1))
            served.record_beat()

    def jump(self, by: timedelta) -> None:
        self.now += by


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(clock, "now", lambda: made.now)
    served.record_beat()
    return made


def test_an_answer_that_was_late_does_not_turn_time_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = iter([(START, 0.0), (START + timedelta(seconds=9.7), 10.0), (START, 20.0)])
    monkeypatch.setattr(clock, "_answered", None)
    monkeypatch.setattr(clock, "_database_time", lambda: next(answers))
    said = []
    for at in (0.0, 10.0, 20.0):
        monkeypatch.setattr(clock.time, "monotonic", lambda at=at: at)
        said.append(clock.now() - START)
    assert said[1] == timedelta(seconds=10), "0.3 s on its way"
    assert said[2] == timedelta(0), "the database's clock was set back"


@pytest.fixture
def received(toy: Any, time: Time) -> Submission:
    """An upload that waits to be read, for six hours at most."""
    return Submission.objects.create(
        track=toy.track,
        team=toy.teams["Patterns"],
        user=toy.users["Rosa"],
        name="Run",
        file="uploads/x",
        file_name="x",
        file_size=1,
        file_digest="",
        status="received",
        status_since=START,
        next_try_at=START,
    )


@pytest.fixture
def leased(toy: Any, time: Time) -> Assignment:
    """A question in somebody's hands for ten minutes."""
    hit = HIT.objects.create(status="open", track=toy.track, platform="pool", reward="0.05")
    worker = Worker.objects.create(platform="pool", handle="ada")
    until = START + timedelta(minutes=10)
    return Assignment.objects.create(status="leased", hit=hit, worker=worker, leased_until=until)


def status_of(row: Submission) -> str:
    row.refresh_from_db()
    return row.status


def test_a_jump_ahead_gives_nothing_up_and_the_deadline_comes_in_its_time(
    received: Submission, time: Time
) -> None:
    time.run(5 * HOUR)
    time.jump(2 * DAY)
    assert queue.fail_late_rows() == 0 and status_of(received) == "received"
    time.run(HOUR / 2)
    assert queue.fail_late_rows() == 0 and status_of(received) == "received"
    time.run(HOUR)
    assert queue.fail_late_rows() == 1 and status_of(received) == "failed"


def test_a_service_that_was_off_gives_nothing_up_when_it_starts(
    received: Submission, time: Time
) -> None:
    for _ in range(3):
        time.jump(DAY)
        assert queue.fail_late_rows() == 0
        time.run(HOUR)
    assert len(Heartbeat.objects.get().pauses) == 3 and status_of(received) == "received"


@pytest.mark.parametrize("jump", [timedelta(minutes=5), timedelta(minutes=10), DAY])
def test_a_lease_goes_on_after_a_jump_ahead(
    leased: Assignment, time: Time, jump: timedelta
) -> None:
    time.run(timedelta(minutes=5))
    time.jump(jump)
    collect.tick()
    leased.refresh_from_db()
    assert leased.status == "leased"
    assert leased.leased_until == START + timedelta(minutes=10) + jump
    time.run(timedelta(minutes=11))
    collect.tick()
    leased.refresh_from_db()
    assert leased.status == "returned"


def test_nothing_waits_for_a_future_that_has_passed(
    received: Submission, leased: Assignment, time: Time
) -> None:
    time.jump(2 * DAY)
    queue.fail_late_rows()
    received.move("received")
    Submission.objects.update(next_try_at=time.now + timedelta(seconds=40))
    time.run(timedelta(minutes=5))
    time.jump(-2 * DAY)
    queue.fail_late_rows()
    received.refresh_from_db()
    leased.refresh_from_db()
    assert received.status_since <= time.now and received.next_try_at <= time.now
    assert leased.leased_until <= time.now + timedelta(minutes=10)
    assert Heartbeat.objects.get().at == time.now
    time.run(7 * HOUR)
    assert queue.fail_late_rows() == 1, "its deadline has come, by the time that was served"


def test_the_time_is_the_databases_however_this_machines_clock_stands(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.expire_cached_time()
    before = clock.now()
    monkeypatch.setattr(timezone, "now", lambda: before + 365 * DAY)
    assert clock.now() - before < HOUR
    clock.expire_cached_time()
    assert clock.now() - before < HOUR
    assert write_audit_entry("open", "track:1").at - before < HOUR, "and so is that of every row"
