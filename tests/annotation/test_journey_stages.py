"""What the desk is told of the crowd's journey: what is late, what is not, what failed and can be
retried.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone

from annotation.desk import journey
from annotation.desk.command import CannotDismiss, CannotRetry, dismiss, retry
from annotation.desk.journey import Stage
from annotation.hits import lease
from annotation.models import (
    HIT,
    Assignment,
    Payment,
    PlatformBooks,
    Qualification,
    Worker,
    WorkerIdentity,
)
from annotation.workers.worker import worker_of
from kbpo.accounts.models import Audit, User
from kbpo.submissions.models import Submission

pytestmark = pytest.mark.django_db


def stage(name: str) -> Stage:
    [found] = [one for one in journey.oldest() if one.what == name]
    return found


def ago(**since: float) -> datetime:
    return timezone.now() - timedelta(**since)


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create_superuser("root", password="long enough 1")


@pytest.fixture
def turker(db: None) -> Worker:
    worker = Worker.objects.create(platform="mturk", handle="ab" * 16)
    WorkerIdentity.objects.create(worker=worker, external_id="W1")
    return worker


@pytest.fixture
def reader(db: None) -> Worker:
    return worker_of(User.objects.create(username="ada", is_annotator=True))


def test_what_a_platform_was_not_told_waits(published: Submission, turker: Worker) -> None:
    told = Qualification.objects.create(
        worker=turker, name="tutorial", wanted=True, wanted_at=ago(hours=2)
    )
    Qualification.objects.create(
        worker=turker, name="excluded", wanted=False, wanted_at=ago(hours=2)
    )
    assert (stage("Tell qualifications").waiting, stage("Tell qualifications").late) == (1, True)
    Qualification.objects.filter(pk=told.pk).update(told=F("wanted"))
    assert stage("Tell qualifications").waiting == 0
    HIT.objects.update(
        platform="mturk", status="closed", called_at=ago(days=4), status_since=ago(days=3)
    )
    assert stage("Delete HITs").late
    HIT.objects.update(platform_status="gone")
    assert stage("Delete HITs").waiting == 0


def test_money_comes_first_and_stays_and_only_what_can_be_is_retried(
    published: Submission, reader: Worker, turker: Worker
) -> None:
    held = lease.lease(reader)
    assert held is not None
    Assignment.objects.update(status="failed", raw={}, reason="It cannot be read.")
    owed = Payment.objects.create(
        status="failed", worker=turker, amount=Decimal("0.30"), why="x", status_since=ago(days=40)
    )
    found = journey.failures()
    assert [(one.kind, one.pk, one.again) for one in found] == [
        ("payment", owed.pk, True),
        ("assignment", held.pk, False),
    ]
    with pytest.raises(CannotRetry):
        retry("assignment", held.pk)
    assert retry("payment", owed.pk) == "unknown"


def test_what_is_dismissed_with_a_note_is_listed_again_only_if_it_fails_again(
    published: Submission, root: User, turker: Worker
) -> None:
    owed = Payment.objects.create(status="failed", worker=turker, amount=Decimal("0.30"), why="x")
    other = Payment.objects.create(status="failed", worker=turker, amount=Decimal("0.20"), why="y")
    for pk, why in (
        (owed.pk, "  "),
        (other.pk + 1, "Paid by hand."),
        (
            Payment.objects.create(
                status="owed", worker=turker, amount=Decimal("0.10"), why="z"
            ).pk,
            "Paid by hand.",
        ),
    ):
        with pytest.raises(CannotDismiss):
            dismiss("payment", pk, root, why)
    with pytest.raises(CannotDismiss):
        dismiss("nonsense", owed.pk, root, "Paid by hand.")
    dismiss("payment", owed.pk, root, "Paid by hand.")
    assert [(one.kind, one.pk) for one in journey.failures()] == [("payment", other.pk)]
    entry = Audit.objects.get(what="dismiss")
    assert (entry.about, entry.who, entry.why) == (f"payment:{owed.pk}", root, "Paid by hand.")
    assert retry("payment", owed.pk) == "unknown"
    owed.refresh_from_db()
    owed.move("failed", "It is refused again.")
    assert {one.pk for one in journey.failures()} == {owed.pk, other.pk}


def test_a_platform_that_is_down_or_disagrees_is_told(settings: Any) -> None:
    settings.MTURK_ENDPOINT_URL = "http://127.0.0.1:8010"
    row = PlatformBooks.objects.create(platform="mturk", endpoint="http://127.0.0.1:8010")
    assert journey.quarrels() == []
    row.trouble = "The platform did not answer."
    row.save()
    assert [one.trouble for one in journey.quarrels()] == ["The platform did not answer."]
    row.trouble, row.available, row.on_hold, row.baseline = (
        "",
        Decimal(90),
        Decimal(0),
        Decimal(100),
    )
    row.save()
    assert [(one.trouble, one.off) for one in journey.quarrels()] == [("", Decimal("-10.00"))]
