"""Every address with its methods and who may call it, and the schema of the API,
are what they were.

Both are kept under tests/test/golden. Where a change means to change them,
write them anew and say so in the commit:

    GOLDEN=write .venv/bin/python -m pytest tests/test/web/test_every_address.py
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.apps import apps
from django.core.cache import cache
from django.test import Client
from django.urls import get_resolver
from undone import undone

from kbpo.accounts.models import Token
from kbpo.corpus.models import Corpus
from kbpo.submissions.models import Prediction, Submission
from kbpo.tracks.models import Track
from tests.conftest import Toy

pytestmark = pytest.mark.django_db
GOLDEN = Path(__file__).parents[1] / "golden"
ROLES = {
    "nobody": "",
    "its team": "Rosa",
    "another team": "Tim",
    "annotator": "Ada",
    "admin": "Admin",
}
METHODS = ("GET", "POST")
OF_API = (*METHODS, "PUT", "PATCH", "DELETE")
PART = re.compile(r"<(?:\w+:)?(\w+)>")
OF_QUESTIONS = ("annotate/gold/", "annotate/preview/")
OF_ANSWERS = "desk/answers/"


@pytest.mark.usefixtures("_own_cache")
def test_every_address_answers_the_same_people_as_before(judged: Submission, toy: Toy) -> None:
    lines = []
    clients = {role: _client(toy, name) for role, name in ROLES.items()}
    for pattern in sorted(patterns(get_resolver().url_patterns)):
        address = PART.sub(
            lambda part, pattern=pattern: value_of(part[1], pattern, judged), pattern
        )
        for methods, told in _answers(clients, f"/{address}"):
            lines.append(f"/{pattern:<72} {methods:<26} " + " ".join(f"{one:<13}" for one in told))
    head = f"{'address':<73} {'method':<26} " + " ".join(f"{role:<13}" for role in ROLES)
    _compare("addresses.txt", "\n".join(line.rstrip() for line in [head, *lines]) + "\n")


def test_the_schema_of_the_api_is_what_it_was() -> None:
    answer = Client().get("/api/schema/")
    assert answer.status_code == 200
    _compare("schema.txt", "\n".join(outline(yaml.safe_load(answer.content))) + "\n")


def outline(schema: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each operation, with its parameters, body and responses, and one for each
    type, with its fields: what a client depends on, without the sentences.
    """
    for address, methods in schema["paths"].items():
        for method, told in methods.items():
            parts = [f"{method.upper()} {address}"]
            for one in told.get("parameters", ()):
                required = "" if one.get("required") else "?"
                parts.append(f"{one['in']} {one['name']}{required}: {type_of(one['schema'])}")
            if "requestBody" in told:
                parts.append(f"body {content_of(told['requestBody'])}")
            parts += [f"{code} {content_of(one)}" for code, one in told["responses"].items()]
            yield "; ".join(parts)
    for name, one in schema["components"]["schemas"].items():
        yield f"{name} = {type_of(one)}"


def content_of(body: dict[str, Any]) -> str:
    """Return the media types of a body, each with its type."""
    kinds = [
        f"{kind} {type_of(one.get('schema', {}))}" for kind, one in body.get("content", {}).items()
    ]
    return ", ".join(kinds)


def type_of(schema: dict[str, Any]) -> str:
    """Return a type of the schema in a few characters: `{a: string, b?: [integer]}`."""
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    for word in ("allOf", "oneOf", "anyOf"):
        if word in schema:
            return " | ".join(map(type_of, schema[word]))
    empty = "?" if schema.get("nullable") else ""
    if "enum" in schema:
        return "|".join(map(str, schema["enum"])) + empty
    if schema.get("type") == "array":
        return f"[{type_of(schema['items'])}]{empty}"
    if "properties" in schema:
        required = schema.get("required", ())
        fields = [
            f"{name}{'' if name in required else '?'}: {type_of(one)}"
            for name, one in schema["properties"].items()
        ]
        return "{" + ", ".join(fields) + "}" + empty
    more = schema.get("additionalProperties")
    if isinstance(more, dict) and more:
        return f"{{*: {type_of(more)}}}{empty}"
    limits = [
        f" {name} {schema[name]}" for name in sorted(schema) if name.startswith(("max", "min"))
    ]
    return str(schema.get("format", schema.get("type", "any"))) + "".join(limits) + empty


