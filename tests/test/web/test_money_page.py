"""The desk's page of money: sums, CSV, caps, the kill switch; for admins alone."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation.budget import check_books
from annotation.models import Halt
from kbpo.accounts.models import Audit
from kbpo.money.models import BooksCheck, Budget, Ledger, Purpose
from kbpo.money.spend import release_money, reserve_money, spend_money
from tests.conftest import Toy

As = Callable[[str], Client]
pytestmark = pytest.mark.django_db


@pytest.fixture
def moved(toy: Toy) -> Toy:
    """Money for two purposes: some spent, some given back, some set aside."""
    reserve_money(
        toy.track, toy.teams["Patterns"], Purpose("submission", 1), Decimal("10.00"), key="1"
    )
    spend_money(toy.track, Purpose("submission", 1), Decimal("2.50"), key="bonus:1:spend")
    release_money(toy.track, Purpose("submission", 1), key="3", keep=Decimal("5.00"))
    reserve_money(
        toy.track, None, Purpose("gold", 1), Decimal("3.00"), key="4", why="=HYPERLINK(1)"
    )
    return toy


def rows_of(client: Client, name: str, query: str = "") -> list[dict[str, str]]:
    file: Any = client.get(reverse(name) + f"?format=csv{query}")
    return list(csv.DictReader(io.StringIO(file.getvalue().decode())))


def test_the_csv_adds_up_to_the_ledger(moved: Toy, as_user: As) -> None:
    admin = as_user("Admin")
    cents = rows_of(admin, "desk-money")
    ledger = rows_of(admin, "desk-log", f"&book=money&track={moved.track.slug}")
    reserved = sum(Decimal(row["after"][1:]) for row in ledger if row["what"] == "reserve")
    assert sum(Decimal(row["amount"]) for row in cents) == reserved == Decimal("13.00")
    spent = sum(Decimal(row["after"][1:]) for row in ledger if row["what"] == "spend")
    assert (
        sum(
            Decimal(row["amount"])
            for row in cents
            if row["state"] in ("spent", "fee", "owed", "paid")
        )
        == spent
    )
    assert len(ledger) == Ledger.objects.count() and "'=HYPERLINK(1)" in {
        row["why"] for row in ledger
    }


def test_the_page_shows_sums_and_a_track_by_itself(moved: Toy, as_user: As) -> None:
    page = as_user("Admin").get(reverse("desk-money")).content.decode()
    assert "$13.00" in page and "Gold questions" in page and moved.track.name in page
    one = as_user("Admin").get(reverse("desk-money") + "?track=toy").content.decode()
    assert "Caps of Toy track" in one and "$10.50 of $500.00" in one
    assert as_user("Admin").get(reverse("desk-money") + "?track=moon").status_code == 404


def test_caps_are_changed_with_a_reason_that_is_kept(toy: Toy, as_user: As) -> None:
    admin, address = as_user("Admin"), reverse("desk-money")
    admin.post(address, {"track": "toy", "scope": "day", "cap": "$20", "why": "Slowly at first"})
    assert Budget.objects.get(scope="day").cap == 20
    entry = Audit.objects.get(what="cap")
    assert (entry.before, entry.after, entry.why) == ("no cap", "$20.00", "Slowly at first")
    for wrong in (
        {"cap": "lots"},
        {"cap": "-1"},
        {"cap": "NaN"},
        {"cap": "1e400"},
        {"why": ""},
        {"scope": "moon"},
    ):
        said = admin.post(
            address, {"track": "toy", "scope": "day", "cap": "5", "why": "x", **wrong}, follow=True
        )
        assert said.status_code == 200
    assert Budget.objects.get(scope="day").cap == 20
    admin.post(address, {"track": "toy", "scope": "day", "cap": "", "why": "No need any more"})
    assert not Budget.objects.filter(scope="day").exists()
    assert as_user("Rosa").post(address, {"track": "toy"}).status_code == 403


def test_the_desk_takes_everything_down_and_says_whether_the_books_agree(
    moved: Toy, as_user: As
) -> None:
    admin = as_user("Admin")
    assert "not checked yet" in admin.get(reverse("desk")).content.decode()
    assert check_books.tick() == 1
    assert "✓ agree" in admin.get(reverse("desk")).content.decode()
    spend_money(moved.track, Purpose("submission", 1), Decimal("0.05"), key="assignment:999")
    with CaptureQueriesContext(connection) as asked:
        assert "✓ agree" in admin.get(reverse("desk")).content.decode(), (
            "a page shows what was found, and looks at nothing"
        )
    assert not any("no payment belongs" in one["sql"] for one in asked)
    assert (
        "check queued"
        in admin.post(reverse("desk"), {"action": "check-books"}, follow=True).content.decode()
    )
    assert (
        "queued already"
        in admin.post(reverse("desk"), {"action": "check-books"}, follow=True).content.decode()
    )
    assert check_books.tick() == 1
    page = admin.get(reverse("desk")).content.decode()
    assert (
        "✗" in page
        and "as assignment:999, and no payment belongs to it." in page
        and "Check now" in page
    )
    assert re.search(r"checked \d+\s?s ago", page)
    BooksCheck.objects.update(finished_at=F("finished_at") - timedelta(hours=1))
    assert "a check is overdue" in admin.get(reverse("desk") + "?part=live").content.decode()
    assert as_user("Rosa").post(reverse("desk"), {"action": "check-books"}).status_code == 403
    admin.post(reverse("desk"), {"action": "stop", "scope": "all", "why": "Too fast", "word": "no"})
    assert not Halt.objects.exists()
    admin.post(
        reverse("desk"), {"action": "stop", "scope": "all", "why": "Too fast", "word": "stop"}
    )
    assert Halt.objects.get().scope == "all"
    admin.post(reverse("desk"), {"action": "resume", "why": "It is mended."})
    assert not Halt.objects.filter(lifted_at=None).exists()
