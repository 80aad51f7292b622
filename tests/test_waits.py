"""Nobody waits for ever: a process that was paused stops neither the site nor the pipeline."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from decimal import Decimal
from http.cookiejar import CookieJar
from typing import Any
from urllib.parse import urlencode

import psycopg2
import pytest
from django.conf import settings
from django.db import IntegrityError, OperationalError, connection, transaction
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import Client, RequestFactory
from processes import TESTS, Service, wait_for
from psycopg2.errors import LockNotAvailable

from kbpo import clock, environment, queue
from kbpo.accounts.models import Team, Token, User
from kbpo.corpus.models import Corpus
from kbpo.money.models import Budget, Ledger, Price
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.web.errors import busy
from kbpo.web.patience import PatienceMiddleware, waits
from kbpo.web.places import LARGE, PlacesMiddleware
from kbpo.web.sessions import KEPT

PLAN = {"chosen": "0.050", "options": {"0.050": {"at_most": "1.00", "new": 20, "draws": 20}}}


@pytest.fixture
def planned(service: Service) -> tuple[int, str]:
    """The number of a submission that waits to be confirmed, and a token of its owner."""
    with service.speaking():
        corpus = Corpus.objects.create(name="Waits", slug="waits", schema={}, n_documents=0)
        track = Track.objects.create(corpus=corpus, name="Waits", slug="waits", status="open")
        Price.objects.create(track=track, interface="relation", reward=Decimal("0.05"))
        Budget.objects.create(track=track, scope="track", cap=Decimal("500.00"))
        team = Team.objects.create(name="Waits", slug="waits")
        user = User.objects.create(username="waits", is_researcher=True)
        team.members.add(user)
        row = Submission.objects.create(
            track=track,
            team=team,
            user=user,
            name="Waits",
            status="planned",
            plan=PLAN,
            file="uploads/waits",
            file_name="waits",
            file_size=1,
            file_digest="",
        )
        return row.pk, Token.issue(user, "waits")[1]


@pytest.fixture
def site(service: Service) -> Iterator[Service]:
    """Another web server of the service, where two of a process wait 20 s for a lock, others 2."""
    beside = service.beside(DATABASE_LOCK_SECONDS="20", DATABASE_STATEMENT_SECONDS="60")
    beside.start("web")
    yield beside
    beside.stop()


def confirm(site: Service, pk: int, token: str) -> tuple[int, dict[str, Any], str | None]:
    """The status, the answer and the header that says when to come again."""
    request = urllib.request.Request(
        f"{site.url}/api/submissions/{pk}/confirm/",
        b"{}",
        {"Authorization": f"Token {token}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, json.load(answer), None
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.load(refusal), refusal.headers["Retry-After"]


def logged_in(service: Service, site: Service) -> urllib.request.OpenerDirector:
    """A browser in which an annotator has logged in."""
    said = {"username": "judge", "password": "plenty of letters"}
    with service.speaking():
        User.objects.create_user(**said, is_annotator=True)
    cookies = CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(cookies))
    browser.open(f"{site.url}/login/", timeout=120).close()
    (token,) = [cookie.value or "" for cookie in cookies if cookie.name == "csrftoken"]
    form = urlencode(said | {"csrfmiddlewaretoken": token}).encode()
    browser.open(f"{site.url}/login/", form, timeout=120).close()
    return browser


WAITING = """
    SELECT query_start, pid FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' ORDER BY query_start
