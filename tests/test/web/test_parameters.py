"""No address of the API takes a parameter that its schema does not describe."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import get_resolver, reverse
from drf_spectacular.views import SpectacularAPIView

from kbpo.accounts.models import Token
from kbpo.web.api.view import APIView
from tests.conftest import Toy
from tests.test.web.test_every_address import PART

pytestmark = pytest.mark.django_db


def views(some: list[Any], before: str = "") -> dict[str, Any]:
    """Each address of the API as it is declared -> the view that answers."""
    found = {}
    for one in some:
        address = before + str(one.pattern)
        if hasattr(one, "url_patterns"):
            found |= views(one.url_patterns, address)
        elif address.startswith("api/") and hasattr(one.callback, "cls"):
            found[address] = one.callback.cls
    return found


def test_every_address_refuses_what_it_does_not_know(toy: Toy) -> None:
    """Lists, boards, comparisons and single things, whatever is done with them."""
    answers_of = views(get_resolver().url_patterns)
    assert len(answers_of) > 20
    headers = {"Authorization": f"Token {Token.create_with_secret(toy.users['Admin'], 'test')[1]}"}
    for address, view in answers_of.items():
        assert issubclass(view, APIView | SpectacularAPIView), address
        if issubclass(view, SpectacularAPIView):
            continue
        path = "/" + PART.sub("1", address)
        for method in {"get", "post", "put", "patch", "delete"} & set(dir(view)):
            send = getattr(Client(), method)
            told = send(f"{path}?creterion=linking", headers=headers)
            assert told.status_code == 400, (method, address, told.content)
            assert "This is no parameter here" in told.json()["fields"]["creterion"][0]


def test_what_the_schema_describes_is_taken_and_other_pages_are_explained(toy: Toy) -> None:
    board = reverse("api-board", args=["toy"])
    assert Client().get(f"{board}?criterion=relation&format=json").status_code == 200
    told = Client().head(f"{board}?page=2")
    assert told.status_code == 400
    told = Client().get(reverse("api-metrics", args=["toy"]) + "?page=2").json()
    assert told["fields"]["page"][0].startswith("This is no parameter here: use `limit`")
    told = Client().get(reverse("api-track", args=["toy"]) + "?x=1").json()
    assert told["fields"]["x"] == ["This is no parameter here. There are none."]
