"""What no text can be is refused with a sentence, wherever it stands; it is no bug of ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from kbpo.accounts.models import Token
from tests.conftest import PASSWORD, Toy

As = Callable[[str], Client]
PATHS = [
    "/tracks/a%00b/",
    "/join/a%00b/",
    "/annotate/a%00b/",
    "/annotate/receipts/a%00b/",
    "/annotate/say/a%00~b/",
    "/desk/batches/a%00b/",
    "/desk/log/?about=%00",
]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("who", ["Rosa", "Ada", "Admin"])
def test_a_nul_in_an_address_is_no_error_of_ours(who: str, as_user: As, caplog: Any) -> None:
    for path in PATHS:
        client = as_user(who)
        client.raise_request_exception = False
        answer = client.get(path)
        assert answer.status_code < 500, answer.content
        assert "Traceback" not in caplog.text


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["a\x00b", "\ud800"])
def test_the_api_says_so_in_json(name: str, toy: Toy, client: Client) -> None:
    _, secret = Token.create_with_secret(toy.users["Rosa"], "laptop")
    headers = {"Authorization": f"Token {secret}"}
    client.raise_request_exception = False
    answer = client.post(
        "/api/submissions/",
        json.dumps({"track": name, "name": name}),
        content_type="application/json",
        headers=headers,
    )
    assert 400 <= answer.status_code < 500 and answer.json()["detail"]


@pytest.mark.django_db
def test_a_changed_password_ends_every_token(toy: Toy, as_user: As) -> None:
    _, secret = Token.create_with_secret(toy.users["Rosa"], "laptop")
    _, other = Token.create_with_secret(toy.users["Tim"], "laptop")
    ask = {"Authorization": f"Token {secret}"}
    assert Client().get("/api/submissions/", headers=ask).status_code == 200
    new = {"old_password": PASSWORD, "new_password1": "a new secret 12", "new_password2": ""}
    rosa = as_user("Rosa")
    assert rosa.post(reverse("password"), new).status_code == 422
    assert Client().get("/api/submissions/", headers=ask).status_code == 200
    done = rosa.post(reverse("password"), new | {"new_password2": "a new secret 12"}, follow=True)
    assert "1 of your API tokens revoked" in done.content.decode()
    assert Client().get("/api/submissions/", headers=ask).status_code == 401
    theirs = {"Authorization": f"Token {other}"}
    assert Client().get("/api/submissions/", headers=theirs).status_code == 200


@pytest.mark.django_db
def test_so_does_one_that_is_changed_in_a_shell_and_a_log_in_does_not(toy: Toy) -> None:
    rosa = toy.users["Rosa"]
    _, secret = Token.create_with_secret(rosa, "laptop")
    ask = {"Authorization": f"Token {secret}"}
    rosa.set_password(PASSWORD)
    rosa._password = None  # as a log-in that renews the hash does
    rosa.save()
    assert Client().get("/api/submissions/", headers=ask).status_code == 200
    rosa.set_password("another secret 12")
    rosa.save()
    assert Client().get("/api/submissions/", headers=ask).status_code == 401
