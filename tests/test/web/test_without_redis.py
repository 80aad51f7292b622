"""Without Redis, or with one that is paused, every page is there:
nothing is kept, nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from kbpo.web.kept import ForgivingCache
from tests.test.web.test_every_page import Page, world

__all__ = ["world"]
As = Callable[[str], Client]
NOBODY = "redis://127.0.0.1:1/0"


@pytest.fixture(autouse=True)
def not_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ForgivingCache, "away_until", 0.0)


def test_what_nobody_answers_for_was_not_kept() -> None:
    cache = ForgivingCache(NOBODY, {})
    cache.set("a", 1, 10)
    assert cache.get("a") is None and cache.get("a", 7) == 7


@pytest.mark.soak
@pytest.mark.django_db
def test_every_page_is_there(world: dict[str, list[Page]], as_user: As, settings: Any) -> None:
    pages = [page[:2] for examples in world.values() for page in examples if len(page) == 2]
    assert len(pages) > 60
    clients = {who: as_user(who) if who else Client() for who, _ in pages}
    for client in clients.values():
        client.raise_request_exception = False
    kept, settings.CACHES = (
        settings.CACHES,
        {"default": {"BACKEND": "kbpo.web.kept.ForgivingCache", "LOCATION": NOBODY}},
    )
    said = {address: clients[who].get(address).status_code for who, address in pages}
    settings.CACHES = kept
    assert {address: status for address, status in said.items() if status >= 400} == {}
