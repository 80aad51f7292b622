"""Measures the throughput of the deployed service: pages, answers, leases, the board, and its idle
load.

usage: python -m benchmarks.service [ROW ...] [--hits 22000] [--seconds 20]

ROW is empty, lease, answer, veteran, answers, people, idle, few, board, owner or (default) all.
`answers answers` measures the same twice: on a database that nobody has answered on yet, which no
statistics were made of, and on the one that this leaves; `people people` likewise. Only `empty` is
about a service that has no question yet; `answer` is what one answer takes of processors, in this
process and the database's: it compares on a busy machine, too. PostgreSQL and Redis are the
embedded ones, the site is gunicorn with the workers and threads of the Dockerfile, Celery ticks as
often as it does there; all in a database of its own. Questions are about two names, by the steps
that ask and publish; 500 are made so and copied until there are enough. People log in, take what is
next and send an answer as the page's script does: one request, which answers with the next page.
Every request has a connection of its own, as from a proxy that is set up as docs/operations.md
says. Client and server share the machine: what the client takes itself is told. Readers never
pause: p95 is what twenty wait for who ask for as much as there is. A core-second is one of the
site's and the database's processes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "test" / "annotation")]
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbpo.settings")

import django  # noqa: E402

django.setup()

import processes  # noqa: E402
import psutil  # noqa: E402
from annotation_world import ToyTrack, has_learned, make_submission, make_target  # noqa: E402
from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402

from benchmarks import rescore_large  # noqa: E402
from benchmarks.as_a_proxy import send_request  # noqa: E402

if TYPE_CHECKING:
    from annotation.models import Worker

ANSWER = {"a": "0-3", "b": "other", "holds": "per:schools_attended>"}
CSRF = "a" * 32
QUESTION = re.compile("/annotate/[0-9a-f]{32,}/")
MADE = 500
"""Questions that the pipeline creates; the others are copies"""


class Person(NamedTuple):
    """The session of an annotator who is logged in, and the primary key of the worker."""

    session: str
    worker: int


class Load(NamedTuple):
    """The requests of some people: seconds of each, and the total time."""

    times: list[float]
    seconds: float
    server: float
    """Seconds of the server's processors"""
    client: float

    @property
    def each(self) -> str:
        """Return the processor time of a request as a text."""
        server, client = (1000 * used / len(self.times) for used in (self.server, self.client))
        return f"{server:.1f} ms of the service and {client:.1f} of the client each"


def print_row(what: str, measured: str, goal: str) -> None:
    """Print a row."""
    print(f"{what:<46} {measured:<62} {goal}", flush=True)


class Site(processes.Service):
    """The deployed service that is measured."""

    def _commands(self) -> dict[str, list[str]]:
        commands = super()._commands()
        commands["web"][-4:] = ["--workers", "3", "--threads", "4"]
        return commands

    def processor_seconds(self) -> dict[str, float]:
        """Return the processor seconds of the site's, the worker's and the database's processes."""
        seconds = {}
        roots = {name: one.pid for name, one in self.running.items()}
        for name, pid in (roots | {"database": self.postmaster()}).items():
            root, seconds[name] = psutil.Process(pid), 0.0
            for process in [root, *root.children(recursive=True)]:
                try:
                    used = process.cpu_times()
                except psutil.NoSuchProcess:
                    continue
                seconds[name] += used.user + used.system + used.children_user + used.children_system
        return seconds

    def used(self) -> float:
        """Return the total processor seconds of these processes."""
        return sum(self.processor_seconds().values())

    def postmaster(self) -> int:
        """Return the process id of the database server."""
        [(folder,)] = self.fetch("SELECT current_setting('data_directory')")
        return int((Path(folder) / "postmaster.pid").read_text().split()[0])

    def ask(
        self, path: str, session: str = "", form: dict[str, str] | None = None, etag: str = ""
    ) -> tuple[int, bytes, str]:
        """Return status, body and ETag of a page, or of a form that is sent like the page's script
        does.
        """
        headers = {"Cookie": f"sessionid={session}; csrftoken={CSRF}", "X-CSRFToken": CSRF}
        headers |= {"Accept-Encoding": "gzip"} if form is None else {}
        headers |= {"If-None-Match": etag} if etag else {}
        body = None
        if form is not None:
            headers |= {
                "Accept": "application/json",
                "Content-Type": "application/x-www-form-urlencoded",
            }
            body = urlencode(form).encode()
        reply = send_request(self.port, "GET" if form is None else "POST", path, headers, body)
        return reply.status, reply.body, reply.header("ETag")

    def load(
        self,
        people: int,
        seconds: float,
        turn: Callable[[int], Iterator[float]],
        *,
        warm: float = 0.0,
    ) -> Load:
        """Return the load while each person takes turns for some seconds, or until nobody has a
        turn left; requests of the first few seconds are not counted.
        """
        times: list[float] = []
        failed: list[BaseException] = []
        end = time.monotonic() + warm + seconds

        def work(number: int) -> None:
            try:
                for taken in turn(number):
                    if time.monotonic() > end:
                        return
                    times.append(taken)
            except BaseException as problem:
                failed.append(problem)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(people)]
        for thread in threads:
            thread.start()
        time.sleep(warm)
        times.clear()
        server, client, began = self.used(), own_processor_seconds(), time.monotonic()
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        took = time.monotonic() - began
        load = Load(list(times), took, self.used() - server, own_processor_seconds() - client)
        for thread in threads:
            thread.join()
        if failed:
            raise failed[0]
        return load


