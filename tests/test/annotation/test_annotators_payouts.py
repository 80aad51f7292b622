"""Payouts: a list, a minimum, marked as paid exactly once, with a receipt."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from annotation_world import GOOD, IBAN, answer_all, says_where_the_money_goes, take
from django.db import connection
from django.test import Client

from annotation.budget.check_books import check_books
from annotation.labels import settle
from annotation.models import Assignment, Payment, Worker, WorkerIdentity
from annotation.workers import payout
from annotation.workers.models import Intake, Message, Payout, PayoutItem
from kbpo.accounts.models import Audit, User
from kbpo.submissions.models import Submission

pytestmark = pytest.mark.django_db
PAGE = "/desk/requests/payouts/"
PAYEE, NOTICES = "/annotate/payee/", "/account/notices/"


@pytest.fixture
def admin() -> Client:
    client = Client()
    client.force_login(User.objects.create(username="anna", is_staff=True))
    return client


@pytest.fixture
def earned(published: Submission, ada: Client) -> Submission:
    """Ada has earned $0.30 with six answers."""
    Intake.objects.create(payout_minimum=Decimal("0.20"))
    answer_all(ada)
    settle.tick()
    says_where_the_money_goes()
    return published


def form_of(**change: Any) -> dict[str, Any]:
    [one] = payout.list_debts()
    said = {
        "worker": one.worker.handle,
        "upto": one.upto,
        "amount": one.amount,
        "key": "k" * 16,
        "reference": "bank 2026-11-21/7",
    }
    return said | change


def test_a_second_click_pays_nothing(earned: Submission, admin: Client, ada: Client) -> None:
    page = admin.get(PAGE).content.decode()
    assert "Mark $0.30 as paid" in page and "ada" in page
    said = form_of()
    assert admin.post(PAGE, said)["Location"] == PAGE
    assert admin.post(PAGE, said)["Location"] == PAGE
    other = admin.post(PAGE, said | {"key": "another form's"})
    assert other.status_code == 409 and "anna has marked $0.30 as paid on" in other.content.decode()
    made = Payout.objects.get()
    assert (made.amount, made.items.count(), made.reference) == (
        Decimal("0.30"),
        6,
        "bank 2026-11-21/7",
    )
    assert Payment.objects.counts() == {"paid": 6} and Assignment.objects.counts() == {"paid": 6}
    assert payout.list_debts() == []
    home = ada.get("/annotate/").content.decode()
    assert "<dt>Paid</dt>\n<dd>$0.30</dd>" in home


def test_what_comes_after_the_list_was_shown_is_of_the_next_payout(
    published: Submission, admin: Client, ada: Client
) -> None:
    Intake.objects.create(payout_minimum=Decimal("0"))
    ada.post(take(ada), GOOD)
    settle.tick()
    says_where_the_money_goes()
    said = form_of()
    ada.post(take(ada), GOOD)
    settle.tick()
    assert admin.post(PAGE, said).status_code == 302
    [left] = payout.list_debts()
    assert left.amount == Decimal("0.05") and Payout.objects.get().amount == Decimal("0.05")


WRONG = [
    ({"amount": "0.25"}, "$0.30 are owed, and the form said $0.25"),
    ({"amount": "many"}, "form was incomplete"),
    ({"upto": "x"}, "form was incomplete"),
    ({"worker": "nobody"}, "form was incomplete"),
    ({"key": ""}, "form was incomplete"),
    ({"reference": "  "}, "Give a reference"),
    ({"reference": "x" * 121}, "Give a reference"),
    ({"upto": "0"}, "owed nothing"),
]


def test_a_form_that_is_wrong_pays_nothing(earned: Submission, admin: Client) -> None:
    for change, says in WRONG:
        refused = admin.post(PAGE, form_of(**change))
        assert refused.status_code == 409 and says in refused.content.decode()
        assert not Payout.objects.exists() and Payment.objects.counts() == {"owed": 6}


def test_little_waits_for_more(earned: Submission, admin: Client) -> None:
    Intake.objects.update(payout_minimum=Decimal("5"))
    page = admin.get(PAGE).content.decode()
    assert "below the minimum payout" in page and "Mark $0.30" not in page
    assert len(admin.get(f"{PAGE}?format=csv").getvalue().decode().splitlines()) == 1
    Intake.objects.update(payout_minimum=Decimal("0.30"))
    _, line = admin.get(f"{PAGE}?format=csv").getvalue().decode().splitlines()
    assert line.split(",")[1:5] == ["ada", "", "0.30", "6"]


def test_a_receipt_adds_up_and_is_its_workers_alone(
    earned: Submission, admin: Client, ada: Client, annotator: Any
) -> None:
    admin.post(PAGE, form_of())
    made = Payout.objects.get()
    assert sum(line.amount for line in payout.receipt_lines(made)) == made.amount
    assert [(line.what, line.n) for line in payout.receipt_lines(made)] == [("relation", 6)]
    address = f"/annotate/receipts/{made.number}/"
    assert made.number in ada.get("/annotate/receipts/").content.decode()
    page = ada.get(address).content.decode()
    assert "bank 2026-11-21/7" in page and "<b>$0.30</b>" in page
    other = Client()
    other.force_login(annotator("bo"))
    assert other.get(address).status_code == 404
    assert admin.get(f"{PAGE}{made.number}/").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_five_admins_at_once_pay_once(earned: Submission) -> None:
    said = form_of()
    worker, anna = Worker.objects.get(), User.objects.create(username="anna", is_staff=True)

    def pay(number: int) -> str:
        try:
            made = payout.record_payout(
                worker,
                upto=said["upto"],
                amount=said["amount"],
                reference="r",
                key=f"key-{number % 3}",
                who=anna,
            )
            return made.number
        except payout.CannotPay:
            return ""
        finally:
            connection.close()

    with ThreadPoolExecutor(5) as pool:
        numbers = {number for number in pool.map(pay, range(5)) if number}
    assert len(numbers) == 1 == Payout.objects.count()
    assert PayoutItem.objects.count() == 6 and Payment.objects.counts() == {"paid": 6}


def test_a_mark_that_was_a_mistake_is_undone_by_a_row_of_its_own(
    earned: Submission, admin: Client, ada: Client
) -> None:
    admin.post(PAGE, form_of())
    first = Payout.objects.get()
    assert admin.post(PAGE, {"undo": first.number, "why": " "}).status_code == 409
    assert admin.post(PAGE, {"undo": "NONE", "why": "x"}).status_code == 409
    assert Payment.objects.counts() == {"paid": 6}
    for _ in range(2):  # a second click undoes nothing more
        assert (
            admin.post(PAGE, {"undo": first.number, "why": "The bank sent it back."})["Location"]
            == PAGE
        )
    assert sorted(Payout.objects.values_list("amount", flat=True)) == [
        Decimal("-0.30"),
        Decimal("0.30"),
    ]
    assert Payment.objects.counts() == {"owed": 6} and Assignment.objects.counts() == {
        "approved": 6
    }
    entry = Audit.objects.get(what="undo payout")
    assert (entry.who.get_username(), entry.why) == ("anna", "The bank sent it back.")  # type: ignore[union-attr]
    assert check_books() == []
    page = admin.get(PAGE).content.decode()
    assert f"undoes {first.number}" in page and "Mark $0.30 as paid" in page
    assert "undone" in ada.get("/annotate/receipts/").content.decode()
    assert (
        "marked as paid by mistake"
        in ada.get(f"/annotate/receipts/{first.number}/").content.decode()
    )
    assert admin.post(PAGE, form_of(key="another key of a form"))["Location"] == PAGE
    assert Payment.objects.counts() == {"paid": 6} and check_books() == []
    second = Payout.objects.get(amount__gt=0, undone_by=None)
    assert sum(line.amount for line in payout.receipt_lines(second)) == second.amount
    undo = Payout.objects.get(amount__lt=0)
    assert admin.get(f"{PAGE}{undo.number}/").status_code == 404
    assert admin.post(PAGE, {"undo": undo.number, "why": "Undo the undo"}).status_code == 409
    assert ada.post(PAGE, {"undo": second.number, "why": "I was not paid"}).status_code == 403


def test_nobody_is_marked_as_paid_who_has_not_said_where_the_money_goes(
    published: Submission, admin: Client, ada: Client
) -> None:
    Intake.objects.create(payout_minimum=Decimal("0.20"))
    answer_all(ada)
    settle.tick()
    home = ada.get("/annotate/").content.decode()
    assert "$0.30 wait for you. Enter a payout address, or it cannot be paid" in home
    page = admin.get(PAGE).content.decode()
    assert "no payout address" in page and "Mark $0.30" not in page
    refused = admin.post(PAGE, form_of())
    assert refused.status_code == 409
    assert "has no payout address" in refused.content.decode()
    assert not Payout.objects.exists()


def test_the_address_takes_the_password_is_seen_by_admins_alone_and_erased_with_the_rest(
    earned: Submission, admin: Client, ada: Client
) -> None:
    WorkerIdentity.objects.update(pay_to="")
    user = User.objects.get(username="ada")
    user.set_password("long enough 1")
    user.save()
    ada.force_login(user)
    wrong = ada.post(PAYEE, {"address": IBAN, "password": "guessed"})
    assert wrong.status_code == 422 and "that is not your password" in wrong.content.decode()
    assert not WorkerIdentity.objects.exclude(pay_to="").exists()
    short = ada.post(PAYEE, {"address": "x", "password": "long enough 1"})
    assert short.status_code == 422 and "Enter a payout address" in short.content.decode()
    assert ada.post(PAYEE, {"address": IBAN, "password": "long enough 1"})["Location"] == PAYEE
    home = ada.get("/annotate/").content.decode()
    assert "Paid to … 7947" in home.replace("&nbsp;", " ") and IBAN not in home
    assert IBAN in admin.get(PAGE).content.decode()
    assert IBAN in admin.get(f"{PAGE}?format=csv").getvalue().decode()
    assert "was changed" in ada.get("/annotate/messages/").content.decode()
    ada.post("/annotate/leave/", {"word": "erase", "money": "waive"})
    assert not WorkerIdentity.objects.exclude(pay_to="").exists() and not Message.objects.exists()
