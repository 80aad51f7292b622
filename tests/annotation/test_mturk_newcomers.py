"""What stands before a marketplace worker's first question: terms, tutorial; and that nothing is
lost for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from annotation_world import GOOD, make_submission
from django.test import Client
from mturk_world import Turk, check_books, each_does_one, form_of, rounds

from annotation.hits import publish
from annotation.models import (
    HIT,
    Assignment,
    Bonus,
    Payment,
    Qualification,
    Question,
    Response,
    Worker,
)
from annotation.questions import ask
from annotation.workers import leave, teach
from annotation.workers.intake import intake_of
from annotation.workers.models import Consent, Intake, Terms, TutorialRun
from kbpo.instances.models import Target
from kbpo.money.purpose import Purpose
from kbpo.money.spend import balance
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from rehearsal.market_workers import MarketCrowd

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("untaught")]


@pytest.fixture
def paying(db: None) -> None:
    """The service pays for tutorials."""
    Intake.objects.create(tutorial_reward=Decimal("0.75"))
    assert intake_of().tutorial_reward == Decimal("0.75")


class Frame:
    """A worker before the page in the frame, form by form; no cookie is kept or sent."""

    def __init__(self, src: str) -> None:
        self.path = "/" + src.partition("//")[2].partition("/")[2]
        self.open()

    def open(self) -> Frame:
        self._take(Client().get(self.path))
        return self

    def send(self, form: str, **values: Any) -> Frame:
        hidden = form_of(self.text, form)
        assert hidden is not None, f"no form {form} in {self.text}"
        self._take(Client(enforce_csrf_checks=True).post(self.path, hidden | values))
        return self

    def _take(self, page: Any) -> None:
        self.status, self.text = page.status_code, page.content.decode()
        assert not page.cookies
        assert "frame-ancestors" in page["Content-Security-Policy"]

    def has(self, form: str) -> bool:
        return form_of(self.text, form) is not None

    def learn(self, *, right: bool = True) -> Frame:
        """Goes through the tutorial, and to what comes after it."""
        self.send("begin")
        for question in teach.tutorials()["relation"].questions:
            assert "data-tutorial" in self.text
            self.send("answer", **(question["right"] if right else {"problem": "text"}))
            assert 'class="explained"' in self.text
            self.open()
        return self


@pytest.mark.soak
def test_terms_then_tutorial_then_the_question(up: Submission, turk: Turk) -> None:
    frame = Frame(turk.accept("W1", turk.hits()[0])[1])
    assert frame.has("consent") and "I agree" in frame.text and "studied at" not in frame.text
    assert "paid by the marketplace" in frame.text and "Your id on the marketplace" in frame.text
    assert "Your login" not in frame.text and "payouts}" not in frame.text
    assert frame.send("consent").status == 422 and "Tick the box" in frame.text
    assert frame.send("consent", agree="yes").has("begin")
    assert Consent.objects.get().worker == Worker.objects.get()
    frame.learn()
    assert 'id="answer"' in frame.text and "data-tutorial" not in frame.text
    assert frame.send("answer", **GOOD).has("send")
    again = Frame(turk.accept("W1", turk.hits()[1])[1])
    assert again.has("consent"), "nobody but the address says that it is they"
    turk.send(form_of(frame.text, "send") or {})
    rounds()
    assert again.open().has("answer") and "data-tutorial" not in again.text


@pytest.mark.soak
def test_passing_is_told_to_the_platform_and_paid_once_by_a_bonus(
    up: Submission, turk: Turk, paying: None, track: Track
) -> None:
    before = balance(track=track).open
    assignment, src = turk.accept("W1", turk.hits()[0])
    frame = Frame(src).send("consent", agree="yes")
    assert "$0.75" in frame.text
    frame.learn()
    rounds()
    assert balance(track=track).open == before + Decimal(
        "0.90"
    )  # promised, with the marketplace's fee
    assert not Bonus.objects.exists()  # the platform does not know yet that they were here
    frame.send("answer", **GOOD)
    turk.send(form_of(frame.text, "send") or {})
    rounds()
    bonus = Bonus.objects.get()
    assert (bonus.status, bonus.amount, bonus.assignment.external_id) == (
        "paid",
        Decimal("0.75"),
        assignment,
    )  # type: ignore[union-attr]
    assert turk.rows("SELECT cents FROM bonus") == [{"cents": 75}]
    assert balance(purpose=Purpose("tutorial", TutorialRun.objects.get().pk)).open == 0
    assert Qualification.objects.get(name="tutorial").told is True
    assert not Payment.objects.filter(assignment=None).exists()
    turk.do("W1", turk.hits()[1])
    rounds()
    assert Bonus.objects.count() == 1
    check_books(turk)


@pytest.mark.soak
def test_what_was_promised_and_not_paid_yet_is_not_promised_again_for_a_new_version(
    up: Submission, turk: Turk, track: Track
) -> None:
    """Else the second promise, of another amount, could never be kept nor given back."""
    Frame(turk.accept("W1", turk.hits()[0])[1]).send("consent", agree="yes").learn()
    TutorialRun.objects.update(version=0)
    Intake.objects.create(tutorial_reward=Decimal("1.00"))
    frame = Frame(turk.accept("W1", turk.hits()[1])[1]).send("consent", agree="yes")
    assert "The tutorial pays nothing now" in frame.text
    frame.learn().send("answer", **GOOD)
    turk.send(form_of(frame.text, "send") or {})
    rounds()
    assert [(one.status, one.amount) for one in Bonus.objects.all()] == [("paid", Decimal("0.75"))]
    assert [
        balance(purpose=Purpose("tutorial", run.pk)).open for run in TutorialRun.objects.all()
    ] == [
        0,
        0,
    ]


@pytest.mark.soak
def test_a_tutorial_that_was_passed_and_nothing_sent_after_it_holds_no_money_for_ever(
    up: Submission, turk: Turk, paying: None, track: Track
) -> None:
    Frame(turk.accept("W1", turk.hits()[0])[1]).send("consent", agree="yes").learn()
    run = TutorialRun.objects.get()
    assert balance(purpose=run.purpose).open == Decimal("0.90")
    assert leave.tick() == 0
    TutorialRun.objects.update(ended_at=run.started_at - leave.PATIENCE)
    assert leave.tick() == 1
    assert balance(purpose=run.purpose).open == 0


@pytest.mark.soak
def test_a_promise_that_went_back_is_made_anew_with_the_next_answer(
    up: Submission, turk: Turk, paying: None, track: Track
) -> None:
    frame = Frame(turk.accept("W1", turk.hits()[0])[1]).send("consent", agree="yes").send("begin")
    run = TutorialRun.objects.get()
    TutorialRun.objects.update(started_at=run.started_at - leave.PATIENCE)
    assert leave.tick() == 1 and balance(purpose=run.purpose).open == 0
    frame.send("answer", **teach.tutorials()["relation"].questions[0]["right"])
    run.refresh_from_db()
    assert run.passed is None and run.promised == Decimal("0.75")
    assert balance(purpose=run.purpose).open == Decimal("0.90") and leave.tick() == 0


@pytest.mark.soak
def test_two_failed_attempts_end_it_without_a_question(up: Submission, turk: Turk) -> None:
    frame = Frame(turk.accept("W1", turk.hits()[0])[1]).send("consent", agree="yes")
    frame.learn(right=False)
    assert "One more time" in frame.text
    frame.learn(right=False)
    assert "return this HIT" in frame.text and not frame.has("answer")
    assert (
        not Qualification.objects.exists() and TutorialRun.objects.filter(passed=False).count() == 2
    )


@pytest.mark.soak
def test_an_answer_of_the_tutorial_counts_once(up: Submission, turk: Turk) -> None:
    frame = Frame(turk.accept("W1", turk.hits()[0])[1]).send("consent", agree="yes").send("begin")
    first, right = frame.text, teach.tutorials()["relation"].questions[0]["right"]
    frame.send("answer", problem="text")
    frame.text = first
    frame.send("answer", **right)  # the same form again, mended after the explanation
    [only] = TutorialRun.objects.get().answers
    assert only["right"] is False


@pytest.mark.soak
def test_terms_that_change_in_the_middle_of_the_work_lose_nothing(
    turk: Turk, track: Track, targets: list[Target], settings: Any
) -> None:
    settings.MTURK_TUTORIAL = False
    Target.objects.filter(pk=targets[1].pk).update(document=targets[0].document)
    make_submission(track, targets[:2])
    ask.tick()
    publish.tick()
    frame = Frame(turk.accept("W1", HIT.objects.get().external_id)[1]).send("consent", agree="yes")
    frame.send("answer", **GOOD)
    assert "Question <b>2</b> of 2" in frame.text
    Terms.objects.create(version=6, text="New terms. " * 20)
    frame.send("answer", **GOOD)
    assert frame.has("consent") and "Version 6" in frame.text
    frame.send("consent", agree="yes")
    assert "Question <b>2</b> of 2" in frame.text
    assert 'value="per:schools_attended&gt;" checked' in frame.text or "checked" in frame.text
    assert frame.send("answer", **GOOD).has("send")
    assert Consent.objects.count() == 2


@pytest.mark.soak
def test_an_answer_that_arrives_without_consent_is_kept_and_paid(
    up: Submission, turk: Turk, settings: Any
) -> None:
    settings.MTURK_TUTORIAL = False
    frame = (
        Frame(turk.accept("W1", turk.hits()[0])[1])
        .send("consent", agree="yes")
        .send("answer", **GOOD)
    )
    Terms.objects.create(version=6, text="New terms. " * 20)
    turk.send(form_of(frame.text, "send") or {})
    rounds()
    assert Assignment.objects.get().status == "paid"
    assert Response.objects.filter(criterion="relation", counts=True).count() == 1


@pytest.mark.soak
def test_a_tutorial_that_is_new_does_not_stop_who_has_begun(
    up: Submission, turk: Turk, settings: Any
) -> None:
    settings.MTURK_TUTORIAL = False
    frame = (
        Frame(turk.accept("W1", turk.hits()[0])[1])
        .send("consent", agree="yes")
        .send("answer", a="0-3")
    )
    settings.MTURK_TUTORIAL = True
    assert frame.open().has("answer") and "data-tutorial" not in frame.text
    other = Frame(turk.accept("W1", turk.hits()[1])[1]).send("consent", agree="yes")
    assert other.has("begin")


@pytest.mark.soak
def test_nobody_gets_round_the_tutorial_by_sending_an_answer(up: Submission, turk: Turk) -> None:
    frame = Frame(turk.accept("W1", turk.hits()[0])[1]).send("consent", agree="yes")
    begin = form_of(frame.text, "begin") or {}
    for _ in range(2):
        page = Client().post(frame.path, {"proof": begin["proof"], "answer": "{}"} | GOOD)
        assert form_of(page.content.decode(), "begin") is not None
    assert Assignment.objects.get().draft is None


@pytest.mark.soak
def test_a_preview_asks_nobody_for_anything(up: Submission, turk: Turk) -> None:
    frame = Frame(turk.preview("W1", turk.hits()[0]))
    assert "Accept the HIT to answer" in frame.text and not frame.has("consent")
    assert not Worker.objects.exists()


@dataclass(frozen=True)
class Nothing:
    """What is true of any two mentions here."""

    subject_canonical: tuple[int, int] = (0, 3)
    object_canonical: tuple[int, int] = (0, 3)
    holds: tuple[tuple[str, str], ...] = ()


@pytest.mark.soak
def test_a_simulated_marketplace_crowd_reads_the_terms_learns_and_judges(
    up: Submission, turk: Turk, live_server: Any, settings: Any
) -> None:
    settings.SITE_URL = live_server.url
    HIT.objects.all().delete()
    turk.wipe()
    Question.objects.update(status="waiting")
    publish.tick()
    crowd = MarketCrowd(turk.url, live_server.url, ["W1", "W2"], lambda *_: Nothing())
    each_does_one(crowd)
    work = crowd.work(at_most=60)
    assert work.errors == []
    assert (
        work.answers,
        TutorialRun.objects.filter(passed=True).count(),
        Consent.objects.count(),
    ) == (12, 2, 2)
