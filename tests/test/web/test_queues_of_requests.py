"""Whoever asks from outside finds room, however many a stranger's networks ask."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client, RequestFactory
from django.urls import reverse

from annotation.workers.models import Application, Intake
from kbpo.accounts import models
from kbpo.accounts.models import AccountRequest
from kbpo.web.http import client_network

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def small(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    settings.PROXIES = 1
    monkeypatch.setattr(models, "MOST_REQUESTS", 6)
    monkeypatch.setattr(models, "MOST_OF_A_NETWORK", 4)
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
    assert client_network(request) == network
