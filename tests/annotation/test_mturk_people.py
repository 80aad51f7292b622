"""Marketplace workers are heard and written to, may appeal, and can be erased; the platform is told
what it must be.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from annotation_world import GOOD
from django.test import Client
from mturk_world import Turk, check_books, check_money, collect_and_reconcile, due, rounds

from annotation.desk import appeals, command
from annotation.labels import exclude, settle
from annotation.models import (
    Assignment,
    Payment,
    PlatformBooks,
    Qualification,
    Response,
    Worker,
    WorkerIdentity,
)
from annotation.platforms import proof
from annotation.workers import leave, speak
from annotation.workers.models import Appeal, Consent, Feedback, Leaving, Message
from kbpo.accounts.models import Audit, User
from kbpo.money.models import Ledger
from kbpo.submissions.models import Submission

pytestmark = pytest.mark.django_db
SAYS = {"verb": "feedback", "clear": "no", "fair": "yes", "comment": "Step 2 confuses me."}


@pytest.fixture
def admin(db: None) -> User:
    return User.objects.create_user("root", password="long enough 1", is_staff=True)


@pytest.fixture
def worker(up: Submission, turk: Turk) -> Worker:
    """Somebody who did one HIT, and was paid."""
    turk.do("WONEOFAKIND", turk.hits()[0])
    rounds()
    return Worker.objects.get()


def letters(turk: Turk) -> list[dict[str, Any]]:
    return turk.rows("SELECT worker, subject, text FROM letter")


def address_in(text: str) -> str:
    found = re.search(r"(/annotate/say/\S+)", text)
    assert found, text
    return found.group(1)


def test_the_frame_leads_to_feedback_without_a_login(up: Submission, turk: Turk) -> None:
    _, src = turk.accept("WONEOFAKIND", turk.hits()[0])
    page = Client().get("/" + src.partition("//")[2].partition("/")[2]).content.decode()
    where = re.search(r'id="say-link" href="([^"]*)"', page)
    assert where
    client = Client(enforce_csrf_checks=True)
    first = client.get(where.group(1))
    assert first.status_code == 200 and first["X-Frame-Options"] == "DENY" and not first.cookies
    assert client.post(where.group(1), SAYS | {"clear": ""}).status_code == 422
    assert (
        "Thank you"
        in client.post(where.group(1), SAYS | {"interface": "relation"}).content.decode()
    )
    said = Feedback.objects.get()
    assert (said.clear, said.fair, said.comment, said.interface) == (
        False,
        True,
        "Step 2 confuses me.",
        "relation",
    )
    assert said.worker == Worker.objects.get()


@pytest.mark.soak
def test_an_address_that_we_did_not_sign_is_nobodys_page(worker: Worker) -> None:
    path = proof.say_path(worker)
    assert Client().get(path).status_code == 200
    assert Client().get(path.replace(worker.handle, "0" * 32)).status_code == 404
    assert Client().get(f"/annotate/say/{worker.handle}/").status_code == 404


@pytest.mark.soak
def test_whoever_is_excluded_is_told_once_and_where_to_appeal(
    worker: Worker, turk: Turk, admin: User
) -> None:
    assert letters(turk) == []
    exclude.exclude(worker, "5 of 9 answers to questions with a known answer are wrong.")
    rounds()
    rounds()
    [letter] = letters(turk)
    assert (
        letter["worker"] == "WONEOFAKIND"
        and "5 of 9 answers" in letter["text"]
        and "stays paid" in letter["text"]
    )
    path = address_in(letter["text"])
    assert "5 of 9 answers" in Client().get(path).content.decode()
    assert (
        "is with the admins"
        in Client().post(path, {"verb": "appeal", "text": "Gold 3 is wrong."}).content.decode()
    )
    assert Client().post(path, {"verb": "appeal", "text": "Hello?"}).status_code == 422
    appeals.answer_appeal(Appeal.objects.get().pk, admin, "You are right.", reinstate=True)
    rounds()
    assert [one["subject"] for one in letters(turk)] == [speak.EXCLUDED, "Your appeal is answered"]
    assert "You are right." in letters(turk)[1]["text"] and len(turk.offered("WONEOFAKIND")) == 5
    assert "You are right." in Client().get(path).content.decode()
    exclude.exclude(Worker.objects.get(), "Once more.")
    rounds()
    assert len(letters(turk)) == 3, "a new exclusion is told anew"


@pytest.mark.soak
def test_the_page_of_somebody_excluded_leads_there_too(worker: Worker, turk: Turk) -> None:
    _, src = turk.accept("WONEOFAKIND", turk.hits()[1])
    exclude.exclude(worker, "Always the first button")
    page = Client().get("/" + src.partition("//")[2].partition("/")[2]).content.decode()
    assert "/annotate/say/" in page and "return this HIT" in page
    assert proof.say_path(worker) not in page, "an id in an address is no password"


@pytest.mark.soak
def test_an_admin_writes_and_the_marketplace_hands_it_over_once(
    worker: Worker, turk: Turk, admin: User
) -> None:
    command.write_to(worker.handle, admin, "About your answer", "You marked it well.")
    rounds()
    rounds()
    [letter] = letters(turk)
    assert letter["subject"] == "About your answer" and "You marked it well." in letter["text"]
    assert Message.objects.get().sent_at is not None
    assert Audit.objects.filter(what="write").exists()
    for number in range(2):
        command.write_to(worker.handle, admin, f"More {number}", "And more.")
    with pytest.raises(ValueError, match="nuisance"):
        command.write_to(worker.handle, admin, "Too much", "And more.")
    with pytest.raises(ValueError, match="3000 is the most"):
        Message.objects.all().delete()
        command.write_to(worker.handle, admin, "Long", "x" * 3001)


@pytest.mark.soak
def test_nobody_is_written_to_who_never_sent_anything_in(
    up: Submission, turk: Turk, admin: User
) -> None:
    _, src = turk.accept("WONEOFAKIND", turk.hits()[0])
    Client().get("/" + src.partition("//")[2].partition("/")[2])
    with pytest.raises(ValueError, match="only to people who have sent something in"):
        command.write_to(Worker.objects.get().handle, admin, "Hello", "Hello")


@pytest.mark.soak
@pytest.mark.parametrize(
    ("fault", "sent", "told"), [("throttle", 1, ""), ("error_after", 1, "Nobody knows")]
)
def test_a_message_is_never_sent_twice(
    worker: Worker, turk: Turk, admin: User, fault: str, sent: int, told: str
) -> None:
    turk.fault("NotifyWorkers", fault)
    command.write_to(worker.handle, admin, "About your answer", "You marked it well.")
    rounds()
    rounds()
    assert len(letters(turk)) == sent
    assert told in Message.objects.get().trouble


EVIDENCE = "Every answer was the first button."


@pytest.fixture
def refused(up: Submission, turk: Turk, admin: User) -> Assignment:
    """An answer for which pay is refused before it was paid."""
    turk.do("WONEOFAKIND", turk.hits()[0])
    due()
    assert collect_and_reconcile() and settle.tick()
    answer = Assignment.objects.get()
    command.reject_answer(answer.pk, admin, EVIDENCE)
    assert turk.rows("SELECT status, feedback FROM assignment") == [
        {"status": "Rejected", "feedback": EVIDENCE}
    ]
    return answer


@pytest.mark.soak
def test_refused_pay_is_told_appealed_on_their_page_and_paid_after_all(
    refused: Assignment, turk: Turk, admin: User
) -> None:
    rounds()
    rounds()
    [letter] = letters(turk)
    assert letter["subject"] == speak.REFUSED and EVIDENCE in letter["text"]
    path, desk = address_in(letter["text"]), Client()
    page = Client().get(path).content.decode()
    assert "Why we refused pay" in page and EVIDENCE in page and 'id="appeal"' in page
    said = {"verb": "appeal", "text": "The first button was right."}
    page = Client().post(path, said).content.decode()
    assert "is with the admins" in page and "It is being read" in page and 'id="appeal"' not in page
    assert Client().post(path, said).status_code == 422 and Appeal.objects.get().about_pay

    desk.force_login(admin)
    assert "Pay after all" in desk.get("/desk/requests/").content.decode()
    decided = {"text": "It was, sorry.", "decision": "reinstate"}
    address = f"/desk/requests/appeals/{Appeal.objects.get().pk}/"
    turk.fault("ApproveAssignment", "error", times=20)
    assert "try again" in desk.post(address, decided, follow=True).content.decode()
    assert (
        Appeal.objects.get().answered_at is None and Assignment.objects.get().status == "rejected"
    )
    turk.forgive()
    assert "What was refused is paid." in desk.post(address, decided, follow=True).content.decode()
    assert turk.rows("SELECT status FROM assignment") == [{"status": "Approved"}]
    rounds()
    assert Assignment.objects.get().status == "paid" and Payment.objects.get().status == "paid"
    assert Response.objects.filter(counts=True).count() == Response.objects.count() > 0
    check_books(turk)
    check_money(turk)
    page = Client().get(path).content.decode()
    assert "You are paid after all: It was, sorry." in page and "Why we refused pay" not in page
    assert [one["subject"] for one in letters(turk)] == [speak.REFUSED, "Your appeal is answered"]


@pytest.mark.soak
def test_an_appeal_against_refused_pay_that_is_not_followed_pays_nothing(
    refused: Assignment, turk: Turk, admin: User
) -> None:
    path = proof.say_path(refused.worker)
    Client().post(path, {"verb": "appeal", "text": "The first button was right."})
    appeals.answer_appeal(Appeal.objects.get().pk, admin, "It was not.", reinstate=False)
    rounds()
    page = Client().get(path).content.decode()
    assert "It stays as it is: It was not." in page and EVIDENCE in page and 'id="appeal"' in page
    assert turk.rows("SELECT status FROM assignment") == [{"status": "Rejected"}]
    assert Payment.objects.get().status == "withheld"
    assert len(turk.offered("WONEOFAKIND")) == 5, "whoever is refused pay is not excluded by that"


# -- Erasure


@pytest.mark.soak
def test_a_worker_is_erased_when_all_is_paid_and_gone(
    worker: Worker, turk: Turk, admin: User
) -> None:
    Client().post(proof.say_path(worker), SAYS)
    handle, ledger = worker.handle, list(Ledger.objects.values_list("pk", "amount", "state"))
    told = command.erase_worker(handle, admin, "They asked for it by mail.")
    assert "Asked for" in told, "their HIT is still up there, and shows us who they are"
    _, src = turk.accept("WONEOFAKIND", turk.hits()[1])
    assert (
        "is not for you"
        in Client().get("/" + src.partition("//")[2].partition("/")[2]).content.decode()
    )
    turk.give_back(
        "WONEOFAKIND", turk.rows("SELECT id FROM assignment WHERE status = 'Accepted'")[0]["id"]
    )
    turk.all_do("W2", "W3", "W4")
    rounds()
    assert leave.tick() == 1
    gone = Leaving.objects.get().worker
    assert gone.handle != handle and not WorkerIdentity.objects.filter(worker=gone).exists()
    for model in (Feedback, Consent, Message, Appeal):
        assert not model._default_manager.filter(worker=gone).exists()
    assert not Qualification.objects.filter(worker=gone).exists()
    mine = Assignment.objects.filter(worker=gone).exclude(status="returned")
    assert set(mine.values_list("external_id", "status")) == {("", "paid")}
    assert (
        Payment.objects.get(worker=gone).status == "paid"
        and Response.objects.filter(assignment__in=mine).exists()
    )
    assert set(ledger) <= set(Ledger.objects.values_list("pk", "amount", "state"))
    assert "WONEOFAKIND" not in str(list(Assignment.objects.values())) and handle not in str(
        list(Worker.objects.values())
    )
    rounds()
    assert PlatformBooks.objects.get().differences == []
    with pytest.raises(ValueError, match="erased already"):
        command.erase_worker(gone.handle, admin, "Again")


@pytest.mark.soak
def test_their_remarks_go_with_them(up: Submission, turk: Turk, admin: User) -> None:
    for hit in turk.hits():
        for name in ("WONEOFAKIND", "W2", "W3"):
            turk.do(
                name,
                hit,
                {"problem": "text", "remark": "call me at 555-1234"}
                if name == "WONEOFAKIND"
                else GOOD,
            )
    rounds()
    worker = Worker.objects.get(identity__external_id="WONEOFAKIND")
    assert command.erase_worker(worker.handle, admin, "They asked.").startswith("Erased")
    assert "555-1234" not in str(list(Assignment.objects.values_list("raw"))) + str(
        list(Response.objects.values_list("value"))
    )


# -- Notifications


@pytest.mark.soak
def test_the_link_that_confirms_notifications_is_kept_for_an_admin(
    up: Submission, turk: Turk
) -> None:
    rounds()
    good = "https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription&Token=abc"
    hook = proof.hook_path("mturk")
    for address in (
        "https://evil.example/",
        "http://sns.us-east-1.amazonaws.com/",
        "https://amazonaws.com.evil.example/",
        "https://x@evil.example/.amazonaws.com",
        "javascript:alert(1)",
        5,
    ):
        body = json.dumps({"Type": "SubscriptionConfirmation", "SubscribeURL": address})
        assert Client().post(hook, body, content_type="text/plain").status_code == 204
        assert PlatformBooks.objects.get().confirm_url == "", address
    body = json.dumps({"Type": "SubscriptionConfirmation", "SubscribeURL": good})
    Client().post(hook, body, content_type="text/plain")
    assert PlatformBooks.objects.get().confirm_url == good
