"""The desk says what needs somebody, what is under way, what a day cost and how the service is; one
queue for experts; a reason that is typed outlives a refresh.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from annotation.models import HIT, Assignment, Signal, Worker
from annotation.workers.worker import worker_of_user
from kbpo import clock
from kbpo.accounts.models import AccountRequest
from kbpo.clock import served
from kbpo.clock.models import Heartbeat
from kbpo.web.desk import health
from tests.conftest import Toy

As = Callable[[str], Client]
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def workers_answer() -> Iterator[None]:
    cache.set(health.COUNT_KEPT, 2, 60)
    yield
    cache.delete(health.COUNT_KEPT)


def doubt(toy: Toy, *names: str) -> list[Worker]:
    """Workers whose answers to questions with a known answer are all wrong."""
    found = []
    for name in names:
        worker = worker_of_user(toy.users[name])
        for _ in range(12):
            hit = HIT.objects.create(
                status="closed", track=toy.track, platform="pool", reward=Decimal("0.10")
            )
            go = Assignment.objects.create(
                status="approved", hit=hit, worker=worker, leased_until=clock.now(), raw={}
            )
            Signal.objects.create(assignment=go, kind="gold", against=True)
        found.append(worker)
    return found


def test_what_asks_for_an_answer_is_one_line_each(toy: Toy, as_user: As) -> None:
    served.record_beat()
    admin = as_user("Admin")
    page = admin.get(reverse("desk")).content.decode()
    assert "Everything is running; nothing failed." in page and "Needs attention" not in page
    AccountRequest.objects.create(name="Nia", email="nia@lab.example", team="Lab")
    page = admin.get(reverse("desk")).content.decode()
    assert "<b>1 request</b> for an account" in page and reverse("desk-people") in page


def test_the_desk_says_when_clock_workers_disk_or_backup_need_somebody(
    toy: Toy, as_user: As, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MEDIA_ROOT = str(tmp_path)
    signs = {sign.name: sign for sign in health.health_checks([])}
    assert (signs["Clock"].says, signs["Clock"].well) == ("it never ran", False)
    assert (signs["Last backup"].says, signs["Last backup"].well) == ("none was noted", True)
    served.record_beat()
    mark = tmp_path / health.BACKUP_MARK
    mark.touch()
    signs = {sign.name: sign for sign in health.health_checks([])}
    assert all(sign.well for sign in signs.values()), signs
    os.utime(mark, (time.time() - 3 * 86400,) * 2)
    Heartbeat.objects.update(at=clock.now() - timedelta(minutes=10))
    cache.set(health.COUNT_KEPT, 0, 60)
    monkeypatch.setattr(health, "LEAST_FREE", 1.1)
    signs = {sign.name: sign for sign in health.health_checks([])}
    assert [name for name, sign in signs.items() if not sign.well] == [
        "Clock",
        "Workers",
        "Disk",
        "Last backup",
    ]
    page = as_user("Admin").get(reverse("desk")).content.decode()
    assert "Ticked 10" in page and "None answers" in page and "nothing failed" not in page


def test_one_page_has_all_that_waits_for_an_expert(toy: Toy, as_user: As) -> None:
    address = reverse("desk-quality")
    assert "Nothing is open." in as_user("Admin").get(address).content.decode()
    assert as_user("Rosa").get(address).status_code == 403
