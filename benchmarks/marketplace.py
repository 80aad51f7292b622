"""A thousand HITs on the local marketplace, over HTTP with boto3: published, done by simulated
workers, paid, disposed.

    .venv/bin/python benchmarks/marketplace.py [HITS]

Runs the real service on a database of its own (the servers under var/) and prints what it does a
second.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "annotation")]
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbpo.settings")
os.environ |= {
    "LOG_LEVEL": "ERROR",
    "DATABASE_CONNECTION_AGE": "0",
}  # the site has a thread a request

import django  # noqa: E402

django.setup()

from django.conf import settings  # noqa: E402
from django.db import connection  # noqa: E402
from django.test.utils import get_runner, override_settings  # noqa: E402

WORKERS, ACCURACY = 6, 0.95
"""Some answers are wrong, so that one cannot be taken for another unseen"""


def timed(what: str, done: Callable[[], int]) -> None:
    """Runs a part and prints how many it did, and how many a second."""
    begin = time.monotonic()
    n = done()
    seconds = time.monotonic() - begin
    print(f"{what:<34} {n:>6} in {seconds:6.1f} s = {n / max(seconds, 0.001):7.1f} a second")


def main(hits: int) -> None:
    """The table."""
    from wsgiref.simple_server import make_server

    from annotation_world import make_submission, make_target
    from mturk_world import Turk, check_answers, check_books, collect_and_reconcile, rounds

    from annotation.hits import publish
    from annotation.labels import settle
    from annotation.marketplace import pay_out
    from annotation.models import HIT, Assignment, Payment
    from annotation.questions import ask
    from kbpo.wsgi import application
    from rehearsal.marketplace.server import Quiet, Threads, serving

    track = toy_track()
    site = make_server("127.0.0.1", 0, application, server_class=Threads, handler_class=Quiet)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    with (
        tempfile.TemporaryDirectory() as directory,
        serving(Path(directory) / "books.sqlite3") as (url, store),
    ):
        how = {
            "MTURK_ENDPOINT_URL": url,
            "MTURK_WORKER_SITES": [url],
            "MTURK_POLL_SECONDS": 0,
            "MTURK_TIMEOUT": 20,
            "MTURK_ACCESS_KEY_ID": "x",
            "MTURK_SECRET_ACCESS_KEY": "x",
            "SITE_URL": f"http://127.0.0.1:{site.server_port}",
        }
        with override_settings(**how):
            turk = Turk(url, store)
            targets = [
                make_target(track, number, (number - 0.5) / hits) for number in range(1, hits + 1)
            ]
            make_submission(track, targets, money="100000")
            ask.tick()
            timed("HITs put up", publish.tick)
            timed("answers by simulated workers", lambda: work(turk, how["SITE_URL"]))
            timed("answers collected", collect_and_reconcile)
            timed("answers read, labels, money owed", settle.tick)
            timed("answers paid", pay_out_all(pay_out.tick))
            timed(
                "rounds until all is disposed",
                lambda: (rounds(20), HIT.objects.filter(status="disposed").count())[1],
            )
            check_books(turk)
            agree()
            labels = check_answers(turk)
            print(
                f"Each of {labels} labels has the answers that are in the books there: people and"
                " what they said"
            )
    site.shutdown()
    print(
        f"HITs {HIT.objects.counts()}, assignments {Assignment.objects.counts()}, payments"
        f" {Payment.objects.counts()}"
    )


def agree() -> None:
    """Ends with what disagrees, if anything does: our books with each other, the balance there,
    labels, payments.
    """
    from annotation.budget.check_books import check_books
    from annotation.marketplace import books
    from annotation.models import Payment, Question
    from kbpo.instances.models import Label

    held = books.holdings("mturk")
    wrong = [one.sentence for one in check_books()] + held.row.differences
    if held.difference:
        wrong.append(f"The balance there is ${held.difference} off.")
    labels = (
        Label.objects.filter(origin__startswith="question:", target__kind="pair")
        .values("target")
        .distinct()
        .count()
    )
    if labels != Question.objects.filter(status="settled").count():
        wrong.append(f"{labels} targets have labels.")
    if wrong:
        raise SystemExit("\n".join(wrong))
    paid = Payment.objects.filter(status="paid").count()
    print(f"All books agree: {labels} labels, {paid} payments, ${held.paid} there with fees")


def pay_out_all(tick: Callable[[], int]) -> Callable[[], int]:
    """All payments, batch by batch."""

    def run() -> int:
        moved = 0
        while n := tick():
            moved += n
        return moved

    return run


def work(turk: object, site: str) -> int:
    """How many answers six workers sent in until nothing was offered to any three of them."""
    from rehearsal.market_workers import MarketCrowd

    class Truth:
        subject_canonical, object_canonical = (0, 3), (0, 3)
        holds = [("per:schools_attended", ">")]

    names = [f"W{number}" for number in range(WORKERS)]
    crowd = MarketCrowd(turk.url, site, names, lambda *_: Truth(), accuracy=[ACCURACY] * WORKERS)  # type: ignore[attr-defined]
    done = crowd.work(at_most=3600)
    if done.errors:
        raise SystemExit(f"The crowd failed: {done.errors[-1]}")
    return done.answers


def toy_track() -> object:
    """An open track on the marketplace, with questions that need no documents of others."""
    from decimal import Decimal

    from annotation_world import ToyTrack

    from annotation.questions import ask
    from kbpo import queue
    from kbpo.corpus.models import Corpus, Predicate
    from kbpo.money.models import Price
    from kbpo.tracks.models import Track

    ask.kind_of, queue._send = ToyTrack, lambda step: None  # type: ignore[assignment, misc]
    corpus = Corpus.objects.create(name="Toy news", slug="toy-news", schema={})
    Predicate.objects.create(corpus=corpus, name="per:schools_attended", position=0)
    track = Track.objects.create(
        corpus=corpus, name="Toy", slug="toy", status="open", platform="mturk"
    )
    Price.objects.create(
        track=track, interface="relation", reward=Decimal("0.05"), fee_rate=Decimal("0.2")
    )
    return track


if __name__ == "__main__":
    runner = get_runner(settings)(verbosity=0, interactive=False)
    databases = runner.setup_databases()
    try:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
    finally:
        connection.close()
        runner.teardown_databases(databases)
