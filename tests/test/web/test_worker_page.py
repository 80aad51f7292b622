"""The admins' page of one annotator: appeals, messages, and erasure where an admin may order it."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.models import HIT, Assignment, Worker, WorkerIdentity
from annotation.workers.models import Message
from annotation.workers.worker import worker_of_user
from tests.conftest import Toy

pytestmark = pytest.mark.django_db


@pytest.fixture
def elsewhere(db: None) -> Worker:
    worker = Worker.objects.create(platform="mturk", handle="ab" * 16)
    WorkerIdentity.objects.create(worker=worker, external_id="W1")
    return worker


def page_of(admin: Client, worker: Worker) -> str:
    return admin.get(reverse("desk-worker", args=[worker.handle])).content.decode()


def test_a_message_goes_to_the_page_or_to_the_marketplace(
    admin: Client, toy: Toy, elsewhere: Worker
) -> None:
    worker = worker_of_user(toy.users["Ada"])
    said = {"verb": "write", "subject": "Thank you", "text": "Well done."}
    for one in (worker, elsewhere):
        answer = admin.post(reverse("desk-worker", args=[one.handle]), said, follow=True)
        assert "Sent." in answer.content.decode() and "Thank you" in page_of(admin, one)
    assert Message.objects.count() == 2 and "waiting for the marketplace" in page_of(
        admin, elsewhere
    )
    Message.objects.update(trouble="This worker has not worked for you.")
    assert "This worker has not worked for you." in page_of(admin, elsewhere)
    refused = admin.post(reverse("desk-worker", args=[elsewhere.handle]), said | {"text": " "})
    assert refused.status_code == 422 and "is empty" in refused.content.decode()
    hit = HIT.objects.create(
        status="open", track=toy.track, platform="mturk", max_assignments=3, reward="0.05"
    )
    drafted = {"leased_until": timezone.now(), "draft": {"a": ["0-3"]}}
    Assignment.objects.create(status="leased", hit=hit, worker=elsewhere, **drafted)
    page = page_of(admin, elsewhere)
    assert (
        "not submitted anything on the marketplace" in page
        and 'name="verb" value="write"' not in page
    )
    assert admin.post(reverse("desk-worker", args=[elsewhere.handle]), said).status_code == 422
    Assignment.objects.update(raw={"a": ["0-3"]})
    assert 'name="verb" value="write"' in page_of(admin, elsewhere)
    WorkerIdentity.objects.filter(worker=elsewhere).delete()
    assert "No message can reach them" in page_of(admin, elsewhere)


def test_only_workers_of_marketplaces_are_erased_here_and_only_with_the_word(
    admin: Client, toy: Toy, elsewhere: Worker
) -> None:
    assert 'id="erase"' not in page_of(admin, worker_of_user(toy.users["Ada"]))
    address = reverse("desk-worker", args=[elsewhere.handle])
    assert admin.post(address, {"verb": "erase", "why": "They asked."}).status_code == 422
    assert admin.post(address, {"verb": "erase", "word": "erase", "why": ""}).status_code == 422
    done = admin.post(address, {"verb": "erase", "word": "erase", "why": "They asked."})
    assert done["Location"] == reverse("desk-workers")
    elsewhere.refresh_from_db()
    assert (
        elsewhere.erased_at is not None
        and not WorkerIdentity.objects.filter(external_id="W1").exists()
    )
    assert admin.get(address).status_code == 404
