"""What an hour pays is told as planned and as measured; who finds no work can be written to."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from annotation_world import answer_all
from django.core import mail
from django.test import Client
from django.utils import timezone

from annotation.hits import mail_work
from annotation.models import HIT, Assignment, Worker
from annotation.quality.hourly import hourly_rates
from annotation.workers import leave
from annotation.workers.models import Intake
from annotation.workers.worker import worker_of_user
from kbpo.accounts import notices
from kbpo.accounts.models import User
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db
HOME = "/annotate/"


def write_all(capture: Any) -> int:
    with capture(execute=True):
        written = mail_work.tick()
    notices.tick()
    return written


@pytest.fixture
def away(published: Submission, ada: Client, settings: Any) -> Worker:
    """Ada asked for mail when she found nothing; there is work now, and she is not here."""
    settings.MAIL_URL = "smtp://mail.example.org"
    User.objects.filter(username="ada").update(email="ada@example.org")
    HIT.objects.update(status="closed")
    told = ada.get(HOME).content.decode()
    assert "Nothing to judge now" in told and "E-mail me when there is work" in told
    assert ada.post("/annotate/", {"action": "work-mail", "wanted": "yes"})["Location"] == HOME
    Worker.objects.update(last_seen_at=timezone.now() - timedelta(hours=2))
    return Worker.objects.get()


def test_a_mail_goes_out_when_there_is_work_and_only_then(
    away: Worker, django_capture_on_commit_callbacks: Any
) -> None:
    assert write_all(django_capture_on_commit_callbacks) == 0 and mail.outbox == []
    HIT.objects.update(status="open")
    assert write_all(django_capture_on_commit_callbacks) == 1
    [sent] = mail.outbox
    assert sent.to == ["ada@example.org"] and "6 questions wait for you" in sent.body
    assert "/annotate/payee/" in sent.body, "where it can be switched off"


def test_nobody_is_written_to_who_does_not_want_it_or_may_not_judge(
    away: Worker, ada: Client, django_capture_on_commit_callbacks: Any
) -> None:
    HIT.objects.update(status="open")
    Worker.objects.update(excluded_at=timezone.now(), excluded_reason="Guessing.")
    assert write_all(django_capture_on_commit_callbacks) == 0
    Worker.objects.update(excluded_at=None)
    ada.post("/annotate/", {"action": "work-mail", "wanted": "no", "from": "payee"})
    assert not Worker.objects.filter(wants_mail=True).exists()
    assert write_all(django_capture_on_commit_callbacks) == 0
    User.objects.update(email="")
    assert (
        ada.post("/annotate/", {"action": "work-mail", "wanted": "yes"})["Location"]
        == "/annotate/payee/"
    )
    assert not Worker.objects.filter(wants_mail=True).exists(), "it takes an address"


def test_the_wish_goes_with_whoever_leaves(away: Worker) -> None:
    leave.ask_to_leave(away, waives=True)
    assert not Worker.objects.filter(wants_mail=True).exists()


@pytest.mark.usefixtures("untaught")
def test_without_work_the_paid_tutorial_is_in_sight(
    published: Submission, ada: Client, track: Track
) -> None:
    HIT.objects.update(status="closed")
    told = ada.get(HOME).content.decode()
    empty = told[told.index('id="no-work"') :]
    assert 'href="/annotate/tutorial/relation/"' in empty and "$0.75" in empty
    Intake.objects.create(track=track, tutorial_reward=Decimal("0.00"))
    told = ada.get(HOME).content.decode()
    assert "$0.75" not in told[told.index('id="no-work"') :]


def test_the_hourly_rate_is_told_as_planned_and_at_the_usual_pace(
    published: Submission, clients: list[Client], admin: User
) -> None:
    assert hourly_rates()["relation"].planned == Decimal("9.00")
    assert hourly_rates()["relation"].measured is None
    for client in clients[:2]:
        answer_all(client)
    ada = worker_of_user(User.objects.get(username="ada"))
    Assignment.objects.filter(worker=ada).update(seconds=12.0, status="accepted")
    Assignment.objects.exclude(worker=ada).update(seconds=30.0, status="accepted")
    slow = Assignment.objects.filter(worker=ada).latest("pk")
    Assignment.objects.filter(pk=slow.pk).update(seconds=9000.0)  # the page stayed open
    assert hourly_rates(worker=ada)["relation"].measured == Decimal("15.00")
    everybody = hourly_rates()["relation"]
    assert (everybody.measured, everybody.answers) == (Decimal("6.00"), 12)
    assert everybody.is_below_floor
    Assignment.objects.filter(pk=slow.pk).update(status="returned", returned_by="lease")
    told = clients[0].get(HOME).content.decode()  # one is open again
    row = re.search(r'data-label="An hour"><span>(.*?)</span></td>', told, re.S)
    assert row is not None
    assert " ".join(row.group(1).split()) == (
        "$9.00 planned, <b>$6.00</b> at the usual pace, $15.00 at yours"
    )
