"""The documents of a track over the API."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from kbpo.accounts.models import Token, User
from kbpo.corpus.models import Document
from kbpo.web.public import documents
from tests.conftest import Toy

Call = Callable[..., Any]
pytestmark = pytest.mark.django_db
SCOPE = Token.Scope


@pytest.fixture
def call(toy: Toy) -> Call:
    """Asks the API as somebody, with a token of a scope; what is sent is JSON."""
    cache.clear()

    def ask(
        who: User | str, method: str, path: str, data: Any = None, scope: str = SCOPE.ALL
    ) -> Any:
        user = toy.users[who] if isinstance(who, str) else who
        headers = {"Authorization": f"Token {Token.issue(user, 'test', scope=scope)[1]}"}
        return Client().generic(
            method.upper(),
            f"/api/{path}",
            "" if data is None else json.dumps(data),
            "application/json",
            headers=headers,
        )

    return ask


def test_documents_are_listed_in_pages_and_found_by_their_words(
    call: Call, toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = list(
        Document.objects.filter(corpus=toy.corpus).order_by("pk").values_list("key", flat=1)
    )
    listed, address = [], reverse("api-document-list", args=["toy"]) + "?limit=2"
    while address:
        told = Client().get(address).json()
        assert told["count"] == len(keys) and len(told["results"]) <= 2
        listed += told["results"]
        address = told["next"]
    assert [one["id"] for one in listed] == keys
    assert Client().get(reverse("api-document-list", args=["toy"]) + "?page=2").status_code == 400
    row = Document.objects.get(corpus=toy.corpus, key=keys[0])
    assert row.text.startswith(listed[0]["begins"])
    with CaptureQueriesContext(connection) as queries:
        Client().get(reverse("api-document-list", args=["toy"]))
    asked = [one["sql"] for one in queries if 'FROM "corpus_document"' in one["sql"]]
    column = '"corpus_document"."text"'  # as a column, not in LEFT("text", 200)
    assert asked and not any(f'{column}, "' in one or f"{column} FROM" in one for one in asked)
    assert Client().get(listed[0]["link"]).json()["text"] == row.text
    word = max(row.text.split(), key=len).strip(".,")
    with_it = {one.key for one in Document.objects.filter(corpus=toy.corpus) if word in one.text}
    address = reverse("api-document-list", args=["toy"])
    found = Client().get(address, {"q": word}).json()
    assert {one["id"] for one in found["results"]} == with_it and found["count"] == len(with_it)
    assert Client().get(address, {"q": "nowordofanytext"}).json()["results"] == []
    monkeypatch.setattr(documents, "MOST_FOUND", 1)
    texts = [set(one.text.split()) for one in Document.objects.filter(corpus=toy.corpus)]
    common = max(set.union(*texts), key=lambda word: sum(word in text for text in texts))
    assert sum(common in text for text in texts) > 1
    many = Client().get(address, {"q": common}).json()
    assert many["count"] is None and len(many["results"]) == 1, "more have it than are listed"
    for wrong in ({"q": "a" * 201}, {"limit": "0"}, {"after": "x"}):
        assert Client().get(address, wrong).status_code == 400
    answer = Client().get(address)
    known = Client().get(address, headers={"If-None-Match": answer["ETag"]})
    assert known.status_code == 304
    toy.corpus.may_be_downloaded = False
    toy.corpus.save()
    assert Client().get(address).status_code == 404
    assert call("Admin", "get", "tracks/toy/search/").status_code == 200