def own_processor_seconds() -> float:
    """Return the processor seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def p95(times: list[float]) -> str:
    """Return the median and the 95th percentile of some times as a text."""
    ordered = sorted(times)
    middle, high = statistics.median(ordered), ordered[int(0.95 * (len(ordered) - 1))]
    return f"p50 {middle * 1000:.0f} ms, p95 {high * 1000:.0f} ms"


def create_open_questions(hits: int) -> None:
    """Open this many questions on our own pages, on a track that does not check times, so that
    nobody is excluded for answering faster than people do.
    """
    from annotation.hits import publish
    from annotation.models import HIT, Policy
    from annotation.questions import ask
    from kbpo import clock
    from kbpo.corpus.models import Corpus, Predicate
    from kbpo.evaluation.due import change_signs
    from kbpo.evaluation.models import Rescoring
    from kbpo.instances.models import Instance
    from kbpo.money.models import Price
    from kbpo.submissions.models import Prediction, Submission
    from kbpo.tracks.models import Track

    ask.kind_of = ToyTrack  # type: ignore[assignment]
    corpus = Corpus.objects.create(name="Toy news", slug="toy-news", schema={})
    Predicate.objects.create(corpus=corpus, name="per:schools_attended", position=0)
    track = Track.objects.create(corpus=corpus, name="Toy", slug="toy", status="open", design="iid")
    Price.objects.create(
        track=track, interface="relation", reward=Decimal("0.05"), fee_rate=Decimal("0.2")
    )
    Policy.objects.create(track=track, timed=False)
    # Nothing here was drawn with a chance, so that there is nothing to score.
    Rescoring.objects.create(
        track=track, status="watching", next_try_at=clock.now() + timedelta(days=1)
    )
    targets = [make_target(track, number, number / MADE) for number in range(MADE)]
    submission = make_submission(track, targets, money="100000")
    Prediction.objects.bulk_create(
        Prediction(
            submission=submission,
            instance=one,
            subject_canonical_begin=one.subject_begin,
            subject_canonical_end=one.subject_end,
            object_canonical_begin=one.object_begin,
            object_canonical_end=one.object_end,
        )
        for one in Instance.objects.all()
    )
    Submission.objects.filter(pk=submission.pk).update(sampled_at=clock.now())
    while ask.tick() + publish.tick():
        pass
    with connection.cursor() as cursor:
        for statement in COPIES:
            cursor.execute(statement, {"times": max(0, -(-hits // MADE) - 1)})
    # What has been scored once notes what it has seen; else every tick would ask whether it is all.
    Rescoring.objects.update(state={"signs": change_signs(track)})
    print(f"{HIT.objects.filter(status='open').count():,} HITs are open")


COPIES = (
    """
    CREATE TEMPORARY TABLE copies AS SELECT q.id AS question, q.target_id AS target,
        hq.hit_id AS hit,
        nextval(pg_get_serial_sequence('annotation_question', 'id')) AS question_2,
        nextval(pg_get_serial_sequence('instances_target', 'id')) AS target_2,
        nextval(pg_get_serial_sequence('annotation_hit', 'id')) AS hit_2
    FROM annotation_question q JOIN annotation_hit_questions hq ON hq.question_id = q.id,
        generate_series(1, %(times)s)
    """,
    """
    INSERT INTO instances_target SELECT (jsonb_populate_record(t, jsonb_build_object(
        'id', target_2, 'key', md5(target_2::text), 'u', random()))).*
    FROM copies JOIN instances_target t ON t.id = target
    """,
    """
    INSERT INTO annotation_question SELECT (jsonb_populate_record(q, jsonb_build_object(
        'id', question_2, 'target_id', target_2, 'order', random()))).*
    FROM copies JOIN annotation_question q ON q.id = question
    """,
    """
    INSERT INTO annotation_hit SELECT (jsonb_populate_record(h, jsonb_build_object(
        'id', hit_2, 'token', md5(hit_2::text), 'order', random()))).*
    FROM copies JOIN annotation_hit h ON h.id = hit
    """,
    """
    INSERT INTO annotation_hit_questions (hit_id, question_id)
    SELECT hit_2, question_2 FROM copies
    """,
)

VETERAN = (
    """
    CREATE TEMPORARY TABLE old AS SELECT q.id AS question, q.target_id AS target, hq.hit_id AS hit,
        nextval(pg_get_serial_sequence('annotation_question', 'id')) AS question_2,
        nextval(pg_get_serial_sequence('instances_target', 'id')) AS target_2,
        nextval(pg_get_serial_sequence('annotation_hit', 'id')) AS hit_2
    FROM annotation_question q JOIN annotation_hit_questions hq ON hq.question_id = q.id
    ORDER BY q.id LIMIT %(answers)s
    """,
    """
    INSERT INTO instances_target SELECT (jsonb_populate_record(t, jsonb_build_object(
        'id', target_2, 'key', md5(target_2::text), 'u', random()))).*
    FROM old JOIN instances_target t ON t.id = target
    """,
    """
    INSERT INTO annotation_question SELECT (jsonb_populate_record(q, jsonb_build_object(
        'id', question_2, 'target_id', target_2, 'status', 'settled'))).*
    FROM old JOIN annotation_question q ON q.id = question
    """,
    """
    INSERT INTO annotation_hit SELECT (jsonb_populate_record(h, jsonb_build_object(
        'id', hit_2, 'token', md5(hit_2::text), 'status', 'closed'))).*
    FROM old JOIN annotation_hit h ON h.id = hit
    """,
    "INSERT INTO annotation_hit_questions (hit_id, question_id) SELECT hit_2, question_2 FROM old",
    """
    INSERT INTO annotation_assignment SELECT (jsonb_populate_record(a, jsonb_build_object(
        'id', nextval(pg_get_serial_sequence('annotation_assignment', 'id')), 'hit_id', hit_2,
        'token', md5(hit_2 || 'a'), 'status', 'approved', 'raw', '{}'::jsonb,
        'submitted_at', a.accepted_at - random() * interval '100 days'))).*
    FROM old, annotation_assignment a WHERE a.id = %(like)s
    """,
    "ANALYZE",
)


def log_in(user: Any) -> str:
    """Return the session of a user who is logged in."""
    client = Client()
    client.force_login(user)
    return str(client.cookies["sessionid"].value)


def make_annotators(names: list[str]) -> list[Person]:
    """Return annotators who have agreed to the terms, passed the tutorials, and logged in."""
    from annotation.workers.worker import worker_of_user
    from kbpo.accounts.models import User

    found = []
    for name in names:
        user = User.objects.create_user(name, is_annotator=True)
        worker = worker_of_user(user)
        has_learned(worker)
        found.append(Person(log_in(user), worker.pk))
    return found


def worker_numbered(pk: int) -> Worker:
    """Return the worker with this primary key."""
    from annotation.models import Worker

    return Worker.objects.get(pk=pk)


def measure_lease(site: Site, hits: int) -> None:
    """Print the time of finding the next question, for people without a team and for members of a
    team without a run.
    """
    from annotation.hits import lease as leases
    from kbpo.accounts.models import Team

    for who in ("without a team", "of a team"):
        names = [f"leaser {who} {number}" for number in range(60)]
        workers = [worker_numbered(person.worker) for person in make_annotators(names)]
        if who == "of a team":
            Team.objects.create(name="Others", slug="others").members.add(
                *[worker.user_id for worker in workers]
            )
        for worker in workers[:10]:  # the statements are planned
            leases.lease_next(worker)
        times, workers = [], workers[10:]
        database, python = site.processor_seconds()["database"], time.process_time()
        for worker in workers:
            began = time.perf_counter()
            with CaptureQueriesContext(connection) as queries:
                assert leases.lease_next(worker) is not None
            times.append(time.perf_counter() - began)
        python = (time.process_time() - python) / len(workers)
        database = (site.processor_seconds()["database"] - database) / len(workers)
        print_row(
            f"lease with {hits:,} open HITs, {who}",
            f"{p95(times)}, {len(queries)} statements; processors: {1000 * python:.1f} ms of"
            f" Python, {1000 * database:.1f} ms of the database",
            "≤ 4 ms",
        )


def measure_answer(site: Site, n: int = 150) -> None:
    """Print the processor time of an answer, including the page of the next question."""
    person = make_annotators(["alone"])[0]
    client = Client(HTTP_HOST="127.0.0.1")
    client.cookies["sessionid"] = person.session
    address = client.get("/annotate/next/").headers["Location"]

    def send() -> None:
        nonlocal address
        reply = client.post(address, ANSWER, headers={"Accept": "application/json"})
        assert reply.status_code == 200, reply.content[:300]
        address = reply.json()["next"]

    for _ in range(10):
        send()
    with CaptureQueriesContext(connection) as queries:
        send()
    statements = len(queries)  # the next request begins a list of its own
    database, began = site.processor_seconds()["database"], time.process_time()
    for _ in range(n):
        send()
    python = (time.process_time() - began) / n
    database = (site.processor_seconds()["database"] - database) / n
    print_row(
        "an answer, one person",
        f"{1000 * python:.1f} ms of Python, {1000 * database:.1f} ms of the database,"
        f" {statements} statements",
        "16 ms",
    )


def follow_to_next_question(site: Site, person: Person) -> tuple[int, str]:
    """Return the status and the address of the redirect to a person's next question."""
    cookie = {"Cookie": f"sessionid={person.session}"}
    reply = send_request(site.port, "GET", "/annotate/next/", cookie)
    return reply.status, reply.header("Location")


