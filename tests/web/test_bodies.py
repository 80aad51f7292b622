"""What is too large is refused before it is read, and no team fills the disk."""

from __future__ import annotations

import ast
import errno
import inspect
import os
import re
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import NoReverseMatch, URLResolver, get_resolver, reverse

from kbpo.accounts.models import Token
from kbpo.submissions import ingest, receive
from kbpo.submissions.models import Submission
from kbpo.web.bodies import LONGEST_ANSWER, OF_ADMINS, TOO_LONG, UPLOADS
from tests.conftest import Toy

As = Callable[[str], Client]
pytestmark = pytest.mark.django_db
LARGE = 700 << 20
Defined = ast.FunctionDef | ast.ClassDef


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


@pytest.mark.parametrize("page", ["a" * 32, "a" * 32 + "/draft", "task/x", "task/x/draft", "leave"])
def test_an_answer_is_shorter_than_a_file(page: str, client: Client, toy: Toy) -> None:
    answer = post(client, f"/annotate/{page}/", size=LONGEST_ANSWER + 1)
    assert answer.status_code == 413
    assert post(client, "/ask/", size=LONGEST_ANSWER + 1, body=BytesIO()).status_code != 413


def test_a_pages_script_is_told_that_its_answer_is_too_long(client: Client, toy: Toy) -> None:
    size = LONGEST_ANSWER + 1
    answer = post(client, "/annotate/x/", size=size, Accept="application/json")
    assert answer.status_code == 413 and answer.json() == {"error": TOO_LONG}


def test_nothing_outside_drops_an_answer_that_holds_a_place(settings: Any) -> None:
    outside = settings.MIDDLEWARE[: settings.MIDDLEWARE.index("kbpo.web.bodies.PlacesMiddleware")]
    assert [one.rpartition(".")[2] for one in outside] == [
        "PolicyMiddleware",
        "SecurityMiddleware",
        "WhiteNoiseMiddleware",
    ]


def test_nobody_else_is_read_where_files_are_sent(as_user: As, toy: Toy) -> None:
    for page in ("/submit/", "/desk/forms/"):
        answer = post(as_user(""), page, size=1000)
        assert (answer.status_code, answer.url) == (302, f"/login/?next={page}")
    assert post(as_user("Ada"), "/submit/", size=1000).status_code == 403
    assert post(as_user("Rosa"), "/desk/forms/", size=1000).status_code == 403
    assert post(as_user(""), "/api/submissions/", size=1000).status_code == 401
    assert post(as_user("Rosa"), "/submit/", size=1000, body=BytesIO()).status_code == 422


def test_an_annotator_stores_nothing_either(as_user: As) -> None:
    assert post(as_user("Ada"), "/submit/").status_code == 413


def test_a_wrong_token_is_refused_before_the_file_is_read(
    client: Client, toy: Toy, settings: Any
) -> None:
    settings.UPLOAD_LIMIT_MB = 1024
    answer = post(client, "/api/submissions/", Authorization="Token kbpo_wrong")
    assert answer.status_code == 401
    _, secret = Token.issue(toy.users["Ada"], "annotator")
    assert post(client, "/api/submissions/", Authorization=f"Token {secret}").status_code == 403


def test_a_file_over_the_limit_is_not_read_from_a_researcher(as_user: As) -> None:
    assert post(as_user("Rosa"), "/submit/").status_code == 413


@pytest.mark.parametrize("name", OF_ADMINS)
def test_the_desk_takes_files_of_admins_alone(name: str, as_user: As, settings: Any) -> None:
    settings.UPLOAD_LIMIT_MB = 1024
    page = address_of(name)
    assert post(as_user("Rosa"), page).status_code == 413
    assert post(as_user("Admin"), page).status_code != 413


