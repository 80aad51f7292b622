"""What the command line says where a token, the service or what stands before it is in trouble:
one sentence, what to do, and the exit code that the README promises.
"""

from __future__ import annotations

import re
import socket
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
from django.core.cache import cache
from django.test import override_settings
from kbpo_client import client as module
from kbpo_client import settings as kept
from kbpo_client.client import Client, Refused
from kbpo_client.commands import main
from kbpo_client.commands.service import REFUSED, UNREACHABLE
from pytest import MonkeyPatch

from kbpo import clock
from kbpo.accounts.models import Token
from kbpo.submissions.models import Submission
from kbpo.web.public.track import OUTPUTS
from tests.client.conftest import Run
from tests.conftest import Toy
from tests.web.scored import make_board

pytestmark = pytest.mark.django_db(transaction=True)


def call(url: str, *words: str) -> Result:
    return CliRunner().invoke(main, ["--url", url, *words])


def secret_of(toy: Toy, scope: str = Token.Scope.ALL, **changed: Any) -> str:
    token, secret = Token.issue(toy.users["Rosa"], "one", scope=scope)
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
    assert nobody.stderr == (
        f"This takes a token of yours. Make one on {page} `kbpo login` keeps it.\n"
    )


def test_who_logs_in_with_a_token_that_is_none_is_told_to_log_in_again(
    run: Run, toy: Toy, live_server: Any
) -> None:
    ended = secret_of(toy, expires_at=clock.now() - timedelta(days=1))
    for token in ("mistyped", ended):
        refused = run("login", "--token", token, who="")
        assert refused.exit_code == REFUSED
        page = f"your account page, {live_server.url}/account/."
        assert refused.stderr.endswith(f"{page} Then run `kbpo login` again with it.\n")
    assert not kept.tokens()


def test_what_needs_no_token_goes_on_without_one_that_has_ended(
    run: Run, toy: Toy, live_server: Any, monkeypatch: MonkeyPatch
) -> None:
    expired = secret_of(toy, expires_at=clock.now() - timedelta(days=1))
    kept.keep(live_server.url, expired)
    for words in (("tracks",), ("scores", "toy"), ("download", "toy"), ("runs",)):
        result = run(*words, who="")
        told = result.stderr
        assert told.startswith("This token expired on ") and told.count("\n") == 1, told
        keeps = f"your account page, {live_server.url}/account/. `kbpo login` keeps it."
        if words == ("runs",):
            assert result.exit_code == REFUSED and told.endswith(f"{keeps}\n")
        else:
            assert result.exit_code == 0 and result.stdout
            assert told.endswith(f"{keeps} This goes on without it.\n")
    assert Path("toy/documents.jsonl.gz").stat().st_size
    nope = run("scores", "nope", who="")
    assert nope.exit_code == REFUSED and nope.stderr.endswith("There is no track “nope”.\n")
    with Client(live_server.url, expired) as client, pytest.raises(Refused, match="expired on"):
        client.tracks()


def test_what_depends_on_who_asks_does_not_go_on_without_a_token(
    run: Run, toy: Toy, live_server: Any
) -> None:
    make_board(toy, 1)
    number = Submission.objects.get(name="run 0").pk
    expired = secret_of(toy, expires_at=clock.now() - timedelta(days=1))
    assert run("slices", number, who="").exit_code == 0, "strangers see it"
    for word in ("status", "slices", "intervals", "history", "errors"):
        refused = run("--token", expired, word, number, who="")
        assert refused.exit_code == REFUSED and not refused.stdout, word
        assert refused.stderr.startswith("This token expired on ") and (
            "goes on" not in refused.stderr
        )
    told: list[Refused] = []
    with Client(live_server.url, expired, tell_token=told.append) as client:
        assert len(client.tracks()) == 1 and len(told) == 1
        asks = (
            lambda: client.submission(number),
            lambda: list(client.predictions(number)),
            lambda: client.missed(number),
            lambda: client.document("toy", "d1"),
        )
        for ask in asks:
            with pytest.raises(Refused, match="expired on"):
                ask()
        assert len(client.scores("toy")) == 1 and len(told) == 1


def test_a_token_of_too_small_a_scope_is_told_what_it_may(
    run: Run, toy: Toy, live_server: Any
) -> None:
    reads = secret_of(toy, Token.Scope.READ)
    refused = run("--token", reads, "withdraw", "1", "--yes", who="")
    assert refused.exit_code == REFUSED
    assert refused.stderr == (
        "This token may only read: scores, judgments, problems. Make one that may do more on your"
        f" account page, {live_server.url}/account/.\n"
    )


