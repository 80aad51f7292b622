"""`kill -9` of the process that speaks to the marketplace, in the middle of a call: before it was
done, and after.

The endpoint holds the call, the process dies, another one starts. `make soak`
does so two hundred times (`KILLS`).
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from annotation_world import make_neighbour, make_submission, make_target
from django.conf import settings as live_settings
from django.db import connection
from django.utils import timezone
from mturk_world import NONSENSE, Turk, bury, check_bonuses, check_books, check_labels, check_money
from processes import wait_for

from annotation.marketplace import give
from annotation.models import HIT, Assignment, Bonus, Payment, Question
from annotation.questions import ask
from kbpo.instances.models import Label, Target
from kbpo.money.spend import balance
from kbpo.tracks.models import Track

pytestmark = [pytest.mark.longer, pytest.mark.django_db(transaction=True)]

KILLS = int(os.environ.get("KILLS", "8"))
HELD = 30.0
LONG_AGO, NEVER = "2026-01-01T00:00:00Z", "2100-01-01T00:00:00Z"
LOOP = """
import django, time
django.setup()
from annotation.hits import collect, publish
from annotation.labels import settle
from annotation.marketplace import pay_out, reconcile
print("ready", flush=True)
while True:
    publish.tick(), collect.tick(), reconcile.tick(), settle.tick(), pay_out.tick()
    time.sleep(0.05)