def answer_seconds(site: Site, person: Person, think: float = 0.0) -> Iterator[float]:
    """Yield the seconds of each answer that a person sends, until no question is left."""
    _, address = follow_to_next_question(site, person)
    if think:
        time.sleep(think * (hash(person.session) % 100) / 100)
    while QUESTION.fullmatch(address):
        if think:
            time.sleep(think)
        began = time.perf_counter()
        status, body, _ = site.ask(address, person.session, ANSWER)
        assert status == 200, (status, body[:300])
        yield time.perf_counter() - began
        address = json.loads(body)["next"]


def count_doubled_answers(site: Site) -> int:
    """Return how many questions have more answers than places, or two answers of one person."""
    [(n,)] = site.fetch(
        "SELECT count(*) FROM (SELECT h.id FROM annotation_hit h JOIN annotation_assignment a"
        " ON a.hit_id = h.id WHERE a.status NOT IN ('returned', 'rejected', 'failed') GROUP BY h.id"
        " HAVING count(*) > h.max_assignments OR count(*) > count(DISTINCT a.worker_id)) found"
    )
    return int(n)


def measure_fast_people(site: Site, seconds: float, again: int) -> None:
    """Print the throughput of forty people who never pause."""
    crowd = make_annotators([f"quick{again} {number}" for number in range(40)])
    load = site.load(40, seconds, lambda number: answer_seconds(site, crowd[number]))
    n = len(load.times)
    print_row(
        "answers a second, 40 people, think time 0",
        f"{n / load.seconds:.0f} a second, {n / load.server:.0f} a core-second, {p95(load.times)};"
        f" client {load.client / load.seconds:.2f} cores; doubled {count_doubled_answers(site)}",
        "≥ 100, ≥ 60 a core-second",
    )


