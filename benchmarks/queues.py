"""Measures how long a label waits while large files are read and a large board is scored.

usage: python -m benchmarks.queues [--predictions 300000] [--relations 1000000] [--keep FOLDER]

Workers, with their clock, are started as docker-compose.yml says, on a database of their own. Two
teams upload as many relations each, and a board of five systems is scored again and again, without
the arrays that are kept of it, while forty people answer questions of another track, 3 s each.
Printed is the time from a question's last answer to its label until both files are planned. With a
folder to keep, the next run begins with what was prepared in it.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import tempfile
import threading
import time
from contextlib import nullcontext
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import yaml

from benchmarks import rescore_large, service  # isort: skip (sets Django up)
import processes
import redis_server
from django.conf import settings
from django.core.management import call_command
from django.db import connection, transaction
from django.utils import timezone

from kbpo import queue

PREPARED = "kbpo_queues"
WAITED = """
    SELECT extract(epoch FROM coalesce(l.created_at, now()) - sent.at)::float FROM (
        SELECT hq.question_id, max(a.submitted_at) AS at
        FROM annotation_hit h JOIN annotation_hit_questions hq ON hq.hit_id = h.id
        JOIN annotation_assignment a ON a.hit_id = h.id AND a.submitted_at IS NOT NULL
        GROUP BY h.id, hq.question_id HAVING count(*) = h.max_assignments
    ) AS sent LEFT JOIN instances_label l ON l.question = sent.question_id
    WHERE sent.at BETWEEN %s AND %s
"""


class Composed(service.Site):
    """The service with the workers of docker-compose.yml."""

    def _commands(self) -> dict[str, list[str]]:
        composed = yaml.safe_load((service.ROOT / "docker-compose.yml").read_text())["services"]
        commands = {"web": super()._commands()["web"]}
        for name, one in composed.items():
            if str(one.get("command", "")).startswith("celery "):
                commands[name] = [sys.executable, "-m", *shlex.split(one["command"])]
        commands["beat"] += ["-s", str(self.directory / "beat-schedule"), "--pidfile="]
        return commands


def prepare_site(folder: Path, predictions: int, relations: int) -> None:
    """Create a board, a track to which files can be uploaded, and open questions."""
    from annotation.models import Halt
    from benchmarks.files.large import write_large_file
    from kbpo.corpus.load import find_schema, load_corpus
    from kbpo.sampling.open_track import Money, create_track, open_track

    call_command("migrate", verbosity=0)
    board = rescore_large.prepare_track(folder / "board", predictions, 5, 0)
    Halt.objects.create(track=board, scope="all", why="People answer other questions here.")
    write_large_file(folder / "files", relations)
    schema = find_schema("tac_kbp")
    corpus = load_corpus("Files", folder / "files" / "corpus.jsonl", schema)
    money, half_width = Money(budget=Decimal(10**6)), Decimal("0.05")
    track = create_track(
        corpus, "Files", money=money, target_half_width=half_width, criterion="relation"
    )
    open_track(track)
    service.create_open_questions(20_000)


def measure_waits(site: Composed, folder: Path, relations: int) -> None:
    """Print how long labels waited."""
    from kbpo.accounts.models import Team, User
    from kbpo.evaluation.models import Rescoring
    from kbpo.submissions.models import Submission
    from kbpo.submissions.receive import store_submission
    from kbpo.tracks.models import Track

    site.start(*site._commands())
    crowd = service.make_annotators([f"slow {number}" for number in range(40)])
    over = threading.Event()

    def send_answer(number: int) -> None:
        for _ in service.answer_seconds(site, crowd[number], think=3.0):
            if over.is_set():
                return

    people = [threading.Thread(target=send_answer, args=(number,)) for number in range(len(crowd))]
    for one in people:
        one.start()
    time.sleep(20)
    began, scored = timezone.now(), 0
    track, path = Track.objects.get(slug="files"), folder / "files" / f"large_{relations}.kb.tsv"
    for name in ("first", "second"):
        user = User.objects.create_user(name)
        team = Team.objects.create(name=name, slug=name)
        with path.open("rb") as file:
            store_submission(track, team, user, file, name=name, file_name=path.name)
    board = Rescoring.objects.filter(track__slug="large")
    while Submission.objects.filter(track=track).exclude(status="planned").exists():
        assert timezone.now() - began < timedelta(hours=1)
        with transaction.atomic():  # while it is scored, its row is locked
            for row in board.exclude(state={}).select_for_update(skip_locked=True):
                scored += 1
                shutil.rmtree(site.directory / "arrays", ignore_errors=True)
                row.move("watching", state={})
        time.sleep(2)
    ended = timezone.now()
    over.set()
    for one in people:
        one.join()
    time.sleep(30)  # the last labels
    waited = sorted(seconds for (seconds,) in site.fetch(WAITED, began, ended))
    service.print_row(
        "from answer to label, beside files and scores",
        f"{service.p95(waited)}, {len(waited)} labels in {(ended - began).total_seconds():.0f} s,"
        f" of two files; {scored - 1} scorings",
        "p95 ≤ 5 s",
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--predictions", type=int, default=300_000)
    parser.add_argument("--relations", type=int, default=1_000_000)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    if redis_server.redis_program() is None:
        parser.error("There is no redis-server on the PATH, and the queues are in Redis.")
    queue.wake_step = lambda step: None  # of this process; those of the service come through
    queue._send_step_task = lambda step: None
    with tempfile.TemporaryDirectory() as made:
        folder = (options.keep or Path(made)).resolve()
        settings.MEDIA_ROOT, settings.ARRAYS_ROOT = folder / "media", folder / "arrays"
        port, where = processes.free_port(), connection.settings_dict
        of_service = {
            "TICK_SECONDS": "5",
            "DEBOUNCE_SECONDS": "5",
            "MEDIA_ROOT": str(folder / "media"),
        }
        broker = redis_server.Redis(Path(made) / "redis")
        broker.start()
        of_service |= {"SECRET_KEY": settings.SECRET_KEY, "REDIS_URL": broker.url()}
        site = Composed(Path(made), nullcontext, port, where, settings=of_service)
        with connection._nodb_cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", [PREPARED])
            if not (options.keep and cursor.fetchone()):
                cursor.execute(f"DROP DATABASE IF EXISTS {PREPARED} WITH (FORCE)")
                cursor.execute(f"CREATE DATABASE {PREPARED}")
                with processes.speaking_to(PREPARED):
                    prepare_site(folder, options.predictions, options.relations)
            cursor.execute(f"DROP DATABASE IF EXISTS {processes.DATABASE} WITH (FORCE)")
            cursor.execute(f"CREATE DATABASE {processes.DATABASE} TEMPLATE {PREPARED}")
        try:
            with site.speaking():
                settings.ALLOWED_HOSTS = ["*"]
                measure_waits(site, folder, options.relations)
        finally:
            site.stop()
            broker.stop()


if __name__ == "__main__":
    main()
