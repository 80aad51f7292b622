"""Volunteers, messages, feedback, appeals, and leaving."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from annotation_world import GOOD, answer_all, says_where_the_money_goes, take
from django.core import mail
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.utils import timezone
from test_annotators_teaching import TUTORIAL, mistaken

from annotation.budget.check_books import check_books
from annotation.labels import exclude, reject, settle
from annotation.models import Assignment, Payment, Response, Worker, WorkerIdentity
from annotation.workers import leave, teach
from annotation.workers.models import (
    Appeal,
    Application,
    Consent,
    Feedback,
    Intake,
    Message,
    Terms,
    TutorialRun,
)
from kbpo.accounts import notices
from kbpo.accounts.models import Audit, User
from kbpo.money.spend import balance
from kbpo.submissions.models import Submission
from kbpo.tracks.texts.declared import store_form
from kbpo.tracks.texts.models import DeclaredForm
from tests.test.tracks.test_declared_forms import BETTER

pytestmark = pytest.mark.django_db
VOLUNTEER, LEAVE, DESK = "/annotate/volunteer/", "/annotate/leave/", "/desk/requests/"
NEW = {
    "username": "vera",
    "email": "vera@example.org",
    "password1": "plenty of letters",
    "password2": "plenty of letters",
}


@pytest.fixture(autouse=True)
def own_cache(settings: Any) -> None:
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    cache.clear()


@pytest.fixture
def admin() -> Client:
    client = Client()
    client.force_login(User.objects.create(username="anna", is_staff=True))
    return client


def worker(name: str = "ada") -> Worker:
    return Worker.objects.get(user__username=name)


def text_of(response: Any) -> str:
    return str(response.content.decode())


# -- Volunteers


def test_a_volunteer_waits_for_an_admin_and_then_judges_where_volunteers_may(
    published: Submission, admin: Client, django_capture_on_commit_callbacks: Any
) -> None:
    Intake.objects.create(volunteers="queue")
    vera = Client()
    assert vera.post(VOLUNTEER, {**NEW, "password2": "other"}).status_code == 422
    assert vera.post(VOLUNTEER, {**NEW, "why": "I read a lot."})["Location"] == VOLUNTEER
    assert "You are in the queue" in text_of(vera.get(VOLUNTEER))
    refusal = vera.get("/annotate/")
    assert refusal.status_code == 403 and "No admin has answered your request" in text_of(refusal)
    assert f'href="{VOLUNTEER}"' in text_of(refusal)
    row = Application.objects.get()
    assert "I read a lot." in text_of(admin.get(DESK))
    with django_capture_on_commit_callbacks(execute=True):
        admin.post(DESK, {"action": "volunteer", "pk": row.pk, "decision": "admit"})
    admin.post(DESK, {"action": "volunteer", "pk": row.pk, "decision": "decline"})
    user = User.objects.get(username="vera")
    notices.tick()
    [letter] = mail.outbox
    assert letter.to == ["vera@example.org"] and letter.subject.startswith("You are admitted")
    assert "/annotate/" in letter.body
    assert (
        user.is_annotator
        and user.is_volunteer
        and Audit.objects.filter(what="volunteer").count() == 1
    )
    assert "6 questions wait" in text_of(vera.get("/annotate/"))
    Intake.objects.create(track=published.track, volunteers="closed")
    assert "Nothing to judge now" in text_of(vera.get("/annotate/"))


# -- Messages and feedback


def test_a_message_stands_on_the_page_until_it_is_read(ada: Client, admin: Client) -> None:
    admin.post(
        DESK,
        {"action": "write", "to": "ada", "subject": "Dates", "text": "Please read\n<b>part 3</b>"},
    )
    assert "(1 new)" in text_of(ada.get("/annotate/"))
    assert "&lt;b&gt;part 3" in text_of(ada.get("/annotate/messages/"))
    assert "new)" not in text_of(ada.get("/annotate/"))
    page = admin.post(
        DESK, {"action": "write", "to": "nobody", "subject": "x", "text": "y"}, follow=True
    )
    assert "There is no annotator “nobody”" in text_of(page)
    admin.post(DESK, {"action": "write", "all": "yes", "subject": "To all", "text": "Thank you"})
    admin.post(DESK, {"action": "write", "to": "ada", "subject": " ", "text": "y"})
    assert Message.objects.count() == 2


def test_feedback_is_for_admins_alone(
    ada: Client, admin: Client, clients: list[Client] | None = None
) -> None:
    refused = ada.post("/annotate/feedback/", {"clear": "yes", "comment": "so-so"})
    assert refused.status_code == 422 and "so-so" in text_of(refused)
    said = {"clear": "no", "fair": "yes", "comment": "The dates are hard.", "interface": "relation"}
    assert ada.post("/annotate/feedback/", said)["Location"] == "/annotate/"
    page = text_of(admin.get(DESK))
    assert (
        "The dates are hard." in page and "0 of 1 find it clear, 1 of 1 find the pay fair" in page
    )
    assert ada.get(DESK).status_code == 403
    Feedback.objects.bulk_create(
        Feedback(worker=worker(), clear=True, fair=True) for _ in range(20)
    )
    assert ada.post("/annotate/feedback/", said).status_code == 422


# -- Appeals


def test_an_appeal_is_answered_once_and_may_reinstate(
    published: Submission, ada: Client, admin: Client
) -> None:
    answer_all(ada)
    settle.tick()
    exclude.exclude_worker(worker(), "Too fast for reading", User.objects.get(username="anna"))
    page = text_of(ada.get("/annotate/"))
    assert "Too fast for reading" in page and "Your appeal" in page
    assert "is empty" in text_of(
        ada.post("/annotate/", {"action": "appeal", "text": " "}, follow=True)
    )
    ada.post("/annotate/", {"action": "appeal", "text": "I had read it before."})
    assert "is being read" in text_of(
        ada.post("/annotate/", {"action": "appeal", "text": "Again."}, follow=True)
    )
    row = Appeal.objects.get()
    assert "I had read it before." in text_of(admin.get(DESK))
    admin.post(DESK, {"action": "appeal", "pk": row.pk, "text": "", "decision": "reinstate"})
    assert worker().excluded_at is not None, "an answer needs words"
    admin.post(
        DESK,
        {
            "action": "appeal",
            "pk": row.pk,
            "text": "You are right, sorry.",
            "decision": "reinstate",
        },
    )
    admin.post(
        DESK, {"action": "appeal", "pk": row.pk, "text": "Changed my mind", "decision": "keep"}
    )
    assert worker().excluded_at is None
    page = text_of(ada.get("/annotate/"))
    assert "You are right, sorry." in page and "you judge again" in page
    assert not Response.objects.filter(counts=False).exists()


def refused(ada: Client) -> Assignment:
    """An answer of ada's for which pay is refused; she is not excluded."""
    ada.post(take(ada), GOOD)
    settle.tick()
    row = Assignment.objects.get(worker=worker(), submitted_at__isnull=False)
    reject.reject_answer(
        row, User.objects.get(username="anna"), "Every answer was the first button."
    )
    return row