def measure_slow_people(site: Site, seconds: float, again: int) -> None:
    """Print the waiting times of two hundred people who think for three seconds."""
    crowd = make_annotators([f"slow{again} {number}" for number in range(200)])
    load = site.load(
        200, seconds, lambda number: answer_seconds(site, crowd[number], think=3.0), warm=10
    )
    n = len(load.times)
    print_row(
        "200 people at 3 s think time",
        f"{n / load.seconds:.0f} a second, {p95(load.times)}; {load.each};"
        f" doubled {count_doubled_answers(site)}",
        "66 of 66, p95 ≤ 250 ms",
    )


def measure_refusals(site: Site, n: int = 40) -> None:
    """Print how many requests were refused as too many at once, while as many people who never
    pause share the last questions.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE annotation_hit SET status = 'closed' WHERE status = 'open' AND id NOT IN"
            " (SELECT id FROM annotation_hit WHERE status = 'open' ORDER BY id LIMIT %s)",
            [n],
        )
    crowd, told_of = make_annotators([f"last{number}" for number in range(n)]), Counter[int]()

    def turn(number: int) -> Iterator[float]:
        person, address = crowd[number], ""
        for _ in range(15):
            began = time.perf_counter()
            if QUESTION.fullmatch(address):
                status, body, _ = site.ask(address, person.session, ANSWER)
                address = json.loads(body)["next"] if status == 200 else ""
            else:
                status, address = follow_to_next_question(site, person)
            told_of[status] += 1
            yield time.perf_counter() - began

    load = site.load(n, 600, turn)
    print_row(
        f"{n} people share the last {n} questions",
        f"{told_of[503]} of {sum(told_of.values())} requests answered 503; {p95(load.times)}",
        "0",
    )


def measure_veteran(site: Site, n: int) -> None:
    """Print the time of the page for a person with many answers, and for one with none."""
    from annotation.hits import lease as leases
    from annotation.models import Assignment

    newcomer, old = make_annotators(["newcomer", "veteran"])
    first = leases.lease_next(worker_numbered(old.worker))
    assert first is not None
    with connection.cursor() as cursor:
        for statement in VETERAN:
            cursor.execute(statement, {"answers": n, "like": first.pk})
    had = Assignment.objects.filter(worker=old.worker).count()

    def times(person: Person) -> list[float]:
        turn = answer_seconds(site, person)
        return [taken for _, taken in zip(range(40), turn, strict=False)][5:]

    print_row(
        f"question page of a worker with {had:,} answers",
        f"{p95(times(old))}; with none {p95(times(newcomer))}",
        "as with none",
    )


def make_scored_track(site: Site, folder: Path) -> tuple[str, int, str]:
    """Return the slug of a track with ten scored systems, one of them, and its owner's session."""
    import subprocess

    from django.db import transaction

    from kbpo import queue
    from kbpo.corpus.load import find_schema, load_corpus
    from kbpo.evaluation.due import finished_submissions
    from kbpo.evaluation.run import score_track
    from kbpo.sampling import draw
    from kbpo.sampling.open_track import Money, create_track, open_track

    queue._send_step_task = lambda step: None  # type: ignore[assignment]
    command = [sys.executable, "-m", "benchmarks.files.large", str(folder)]
    subprocess.run([*command, "--relations", "6000"], check=True, stdout=subprocess.DEVNULL)
    corpus = load_corpus("Large", folder / "corpus.jsonl", find_schema("tac_kbp"))
    money = Money(budget=Decimal(10**6))
    width = Decimal("0.1")
    track = open_track(
        create_track(corpus, "Large", money=money, target_half_width=width, criterion="relation")
    )
    for path in rescore_large.system_files(folder / "large_6000.kb.tsv", folder, 10, 3000):
        row = rescore_large.take_in_system(track, path)
        for _ in range(12):
            draw.tick()
            rescore_large.answer_drawn_targets(track)
            with transaction.atomic():
                score_track(track, finished_submissions(track))
            row.refresh_from_db()
            if row.status == "scored":
                break
    row.team.members.add(row.user)
    row.user.is_researcher = True
    row.user.save()
    return track.slug, row.pk, log_in(row.user)


