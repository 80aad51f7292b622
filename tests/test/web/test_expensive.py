"""Expensive requests are limited: two of a process at once, one export of a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from kbpo.accounts.models import Token
from kbpo.submissions.models import Submission
from kbpo.web import expensive
from tests.conftest import Toy
from tests.test.evaluation.world import World

As = Callable[[str], Client]
pytestmark = pytest.mark.django_db


@pytest.fixture
def rows(toy: Toy, settings: Any, monkeypatch: pytest.MonkeyPatch) -> list[Submission]:
    """Two scored runs, and a process that answers requests."""
    settings.ANSWERS_REQUESTS = True
    settings.PASSWORD_HASHERS = ["kbpo.web.expensive.LimitedHasher"]
    monkeypatch.setattr(expensive, "WAIT", 0.01)
    monkeypatch.setattr(expensive, "PATIENCE", 0.01)
    world = World(toy, n_documents=3)
    rows = [world.system("one", lambda one: True), world.system("two", lambda one: one.pk % 2 == 0)]
    for row in rows:
        row.scored_at = row.sampled_at
        row.move("scored")
    return rows


@pytest.fixture
def occupied(rows: list[Submission]) -> Iterator[None]:
    """Both slots of the process are taken."""
    for _ in range(expensive.AT_ONCE):
        expensive.SLOTS.acquire()
    yield
    for _ in range(expensive.AT_ONCE):
        expensive.SLOTS.release()


def expensive_addresses(rows: list[Submission]) -> list[str]:
    one, two = rows
    return [
        reverse("submission-explore", args=[one.pk]),
        reverse("submission-explore", args=[one.pk]) + "?format=csv",
        reverse("api-predictions", args=[one.pk]),
        reverse("api-documents", args=["toy"]),
        f"{reverse('compare-track', args=['toy'])}?a={one.pk}&b={two.pk}",
        f"{reverse('api-compare', args=['toy'])}?a={one.pk}&b={two.pk}",
        reverse("own-data"),
        reverse("metrics", args=["toy"]),
        reverse("metrics", args=["toy"]) + "?format=csv",
        reverse("api-metrics", args=["toy"]),
        reverse("board-csv", args=["toy"]),
        reverse("api-board", args=["toy"]),
        reverse("api-board", args=["toy"]),
        reverse("runs") + "?format=csv",
        reverse("submission", args=[one.pk]) + "?format=csv",
    ]


def test_what_is_expensive_waits_for_a_slot_and_other_pages_do_not(
    toy: Toy, rows: list[Submission], occupied: None, as_user: As
) -> None:
    rosa, token = as_user("Rosa"), Token.create_with_secret(toy.users["Rosa"], "laptop")[1]
    for address in expensive_addresses(rows):
        answer = rosa.get(address, headers={"Authorization": f"Token {token}"})
        assert (answer.status_code, answer["Retry-After"]) == (503, "10"), address
    for address in (reverse("board", args=["toy"]), reverse("about"), reverse("runs")):
        assert rosa.get(address).status_code == 200, address


def test_what_is_expensive_is_answered_where_a_slot_is_free(
    toy: Toy, rows: list[Submission], as_user: As
) -> None:
    rosa, token = as_user("Rosa"), Token.create_with_secret(toy.users["Rosa"], "laptop")[1]
    for address in expensive_addresses(rows):
        answer = rosa.get(address, headers={"Authorization": f"Token {token}"})
        assert answer.status_code != 503, address
        if answer.streaming:
            assert b"".join(answer.streaming_content)
    assert expensive.SLOTS._value == expensive.AT_ONCE, "each slot is given back"


def test_a_session_has_one_export_in_flight_and_a_slow_reader_holds_no_slot(
    rows: list[Submission], as_user: As
) -> None:
    address = reverse("submission-explore", args=[rows[0].pk]) + "?format=csv"
    rosa, other = as_user("Rosa"), as_user("Admin")
    sent = rosa.get(address)
    assert sent.streaming and expensive.SLOTS._value == expensive.AT_ONCE
    for second in (address, reverse("api-documents", args=["toy"])):
        assert rosa.get(second).status_code == 503
    assert b"".join(other.get(address).streaming_content).count(b"\n") > 1
    assert b"".join(sent.streaming_content).count(b"\n") > 1
    assert rosa.get(address).status_code == 200


def test_the_embedded_board_is_drawn_once_for_everybody(
    toy: Toy, rows: list[Submission], as_user: As, settings: Any
) -> None:
    settings.PAGES_KEPT_SECONDS = 100_000
    address = reverse("board-embed", args=["toy"])
    first, rosa = Client().get(address), as_user("Rosa")
    with CaptureQueriesContext(connection) as asked:
        second = rosa.get(address)
    assert second.content == first.content and not asked.captured_queries
    assert "frame-ancestors *" in second["Content-Security-Policy"]
    assert "X-Frame-Options" not in second
