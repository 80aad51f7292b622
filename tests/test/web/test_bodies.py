"""What is too large is refused before it is read, and no team fills the disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import NoReverseMatch, URLResolver, reverse

from kbpo.accounts.models import Token
from kbpo.submissions.models import Submission
from kbpo.web.bodies import OF_ADMINS
from tests.conftest import Toy

As = Callable[[str], Client]
pytestmark = pytest.mark.django_db
LARGE = 700 << 20


class Unread(BytesIO):
    """A body of which nobody may read a byte."""

    def read(self, *args: Any) -> bytes:
        raise AssertionError("the body was read")


def post(client: Client, path: str, size: int = LARGE, body: Any = None, **headers: str) -> Any:
    """What a large form is answered whose body cannot be read."""
    return client.generic(
        "POST",
        path,
        content_type="multipart/form-data; boundary=x",
        headers=headers,
        **{"CONTENT_LENGTH": str(size), "wsgi.input": body or Unread()},
    )


@pytest.mark.parametrize("page", ["/login/", "/submit/", "/", "/api/submissions/", "/ask/"])
def test_a_stranger_stores_nothing(page: str, client: Client, toy: Toy) -> None:
    answer = post(client, page)
    assert answer.status_code == 413 and "This is too large" in answer.content.decode()


def test_a_wrong_token_is_refused_before_the_file_is_read(
    client: Client, toy: Toy, settings: Any
) -> None:
    settings.UPLOAD_LIMIT_MB = 1024
    answer = post(client, "/api/submissions/", Authorization="Token kbpo_wrong")
    assert answer.status_code == 401
    _, secret = Token.create_with_secret(toy.users["Ada"], "annotator")
    assert post(client, "/api/submissions/", Authorization=f"Token {secret}").status_code == 403


def test_a_file_over_the_limit_is_not_read_from_a_researcher(as_user: As) -> None:
    assert post(as_user("Rosa"), "/submit/").status_code == 413


@pytest.mark.parametrize("name", OF_ADMINS)
def test_the_desk_takes_files_of_admins_alone(name: str, as_user: As, settings: Any) -> None:
    settings.UPLOAD_LIMIT_MB = 1024
    page = address_of(name)
    assert post(as_user("Rosa"), page).status_code == 413
    assert post(as_user("Admin"), page).status_code != 413


def test_a_program_of_an_admin_sends_a_file_and_nobody_elses(
    client: Client, toy: Toy, settings: Any
) -> None:
    settings.UPLOAD_LIMIT_MB = 1024
    page = address_of("api-judges")
    for who, statuses in (("Rosa", {403}), ("Admin", {400, 413, 422})):
        secret = Token.create_with_secret(toy.users[who], "laptop")[1]
        small = client.post(page, {}, headers={"Authorization": f"Token {secret}"})
        assert small.status_code in statuses
    assert post(client, page, Authorization="Token kbpo_wrong").status_code == 401
    secret = Token.create_with_secret(toy.users["Rosa"], "laptop")[1]
    assert post(client, page, Authorization=f"Token {secret}").status_code == 403
    assert post(client, page).status_code == 413


def address_of(name: str) -> str:
    """The address of a view that takes files."""
    try:
        return reverse(name)
    except NoReverseMatch:
        return reverse(name, args=["toy"])


def flat(patterns: list[Any]) -> Iterator[Any]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from flat(pattern.url_patterns)
        else:
            yield pattern


def upload(client: Client, content: bytes) -> Any:
    file = SimpleUploadedFile("run.kb.tsv", content)
    return client.post(reverse("submit"), {"track": "toy", "file": file})


def test_a_team_has_only_so_many_drafts(as_user: As, settings: Any) -> None:
    settings.TEAM_DRAFTS = 2
    rosa = as_user("Rosa")
    for number in range(2):
        assert upload(rosa, b"%d" % number).status_code == 302
    refused = upload(rosa, b"third")
    assert refused.status_code == 422
    assert "2 uploads that wait to be confirmed" in refused.content.decode()
    assert upload(as_user("Tim"), b"another team").status_code == 302
    Submission.objects.filter(team__slug="patterns").first().move("withdrawn")
    assert upload(rosa, b"third").status_code == 302


def test_a_team_uploads_only_so_much_a_day(as_user: As, settings: Any) -> None:
    settings.TEAM_DAY_MB = 1
    rosa = as_user("Rosa")
    assert upload(rosa, bytes(700 << 10)).status_code == 302
    refused = upload(rosa, bytes(700 << 10))
    assert refused.status_code == 422 and "1 MB is the most" in refused.content.decode()
    Submission.objects.update(received_at="2020-01-01T00:00Z")
    assert upload(rosa, bytes(700 << 10)).status_code == 302


@pytest.mark.parametrize("what", ["files", "predictions"])
def test_withdrawn_drafts_count_in_what_a_team_uploads_a_day(
    what: str, as_user: As, settings: Any
) -> None:
    settings.TEAM_DAY_UPLOADS, settings.TEAM_DAY_ITEMS = (2, 99) if what == "files" else (99, 14)
    rosa = as_user("Rosa")
    for number in range(2):
        assert upload(rosa, b"%d" % number).status_code == 302
        Submission.objects.update(counts={"relations": 7})
        Submission.objects.filter(status="received").first().move("withdrawn")
    refused = upload(rosa, b"third")
    assert refused.status_code == 422 and f"{what} within a day" in refused.content.decode()
    assert upload(as_user("Tim"), b"another team").status_code == 302
    Submission.objects.update(received_at="2020-01-01T00:00Z")
    assert upload(rosa, b"third").status_code == 302


def test_a_full_disk_is_a_sentence_and_keeps_nothing(
    as_user: As, settings: Any, toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", is_full)
    rosa = as_user("Rosa")
    rosa.raise_request_exception = False
    answer = upload(rosa, b"a run")
    assert answer.status_code == 503 and "Our disk is full" in answer.content.decode()
    secret = Token.create_with_secret(toy.users["Rosa"], "laptop")[1]
    file = SimpleUploadedFile("run.kb.tsv", b"a run")
    sent = rosa.post(
        reverse("api-submissions"),
        {"track": "toy", "name": "run", "file": file},
        headers={"Authorization": f"Token {secret}"},
    )
    assert sent.status_code == 503 and "Our disk is full" in sent.json()["detail"]
    assert int(sent["Retry-After"]) > 0
    assert not Submission.objects.exists()
    assert not [path for path in Path(settings.MEDIA_ROOT).rglob("*") if path.is_file()]