def test_refused_pay_can_be_appealed_and_is_paid_after_all(
    published: Submission, ada: Client, admin: Client
) -> None:
    answer = refused(ada)
    assert 'id="refused"' in text_of(ada.get("/annotate/")) and worker().excluded_at is None
    ada.post("/annotate/", {"action": "appeal", "text": "The first button was right."})
    page = text_of(ada.get("/annotate/"))
    assert "Your appeal is being read" in page and 'name="text"' not in page
    row = Appeal.objects.get()
    assert row.about_pay and "Pay after all" in text_of(admin.get(DESK))
    admin.post(
        DESK, {"action": "appeal", "pk": row.pk, "text": "It was, sorry.", "decision": "reinstate"}
    )
    answer.refresh_from_db()
    assert answer.status != "rejected" and Payment.objects.get(assignment=answer).status == "owed"
    assert worker().reinstated_at is None, "nobody had left them out"
    page = text_of(ada.get("/annotate/"))
    assert "It was, sorry." in page and 'id="refused"' not in page


# -- Leaving


def test_what_was_waived_goes_back_and_nobody_is_left_in_the_rows(
    published: Submission, ada: Client
) -> None:
    ada.post(take(ada), GOOD | {"problem": "text", "remark": "ask Ada Lovelace, 555-1234"})
    ada.post(take(ada), GOOD)
    settle.tick()
    take(ada)
    handle, spent = worker().handle, balance(purpose=published.purpose).spent
    assert spent == Decimal("0.12")
    assert ada.post(LEAVE, {"word": "erase", "money": "waive"})["Location"] == "/annotate/gone/"
    assert "Your data are erased" in text_of(ada.get("/annotate/gone/"))
    gone = Worker.objects.get()
    assert gone.user is None and gone.handle != handle and gone.erased_at is not None
    assert not User.objects.filter(username="ada").exists() and not WorkerIdentity.objects.exists()
    assert not Consent.objects.exists() and not TutorialRun.objects.exists()
    assert "555-1234" not in str(list(Assignment.objects.values_list("raw", "draft")))
    assert "555-1234" not in str(list(Response.objects.values_list("value")))
    assert Response.objects.filter(assignment__worker=gone).count() == 4, "the answers stay"
    assert set(Payment.objects.values_list("status", flat=True)) == {"waived"}
    assert balance(purpose=published.purpose).spent == 0
    assert Assignment.objects.counts() == {"approved": 2, "returned": 1}
    assert ada.get("/annotate/").status_code == 302


