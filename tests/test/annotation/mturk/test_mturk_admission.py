"""Where HITs ask for our qualification, newcomers get it by themselves: they request it, learn, and
are let in.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from annotation_world import make_submission
from django.test import Client
from mturk_world import Refusal, Turk, check_books, form_of, rounds

from annotation.hits import publish
from annotation.models import Assignment, Worker
from annotation.questions import ask
from annotation.workers import teach
from annotation.workers.models import Consent
from annotation.workers.worker import worker_handle
from kbpo.instances.models import Target
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("untaught")]


@pytest.fixture
def guarded(turk: Turk, track: Track, targets: list[Target], settings: Any) -> Submission:
    """Six HITs that only those who have the qualification may accept."""
    settings.MTURK_REQUIRE_TUTORIAL = True
    submission = make_submission(track, targets)
    ask.tick()
    publish.tick()
    return submission


def request(turk: Turk, worker: str) -> None:
    """The worker presses Request beside what they lack, on the marketplace."""
    form = form_of(turk._get(f"/?workerId={worker}"), "request")
    assert form is not None
    turk._post(
        "/qualify", f"workerId={worker}&qualificationTypeId={form['qualificationTypeId']}".encode()
    )


def letter(turk: Turk, worker: str) -> str:
    """What the worker was told last."""
    return str(
        turk.rows("SELECT text FROM letter WHERE worker = ? ORDER BY number DESC", worker)[0][
            "text"
        ]
    )


def address_in(text: str) -> str:
    found = re.search(r"https?://[^/ ]+(/annotate/learn/\S+)", text)
    assert found, text
    return found.group(1)


class Learning:
    """Somebody on the page that they were told of; no cookie is kept or sent."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.open()

    def open(self) -> None:
        self._take(Client().get(self.path))

    def send(self, form: str, **values: Any) -> None:
        hidden = form_of(self.text, form)
        assert hidden is not None, self.text
        self._take(Client(enforce_csrf_checks=True).post(self.path, hidden | values))

    def _take(self, page: Any) -> None:
        self.status, self.text = page.status_code, page.content.decode()
        assert (
            not page.cookies
            and page["X-Frame-Options"] == "DENY"
            and page["Referrer-Policy"] == "no-referrer"
        )

    def learn(self, *, right: bool = True) -> None:
        self.send("begin")
        for question in teach.tutorials()["relation"].questions:
            self.send("answer", **(question["right"] if right else {"problem": "text"}))
            assert 'class="explained"' in self.text
            self.open()


@pytest.mark.soak
def test_a_newcomer_asks_learns_and_is_let_in_without_an_admin(
    guarded: Submission, turk: Turk
) -> None:
    assert turk.offered("WNEW") == []
    with pytest.raises(Refusal, match="lack a qualification"):
        turk.accept("WNEW", turk.hits()[0])
    request(turk, "WNEW")
    rounds()
    assert turk.rows("SELECT id FROM qualification_request") == [], "the request is answered"
    told = letter(turk, "WNEW")
    assert "tutorial" in told and "WNEW" not in told
    page = Learning(address_in(told))
    page.send("consent")
    assert page.status == 422 and "Tick the box" in page.text and "return this HIT" not in page.text
    page.send("consent", agree="yes")
    page.learn()
    assert "You have passed" in page.text
    rounds()
    assert len(turk.offered("WNEW")) == 6
    turk.do("WNEW", turk.hits()[0])
    rounds()
    worker = Worker.objects.get()
    assert Assignment.objects.get().status == "paid" and Consent.objects.get().worker == worker
    assert worker.handle == worker_handle("mturk", "WNEW") and worker.identity.external_id == "WNEW"
    check_books(turk)
