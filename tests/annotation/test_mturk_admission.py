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
from annotation.labels import exclude
from annotation.marketplace import admit, give
from annotation.models import Assignment, Qualification, Worker, WorkerIdentity
from annotation.platforms import proof
from annotation.questions import ask
from annotation.workers import teach
from annotation.workers.models import Consent, TutorialRun
from annotation.workers.worker import handle_of
from kbpo.accounts.models import User
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
    assert worker.handle == handle_of("mturk", "WNEW") and worker.identity.external_id == "WNEW"
    check_books(turk)


@pytest.mark.soak
def test_who_has_passed_before_is_given_it_at_once(guarded: Submission, turk: Turk) -> None:
    worker = Worker.objects.create(platform="mturk", handle=handle_of("mturk", "W1"))
    WorkerIdentity.objects.create(worker=worker, external_id="W1")
    Qualification.objects.create(worker=worker, name="tutorial", wanted=True, told=True)
    request(turk, "W1")
    rounds()
    assert turk.calls("AcceptQualificationRequest") == 1 and len(turk.offered("W1")) == 6


@pytest.mark.soak
def test_who_failed_twice_or_is_excluded_is_told_so(guarded: Submission, turk: Turk) -> None:
    request(turk, "W1")
    rounds()
    page = Learning(address_in(letter(turk, "W1")))
    page.send("consent", agree="yes")
    page.learn(right=False)
    assert "One more time" in page.text
    page.learn(right=False)
    assert "not passed in two attempts" in page.text and form_of(page.text, "begin") is None
    assert TutorialRun.objects.filter(passed=False).count() == 2
    request(turk, "W1")
    rounds()
    assert letter(turk, "W1") == admit.FAILED
    exclude.exclude(Worker.objects.get(), "Always the first button")
    request(turk, "W1")
    rounds()
    assert "how you can appeal" in letter(turk, "W1") and "/annotate/say/" in letter(turk, "W1")
    assert turk.offered("W1") == [] and turk.calls("AcceptQualificationRequest") == 0


@pytest.mark.soak
def test_what_an_admin_took_back_is_not_won_again_by_asking(
    guarded: Submission, turk: Turk, admin: User
) -> None:
    request(turk, "W1")
    rounds()
    page = Learning(address_in(letter(turk, "W1")))
    page.send("consent", agree="yes")
    page.learn()
    give.admit(Worker.objects.get().handle, admin, "Left out.", held=False)
    rounds()
    request(turk, "W1")
    rounds()
    assert "took the qualification back" in letter(turk, "W1") and turk.offered("W1") == []
    page.open()
    assert "took the qualification back" in page.text and form_of(page.text, "begin") is None


@pytest.mark.soak
def test_a_call_without_an_answer_is_made_again_and_lets_in_once(
    guarded: Submission, turk: Turk
) -> None:
    request(turk, "W1")
    turk.fault("RejectQualificationRequest", "error_after")
    turk.fault("ListQualificationRequests", "throttle")
    for _ in range(3):
        rounds()
    assert len(turk.rows("SELECT text FROM letter")) == 1
    turk.forgive()
    Qualification.objects.create(worker=Worker.objects.get(), name="tutorial", wanted=True)
    request(turk, "W1")
    turk.fault("AcceptQualificationRequest", "error")
    rounds()
    rounds()
    assert len(turk.offered("W1")) == 6 and turk.rows("SELECT id FROM qualification_request") == []


@pytest.mark.soak
def test_nobody_is_answered_where_no_tutorial_is_required(
    guarded: Submission, turk: Turk, settings: Any
) -> None:
    request(turk, "W1")
    settings.MTURK_REQUIRE_TUTORIAL = False
    rounds()
    assert turk.calls("ListQualificationRequests") == 0 and not Worker.objects.exists()


@pytest.mark.soak
def test_the_page_opens_with_no_address_but_ours(guarded: Submission) -> None:
    worker = Worker.objects.create(platform="mturk", handle="ab" * 16)
    mine, signed = proof.learn_path(worker), proof.say_path(worker).split("/")[3]
    assert Client().get(mine).status_code == 200
    for forged in (mine.replace("abab", "cdcd", 1), f"/annotate/learn/{signed}/"):
        assert Client().get(forged).status_code == 404
