"""Measures the time of each phase of reading and storing an upload, and the peak memory.

usage: python -m benchmarks.ingest [RELATIONS ...] [--uploads 2] (default: 100000 1000000)

Each size runs in a process of its own and in a database of its own, on the server that the settings
name (our own one if none), on a generated TAC KBP file over a generated corpus. Each upload is
read, stored and planned, then confirmed and drawn, so that the next, another team's upload of the
same relations, finds its targets and instances there and is planned beside it. The floor is a bare
COPY of the rows of the first upload into empty tables with the same indexes: no loading through
these tables is faster. To it comes what reading and checking the file takes in Python.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil

Phases = dict[str, float]


def peak_memory() -> float:
    """Return the peak memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def database_seconds() -> float:
    """Return the processor seconds so far of the process that serves our connection, which must run
    on this machine.
    """
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        times = psutil.Process(cursor.fetchone()[0]).cpu_times()
    return float(times.user + times.system)


@contextmanager
def timed_statements(phases: Phases) -> Iterator[None]:
    """Add up the seconds of each statement of the store, by its purpose."""
    from django.db import connection

    names = {
        "CREATE TEMPORARY TABLE pairs": "find pairs",
        "INSERT INTO instances_target": "insert targets",
        "INSERT INTO instances_instance": "insert instances",
        "INSERT INTO submissions_prediction": "insert predictions",
        "UPDATE pairs": "find targets", "SELECT count(DISTINCT line)": "count",
    }  # fmt: skip

    def timed(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        start = time.perf_counter()
        try:
            return execute(sql, parameters, many, context)
        finally:
            words = " ".join(sql.split())
            found = next((name for begin, name in names.items() if begin in words), "other SQL")
            phases[found] += time.perf_counter() - start

    with connection.execute_wrapper(timed):
        yield


def ingest_file(path: Path, team: str) -> tuple[Phases, Any]:
    """Return the seconds of each phase of receiving and reading a file, and the submission."""
    from kbpo.accounts.models import Team, User
    from kbpo.corpus import sql
    from kbpo.submissions.ingest import tick
    from kbpo.submissions.receive import store_submission
    from kbpo.tracks.kbp import store
    from kbpo.tracks.models import Track

    phases: Phases = defaultdict(float)
    user, _ = User.objects.get_or_create(username=team)
    owner, _ = Team.objects.get_or_create(name=team, slug=team)
    start = time.perf_counter()
    with path.open("rb") as file:
        submission = store_submission(
            Track.objects.get(), owner, user, file, name=team, file_name=path.name
        )
    phases["receive"] = time.perf_counter() - start

    def count_copied_rows(*args: Any, **more: Any) -> int:
        begin = time.perf_counter()
        done = sql.copy_lines(*args, **more)
        phases["read and COPY"] += time.perf_counter() - begin
        return done

    start = time.perf_counter()
    with timed_statements(phases), patch.object(store, "copy_lines", count_copied_rows):
        assert tick() == 1
    phases["rest and commit"] = (
        time.perf_counter() - start - sum(phases.values()) + phases["receive"]
    )
    submission.refresh_from_db()
    assert submission.status == "read", submission.reason
    return phases, submission


def bare_copy_seconds() -> float:
    """Return the seconds of a bare COPY of the stored rows into equal tables."""
    from django.db import connection

    took = 0.0
    for table in ("instances_target", "instances_instance", "submissions_prediction"):
        with tempfile.TemporaryFile() as file, connection.cursor() as cursor:
            cursor.copy_expert(f"COPY (SELECT * FROM {table} ORDER BY id) TO STDOUT", file)
            file.seek(0)
            cursor.execute(f"CREATE TABLE bare (LIKE {table} INCLUDING ALL)")
            start = time.perf_counter()
            cursor.copy_expert("COPY bare FROM STDIN", file)
            took += time.perf_counter() - start
            cursor.execute("DROP TABLE bare")
    return took


def measure_uploads(relations: int, uploads: int) -> None:
    """Print the phases of some uploads of the same relations by other teams."""
    import django

    django.setup()
    from django.conf import settings
    from django.db import connection
    from django.test.utils import setup_databases, teardown_databases

    from kbpo import queue
    from kbpo.corpus.load import find_schema, load_corpus
    from kbpo.sampling import plan
    from kbpo.sampling.open_track import Money, create_track, open_track

    connection.settings_dict["TEST"]["NAME"] = f"ingest_{relations}"
    queue.wake_step = lambda step: None  # nobody is to take part in this
    databases = setup_databases(verbosity=0, interactive=False)
    try:
        with tempfile.TemporaryDirectory() as folder:
            settings.MEDIA_ROOT = Path(folder) / "media"
            command = [
                sys.executable,
                "-m",
                "benchmarks.files.large",
                folder,
                "--relations",
                str(relations),
            ]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            path = Path(folder) / f"large_{relations}.kb.tsv"
            start = time.perf_counter()
            corpus = load_corpus("Large", Path(folder) / "corpus.jsonl", find_schema("tac_kbp"))
            loaded = time.perf_counter() - start
            open_track(
                create_track(
                    corpus,
                    "Large",
                    money=Money(budget=Decimal(10**6)),
                    target_half_width=Decimal("0.05"),
                    criterion="relation",
                )
            )
            print(
                f"{relations:,} relations, {path.stat().st_size / 1e6:,.0f} MB,"
                f" {corpus.n_documents:,} documents"
            )
            print(
                f"  corpus loaded in {loaded:.1f} s; {peak_memory():.0f} MB before the first upload"
            )
            for number in range(1, uploads + 1):
                begun = time.process_time(), database_seconds()
                phases, submission = ingest_file(path, f"team {number}")
                read = time.process_time(), database_seconds()
                total = sum(phases.values())
                start = time.perf_counter()
                assert plan.tick() == 1
                submission.refresh_from_db()
                assert submission.status == "planned", submission.reason
                planned = time.perf_counter() - start
                done = time.process_time(), database_seconds()
                print(
                    f"  upload {number}: {total:.1f} s, {relations / total:,.0f} relations/s"
                    f" ({seconds_text(begun, read)}); planned after {planned:.1f} s more"
                    f" ({seconds_text(read, done)}), {total + planned:.1f} in all;"
                    f" peak {peak_memory():.0f} MB;"
                    f" {submission.counts['relations']:,} stored",
                    flush=True,
                )
                if number == 1:
                    print(f"    floor: {bare_copy_seconds():.1f} s for a bare COPY of its rows")
                confirm_and_sample(submission)
                for name, seconds in sorted(phases.items(), key=lambda one: -one[1]):
                    if seconds >= 0.05 and number in (1, 2, uploads):
                        print(f"    {name:<24}{seconds:>8.1f} s")
    finally:
        teardown_databases(databases, verbosity=0)


def seconds_text(begun: tuple[float, float], done: tuple[float, float]) -> str:
    """Return a text with the processor seconds in Python and in the database between two
    moments.
    """
    return f"processors {done[0] - begun[0]:.1f} s in Python, {done[1] - begun[1]:.1f} s in SQL"


def confirm_and_sample(submission: Any) -> None:
    """Draw the sample of a submission, so that the next submission is planned next to it."""
    from kbpo.sampling import draw
    from kbpo.sampling.confirm import confirm_plan

    confirm_plan(submission, submission.user)
    draw.tick()


def main() -> None:
    """Measure each size in a process of its own, since a peak of memory would hide later smaller
    ones.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbpo.settings")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("relations", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--uploads", type=int, default=2)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    for relations in options.relations:
        if options.one:
            measure_uploads(relations, options.uploads)
            continue
        command = [sys.executable, "-m", "benchmarks.ingest", "--one", str(relations)]
        subprocess.run([*command, "--uploads", str(options.uploads)], check=True)


if __name__ == "__main__":
    main()