"""
COMPENSATION = "a compensation's CreateHITWithHITType"
OPERATIONS = [
    "CreateHITWithHITType",
    "ApproveAssignment",
    "SendBonus",
    "UpdateExpirationForHIT",
    "CreateAdditionalAssignmentsForHIT",
    COMPENSATION,
    "DeleteHIT",
    "AssociateQualificationWithWorker",
]
DRAWS = 3
"""A death that found no call to die in is drawn again, so often."""
WORKERS = ["W1", "W2", "W3"]
SPOILER = "W4"
"""Who sends in what cannot be used"""


class Speaker:
    """The process that is killed."""

    def __init__(self, turk: Turk, directory: Path, site: str) -> None:
        where = connection.settings_dict
        password = f":{quote(where['PASSWORD'], safe='')}" if where["PASSWORD"] else ""
        options = urlencode(
            {
                name: value
                for name, value in (("host", where["HOST"]), ("port", where["PORT"]))
                if value
            }
        )
        self.log = directory / "speaker.log"
        self.environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "kbpo.settings",
            "KBPO_VAR": str(directory),
            "DATABASE_URL": (
                f"postgres://{quote(where['USER'], safe='')}{password}@/{where['NAME']}?{options}"
            ),
            "MTURK_ENDPOINT_URL": turk.url,
            "MTURK_WORKER_SITES": turk.url,
            "MTURK_POLL_SECONDS": "0",
            "MTURK_ACCESS_KEY_ID": "toy",
            "MTURK_SECRET_ACCESS_KEY": "toy",
            "MTURK_TIMEOUT": "20",
            "SITE_URL": site,
            "MTURK_QUESTIONS_PER_HIT": "2",
            "SECRET_KEY": live_settings.SECRET_KEY,
        }
        self.start()

    def start(self) -> None:
        before = self._ready()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", LOOP],
                cwd=live_settings.BASE_DIR,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

        wait_for(lambda: self._ready() > before, "the process to be ready", every=0.1)

    def _ready(self) -> int:
        return self.log.read_text().count("ready") if self.log.exists() else 0

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def held(turk: Turk) -> int:
    return turk.rows("SELECT count(*) AS n FROM call WHERE outcome = 'held'")[0]["n"]


@pytest.mark.soak
def test_kills_in_the_middle_of_calls_lose_and_double_nothing(
    turk: Turk, track: Track, targets: list[Target], tmp_path: Path, settings: Any
) -> None:
    """Two questions on each document, so that each HIT holds two."""
    rng = random.Random(KILLS)
    more = [make_target(track, number, rng.random()) for number in range(7, KILLS + 1)]
    pairs = [
        pair for target in [*targets, *more] for pair in (target, make_neighbour(track, target))
    ]
    submission = make_submission(track, pairs)
    ask.tick()
    Question.objects.update(next_try_at=NEVER)  # those of one document are let go for each death
    speaker = Speaker(turk, tmp_path, settings.SITE_URL)
    try:
        for number in range(KILLS):
            _die(turk, speaker, OPERATIONS[number % len(OPERATIONS)], rng)
        Question.objects.filter(status="waiting").update(next_try_at=LONG_AGO)
        turk.forgive()
        wait_for(lambda: _work(turk) or _all_settled(), "everything to be settled", every=0.3)
        wait_for(lambda: _work(turk) or _all_paid(), "every payment", every=0.3)
        wait_for(
            lambda: set(HIT.objects.counts()) == {"disposed"}, "every HIT to be disposed", every=0.3
        )
    finally:
        speaker.kill()
    assert Question.objects.counts() == {"settled": len(pairs)}
    assert [label.n for label in Label.objects.filter(target__kind="pair")] == [3] * len(pairs)
    assert HIT.objects.count() == len(pairs) // 2
    spoilt = Assignment.objects.filter(status="failed").count()
    assert Payment.objects.count() == 3 * len(pairs) // 2 + spoilt
    price = Question.objects.all()[0].price
    assert balance(purpose=submission.purpose).spent == (3 * len(pairs) + 2 * spoilt) * price
    check_books(turk)
    check_labels(turk)
    check_bonuses(turk)
    check_money(turk)


def _die(turk: Turk, speaker: Speaker, operation: str, rng: random.Random) -> None:
    """Lets the process die while the endpoint holds a call of this operation; without such a death,
    the test fails.
    """
    assert any(
        _died_once(turk, speaker, operation, rng.choice(["timeout", "hang"]), rng)
        for _ in range(DRAWS)
    ), f"{operation} was never held: nobody died in the middle of it"


def _died_once(turk: Turk, speaker: Speaker, operation: str, kind: str, rng: random.Random) -> bool:
    """Whether it died while the endpoint held the call; one that does not come, for want of work,
    is given up.
    """
    before = held(turk)
    turk.fault(
        "CreateHITWithHITType" if operation == COMPENSATION else operation, kind, seconds=HELD
    )
    _make_work_for(turk, operation)
    with contextlib.suppress(AssertionError):
        wait_for(
            lambda: _work(turk, rng) or held(turk) > before,
            f"{operation} to be held",
            patience=60,
            every=0.1,
        )
    assert speaker.process.poll() is None, speaker.log.read_text()[-2000:]
    speaker.kill()
    died = held(turk) > before
    turk.forgive()
    bury()
    _forget_waiting()
    speaker.start()
    return died


def _make_work_for(turk: Turk, operation: str) -> None:
    """Gives the process what it makes such a call for: a document's questions, or something that is
    owed.
    """
    if operation in ("SendBonus", COMPENSATION, "AssociateQualificationWithWorker"):
        answer = Assignment.objects.filter(payment__isnull=False).order_by("pk").last()
        assert answer is not None, "nobody has sent anything in that a bonus could be for"
        give.grant_bonus(
            answer.worker,
            answer.hit.track,
            Decimal("0.25"),
            "A good find.",
            assignment=answer if operation == "SendBonus" else None,
        )
        return
    waiting = Question.objects.filter(status="waiting", next_try_at__gt=timezone.now())
    if (first := waiting.order_by("pk").first()) is not None:
        waiting.filter(target__document=first.target.document_id).update(next_try_at=LONG_AGO)
    if operation == "CreateAdditionalAssignmentsForHIT":
        wait_for(lambda: bool(turk.offered(SPOILER)), "a HIT to spoil", every=0.1)
        assignment, _ = turk.accept(SPOILER, turk.offered(SPOILER)[0])
        turk.send({"assignmentId": assignment, "answer": NONSENSE})


def _work(turk: Turk, rng: random.Random | None = None) -> bool:
    """Somebody does a HIT, if there is one; never true, so that it can stand in a wait."""
    if rng is None or rng.random() < 0.3:
        for worker in [*WORKERS, SPOILER] if rng is None else WORKERS:
            if offered := turk.offered(worker):
                turk.do(worker, offered[0])
    _forget_waiting()
    return False


def _forget_waiting() -> None:
    """Whatever waits for its next try is due: the test has no time to wait as long as a server
    would.
    """
    now = timezone.now()
    for model in (HIT, Payment, Bonus):
        model._default_manager.filter(next_try_at__gt=now).update(next_try_at=now)


def _all_settled() -> bool:
    return set(Question.objects.counts()) == {"settled"}


def _all_paid() -> bool:
    return set(Payment.objects.counts()) == set(Bonus.objects.counts()) == {"paid"}
