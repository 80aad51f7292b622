"""Uploads of the toy corpus, as people make them: files of JSON Lines, read and planned by the
steps themselves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client

from annotation.hits import publish
from annotation.labels import settle
from annotation.models import Assignment
from annotation.questions import ask
from annotation.workers.worker import worker_of_user
from kbpo.accounts import teams
from kbpo.accounts.models import User
from kbpo.clock import served
from kbpo.sampling import draw
from kbpo.sampling.confirm import confirm_plan
from kbpo.sampling.plan import tick as plan
from kbpo.submissions.ingest import tick as ingest
from kbpo.submissions.models import Submission
from kbpo.submissions.receive import store_submission
from kbpo.web import http
from kbpo.web.desk import health
from tests.conftest import PASSWORD, Toy
from tests.test.annotation.annotation_world import learn

WRITES = re.compile(
    r"^\s*(insert|update|delete|merge|truncate|copy)\b|\bfor (no key )?update\b", re.I
)
GOOD = [
    ("d1", "Mara Lindt", "per:organizations_founded", "Nordwerk"),
    ("d1", "Nordwerk", "org:place_of_headquarters", "Bergen"),
    ("d2", "Ola Berg", "per:employee_or_member_of", "Nordwerk"),
    ("d3", "Per Berg", "per:place_of_birth", "Bergen"),
]
OTHERS = [
    *GOOD,
    ("d3", "Mara Lindt", "per:place_of_residence", "Oslo"),
    ("d4", "Per Berg", "per:place_of_death", "Oslo"),
]


@pytest.fixture(autouse=True)
def uploads(settings: Any, tmp_path: Path) -> Iterator[None]:
    """Uploads lie in a folder of the test's own; the cache is the process's own."""
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    yield
    cache.clear()


@pytest.fixture(autouse=True)
def pages_of_one_moment_write_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a test's transaction is undone, no page can have one that is read only; so here it is
    the statement that is refused.
    """
    one_moment = http.database_snapshot

    @contextmanager
    def watched() -> Iterator[None]:
        with one_moment(), connection.execute_wrapper(refuse_to_write):
            yield

    monkeypatch.setattr(http, "database_snapshot", watched)


def refuse_to_write(
    execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
) -> Any:
    assert not WRITES.search(sql), f"a page that is read at one moment writes: {sql}"
    return execute(sql, params, many, context)


def lines_of(toy: Toy, claims: list[tuple[str, str, str, str]]) -> bytes:
    """A file of JSON Lines that predicts these relations."""
    found = []
    for document, subject, predicate, object_ in claims:
        # The last subject that stands before the object: both in one sentence.
        text = toy.documents[document].text
        spans = [toy.span(document, subject), toy.span(document, object_)]
        assert text[slice(*spans[0])] == subject
        found.append(
            {"doc": document, "subject": spans[0], "predicate": predicate, "object": spans[1]}
        )
    return "".join(json.dumps(one) + "\n" for one in found).encode()


@pytest.fixture
def as_user(toy: Toy) -> Callable[[str], Client]:
    """A browser that somebody of the cast is logged in with; "" is nobody."""

    def make(name: str) -> Client:
        client = Client()
        if name:
            client.force_login(toy.users[name])
        return client

    return make


@pytest.fixture
def draft(toy: Toy) -> Callable[..., Submission]:
    """A submission of Rosa's (or somebody's) that was received, and read and planned unless told
    otherwise.
    """

    def make(
        claims: list[tuple[str, str, str, str]] | None = None,
        *,
        by: str = "Rosa",
        name: str = "run",
        until: str = "planned",
        body: bytes | None = None,
    ) -> Submission:
        user: User = toy.users[by]
        team = user.team()
        assert team is not None
        file = SimpleUploadedFile(
            f"{name}.jsonl", body if body is not None else lines_of(toy, claims or GOOD)
        )
        row = store_submission(toy.track, team, user, file, name=name, file_name=f"{name}.jsonl")
        if until != "received":
            ingest()
        if until == "planned":
            plan()
        return Submission.objects.get(pk=row.pk)

    return make


@pytest.fixture
def judged(
    toy: Toy,
    draft: Callable[..., Submission],
    as_user: Callable[[str], Client],
    keep: Callable[..., Any],
) -> Submission:
    """A submission whose questions Ada, Bo and Cy have answered alike."""

    def play() -> int:
        row = confirm_plan(draft(), toy.users["Rosa"])
        draw.tick()
        ask.tick()
        publish.tick()
        for name in ("Ada", "Bo", "Cy"):
            learn(worker_of_user(toy.users[name]))
            answer_all(as_user(name))
        settle.tick()
        return row.pk

    number = keep("desk", play)
    served.record_beat()
    cache.set(health.COUNT_KEPT, 1, 60)
    return Submission.objects.get(pk=number)


def answer_all(client: Client) -> None:
    while (address := client.get("/annotate/next/")["Location"]) != "/annotate/":
        question = Assignment.objects.get(token=address.split("/")[2]).hit.questions.get()
        first = dict.fromkeys(("a", "b"), "other")
        part = question.payload["predicates"][0]
        said = client.post(
            address, first | {"holds": " ".join([part["part"], *part.get("also", [])])}
        )
        assert said.status_code == 302, said.content.decode()


@pytest.fixture
def admin(toy: Toy) -> Client:
    client = Client()
    client.force_login(toy.users["Admin"])
    return client


@pytest.fixture
def nils(toy: Toy) -> User:
    """A second member of Rosa's team, which she owns."""
    user = User.objects.create_user("nils", "nils@example.org", PASSWORD, is_researcher=True)
    teams.add_member(toy.teams["Patterns"], toy.users["Rosa"])
    teams.add_member(toy.teams["Patterns"], user)
    return user