def reading_seconds(
    site: Site, path: str, session: str, again: bool, number: int
) -> Iterator[float]:
    """Yield the seconds of each request of a page, with the last ETag if `again`."""
    etag = ""
    while True:
        began = time.perf_counter()
        status, body, found = site.ask(path, session, etag=etag)
        assert status in (200, 304), (status, body[:300])
        etag = found if again else ""
        yield time.perf_counter() - began


def measure_pages(site: Site, real: tuple[str, int, str], which: list[str], seconds: float) -> None:
    """Print the times of the board and of an owner's page under twenty readers."""
    slug, pk, session = real
    pages = {
        "board": (f"/tracks/{slug}/", "", "p95 ≤ 20 ms"),
        "owner": (f"/submissions/{pk}/", session, "≤ 12 statements, p95 ≤ 200 ms"),
    }
    for name in which:
        path, login, goal = pages[name]
        client = Client(HTTP_HOST="127.0.0.1")
        client.cookies["sessionid"] = login
        client.get(path)
        with CaptureQueriesContext(connection) as queries:
            assert client.get(path).status_code == 200
        alone = site.load(1, 3, partial(reading_seconds, site, path, login, False))
        for again in (False, True):
            load = site.load(20, seconds, partial(reading_seconds, site, path, login, again))
            how = "who have seen it" if again else "as for the first time"
            print_row(
                f"{name}: 20 readers, {how}",
                f"{p95(load.times)}, {len(load.times) / load.seconds:.0f} a second; alone"
                f" {p95(alone.times)}, {len(queries)} statements; {load.each}",
                goal,
            )