def test_whoever_wants_to_be_paid_first_waits_and_may_stay(
    published: Submission, ada: Client
) -> None:
    ada.post(take(ada), GOOD)
    says_where_the_money_goes()
    assert ada.post(LEAVE, {"word": "erase", "money": "pay"})["Location"] == "/annotate/"
    assert "You asked to be erased" in text_of(ada.get("/annotate/"))
    assert take(ada) == "", "nothing new is offered"
    settle.tick()
    assert leave.tick() == 0
    ada.post(LEAVE, {"stay": "yes"})
    assert take(ada)
    ada.post(LEAVE, {"word": "erase", "money": "pay"})
    Payment.objects.update(status="paid")
    assert leave.tick() == 1
    assert worker_gone() and leave.tick() == 0


def worker_gone() -> bool:
    return not User.objects.filter(username="ada").exists() and Worker.objects.get().user is None


def test_a_promise_that_nobody_comes_for_goes_back(published: Submission, ada: Client) -> None:
    Intake.objects.create(tutorial_reward=Decimal("0.75"))
    TutorialRun.objects.all().delete()
    lesson = teach.tutorials()["relation"]
    run = teach.begin_tutorial(worker(), lesson)
    assert run is not None and run.promised == Decimal("0.75")
    assert leave.tick() == 0
    TutorialRun.objects.update(started_at=timezone.now() - timedelta(days=15))
    assert leave.tick() == 1 and leave.tick() == 0
    assert balance(purpose=run.purpose).open == 0
    for number, question in enumerate(lesson.questions, start=1):
        run = teach.store_tutorial_answer(run, number, question["right"])
    assert run.passed and not Payment.objects.exists()


def fail(run: TutorialRun) -> TutorialRun:
    """The attempt after wrong answers to all its questions."""
    lesson = teach.tutorials()["relation"]
    for number, question in enumerate(lesson.asked(run.attempt), start=1):
        run = teach.store_tutorial_answer(run, number, mistaken(question))
    assert run.passed is False
    return run


def test_a_promise_to_who_failed_once_and_never_came_back_goes_back_and_is_made_anew(
    published: Submission, ada: Client
) -> None:
    TutorialRun.objects.all().delete()
    lesson = teach.tutorials()["relation"]
    begun = teach.begin_tutorial(worker(), lesson)
    assert begun is not None
    failed = fail(begun)
    TutorialRun.objects.update(started_at=timezone.now() - timedelta(days=15))
    assert leave.tick() == 0, "it is a fortnight since it began, not since they came last"
    TutorialRun.objects.update(ended_at=timezone.now() - timedelta(days=15))
    assert leave.tick() == 1 and leave.tick() == 0
    assert balance(purpose=failed.purpose).open == 0
    assert "You are paid <b>$0.75</b>" in ada.get(TUTORIAL).content.decode()
    second = teach.begin_tutorial(worker(), lesson)
    assert second is not None and second.attempt == 2 and second.promised == Decimal("0.75")
    assert second.purpose != failed.purpose
    assert balance(purpose=second.purpose).open == Decimal("0.75")
    for number, question in enumerate(lesson.asked(2), start=1):
        second = teach.store_tutorial_answer(second, number, question["right"])
    assert second.passed and Payment.objects.get().amount == Decimal("0.75")
    assert balance(purpose=second.purpose).spent == Decimal("0.75")
    assert leave.tick() == 0 and check_books() == []


def test_who_leaves_is_paid_for_the_tutorial_that_they_passed(
    published: Submission, ada: Client
) -> None:
    TutorialRun.objects.all().delete()
    lesson = teach.tutorials()["relation"]
    run = teach.begin_tutorial(worker(), lesson)
    assert run is not None
    for number, question in enumerate(lesson.questions, start=1):
        run = teach.store_tutorial_answer(run, number, question["right"])
    assert not leave.ask_to_leave(worker(), waives=False), "it is paid first"
    Payment.objects.update(status="paid")
    leave.erase_if_settled(worker().pk)
    sums = balance(purpose=run.purpose)
    assert (sums.spent, sums.released) == (Decimal("0.75"), 0)


# -- Rules and terms


