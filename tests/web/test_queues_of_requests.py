"""Whoever asks from outside finds room, however many a stranger's networks ask."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client, RequestFactory
from django.urls import reverse

from annotation.workers.models import Application, Intake
from kbpo.accounts import ask, waiting
from kbpo.accounts.models import AccountRequest, User
from kbpo.web.desk.people import accounts
from kbpo.web.http import network_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def small(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    settings.PROXIES = 1
    monkeypatch.setattr(waiting, "MOST", 6)
    monkeypatch.setattr(waiting, "MOST_OF_A_NETWORK", 4)
    cache.clear()
    Intake.objects.create(volunteers="queue")


def volunteers(name: str, address: str) -> int:
    said = {"username": name, "password1": "plenty of letters", "password2": "plenty of letters"}
    headers = {"X-Forwarded-For": address}
    return Client().post(reverse("annotate_volunteer"), said, headers=headers).status_code


def asks(name: str, address: str) -> int:
    said = {"name": name, "email": f"{name}@example.org", "team": f"Team {name}"}
    headers = {"X-Forwarded-For": address}
    return Client().post(reverse("ask"), said, headers=headers).status_code


def waits(knock: Any) -> list[str]:
    if knock is asks:
        rows = AccountRequest.objects.filter(decided_at=None).order_by("pk")
        return list(rows.values_list("name", flat=True))
    rows = Application.objects.filter(admitted=None).order_by("pk")
    return list(rows.values_list("user__username", flat=True))


@pytest.mark.parametrize("knock", [volunteers, asks])
def test_a_network_does_not_fill_the_queue_and_a_newcomer_gets_in(knock: Any) -> None:
    for number in range(4):
        assert knock(f"a{number}", f"203.0.113.{number}") < 400
    assert knock("a4", "203.0.113.4") in (422, 503), "the network has its share"
    for number in range(2):
        assert knock(f"b{number}", f"198.51.100.{number}") < 400
    assert knock("newcomer", "192.0.2.1") < 400
    assert waits(knock) == ["a1", "a2", "a3", "b0", "b1", "newcomer"]
    for number in range(2):
        assert knock(f"c{number}", f"2001:db8:1:{number}::7") < 400
    assert waits(knock) == ["a3", "b0", "b1", "newcomer", "c0", "c1"]
    assert knock("c2", "2001:db8:1:2::7") in (422, 503), "nobody there has more than they"
    assert waits(knock) == ["a3", "b0", "b1", "newcomer", "c0", "c1"]


@pytest.mark.parametrize("knock", [volunteers, asks])
def test_the_only_request_of_a_network_is_not_given_up_for_a_newcomer(knock: Any) -> None:
    for number in range(6):
        assert knock(f"d{number}", f"198.51.{number}.1") < 400
    assert knock("newcomer", "192.0.2.1") in (422, 503)
    assert waits(knock) == ["d0", "d1", "d2", "d3", "d4", "d5"]


def test_admins_see_the_first_and_are_told_that_the_queue_is_full(
    make_user: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "REQUESTS", 2)
    client = Client()
    client.force_login(make_user("admin", is_staff=True))
    for number in range(6):
        full = "The queue is full" in client.get(reverse("desk-people")).content.decode()
        assert not full, number
        asks(f"a{number}", f"198.51.{number}.1")
    page = client.get(reverse("desk-people")).content.decode()
    assert "The queue is full: 6 wait." in page and "the first 2 of 6" in page
    assert [name in page for name in ("Team a0", "Team a1", "Team a2")] == [True, True, False]


def test_the_network_is_forgotten_with_the_decision(make_user: Any) -> None:
    admin = Client()
    admin.force_login(make_user("anna", is_staff=True))
    assert volunteers("vera", "203.0.113.1") < 400 and asks("tim", "203.0.113.1") < 400
    row, request = Application.objects.get(), AccountRequest.objects.get()
    assert row.network == request.network == "203.0.113.0/24"
    admin.post(reverse("desk-requests"), {"action": "volunteer", "pk": row.pk, "decision": "admit"})
    ask.decline(request, User.objects.get(username="anna"), "Not now.")
    row.refresh_from_db()
    request.refresh_from_db()
    assert row.admitted and request.accepted is False
    assert row.network == request.network == ""


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("203.0.113.7", "203.0.113.0/24"),
        ("2001:db8:1:2::7", "2001:db8:1::/48"),
        ("::ffff:203.0.113.7", "203.0.113.0/24"),
    ],
)
def test_networks(address: str, network: str) -> None:
    request = RequestFactory().get("/", headers={"X-Forwarded-For": address})
    assert network_of(request) == network