"""


@pytest.mark.journey
def test_pages_are_answered_while_ten_confirmations_wait_behind_a_paused_process(
    service: Service, site: Service, planned: tuple[int, str]
) -> None:
    pk, token = planned
    browser = logged_in(service, site)
    with closing(service.connect()) as paused, ThreadPoolExecutor(10) as people:
        with paused.cursor() as cursor:
            cursor.execute("SELECT 1 FROM tracks_track WHERE slug = 'waits' FOR UPDATE")
        answers = [people.submit(confirm, site, pk, token) for _ in range(10)]
        wait_for(
            lambda: len(service.fetch(WAITING)) >= 8 or any(one.done() for one in answers),
            "every thread to wait, or somebody to be told",
        )
        first = set(service.fetch(WAITING))
        for address in ("/", "/tracks/waits/", "/annotate/"):
            with browser.open(f"{site.url}{address}", timeout=120) as page:
                assert (page.status, page.url) == (200, f"{site.url}{address}")
        assert len(first & set(service.fetch(WAITING))) >= 2, "the pages came after the wait"
        wait_for(lambda: any(one.done() for one in answers), "somebody to be told")
        paused.rollback()
        told = [answer.result() for answer in answers]
    assert {status for status, _, _ in told} == {200, 503}
    refused = [(body, after) for status, body, after in told if status == 503]
    assert all(body["error"] == "busy" and "Try again" in body["detail"] for body, _ in refused)
    assert {after for _, after in refused} == {"10"}
    with service.speaking():
        assert Ledger.objects.filter(track__slug="waits").count() == 1
        assert Submission.objects.get(pk=pk).confirmed_at


@pytest.mark.journey
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


@pytest.mark.journey
def test_a_worker_that_was_paused_in_a_transaction_lets_go_of_its_locks(service: Service) -> None:
    worker = service.beside(DATABASE_IDLE_SECONDS="2")
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


@pytest.mark.parametrize(
    ("table", "address"),
    [
        ("money_ledger", "/desk/money/ledger.csv"),
        ("accounts_audit", "/desk/log.csv"),
        ("annotation_assignment", "/desk/tracks/toy/answers.csv"),
        ("annotation_assignment", "/desk/tracks/toy/answers.jsonl"),
        ("submissions_problem", "/submissions/1/problems.tsv"),
        ("corpus_document", "/api/tracks/toy/documents/"),
    ],
)
def test_a_file_that_waits_for_too_long_is_a_503_as_well(
    impatient: None, client: Client, toy: Any, other: Any, caplog: Any, table: str, address: str
) -> None:
    """It has not begun by then: else half of it would be sent, as if it were all."""
    run = Submission.objects.create(
        track=toy.track,
        team=toy.teams["Patterns"],
        user=toy.users["Rosa"],
        name="Waits",
        file="uploads/waits",
        file_name="waits",
        file_size=1,
        file_digest="",
    )
    address = address.replace("toy", toy.track.slug).replace("/1/", f"/{run.pk}/")
    client.force_login(toy.users["Rosa" if "submissions" in address else "Admin"])
    client.raise_request_exception = False
    lock(other, table)
    answer = client.get(address)
    assert (answer.status_code, answer.headers.get("Retry-After")) == (503, "10")
    assert [record.name for record in caplog.records] == ["kbpo.web.errors"], "one line"
    assert "canceling statement due to lock timeout" in caplog.text
    other.rollback()
    assert client.get(address).status_code == 200


def limit() -> str:
    """How long this session waits for a lock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('lock_timeout')")
        return str(cursor.fetchone()[0])


def test_another_patience_ends_with_the_transaction(transactional_db: None) -> None:
    kept = limit()
    with waits(Decimal("0.5")):
        with transaction.atomic():
            Team.objects.bulk_create([Team(name=name, slug=name) for name in "ab"])
            with transaction.atomic():
                assert Team.objects.filter(slug="a").update(name="A") == 1
            assert [team.name for team in Team.objects.order_by("slug").iterator()] == ["A", "b"]
            assert not KEPT.first(key="none", now=clock.now())
            assert limit() == "500ms"
        assert Team.objects.filter(slug="b").delete()[0] == 1
    assert limit() == kept != "500ms"


def test_what_is_refused_in_a_part_of_a_transaction_leaves_the_rest_whole(db: None) -> None:
    with waits(Decimal("0.5")), transaction.atomic():
        Team.objects.create(name="a", slug="a")
        assert Team.objects.get_or_create(slug="a", defaults={"name": "b"})[1] is False
        with pytest.raises(IntegrityError), transaction.atomic():
            Team.objects.create(name="A", slug="a")
        assert Team.objects.count() == 1