@pytest.mark.parametrize("name", ["api-judges", "api-track-judgments"])
def test_a_program_of_an_admin_sends_a_file_and_nobody_elses(
    name: str, client: Client, toy: Toy, settings: Any
) -> None:
    settings.UPLOAD_LIMIT_MB = 1024
    page = address_of(name)
    for who, statuses in (("Rosa", {403}), ("Admin", {400, 413, 422})):
        secret = Token.issue(toy.users[who], "laptop")[1]
        small = client.post(page, {}, headers={"Authorization": f"Token {secret}"})
        assert small.status_code in statuses
    assert post(client, page, Authorization="Token kbpo_wrong").status_code == 401
    secret = Token.issue(toy.users["Rosa"], "laptop")[1]
    assert post(client, page, Authorization=f"Token {secret}").status_code == 403
    assert post(client, page).status_code == 413


def address_of(name: str) -> str:
    """The address of a view that takes files."""
    try:
        return reverse(name)
    except NoReverseMatch:
        return reverse(name, args=["toy"])


def takers() -> set[str]:
    """The names of all views that read a file: those whose own lines, or what they call or check
    with in their module, speak of one.
    """
    found = set()
    for pattern in flat(get_resolver().url_patterns):
        view = getattr(pattern.callback, "view_class", getattr(pattern.callback, "cls", None))
        view = view or inspect.unwrap(pattern.callback)
        module = inspect.getmodule(view)
        if module is None or not module.__name__.startswith("kbpo.web"):
            continue
        tree = ast.parse(inspect.getsource(module))
        parts = {one.name: one for one in tree.body if isinstance(one, Defined)}
        seen, todo = set[str](), [view.__name__]
        while todo:
            name = todo.pop()
            if name in seen or name not in parts:
                continue
            seen.add(name)
            for node in ast.walk(parts[name]):
                if isinstance(node, ast.Name):
                    todo.append(node.id)
                if isinstance(node, ast.Attribute) and node.attr in ("FILES", "FileField"):
                    found.add(pattern.name)
    return found


def flat(patterns: list[Any]) -> Iterator[Any]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from flat(pattern.url_patterns)
        else:
            yield pattern


def test_whatever_reads_a_file_may_be_sent_one(settings: Any) -> None:
    assert takers() == {*UPLOADS, *OF_ADMINS}
    guide = (settings.BASE_DIR / "docs" / "operations.md").read_text()
    [large] = re.findall(r"location ~ (\S+) \{ client_max_body_size 513m", guide)
    for name in takers():
        assert re.search(large, address_of(name)), f"the proxy of the guide refuses files of {name}"
    for page in ("/login/", "/", "/desk/", "/submit/5/", "/desk/tracks/toy/"):
        assert not re.search(large, page)


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


def test_uploads_at_one_moment_do_not_share_the_last_place(
    as_user: As, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another upload arrives while the file is stored; what is refused then leaves no file."""
    settings.TEAM_DRAFTS = 1
    rosa = as_user("Rosa")
    keep = receive.keep

    def is_slow(file: Any) -> Any:
        kept = keep(file)
        monkeypatch.setattr(receive, "keep", keep)
        assert upload(rosa, b"the quicker one").status_code == 302
        return kept

    monkeypatch.setattr(receive, "keep", is_slow)
    refused = upload(rosa, b"the slower one")
    assert refused.status_code == 422
    assert "1 uploads that wait to be confirmed" in refused.content.decode()
    files = [path for path in Path(settings.MEDIA_ROOT).rglob("*") if path.is_file()]
    assert [path.read_bytes() for path in files] == [b"the quicker one"]


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


def test_files_that_came_before_any_was_read_predict_only_so_much_a_day(
    as_user: As, settings: Any
) -> None:
    settings.TEAM_DAY_ITEMS = 7
    rosa = as_user("Rosa")
    for number in range(2):
        assert upload(rosa, b"%d" % number).status_code == 302
    first, second = Submission.objects.order_by("pk")
    first.move("read", counts={"relations": 7})
    ingest.tick()
    second.refresh_from_db()
    assert second.status == "refused" and "again tomorrow" in second.reason
    first.move("withdrawn")
    assert upload(as_user("Tim"), b"another team").status_code == 302
    ingest.tick()
    assert "again tomorrow" not in Submission.objects.latest("pk").reason


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
    secret = Token.issue(toy.users["Rosa"], "laptop")[1]
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
