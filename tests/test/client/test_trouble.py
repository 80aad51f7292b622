"""What the command line says where a token, the service or what stands before it is in trouble:
one sentence, what to do, and the exit code that the README promises.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from django.conf import settings
from django.test import override_settings
from kbpo_client import client as module
from kbpo_client.commands import main
from kbpo_client.commands.service import REFUSED, UNREACHABLE
from pytest import MonkeyPatch

from kbpo import clock
from kbpo.accounts.models import Token
from tests.conftest import Toy
from tests.test.client.conftest import Run

pytestmark = pytest.mark.django_db(transaction=True)


def call(url: str, *words: str) -> Result:
    return CliRunner().invoke(main, ["--url", url, *words])


def secret_of(toy: Toy, scope: str = Token.Scope.ALL, **changed: Any) -> str:
    token, secret = Token.create_with_secret(toy.users["Rosa"], "one", scope=scope)
    Token.objects.filter(pk=token.pk).update(**changed)
    return secret


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"expires_at": clock.now() - timedelta(days=1)}, "This token expired on "),
        ({"revoked_at": clock.now() - timedelta(days=1)}, "This token was revoked on "),
    ],
)
def test_a_token_that_has_ended_is_told_where_the_next_one_is_made(
    run: Run, toy: Toy, live_server: Any, changed: dict[str, Any], says: str
) -> None:
    refused = run("--token", secret_of(toy, **changed), "runs", who="")
    assert refused.exit_code == REFUSED and refused.stderr.startswith(says)
    page = f"your account page, {live_server.url}/account/."
    assert refused.stderr.endswith(f"{page} Then say it with --token or KBPO_TOKEN.\n")
    nobody = run("runs", who="")
    assert nobody.exit_code == REFUSED
    assert nobody.stderr == (f"This needs a token. Make one on {page} `kbpo login` keeps it.\n")


def test_too_many_requests_are_waited_for_and_the_wait_is_told(
    run: Run, toy: Toy, monkeypatch: MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(module.time, "sleep", waits.append)
    assert settings.API_RATE > 2
    with override_settings(API_RATE=2):
        results = [run("runs") for _ in range(3)]
    assert [result.exit_code for result in results] == [0, 0, REFUSED]
    told, last = results[2].stderr.splitlines()[0], results[2].stderr.splitlines()[-1]
    second = r"(59|60)"  # a slow machine takes one of the minute
    sentence = rf"These were too many requests\. Come again in {second} seconds\."
    assert re.fullmatch(rf"{sentence} It is asked again in {second} s\.", told)
    assert re.fullmatch(sentence, last)
    assert len(waits) == module.MOST_WAITS and set(waits) <= {59.0, 60.0}


class Proxy(BaseHTTPRequestHandler):
    """What stands before a service, or in its place, and answers with a page of its own."""

    status = 200
    later = ""

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(self.status)
        self.send_header("Content-Type", "text/html")
        if self.later:
            self.send_header("Retry-After", self.later)
        self.end_headers()
        self.wfile.write(b"<html><h1>Something stands between</h1></html>")

    do_POST = do_GET

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def proxy(status: int, later: str = "") -> Iterator[str]:
    answers = type("Answers", (Proxy,), {"status": status, "later": later})
    with ThreadingHTTPServer(("127.0.0.1", 0), answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


PAGES = [
    (200, UNREACHABLE, "127.0.0.1 answers, but not as KBP Online does."),
    (403, UNREACHABLE, "127.0.0.1 answers 403 with a page of a proxy or another service"),
    (407, UNREACHABLE, "another service. Is the address right?"),
    (400, REFUSED, "The service answered 400 without a reason."),
    (404, REFUSED, "404 without a reason. Is the address right?"),
    (413, REFUSED, "What stands before 127.0.0.1 lets no file as large through."),
    (502, UNREACHABLE, "127.0.0.1 answers 502 Bad Gateway. Try again"),
    (504, UNREACHABLE, "Try again in a minute."),
]


def test_a_page_of_a_proxy_is_no_answer_of_the_service(tmp_path: Path) -> None:
    for status, code, says in PAGES:
        file = tmp_path / "run.jsonl"
        file.write_text("{}\n")
        with proxy(status) as url:
            for words in (
                ("tracks",),
                ("download", "toy", "--to", str(tmp_path / "to")),
                ("submit", "toy", str(file), "--name", "mine"),
            ):
                result = call(url, *words)
                assert result.exit_code == code and says in result.stderr, (words, result.output)
                assert result.stderr.count("\n") == 1 and "<" not in result.stderr
        assert not list((tmp_path / "to").glob("*")), "a page is not kept as a file"


def test_a_busy_proxy_is_asked_again_and_that_is_told(monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr(module.time, "sleep", lambda _: None)
    with proxy(503, later="7") as url:
        result = call(url, "tracks")
    assert result.exit_code == UNREACHABLE
    *waits, last = result.stderr.splitlines()
    assert len(waits) == module.MOST_WAITS and last.endswith("Try again in a minute.")
    for wait in waits:
        assert wait.endswith("It is asked again in 7 s.")