def measure_idle(site: Site, seconds: float, of: str = "submissions judging") -> None:
    """Print the load while nothing happens: half a minute after the last change, when checks for
    due work are still frequent, and two minutes later, when they are rare.
    """
    for wait, when in ((30, "half a minute after a change"), (120, "minutes after it")):
        time.sleep(wait)
        before, began = site.processor_seconds(), time.monotonic()
        time.sleep(seconds)
        took, after = time.monotonic() - began, site.processor_seconds()
        shares = {name: (after[name] - before[name]) / took for name in after}
        parts = ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
        print_row(f"idle, {of}, {when}", f"{sum(shares.values()):.1%} of a core: {parts}", "≤ 1 %")


def make_database() -> None:
    """Create an empty database for the measured service."""
    with connection._nodb_cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {processes.DATABASE} WITH (FORCE)")
        cursor.execute(f"CREATE DATABASE {processes.DATABASE}")


def measure_all(site: Site, folder: Path, rows: list[str], hits: int, seconds: float) -> None:
    """Measure everything and print the rows."""
    settings.MEDIA_ROOT, settings.ARRAYS_ROOT = folder / "media", folder / "arrays"
    with site.speaking():
        settings.ALLOWED_HOSTS = ["*"]
        if "empty" in rows:
            site.start("web", "worker")
            measure_idle(site, 60, "nothing there yet")
            site.stop()
        if rows == ["empty"]:
            return
        create_open_questions(hits)
        # The site's processes start with what there is; nothing is measured while it is made.
        site.start("web", "worker")
        time.sleep(10)
        if "lease" in rows:
            measure_lease(site, hits)
        if "answer" in rows:
            measure_answer(site)
        if "veteran" in rows:
            measure_veteran(site, 20_000)
        for time_of in range(rows.count("answers")):
            measure_fast_people(site, seconds, time_of)
        for time_of in range(rows.count("people")):
            measure_slow_people(site, 2 * seconds, time_of)
        if "idle" in rows:
            measure_idle(site, 60)
        if "few" in rows:
            measure_refusals(site)
        if pages := [name for name in ("board", "owner") if name in rows]:
            # Last: people are asked about other relations there, which nobody here could answer.
            site.stop()
            real = make_scored_track(site, folder)
            site.start("web", "worker")
            time.sleep(10)
            measure_pages(site, real, pages, seconds / 2)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = [
        "empty",
        "lease",
        "answer",
        "veteran",
        "answers",
        "people",
        "idle",
        "few",
        "board",
        "owner",
    ]
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--hits", type=int, default=22_000)
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is stopped
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        make_database()
        site = Site(
            folder,
            nullcontext,
            processes.free_port(),
            connection.settings_dict,
            settings={
                "TICK_SECONDS": "5",
                "DEBOUNCE_SECONDS": "30",
                "SECRET_KEY": settings.SECRET_KEY,
            },
        )
        try:
            with site.speaking():
                call_command("migrate", verbosity=0)
            measure_all(site, folder, options.rows or every, options.hits, options.seconds)
        finally:
            site.stop()


if __name__ == "__main__":
    main()
