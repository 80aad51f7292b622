"""`kill -9` of the worker and of the web server in the middle of ingest, sampling, labelling and
estimation.

The middle is found, not hoped for: a lock on a table that a step writes to stops the step there,
the database says that it waits, and after a seeded moment a process dies with all its children.
Started again, the journey must end as if nothing had happened: the same draws, and every label,
payment and cent once.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pytest
from processes import DATABASE, Service, wait_for
from travel import Travel, make_travel

from kbpo.instances.models import Target
from kbpo.sampling.designs.base import batch_seed
from kbpo.sampling.designs.iid import recomputed_draws
from kbpo.sampling.models import SampleBatch

RUN = "Harbor_1"
LONGEST = 0.3
"""Seconds that a step may stand still before the kill."""
COLUMNS = ("target_id", "instance_id", "multiplicity", "probability")
OF_TRACK = "(SELECT id FROM tracks_track WHERE slug = %s)"
OF_HITS = f"JOIN annotation_hit h ON h.id = a.hit_id WHERE h.track_id = {OF_TRACK}"


@dataclass(frozen=True)
class Kill:
    """Who dies in which phase: when `waits` stands before a write to one of the tables."""

    victim: str
    phase: str
    waits: str
    tables: tuple[str, ...]
    judged: bool = False
    """Only after some answers, a seeded number"""
    design: str = "iid"

    def __str__(self) -> str:
        return f"{self.victim}-{self.phase}-{self.design}"


THRESHOLDS = ("sampling_samplebatch", "sampling_threshold", "sampling_sample")
NO_LESSON = "purpose_kind <> 'tutorial'"
"""What tutorials are paid is no judging's, and waits for whoever has begun one."""
JUDGMENTS = ("annotation_response", "instances_label", "annotation_payment")
KILLS = [
    Kill(
        "worker",
        "ingest",
        "worker",
        ("instances_target", "instances_instance", "submissions_prediction"),
    ),
    Kill("web", "ingest", "web", ("submissions_submission",)),
    Kill("worker", "sampling", "worker", THRESHOLDS, design="poisson"),
    Kill("web", "sampling", "web", ("money_ledger",), design="poisson"),
    Kill("worker", "labelling", "worker", JUDGMENTS, True, "poisson"),
    Kill("web", "labelling", "web", ("annotation_assignment",), True),
    Kill(
        "worker",
        "estimation",
        "worker",
        ("evaluation_evaluation", "evaluation_headline"),
        True,
        "poisson",
    ),
    Kill("web", "estimation", "worker", ("evaluation_headline",), True, "poisson"),
]
ONE = 4
"""The kill of a journey that `make test` waits for: while judgments become labels and payments"""


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(seed, id=str(kill), marks=[pytest.mark.soak] * (seed != ONE))
        for seed, kill in enumerate(KILLS)
    ],
)
def test_a_kill_loses_and_doubles_nothing(service: Service, tmp_path: Path, seed: int) -> None:
    kill, rng = KILLS[seed], random.Random(seed)
    # So narrow an interval takes nearly all that is predicted: there is enough left to be killed
    # in.
    travel = make_travel(
        service,
        tmp_path,
        f"Kill {seed}",
        seed=seed,
        documents=6,
        read_in_full=2,
        design=kill.design,
        half_width="0.030",
    )
    with ThreadPoolExecutor(1) as pool, ExitStack() as crowd:
        journey = pool.submit(travel.travel, RUN) if kill.judged else None
        if journey:
            some = rng.randint(1, 4)
            with travel.judging():
                wait_for(lambda: travel.work.answers >= some, f"{some} answers")
        table = rng.choice(kill.tables)
        with held(service, table):  # before anything goes on, or the write might be over already
            crowd.enter_context(travel.judging())
            journey = journey or pool.submit(travel.travel, RUN)
            wait_for(lambda: waits(service, table, kill.waits), f"{kill.waits} to write to {table}")
            time.sleep(rng.uniform(0, LONGEST))
            service.kill(kill.victim)
        service.start(kill.victim)
        assert journey.result()["status"] == "scored"
        wait_for(lambda: all_paid(travel), "the last payment")
    check_draws(travel)
    check_judgments(travel)
    check_money(travel)


@contextmanager
def held(service: Service, table: str) -> Iterator[None]:
    """A table that nobody can write to."""
    with closing(service.connect()) as holder, holder, holder.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {table} IN SHARE MODE")
        yield


def waits(service: Service, table: str, who: str) -> bool:
    """Whether `who` waits for a held table, in the middle of a transaction."""
    waiting = """
        SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
        WHERE a.datname = %s AND a.application_name = %s AND l.relation = %s::regclass
            AND NOT l.granted
    """
    return service.fetch(waiting, DATABASE, who, table) > [(0,)]


def all_paid(travel: Travel) -> bool:
    """Whether every answer is owed and nothing is reserved any more."""
    [(unpaid,)] = travel.rows(
        f"SELECT count(*) FROM annotation_assignment a {OF_HITS} AND a.status <> 'approved'"
    )
    [(left,)] = travel.rows(
        "SELECT sum(CASE kind WHEN 'reserve' THEN amount ELSE -amount END) FROM money_ledger"
        f" WHERE track_id = {OF_TRACK} AND {NO_LESSON}"
    )
    return unpaid == 0 and left == 0


