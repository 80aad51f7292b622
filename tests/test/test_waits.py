"""Nobody waits for ever: a process that was paused stops neither the site nor the pipeline."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any
from urllib.parse import quote, urlencode

import psycopg2
import pytest
from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import Client, RequestFactory
from processes import TESTS, Service, wait_for

from kbpo import queue
from kbpo.submissions.models import Submission
from kbpo.web.bodies import LARGE, PlacesMiddleware


@pytest.fixture
def site(service: Service) -> Iterator[Service]:
    """Another web server of the service."""
    beside = service.beside()
    beside.start("web")
    yield beside
    beside.stop()


def test_a_refused_body_that_is_sent_slowly_is_not_waited_for(site: Service) -> None:
    said = b"POST /nothing/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 900000\r\n\r\n"
    with ExitStack() as they_leave:
        for _ in range(12):  # more than there are threads
            stranger = they_leave.enter_context(
                closing(socket.create_connection(("127.0.0.1", site.port)))
            )
            stranger.sendall(said)
            answer = http.client.HTTPResponse(stranger)
            answer.begin()
            assert (answer.status, answer.getheader("Connection")) == (404, "close")
        with pytest.raises(
            urllib.error.HTTPError, match="404"
        ):  # and who sends it quickly is answered
            urllib.request.urlopen(f"{site.url}/nothing/", b"x" * 5_000_000, timeout=60)


HOLDS = """
import django, time
django.setup()
from django.db import connection, transaction
with transaction.atomic(), connection.cursor() as cursor:
    cursor.execute("SELECT pg_advisory_xact_lock(4711)")
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_worker_that_was_paused_in_a_transaction_lets_go_of_its_locks(service: Service) -> None:
    short = urlencode({"options": "-c idle_in_transaction_session_timeout=2s"}, quote_via=quote)
    address = service.environment("worker")["DATABASE_URL"]
    worker = service.beside(DATABASE_URL=f"{address}{'&' if '?' in address else '?'}{short}")
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS],
        stdout=subprocess.PIPE,
        cwd=settings.BASE_DIR,
        env=worker.environment("worker") | {"PYTHONPATH": f"{TESTS}:{settings.BASE_DIR}"},
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        os.kill(process.pid, signal.SIGSTOP)
        free = "SELECT pg_try_advisory_lock(4711)"
        wait_for(lambda: service.fetch(free)[0][0], "the lock to be free", patience=60)
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def other() -> Iterator[Any]:
    """A second connection to the test database."""
    database = connection.settings_dict
    where = {"host": database["HOST"], "port": database["PORT"], "user": database["USER"]}
    where |= {"dbname": database["NAME"], "password": database["PASSWORD"]}
    with closing(psycopg2.connect(**{key: value for key, value in where.items() if value})) as made:
        yield made


@pytest.fixture
def impatient(transactional_db: None) -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '200ms'")
    yield
    with connection.cursor() as cursor:
        cursor.execute("RESET lock_timeout")


def lock(other: Any, table: str) -> None:
    with other.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")


def test_a_page_that_waits_for_too_long_is_a_503_with_a_sentence(
    impatient: None, client: Client, other: Any, caplog: Any
) -> None:
    lock(other, "tracks_track")
    answer = client.get("/")
    assert answer.status_code == 503 and answer["Retry-After"] == "10"
    assert "This is taking too long" in answer.content.decode()
    assert "Traceback" not in caplog.text
    assert [record.levelname for record in caplog.records] == ["WARNING"], "it is one line"
    assert "503 GET /: canceling statement due to lock timeout" in caplog.text
    script = client.get("/", headers={"Accept": "application/json"})
    assert script.status_code == 503 and "Try again" in script.json()["error"]
    other.rollback()
    assert client.get("/").status_code == 200


def test_slow_readers_and_senders_leave_half_of_a_process_s_threads(
    db: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ANSWERS_REQUESTS = True
    monkeypatch.setattr("kbpo.web.bodies.WAIT", 0)
    length = LARGE - 1

    def send(request: HttpRequest) -> Any:
        headers = {"Content-Length": str(length)} if request.path == "/short/" else None
        return StreamingHttpResponse(iter([b"x"]), headers=headers)

    places, factory = PlacesMiddleware(send), RequestFactory()
    first, second = places(factory.get("/")), places(factory.get("/"))
    assert (first.status_code, second.status_code) == (200, 200)
    third = places(factory.get("/api/"))
    assert third.status_code == 503 and third.headers["Retry-After"] == "10"
    assert places(factory.get("/short/")).status_code == 200
    first.close()
    assert places(factory.get("/")).status_code == 200
    inside: list[int] = []

    def receive(request: HttpRequest) -> HttpResponse:
        inside.append(len(inside))
        if len(inside) < 3:
            return take(large) if len(inside) < 2 else HttpResponse(status=take(large).status_code)
        raise AssertionError("a third body was read")

    large = factory.post("/api/", b"x" * LARGE, content_type="text/plain")
    take = PlacesMiddleware(receive)
    assert take(large).status_code == 503 and inside == [0, 1]
    inside.clear()
    large = factory.post("/submit/", b"x", content_type="text/plain")
    assert take(large).status_code == 503 and inside == [0, 1], "a proxy hands it on as it comes"
    small = factory.post("/login/", b"x", content_type="text/plain")
    assert PlacesMiddleware(lambda _: HttpResponse())(small).status_code == 200


def test_a_wait_for_a_lock_is_no_attempt_of_a_row(toy: Any, impatient: None, other: Any) -> None:
    team, user = toy.teams["Patterns"], toy.users["Rosa"]
    row = Submission.objects.create(
        track=toy.track,
        team=team,
        user=user,
        name="Waits",
        status="received",
        file="uploads/waits",
        file_name="waits",
        file_size=1,
        file_digest="",
    )
    lock(other, "corpus_document")
    for _ in range(queue.MAX_ATTEMPTS + 3):
        Submission.objects.update(next_try_at="2020-01-01T00:00Z")
        assert queue.handle_rows(Submission, "received", reads_documents) == 0
    row.refresh_from_db()
    assert (row.status, row.attempts, row.reason) == ("received", 0, "")


def reads_documents(row: Submission) -> None:
    row.track.corpus.documents.count()