def test_a_track_that_is_not_there_is_named(run: Run) -> None:
    for words in (("scores", "nope"), ("download", "nope"), ("metrics", "nope")):
        refused = run(*words)
        assert refused.exit_code == REFUSED and refused.stderr == "There is no track “nope”.\n"


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
    second = r"(59|60) seconds\."  # a slow machine takes one of the minute
    assert re.fullmatch(rf"These were too many requests\. It is asked again in {second}", told)
    assert re.fullmatch(rf"These were too many requests\. Come again in {second}", last)
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


@pytest.mark.parametrize(
    ("status", "code", "says"),
    [
        (200, UNREACHABLE, "127.0.0.1 answers, but not as KBP Online does."),
        (403, UNREACHABLE, "127.0.0.1 answers 403 with a page of its own"),
        (407, UNREACHABLE, "a proxy, perhaps. Is the address right?"),
        (400, REFUSED, "The service answered 400 without a reason."),
        (404, REFUSED, "404 without a reason. Is the address right?"),
        (413, REFUSED, "What stands before 127.0.0.1 lets no file as large through."),
        (502, UNREACHABLE, "127.0.0.1 answers 502 Bad Gateway: the service is down"),
        (504, UNREACHABLE, "Try again in a few minutes."),
    ],
)
def test_a_page_of_a_proxy_is_no_answer_of_the_service(
    tmp_path: Path, status: int, code: int, says: str
) -> None:
    file = tmp_path / "run.jsonl"
    file.write_text("{}\n")
    with proxy(status) as url:
        for words in (
            ("tracks",),
            ("download", "toy", "--all", "--to", str(tmp_path / "to")),
            ("submit", "toy", str(file), "--name", "mine"),
        ):
            result = call(url, *words)
            assert result.exit_code == code and says in result.stderr, (words, result.output)
            assert result.stderr.count("\n") == 1 and "<" not in result.stderr
    assert not any((tmp_path / "to").iterdir()), "a page is not kept as a file"


def test_a_busy_proxy_is_asked_again_and_that_is_told(monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr(module.time, "sleep", lambda _: None)
    with proxy(503, later="7") as url:
        result = call(url, "tracks")
    assert result.exit_code == UNREACHABLE
    *waits, last = result.stderr.splitlines()
    assert len(waits) == module.MOST_WAITS and last.endswith("Try again in a few minutes.")
    for wait in waits:
        assert wait.endswith("or what stands before it. It is asked again in 7 seconds.")


@pytest.mark.parametrize(("later", "when"), [("90", "90 seconds"), ("3600", "60 minutes")])
def test_who_is_to_come_much_later_is_told_when_and_not_kept_waiting(
    monkeypatch: MonkeyPatch, tmp_path: Path, later: str, when: str
) -> None:
    monkeypatch.chdir(tmp_path)
    waits: list[float] = []
    monkeypatch.setattr(module.time, "sleep", waits.append)
    with proxy(503, later) as url:
        for words in (("tracks",), ("download", "toy", "--all")):
            result = call(url, *words)
            assert result.exit_code == UNREACHABLE and result.stderr.endswith(
                f"or what stands before it. Come again in {when}.\n"
            )
    assert waits == []


def test_a_limit_of_the_service_says_once_when_to_come_again(run: Run) -> None:
    cache.clear()
    while OUTPUTS.count("127.0.0.1"):
        pass
    refused = run("download", "toy", "--all")
    cache.clear()
    assert refused.exit_code == REFUSED and refused.stderr == (
        "Your network had this file made for it often in the last hour. Come again in 60 minutes.\n"
    )


def test_an_address_where_nothing_answers_is_told_why() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for url, says in {
        f"http://127.0.0.1:{port}": "does not answer: it is down, or elsewhere.",
        "http://no-such-host.invalid": "does not answer: its name is not known.",
        f"127.0.0.1:{port}": "is no address of a service: it begins with https:// or http://.",
    }.items():
        result = call(url, "tracks")
        assert result.exit_code == UNREACHABLE and f"{url} {says}" in result.stderr
        assert "/api/" not in result.stderr and "Error" not in result.stderr


def test_a_service_without_tls_and_one_that_hangs_up_are_told_so(live_server: Any) -> None:
    secure = call(live_server.url.replace("http:", "https:"), "tracks")
    assert secure.exit_code == UNREACHABLE and "cannot be spoken to safely (" in secure.stderr

    class HangsUp(Proxy):
        def do_GET(self) -> None:
            self.connection.shutdown(socket.SHUT_RDWR)

    with ThreadingHTTPServer(("127.0.0.1", 0), HangsUp) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        result = call(f"http://127.0.0.1:{server.server_port}", "tracks")
        server.shutdown()
    assert result.exit_code == UNREACHABLE and "the connection broke off" in result.stderr
