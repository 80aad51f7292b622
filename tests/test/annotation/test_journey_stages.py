"""What the desk is told of the crowd's journey: what is late, what is not, what failed and can be
retried.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from annotation.desk import journey
from annotation.desk.failures import (
    CannotDismiss,
    CannotRetry,
    crowd_failures,
    dismiss_failed_row,
    retry_failed_row,
)
from annotation.desk.journey import Stage
from annotation.hits import lease
from annotation.models import (
    Assignment,
    Payment,
    Worker,
    WorkerIdentity,
)
from annotation.workers.worker import worker_of_user
from kbpo.accounts.models import Audit, User
from kbpo.submissions.models import Submission

pytestmark = pytest.mark.django_db


def stage(name: str) -> Stage:
    [found] = [one for one in journey.crowd_stages() if one.name == name]
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
    return worker_of_user(User.objects.create(username="ada", is_annotator=True))


def test_money_comes_first_and_stays_and_only_what_can_be_is_retried(
    published: Submission, reader: Worker, turker: Worker
) -> None:
    held = lease.lease_next(reader)
    assert held is not None
    Assignment.objects.update(status="failed", raw={}, reason="It cannot be read.")
    owed = Payment.objects.create(
        status="failed", worker=turker, amount=Decimal("0.30"), why="x", status_since=ago(days=40)
    )
    found = crowd_failures()
    assert [(one.kind, one.pk, one.again) for one in found] == [
        ("payment", owed.pk, True),
        ("assignment", held.pk, False),
    ]
    with pytest.raises(CannotRetry):
        retry_failed_row("assignment", held.pk)
    assert retry_failed_row("payment", owed.pk) == "unknown"


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
            dismiss_failed_row("payment", pk, root, why)
    with pytest.raises(CannotDismiss):
        dismiss_failed_row("nonsense", owed.pk, root, "Paid by hand.")
    dismiss_failed_row("payment", owed.pk, root, "Paid by hand.")
    assert [(one.kind, one.pk) for one in crowd_failures()] == [("payment", other.pk)]
    entry = Audit.objects.get(what="dismiss")
    assert (entry.about, entry.who, entry.why) == (f"payment:{owed.pk}", root, "Paid by hand.")
    assert retry_failed_row("payment", owed.pk) == "unknown"
    owed.refresh_from_db()
    owed.move("failed", "It is refused again.")
    assert {one.pk for one in crowd_failures()} == {owed.pk, other.pk}