def test_admins_set_the_rules_and_publish_terms(
    published: Submission, admin: Client, ada: Client
) -> None:
    assert admin.get(f"{DESK}rules/").status_code == 200
    wanted = {"track": "toy", "mode": "open", "reward": "0", "why": "x"}
    told = text_of(admin.post(f"{DESK}rules/", {"action": "intake"} | wanted, follow=True))
    assert "Volunteers are closed for the service" in told
    Intake.objects.all().delete()
    admin.post(
        f"{DESK}rules/",
        {"action": "intake", "mode": "open", "reward": "0.75", "minimum": "2", "why": "x"},
    )
    service = Intake.objects.get()
    assert (service.volunteers, service.tutorial_reward, service.payout_minimum) == (
        "open",
        Decimal("0.75"),
        2,
    )
    for wrong in ("0.755", "-1", "NaN", "a lot", "1e9"):
        admin.post(
            f"{DESK}rules/",
            {"action": "intake", "mode": "open", "reward": wrong, "minimum": "2", "why": "x"},
        )
    admin.post(
        f"{DESK}rules/",
        {"action": "intake", "track": "toy", "mode": "closed", "reward": "0", "why": "x"},
    )
    assert Intake.objects.get(track=published.track).tutorial_reward == 0
    for unsaid in (
        {"track": "toy", "mode": ""},
        {"mode": "closed", "reward": "9", "minimum": "2", "why": " "},
    ):
        assert "give a reason" in text_of(
            admin.post(f"{DESK}rules/", {"action": "intake"} | unsaid, follow=True)
        )
    assert Intake.objects.count() == 2
    admin.post(
        f"{DESK}rules/", {"action": "intake", "track": "toy", "mode": "", "why": "As everywhere."}
    )
    assert Audit.objects.filter(
        what="intake", why="As everywhere.", after="as the service"
    ).exists()
    service.refresh_from_db()
    assert Intake.objects.count() == 1 and service.tutorial_reward == Decimal("0.75")
    text = "Everything new\n" + "You read and say what you read. " * 5
    assert admin.post(f"{DESK}rules/", {"text": text}).status_code == 422
    assert admin.post(f"{DESK}rules/", {"text": "Short", "word": "publish"}).status_code == 422
    assert "give a reason" in text_of(
        admin.post(f"{DESK}rules/", {"text": text, "word": "publish"})
    )
    assert (
        admin.post(
            f"{DESK}rules/", {"text": text, "word": "publish", "why": "All of it."}
        ).status_code
        == 302
    )
    assert Audit.objects.get(what="terms").why == "All of it."
    assert Terms.objects.get().version == 6 and "Everything new" in text_of(
        ada.get("/annotate/terms/")
    )
    assert ada.post(f"{DESK}rules/", {"text": text, "word": "publish"}).status_code == 403


def test_another_attempt_can_be_granted(published: Submission, admin: Client, ada: Client) -> None:
    TutorialRun.objects.update(passed=False)
    run = TutorialRun.objects.get(interface="relation")
    TutorialRun.objects.create(
        worker=run.worker,
        interface="relation",
        version=run.version,
        attempt=2,
        passed=False,
        ended_at=timezone.now(),
    )
    assert "Failed a tutorial twice" in text_of(admin.get(DESK))
    grant = {
        "action": "another-attempt",
        "handle": worker().handle,
        "interface": "relation",
    }
    assert "give a reason" in text_of(admin.post(DESK, grant | {"why": " "}, follow=True))
    assert (
        TutorialRun.objects.filter(interface="relation").count() == 2 and not Audit.objects.exists()
    )
    assert "They may try it again" in text_of(
        admin.post(DESK, grant | {"why": "The page was broken."}, follow=True)
    )
    assert not TutorialRun.objects.filter(interface="relation").exists()
    entry = Audit.objects.get(what="tutorial")
    assert entry.why == "The page was broken." and entry.after.startswith(
        "another attempt: relation, version "
    )
    assert "They have not failed it." in text_of(
        admin.post(DESK, grant | {"why": "Again."}, follow=True)
    )
    assert Audit.objects.count() == 1


# -- Forms


def test_the_home_page_is_served_while_an_admin_declares_a_form(ada: Client) -> None:
    """A form is declared after the first statement of the page, the second, and so on."""

    def declare_after(number: int) -> None:
        statements = 0

        def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
            nonlocal statements
            result = execute(sql, params, many, context)
            statements += 1
            if statements == number:
                store_form(BETTER.replace("name: better", f"name: better_{number}"))
            return result

        with connection.execute_wrapper(watch):
            assert ada.get("/annotate/").status_code == 200

    for number in range(1, 12):
        declare_after(number)
    assert DeclaredForm.objects.count() > 5
