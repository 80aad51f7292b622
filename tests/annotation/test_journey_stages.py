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
from annotation.desk.journey import InDoubt, Stage
from annotation.hits import batch, lease
from annotation.models import (
    HIT,
    Assignment,
    Bonus,
    DocumentOrder,
    Payment,
    PlatformBooks,
    Qualification,
    Question,
    Worker,
    WorkerIdentity,
)
from annotation.workers.worker import worker_of
from kbpo.accounts.models import Audit, User
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from tests.annotation.documents_world import order
from tests.conftest import Toy

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


def test_a_document_in_hand_is_not_late_while_its_lease_is_renewed(
    published: Submission, reader: Worker
) -> None:
    held = lease.lease(reader)
    assert held is not None
    Assignment.objects.update(status_since=ago(hours=3))
    assert lease.renew(held)
    assert (stage("Answer").waiting, stage("Answer").late) == (1, False)
    assert stage("Take back").waiting == 0
    Assignment.objects.update(leased_until=ago(minutes=11))
    assert (stage("Take back").waiting, stage("Take back").late) == (1, True)


def test_a_marketplace_has_the_hours_of_its_hit_twice(published: Submission, settings: Any) -> None:
    Question.objects.update(status_since=ago(days=3))
    assert stage("Judge").late and not stage("Judge elsewhere").waiting
    Track.objects.update(platform="mturk")
    assert not stage("Judge").waiting
    assert stage("Judge elsewhere").waiting == 6 and not stage("Judge elsewhere").late
    Question.objects.update(status_since=ago(hours=2 * settings.MTURK_HIT_HOURS + 2))
    assert stage("Judge elsewhere").late


def test_money_without_an_outcome_is_late_though_it_is_tried_every_minute(
    track: Track, turker: Worker
) -> None:
    made = {"worker": turker, "amount": Decimal("0.30"), "created_at": ago(hours=2)}
    Payment.objects.create(status="unknown", why="A tutorial", **made)
    Bonus.objects.create(status="sent", track=track, fee=Decimal("0.06"), **made)
    assert stage("Learn what was paid").late and stage("Learn what bonuses were paid").late
    assert journey.in_doubt() == InDoubt(2, Decimal("0.60"))
    Payment.objects.update(status="owed")
    Bonus.objects.update(status="owed")
    assert stage("Pay elsewhere").late and not stage("Pay answers").waiting
    assert (
        stage("Compensate").waiting,
        stage("Compensate").late,
        stage("Pay bonuses").waiting,
    ) == (1, False, 0)
    assert journey.in_doubt().n == 0


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


def test_documents_wait_to_be_asked_about_and_orders_for_money(toy: Toy) -> None:
    order(toy.track, 2)
    assert stage("Ask about documents").waiting == 0
    row = DocumentOrder.objects.get()
    assert Question.objects.filter(**row.purpose.at("payer")).count() == 2
    assert stage("Add money to orders").waiting == 0
    Question.objects.filter(**row.purpose.at("payer")).update(
        status="waiting", price=100, status_since=ago(hours=2)
    )
    assert (stage("Add money to orders").waiting, stage("Add money to orders").late) == (1, True)
    Question.objects.filter(**row.purpose.at("payer")).delete()
    DocumentOrder.objects.update(created_at=ago(hours=2))
    assert (stage("Ask about documents").waiting, stage("Ask about documents").late) == (2, True)


def test_what_an_admin_stopped_and_what_is_long_past_is_no_failure(
    published: Submission, root: User
) -> None:
    batch.stop_batch(published.purpose, root, "Wrong prices.")
    assert journey.failures() == []
    first, second = Question.objects.order_by("pk")[:2]
    first.move("unanswered", "Too few people answered it within fourteen days.", ended_by="")
    second.move("unanswered", "Too few people answered it within fourteen days.", ended_by="")
    Question.objects.filter(pk=second.pk).update(status_since=ago(days=15))
    assert [(one.kind, one.pk, one.again) for one in journey.failures()] == [
        ("question", first.pk, True)
    ]


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