def test_two_that_send_wait_long_others_and_readers_soon_give_up_and_sooner_once_one_has(
    db: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ANSWERS_REQUESTS = True
    settings.LOCK_SECONDS, settings.SHORT_LOCK_SECONDS = Decimal(5), Decimal("0.5")
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    session = limit()
    found = []

    def page(request: HttpRequest) -> HttpResponse:
        with transaction.atomic():
            found.append(limit())
            transaction.set_rollback(True)  # what was set for this page alone
        if request.path == "/busy/":
            late = OperationalError("lock timeout")
            late.__cause__ = LockNotAvailable()
            return busy(request, late)
        return HttpResponse(status=503 if request.path == "/full/" else 200)

    def ask(method: str, path: str = "/") -> str:
        patience(RequestFactory().generic(method, path))
        return found[-1]

    patience = PatienceMiddleware(page)
    assert (ask("POST"), ask("POST"), ask("GET")) == ("5s", "5s", session)
    with patience.places:
        assert ask("POST") == "5s"
        with patience.places:
            assert ask("POST") == session
    assert (ask("POST", "/full/"), ask("GET")) == ("5s", session), "nobody waited for a lock there"
    assert (ask("GET", "/busy/"), ask("GET"), ask("POST")) == (session, "50ms", "5s")
    now += 4
    assert ask("GET", "/busy/") == "50ms"
    now += 1
    assert ask("GET") == session, "what gave up in a hurry prolonged it"
    assert (ask("POST", "/busy/"), ask("HEAD")) == ("5s", "50ms")
    with patience.places, patience.places:
        assert ask("POST") == "50ms"


def test_slow_readers_and_senders_leave_half_of_a_process_s_threads(
    db: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ANSWERS_REQUESTS = True
    monkeypatch.setattr("kbpo.web.places.WAIT", 0)
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


def test_a_session_of_the_site_waits_a_tenth_of_what_is_set() -> None:
    asked = "from kbpo import settings; print(settings.DATABASES['default']['OPTIONS']['options'])"
    told = subprocess.run(
        [sys.executable, "-c", asked],
        env=os.environ | {"KBPO_ANSWERS_REQUESTS": "true", "DATABASE_LOCK_SECONDS": "7"},
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "-c lock_timeout=700ms" in told.stdout


def test_who_is_logged_in_is_not_asked_for_a_page_that_says_so(
    impatient: None, client: Client, make_user: Any, other: Any
) -> None:
    client.force_login(make_user("waiting"))
    lock(other, "accounts_user")
    client.raise_request_exception = False
    assert client.get("/account/").status_code == 503
    assert client.get("/no/such/page/").status_code == 503


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
        assert queue.work(Submission, "received", reads_documents) == 0
    row.refresh_from_db()
    assert (row.status, row.attempts, row.reason) == ("received", 0, "")


def reads_documents(row: Submission) -> None:
    row.track.corpus.documents.count()


def test_two_that_wait_for_each_other_are_told_apart_from_a_bug() -> None:
    error = OperationalError("deadlock detected")
    assert not queue.waited_too_long(error)
    error.__cause__ = psycopg2.errors.DeadlockDetected()
    assert queue.waited_too_long(error)


def test_a_host_that_has_gone_is_noticed_within_a_minute() -> None:
    asked = settings.DATABASES["default"]["OPTIONS"]
    quiet, every, times = (
        int(asked[f"keepalives_{name}"]) for name in ("idle", "interval", "count")
    )
    assert quiet + every * times <= 60
    assert int(asked["tcp_user_timeout"]) <= 60_000 and int(asked["connect_timeout"]) <= 60
    told = environment.patience(
        lock=Decimal(1), statement=Decimal(0), idle=Decimal(1), options={"keepalives_idle": "5"}
    )
    assert told["keepalives_idle"] == "5", "what the address says goes first"


@pytest.mark.soak
def test_the_limits_hold_in_every_session_and_can_be_set_in_the_address(db: None) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('idle_in_transaction_session_timeout')")
        assert cursor.fetchone()[0] == "15min"
        cursor.execute("SELECT current_setting('lock_timeout')")
        assert cursor.fetchone()[0] == "1min"


@pytest.mark.soak
def test_they_hold_behind_a_pooler_that_drops_what_is_asked_for_at_the_opening(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PgBouncer does so with `ignore_startup_parameters = options`, and refuses us without."""
    other = connection.copy()
    dropped = other.get_connection_params()
    dropped.pop("options")
    monkeypatch.setattr(other, "get_connection_params", lambda: dropped)
    try:
        with other.cursor() as cursor:
            cursor.execute(
                "SELECT current_setting('idle_in_transaction_session_timeout'),"
                " current_setting('lock_timeout')"
            )
            assert cursor.fetchone() == ("15min", "1min")
    finally:
        other.close()
