"""Steps look for what is due after anything was written, and after a while; not at every tick."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.utils.module_loading import import_string
from documents_world import order

from kbpo import celery, clock
from kbpo.accounts.audit import write_audit_entry
from kbpo.clock import look
from kbpo.submissions.models import Submission
from tests.conftest import Toy

pytestmark = pytest.mark.django_db(transaction=True)
START = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
OFTEN = 1000
HERE = "django.core.cache.backends.locmem.LocMemCache"


class Ticks:
    """The database's time, in the hands of a test that asks at moments of its choice."""

    def __init__(self) -> None:
        self.now = START

    def start(self) -> None:
        """Something was written at the start and looked at; then nothing for a hundred seconds."""
        cache.delete(look.KEPT)
        assert self.is_due(0) and self.is_due(100)

    def undisturbed(self, *seconds: float) -> list[bool]:
        """Whether the steps look at these moments where nobody else writes in the meantime: what
        PostgreSQL writes while it tidies up by itself counts, too, and a look has seen it or not.
        """
        for _ in range(OFTEN):
            self.start()
            answers = [self.is_due(second) for second in seconds]
            if cache.get(look.KEPT)[:2] == (look._database_snapshot(), START):
                return answers
        pytest.fail("somebody else writes all the time")

    def is_due(self, seconds: float) -> bool:
        """Whether the steps look, so many seconds after the start."""
        self.now = START + timedelta(seconds=seconds)
        return look.is_due()


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Ticks:
    # A Redis that does not answer for a second keeps nothing.
    own = settings.CACHES["default"]["KEY_PREFIX"]
    settings.CACHES = {"default": {"BACKEND": HERE, "LOCATION": own}}
    made = Ticks()
    monkeypatch.setattr(clock, "now", lambda: made.now)
    made.start()
    return made


def test_a_tick_looks_for_nothing_where_nothing_was_written(ticks: Ticks) -> None:
    assert ticks.undisturbed(101, 102, 110, 124) == [False] * 4


def test_whatever_is_written_is_looked_for_at_the_next_tick_and_those_after_it(
    ticks: Ticks,
) -> None:
    write_audit_entry("something", "somewhere", why="a test")
    assert [ticks.is_due(second) for second in (101, 102, 103)] == [True] * 3


def test_what_began_before_a_look_and_ends_after_it_is_looked_for(ticks: Ticks) -> None:
    other = connection.copy()
    try:
        other.set_autocommit(False)
        with other.cursor() as cursor:
            cursor.execute("INSERT INTO clock_heartbeat (at, pauses) VALUES ('2001-01-01', '[]')")
        assert ticks.undisturbed(130, 131) == [True, False], "nobody can see it yet"
        other.commit()
        assert ticks.is_due(132)
    finally:
        with other.cursor() as cursor:
            cursor.execute("DELETE FROM clock_heartbeat WHERE at = '2001-01-01'")
        other.commit()
        other.close()


def test_what_waits_for_a_moment_is_late_by_a_quarter_and_by_a_minute_at_most(
    ticks: Ticks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look, "_database_snapshot", lambda: "the same")
    ticks.start()
    looks = [second for second in range(101, 1000) if ticks.is_due(second)]
    late = [later - earlier for earlier, later in zip([100, *looks], looks, strict=False)]
    assert looks and all(
        gap <= min(60, earlier / 4 + 1) for gap, earlier in zip(late, [100, *looks], strict=False)
    )
    assert len(looks) < 35, "and they come seldom"


def test_steps_that_find_nothing_write_nothing(
    published: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each look would be news to the next, and none would be the last. Scores, which this toy
    has none of: `tests/test/evaluation/test_idle.py`.
    """
    steps = {name: path for name, path in celery.PIPELINE.items() if name != "estimate"}
    later = clock.now()
    for _ in range(4):
        later += timedelta(minutes=1)
        monkeypatch.setattr(clock, "now", lambda at=later: at)
        for path in steps.values():
            import_string(path)()
    for name, path in steps.items():
        assert any(leaves_all_as_it_is(path) for _ in range(OFTEN)), name


def test_documents_that_wait_for_readers_cause_no_looks(toy: Toy) -> None:
    order(toy.track, 1)
    assert any(leaves_all_as_it_is(celery.PIPELINE["read"]) for _ in range(OFTEN))


def leaves_all_as_it_is(path: str) -> bool:
    """Whether nothing was written, by this step or by anybody beside it."""
    stored = look._database_snapshot()
    import_string(path)()
    return look._database_snapshot() == stored


def test_a_step_that_fails_keeps_no_other_from_its_turn(
    ticks: Ticks, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = "kbpo.clock.look.no_such_step"
    books = celery.PIPELINE["books"]
    monkeypatch.setattr(celery, "PIPELINE", {"broken": broken, "books": books})
    write_audit_entry("something", "somewhere", why="a test")
    monkeypatch.setitem(celery.QUEUES, "scores", ("broken", "books"))
    assert celery.run_queue_round("scores") == 1, "the books were checked"