def check_draws(travel: Travel) -> None:
    """One submission, whole, and exactly the draws that its committed batches stand for."""
    assert travel.rows(
        f"SELECT id, status FROM submissions_submission WHERE track_id = {OF_TRACK}"
    ) == [(next(iter(travel.submissions)), "scored")]
    told, stored = travel.rows(
        "SELECT (s.counts->>'relations')::int, (SELECT count(*) FROM submissions_prediction WHERE"
        f" submission_id = s.id) FROM submissions_submission s WHERE s.track_id = {OF_TRACK}"
    )[0]
    assert told == stored > 0
    with travel.service.speaking():
        batches = list(
            SampleBatch.objects.filter(submission__track__slug=travel.track).order_by("stage", "pk")
        )
        check = {"iid": check_columns, "poisson": check_thresholds}[
            batches[0].submission.track.design
        ]
        assert {batch.design for batch in batches} == {batches[0].submission.track.design}
        check(batches)


def check_columns(batches: list[SampleBatch]) -> None:
    """One batch a column, drawn with replacement as its seed says."""
    assert sorted(batch.distribution.kind for batch in batches) == sorted(
        batches[0].submission.track.distributions
    )
    for batch in batches:
        assert batch.seed == batch_seed(batch.submission, batch.distribution.kind)
        expected = {
            tuple(getattr(row, name) for name in COLUMNS) for row in recomputed_draws(batch)
        }
        rows = list(batch.samples.values_list(*COLUMNS))
        assert len(rows) == len(expected) and set(rows) == expected
        assert sum(row[2] for row in rows) == batch.size


def check_thresholds(batches: list[SampleBatch]) -> None:
    """Stage by stage, each target whose random number lies below its highest threshold so far, once
    in all.
    """
    assert [batch.stage for batch in batches] == list(range(1, len(batches) + 1))
    highest: dict[int, float] = {}
    drawn: set[int] = set()
    for batch in batches:
        raised = list(batch.thresholds.values_list("target_id", "pi"))
        assert raised and all(pi > highest.get(target, 0.0) for target, pi in raised)
        highest |= dict(raised)
        u = dict(Target.objects.filter(pk__in=highest).values_list("pk", "u"))
        below = {target for target, pi in highest.items() if u[target] < pi}
        rows = list(batch.samples.values_list(*COLUMNS))
        expected = {(target, None, 1, highest[target]) for target in below - drawn}
        assert len(rows) == len(expected) and set(rows) == expected
        drawn = below
    assert drawn


def check_judgments(travel: Travel) -> None:
    """Every question settled once, by two different people who agree, with one label of its pair;
    asked once more only where a later system offers another name.
    """
    questions = travel.rows(
        "SELECT q.status, (SELECT count(DISTINCT a.worker_id) FROM annotation_hit_questions m JOIN"
        " annotation_assignment a ON a.hit_id = m.hit_id AND a.status = 'approved' WHERE"
        " m.question_id = q.id), (SELECT count(*) FROM annotation_response r WHERE r.question_id ="
        " q.id AND r.target_id = q.target_id), (SELECT array_agg(l.n) FROM instances_label l WHERE"
        " l.target_id = q.target_id  AND l.origin = 'question:' || q.id) FROM annotation_question"
        f" q WHERE q.track_id = {OF_TRACK}"
    )
    assert questions and set(map(str, questions)) == {"('settled', 2, 2, [2])"}
    asked: dict[int, list[tuple[int, set[tuple[str, int, int]]]]] = {}
    for target, number, payload in travel.rows(
        f"SELECT target_id, round, payload FROM annotation_question WHERE track_id = {OF_TRACK}"
        " ORDER BY target_id, round, id"
    ):
        offered = {
            (side, *name["span"])
            for side in ("a", "b")
            for name in payload.get(side, {}).get("candidates", ())
        }
        asked.setdefault(target, []).append((number, offered))
    for rounds in asked.values():
        assert [number for number, _ in rounds] == list(range(1, len(rounds) + 1))
        for (_, before), (_, now) in pairwise(rounds):
            assert now - before, "a question is asked again where there is no new name to offer"


def check_money(travel: Travel) -> None:
    """One reservation, one payment and one spending for each answer, to the cent."""
    [(answers,)] = travel.rows(
        f"SELECT count(*) FROM annotation_assignment a {OF_HITS} AND a.status = 'approved'"
    )
    [(payments, owed)] = travel.rows(
        "SELECT count(*), sum(p.amount) FROM annotation_payment p JOIN annotation_assignment a"
        f" ON a.id = p.assignment_id {OF_HITS}"
    )
    rows = travel.rows(
        f"SELECT kind, count(*), sum(amount) FROM money_ledger WHERE track_id = {OF_TRACK} AND"
        f" {NO_LESSON} GROUP BY 1"
    )
    moved = {kind: (number, amount) for kind, number, amount in rows}
    assert payments == answers and owed == answers * Decimal("0.05")
    assert moved["spend"] == (answers, owed)
    assert moved["reserve"][0] == 1
    assert moved["reserve"][1] == owed + moved.get("release", (0, Decimal(0)))[1]
    check_lessons(travel)


def check_lessons(travel: Travel) -> None:
    """Every tutorial that was passed and for which pay was promised was paid for once, on whatever
    track.
    """
    lessons = travel.service.fetch(
        "SELECT count(*), count(DISTINCT (worker_id, why)), coalesce(sum(amount), 0) FROM"
        " annotation_payment WHERE assignment_id IS NULL"
    )
    passed = travel.service.fetch(
        "SELECT count(*), sum(promised) FROM annotators_tutorialrun WHERE passed AND promised > 0"
    )
    spent = travel.service.fetch(
        "SELECT coalesce(sum(amount), 0) FROM money_ledger WHERE kind = 'spend' AND NOT"
        f" ({NO_LESSON})"
    )
    assert lessons == [(passed[0][0], passed[0][0], passed[0][1])] and spent == [(passed[0][1],)]