def _compare(name: str, now: str) -> None:
    path = GOLDEN / name
    if os.environ.get("GOLDEN") == "write":
        path.write_text(now, encoding="utf-8")
        pytest.skip(f"{name} was written anew")
    assert now.splitlines() == path.read_text(encoding="utf-8").splitlines()


def patterns(some: list[Any], before: str = "") -> Iterator[str]:
    """All addresses, as they are declared."""
    for one in some:
        if hasattr(one, "url_patterns"):
            yield from patterns(one.url_patterns, before + str(one.pattern))
        else:
            yield before + str(one.pattern)


def _client(toy: Toy, name: str) -> Client:
    client = Client(raise_request_exception=False)
    if name:
        client.force_login(toy.users[name])
        client.defaults["HTTP_AUTHORIZATION"] = (
            f"Token {Token.create_with_secret(toy.users[name], 'golden')[1]}"
        )
    return client


def value_of(part: str, pattern: str, row: Submission) -> str:
    """What stands in an address in the place of one of its parts:
    something that exists, where the part names it.
    """
    if part == "pk" and pattern.startswith(OF_QUESTIONS):
        return str(apps.get_model("annotation.Question").objects.order_by("pk")[0].pk)
    if part == "pk" and pattern.startswith(OF_ANSWERS):
        return str(
            apps.get_model("annotation.Assignment").objects.exclude(raw=None).order_by("pk")[0].pk
        )
    if part == "handle":
        return str(apps.get_model("annotation.Worker").objects.order_by("pk")[0].handle)
    if part == "slug":
        return "patterns" if pattern.startswith("teams/") else "toy"
    known = {
        "pk": row.pk,
        "prediction": Prediction.objects.filter(submission=row).order_by("pk")[0].pk,
        "team": row.team.slug,
        "member": "rosa",
        "payer": f"submission:{row.pk}",
        "interface": "relation",
        "number": 1,
        "kind": "submission",
        "name": "pool",
    }
    return str(known.get(part, "nowhere"))


def _answers(clients: dict[str, Client], address: str) -> Iterator[tuple[str, list[str]]]:
    """What each role is answered by each method that is taken at all;
    methods that are answered alike together.
    """
    alike: dict[tuple[str, ...], list[str]] = {}
    for method in OF_API if address.startswith("/api/") else METHODS:
        told = tuple(_answer(client, method, address) for client in clients.values())
        if set(told) - {"405"}:
            alike.setdefault(told, []).append(method)
    for answer, methods in alike.items():
        yield " ".join(methods), list(answer)


def _answer(client: Client, method: str, address: str) -> str:
    """The status of an answer, and where it leads; whatever it did is taken back."""
    cache.clear()
    cookies = copy.deepcopy(client.cookies)  # or /logout/ would end the session for the rest
    with undone():
        answer: Any = client.generic(method, address)
        if answer.streaming:  # no cursor of a file outlives what is undone
            b"".join(answer)
    client.cookies = cookies
    if answer.status_code in (301, 302):
        place = answer["Location"].partition("?")[0]
        return f"{answer.status_code} login" if place == "/login/" else str(answer.status_code)
    return str(answer.status_code)


@pytest.mark.parametrize("kind", ["generation", "answers"])
def test_no_address_of_a_track_of_texts_fails_nor_is_one_offered_that_is_not_there(
    toy: Toy, kind: str
) -> None:
    corpus = Corpus.objects.create(name="Texts", slug="texts", schema={}, n_documents=0)
    Track.objects.create(corpus=corpus, name="Texts", slug="texts", kind=kind, status="open")
    admin = _client(toy, "Admin")
    of_tracks = [
        f"/{PART.sub('texts', pattern)}"
        for pattern in patterns(get_resolver().url_patterns)
        if [part for part in PART.findall(pattern) if part != "interface"] == ["slug"]
        and "tracks/" in pattern
    ]
    assert len(of_tracks) > 30
    assert [one for one in of_tracks if _answer(admin, "GET", one) == "500"] == []
    page = admin.get("/desk/tracks/texts/").content.decode()
    offered = set(re.findall(r'href="(/desk/tracks/texts/[^"#]*)"', page))
    assert offered and {_answer(admin, "GET", one) for one in offered} == {"200"}
