"""Tokens that may do part of what their owner may; limits of requests;
answers that have not changed.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from kbpo import clock
from kbpo.accounts.models import Token
from kbpo.submissions.models import Submission
from tests.conftest import Toy
from tests.test.web.conftest import OTHERS

pytestmark = pytest.mark.django_db


def call(
    secret: str, method: str, path: str, body: dict[str, Any] | None = None, **headers: str
) -> Any:
    send = getattr(Client(), method)
    return send(f"/api/{path}", body or {}, headers={"Authorization": f"Token {secret}", **headers})


def test_a_token_does_what_its_scope_says(toy: Toy, draft: Callable[..., Submission]) -> None:
    row = draft()
    rosa = toy.users["Rosa"]
    secrets = {
        scope: Token.create_with_secret(rosa, scope, scope=scope)[1] for scope in Token.Scope.values
    }
    for secret in secrets.values():
        assert call(secret, "get", f"submissions/{row.pk}/").status_code == 200
    refused = call(secrets["read"], "post", "submissions/")
    assert refused.status_code == 403 and "may only read" in refused.json()["detail"]
    assert (
        call(secrets["upload"], "post", "submissions/").status_code == 400
    )  # what is sent is looked at
    for verb in ("confirm", "withdraw", "order"):
        told = call(secrets["upload"], "post", f"submissions/{row.pk}/{verb}/")
        assert told.status_code == 403 and "spends nothing" in told.json()["detail"], verb
    row.refresh_from_db()
    assert row.status == "planned"
    assert call(secrets["all"], "post", f"submissions/{row.pk}/confirm/").status_code == 200


def test_the_account_page_makes_a_token_with_a_scope_and_an_end(
    toy: Toy, as_user: Callable[..., Client]
) -> None:
    client = as_user("Rosa")
    made = client.post("/account/tokens/", {"name": "laptop", "scope": "upload", "days": "30"})
    assert made.status_code == 200 and "kbpo_" in made.content.decode()
    row = Token.objects.get(name="laptop")
    assert row.scope == "upload" and row.expires_at is not None
    assert timedelta(days=29) < row.expires_at - clock.now() < timedelta(days=31)
    for wrong in ({"scope": "root", "days": "30"}, {"scope": "read", "days": "9999"}, {}):
        told = client.post("/account/tokens/", {"name": "other", **wrong})
        assert told.status_code == 422 and "for how long" in told.content.decode()
    assert Token.objects.filter(user=toy.users["Rosa"]).count() == 1


def test_too_many_requests_are_told_when_to_come_again(toy: Toy, settings: Any) -> None:
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    settings.API_RATE, settings.API_RATE_OF_STRANGERS = 3, 2
    stranger = [Client().get("/api/tracks/", REMOTE_ADDR="192.0.2.77") for _ in range(3)]
    assert [one.status_code for one in stranger] == [200, 200, 429]
    assert stranger[-1]["Retry-After"] == "60" and stranger[-1].json()["error"] == "throttled"
    secret = Token.create_with_secret(toy.users["Rosa"], "loop")[1]
    codes = [call(secret, "get", "submissions/").status_code for _ in range(4)]
    assert codes == [200, 200, 200, 429]


def test_what_has_not_changed_is_not_sent_again(toy: Toy) -> None:
    first = Client().get("/api/tracks/toy/board/")
    tag = first["ETag"]
    again = Client().get("/api/tracks/toy/board/", headers={"If-None-Match": tag})
    assert again.status_code == 304 and not again.content
    toy.track.description = "Changed."
    toy.track.save()
    changed = Client().get("/api/tracks/toy/board/", headers={"If-None-Match": tag})
    assert changed.status_code == 200 and changed["ETag"] != tag


def test_submissions_are_listed_in_pages_and_by_what_is_asked(
    toy: Toy, draft: Callable[..., Submission]
) -> None:
    first, second = draft(name="one"), draft(OTHERS, name="two")
    secret = Token.create_with_secret(toy.users["Rosa"], "list")[1]

    def listed(query: str) -> list[int]:
        return [
            one["id"] for one in call(secret, "get", f"submissions/{query}").json()["submissions"]
        ]

    assert listed("") == [second.pk, first.pk]
    assert listed("?limit=1") == [second.pk] and listed("?limit=1&offset=1") == [first.pk]
    assert call(secret, "get", "submissions/?limit=1").json()["count"] == 2
    assert listed("?status=scored") == [] and listed("?track=toy") == [second.pk, first.pk]
    assert listed("?offset=2") == [], "past the last"
    for nonsense in ("page=2", "page=x", "page_size=5", "per_page=5", "limit=0", "offset=x"):
        refused = call(secret, "get", f"submissions/?{nonsense}")
        assert refused.status_code == 400, nonsense
        assert list(refused.json()["fields"]) == [nonsense.partition("=")[0]]
    for address in ("submissions", "tracks/toy/metrics"):
        refused = call(secret, "get", f"{address}/?bogus=1")
        assert refused.status_code == 400 and "There are: " in refused.json()["fields"]["bogus"][0]
        assert call(secret, "get", f"{address}/?limit=1").status_code == 200
    assert call(secret, "get", "submissions/?status=lost").status_code == 400
    assert call(secret, "get", "submissions/?track=lost").status_code == 404
