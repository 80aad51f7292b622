"""The whole pipeline on one screen: Celery is the clock, the database is the queue.

Every step claims rows by their status, does one thing and commits. At a tick all steps run, if
anything was written since the last time (`kbpo.clock.look`); a step that moved rows nudges the next
one. Each step runs in one of four queues, so that no upload and no scoring delays people.
`manage.py tick` runs the same list once, without a broker.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from typing import Any

from celery import Celery, signals
from django.conf import settings
from django.db import close_old_connections
from django.utils.module_loading import import_string

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbpo.settings")

log = logging.getLogger(__name__)

ANALYSE = "kbpo.analyse.analyse_grown_tables"

PIPELINE: dict[str, str] = {
    # step       function that moves due rows and returns how many     the journey
    # what has grown -> the planner's statistics; also around steps (`run_step`)
    "analyse":   ANALYSE,
    # 0  file -> Corpus, Document: tried, then loaded
    "load":      "kbpo.corpus.upload.tick",
    "load_inputs": "kbpo.tracks.texts.store.tick",
    # 0b files -> labels of whole documents: tried, then loaded
    "annotate":  "kbpo.sampling.documents.import_annotations.tick",
    # 2  file -> Instance, Prediction, Problem
    "ingest":    "kbpo.submissions.ingest.tick",
    # 2a Predictions -> Scores of metrics
    "measure":   "kbpo.scores.compute.tick",
    # 3  Predictions -> p_i and the plan
    "plan":      "kbpo.sampling.plan.tick",
    # 4  p_i, Labels -> SampleBatch, Sample
    "draw":      "kbpo.sampling.draw.tick",
    # 4a documents of the first stage -> the second
    "documents": "kbpo.sampling.documents.second_stage.tick",
    # 5  Sample -> Question
    "ask":       "annotation.questions.ask.tick",
    # 5a ordered DocumentSample -> Questions -> settled
    "read":      "annotation.questions.read_documents.tick",
    # 5b what nobody marked in them -> Questions
    # 6  Question -> HIT, inside the budget
    "publish":   "annotation.hits.publish.tick",
    # 6a what a stop took down, once it is lifted
    "put_back":  "annotation.hits.take_down.tick",
    # 7  lost leases, free places
    "collect":   "annotation.hits.collect.tick",
    # 7a answers that only another platform has
    "reconcile": "annotation.marketplace.reconcile.tick",
    # 8, 9  raw -> Response -> Label; approve and pay
    "settle":    "annotation.labels.settle.tick",
    # 9c what is owed on other platforms, paid there
    "pay_out":   "annotation.marketplace.pay_out.tick",
    # 9a what nobody needs any more, to the budget
    "give_back": "annotation.budget.give_back.tick",
    # 9b who asked to be erased, once nothing is owed
    "leave":     "annotation.workers.leave.tick",
    # 7b who asked to be told that there is work
    "tell":      "annotation.hits.mail_work.tick",
    # 7c mails about what happened
    "mail":      "kbpo.accounts.notices.tick",
    # 7d the webhooks of people
    "call":      "kbpo.accounts.notices.tick_calls",
    # 10 Labels + Samples + p -> Evaluation, Report
    "estimate":  "kbpo.evaluation.run.tick",
    # 10a ordered ExpertRound -> ExpertCheck
    "draw_checks": "kbpo.evaluation.correction.tick",
    # 12 a closed track -> Release, a file
    "release":   "kbpo.releases.make.tick",
    # 9d ledger, payments, answers held together
    "books":     "annotation.budget.check_books.tick",
    # rows beyond their deadline fail, with a reason
    "reap":      "kbpo.queue.fail_late_rows",
}  # fmt: skip

FILES = ("load", "load_inputs", "annotate", "ingest", "measure", "plan", "documents", "release")
SCORES = ("draw", "estimate", "draw_checks", "books")
NOTICES = ("tell", "mail", "call")
QUEUES = {
    "people": tuple(name for name in PIPELINE if name not in FILES + SCORES + NOTICES),
    "files": FILES,
    "scores": SCORES,
    "notices": NOTICES,
}
"""The steps of each queue. Steps of files take minutes for a large upload; scores (and draws, which
read the same data) take seconds to minutes; notices wait for other servers; people wait for all
other steps. Each queue has a worker of its own, or a thread of the one process of a single machine.
"""
QUEUE_OF = {name: queue for queue, names in QUEUES.items() for name in names}

PEOPLE_SECONDS = 1.0

app = Celery("kbpo")
app.config_from_object("django.conf:settings", namespace="CELERY")


def task_queue(name: str, args: Sequence[Any], *_: Any, **__: Any) -> dict[str, str] | None:
    """Return the queue of a task; None for the default queue."""
    if name == "kbpo.step":
        return {"queue": QUEUE_OF[args[0]]}
    return {"queue": args[0]} if name == "kbpo.look" else None


app.conf.task_routes = (task_queue,)


def run_step(name: str) -> int:
    """Run a step and return how many rows it moved. Tables that it filled are analysed before
    another step reads them.
    """
    moved: int = import_string(PIPELINE[name])()
    if moved:
        import_string(ANALYSE)()
    return moved


@app.task(name="kbpo.tick")  # type: ignore[untyped-decorator]
def tick() -> None:
    """Make all queues look for due rows, if any may be due."""
    if import_string("kbpo.clock.look.is_due")():
        for queue in QUEUES:
            run_queue_round.apply_async([queue], expires=60, retry=False)


@app.task(name="kbpo.look")  # type: ignore[untyped-decorator]
def run_queue_round(queue: str) -> int:
    """Run one round of a queue's steps and return how many rows moved. A long round delays nobody:
    other workers of the queue take the next rounds, and skip the rows that it has locked. While
    people are active, the queue is run again each second until the next tick.
    """
    end = time.monotonic() + float(settings.TICK_SECONDS) - PEOPLE_SECONDS
    total = moved = _run_steps(QUEUES[queue])
    while queue == "people" and moved and time.monotonic() < end:
        time.sleep(PEOPLE_SECONDS)
        moved = _run_steps(QUEUES[queue])
        total += moved
    return total


def _run_steps(names: Sequence[str]) -> int:
    moved = 0
    for name in names:
        try:
            moved += run_step(name)
        except Exception:  # a bug in one step must not block the others; the next tick retries
            log.exception("%s failed", PIPELINE[name])
            close_old_connections()  # steps that failed
    return moved


@app.task(name="kbpo.step")  # type: ignore[untyped-decorator]
def step(name: str) -> int:
    """Run one step of the pipeline and return how many rows it moved. If it moved any, the next
    step is queued.
    """
    import_string(ANALYSE)()  # whoever asked has just committed
    moved = run_step(name)
    names = list(PIPELINE)
    if moved and name != names[-1]:
        step.apply_async([names[names.index(name) + 1]], expires=60, retry=False)
    return moved


@signals.task_prerun.connect  # type: ignore[untyped-decorator]
def close_stale_connections(**_: object) -> None:
    """Close connections that are old or broken before a task, as before a page; the others stay
    open.
    """
    close_old_connections()


@app.on_after_finalize.connect  # type: ignore[untyped-decorator]
def schedule_ticks(sender: Celery, **_: object) -> None:
    """Schedule a tick every `TICK_SECONDS`."""
    seconds = float(settings.TICK_SECONDS)
    sender.add_periodic_task(seconds, tick.s(), name="tick", expires=seconds)
