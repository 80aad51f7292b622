"""`kill -9` of the process that speaks to the marketplace, in the middle of a call: before it was done, and after.

The endpoint holds the call, the process dies, another one starts. Eight kills here; `make kills` runs two hundred.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from annotation_world import make_submission, make_target
from django.conf import settings as live_settings
from django.db import connection
from mturk_world import Turk, check_books
from processes import wait_for

from annotation import ask
from annotation.models import HIT, Payment, Question
from kbpo.instances.models import Label, Target
from kbpo.money.spend import balance
from kbpo.tracks.models import Track

pytestmark = [pytest.mark.kill, pytest.mark.django_db(transaction=True)]

KILLS = int(os.environ.get("KILLS", "8"))
HELD = 30.0
LOOP = """
import django, time
django.setup()
from annotation import collect, publish, remit, settle
print("ready", flush=True)
while True:
    publish.tick(), collect.tick(), settle.tick(), remit.tick()
    time.sleep(0.05)
"""
OPERATIONS = ["CreateHITWithHITType", "ApproveAssignment", "UpdateExpirationForHIT", "DeleteHIT"]


class Speaker:
    """The process that is killed."""

    def __init__(self, turk: Turk, directory: Path, site: str) -> None:
        where = connection.settings_dict
        password = f":{quote(where['PASSWORD'], safe='')}" if where["PASSWORD"] else ""
        options = urlencode(
            {name: value for name, value in (("host", where["HOST"]), ("port", where["PORT"])) if value}
        )
        self.log = directory / "speaker.log"
        self.environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "kbpo.settings", "REDIS_URL": live_settings.REDIS, "KBPO_VAR": str(directory),
            "DATABASE_URL": f"postgres://{quote(where['USER'], safe='')}{password}@/{where['NAME']}?{options}",
            "MTURK_ENDPOINT_URL": turk.url, "MTURK_WORKER_SITES": turk.url, "MTURK_POLL_SECONDS": "0",
            "MTURK_ACCESS_KEY_ID": "toy", "MTURK_SECRET_ACCESS_KEY": "toy", "MTURK_TIMEOUT": "0.3", "SITE_URL": site,
            "MTURK_QUESTIONS_PER_HIT": "1", "SECRET_KEY": live_settings.SECRET_KEY,
        }  # fmt: skip
        self.start()

    def start(self) -> None:
        before = self._ready()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", LOOP], cwd=live_settings.BASE_DIR, env=self.environment, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

        wait_for(lambda: self._ready() > before, "the process to be ready", every=0.1)

    def _ready(self) -> int:
        return self.log.read_text().count("ready") if self.log.exists() else 0

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def held(turk: Turk) -> int:
    return turk.rows("SELECT count(*) AS n FROM call WHERE outcome = 'held'")[0]["n"]


def test_kills_in_the_middle_of_calls_lose_and_double_nothing(
    turk: Turk, track: Track, targets: list[Target], tmp_path: Path, settings: Any
) -> None:
    rng = random.Random(KILLS)
    more = [make_target(track, number, rng.random()) for number in range(7, KILLS + 1)]
    submission = make_submission(track, [*targets, *more])
    ask.tick()
    Question.objects.update(next_try_at="2100-01-01T00:00:00Z")  # one is let go for each death
    speaker = Speaker(turk, tmp_path, settings.SITE_URL)
    try:
        deaths = [
            _die_once(turk, speaker, OPERATIONS[number % 4], rng.choice(["timeout", "hang"]), rng)
            for number in range(KILLS)
        ]
        Question.objects.filter(status="waiting").update(next_try_at="2026-01-01T00:00:00Z")
        with turk.store.begin() as books:
            books.run("DELETE FROM fault")
        wait_for(lambda: _work(turk) or _all_settled(), "everything to be settled", every=0.3)
        wait_for(lambda: set(HIT.objects.counts()) == {"disposed"}, "every HIT to be disposed", every=0.3)
        wait_for(lambda: set(Payment.objects.counts()) == {"paid"}, "every payment", every=0.3)
    finally:
        speaker.kill()
    assert sum(deaths) > KILLS / 2, "too few of the deaths were in the middle of a call"
    n = len(targets) + len(more)
    assert Question.objects.counts() == {"settled": n}
    assert [label.n for label in Label.objects.filter(target__kind="pair")] == [3] * n
    assert Payment.objects.count() == 3 * n
    assert balance(purpose=submission.purpose).spent == 3 * n * Question.objects.all()[0].price
    check_books(turk)


def _die_once(turk: Turk, speaker: Speaker, operation: str, kind: str, rng: random.Random) -> bool:
    """Whether it died while the endpoint held a call; one that does not come, for want of work, is given up."""
    before = held(turk)
    for question in Question.objects.filter(status="waiting").order_by("pk")[:1]:
        Question.objects.filter(pk=question.pk).update(next_try_at="2026-01-01T00:00:00Z")
    turk.fault(operation, kind, seconds=HELD)
    try:
        wait_for(lambda: _work(turk, rng) or held(turk) > before, f"{operation} to be held", patience=25, every=0.1)
    except AssertionError:
        with turk.store.begin() as books:
            books.run("DELETE FROM fault")
    speaker.kill()
    died = held(turk) > before
    _forget_waiting()
    speaker.start()
    return died


def _work(turk: Turk, rng: random.Random | None = None) -> bool:
    """Somebody does a HIT, if there is one; never true, so that it can stand in a wait."""
    if rng is None or rng.random() < 0.3:
        for worker in ("W1", "W2", "W3"):
            if offered := turk.offered(worker):
                turk.do(worker, offered[0])
    _forget_waiting()
    return False


def _forget_waiting() -> None:
    """Whatever waits for its next try is due: the test has no time to wait as long as a server would."""
    from django.utils import timezone

    now = timezone.now()
    HIT.objects.filter(next_try_at__gt=now).update(next_try_at=now)
    Payment.objects.filter(next_try_at__gt=now).update(next_try_at=now)


def _all_settled() -> bool:
    return set(Question.objects.counts()) == {"settled"}
