"""Measures how far people agree: Fleiss' κ and Krippendorff's α with intervals, for each interface,
track and batch.

What people can agree on is what an interface calls units. Units of one question rise and fall
together, so the bootstrap takes questions whole.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from django.core.cache import cache
from django.db.models import Max

from annotation.interfaces.base import Unit
from annotation.interfaces.registry import interface_of, names
from annotation.models import Question, Response
from estimators.agreement import fleiss_kappa, krippendorff_alpha
from estimators.bootstrap import resample_weights
from estimators.checks import IntArray
from estimators.votes import tally
from kbpo.money.purpose import Purpose
from kbpo.tracks.models import Track

T = TypeVar("T")

LATEST = 2_000  # questions: what people do now, and no page that waits for what they did a year ago
RESAMPLES = 300
SEED = 20_180_321
LEVELS = (0.80, 0.95)
CHOICE, TICKS = "choice", ("yes", "no")
"""What a question's ticks are called together, and how one is told"""
HELD = 600  # seconds that a measure of the same answers is kept


@dataclass(frozen=True)
class Row:
    """One thing that one worker said: in which question, of which unit, what."""

    question: int
    worker: int
    unit: Unit
    value: str


@dataclass(frozen=True)
class Measured:
    """Agreement on one kind of unit of one interface. Undefined numbers are None; intervals are
    α's, by percentiles.
    """

    interface: str
    what: str
    questions: int
    units: int
    answers: int
    workers: int
    observed: float | None
    kappa: float | None
    alpha: float | None
    low80: float | None
    high80: float | None
    low95: float | None
    high95: float | None


def measure(
    *, track: Track | None = None, payer: Purpose | None = None, latest: int = LATEST
) -> list[Measured]:
    """Agreement on the latest questions of a track or of one batch, a line for each interface and
    kind of unit.
    """
    return kept("agreement", measured, track=track, payer=payer, latest=latest)


def choices(
    interface: str,
    *,
    track: Track | None = None,
    payer: Purpose | None = None,
    latest: int = LATEST,
) -> list[Measured]:
    """Agreement on all that people ticked of a question of this interface, taken together as one
    choice; nothing without an answer. Agreement on pairs is published in this unit.
    """

    def of_choices(rows: dict[str, list[Row]]) -> list[Measured]:
        found = one_choice(rows.get(interface, ()))
        return [agreement(interface, CHOICE, found)] if found else []

    return kept(f"choices:{interface}", of_choices, track=track, payer=payer, latest=latest)


def one_choice(rows: Iterable[Row]) -> list[Row]:
    """What each person ticked of each question, as one value: of kinds of units that are ticked or
    not, and nothing else.
    """
    kinds: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        kinds[row.unit[0]].append(row)
    ticked: dict[tuple[int, int], set[str]] = {}
    for kind in kinds.values():
        if any(row.value not in TICKS for row in kind):
            continue
        for row in kind:
            names = ticked.setdefault((row.question, row.worker), set())
            if row.value == TICKS[0]:
                names.add(row.unit[1])
    return [
        Row(question, worker, (CHOICE, ""), "|".join(sorted(names)))
        for (question, worker), names in ticked.items()
    ]


def kept(
    name: str,
    of: Callable[[dict[str, list[Row]]], list[T]],
    *,
    track: Track | None,
    payer: Purpose | None,
    latest: int,
) -> list[T]:
    """What is reckoned from the latest answers of a track or of one batch, kept until there are
    others.
    """
    where: dict[str, object] = {}
    if payer or track is not None:
        where = payer.at("payer") if payer else {"track": track}
    asked = Question.objects.filter(**where, gold=None, responses__isnull=False)
    last = Response.objects.filter(question__in=asked).aggregate(Max("pk"))["pk__max"]
    key = f"{name}:{track.pk if track else ''}:{payer}:{latest}:{last}:{excluded(where)}"
    found: list[T] | None = cache.get(key)
    if found is None:
        chosen = list(asked.order_by("-pk").values_list("pk", flat=True).distinct()[:latest])
        found = of(rows_of(chosen))
        cache.set(key, found, HELD)
    return found


def excluded(where: dict[str, object]) -> int:
    """How many answers do not count; a change makes an old measure stale."""
    of = {f"question__{name}": value for name, value in where.items()}
    return Response.objects.filter(**of).filter(counts=False).count()


def rows_of(questions: Sequence[int]) -> dict[str, list[Row]]:
    """interface -> what was said in these questions, by answers that count."""
    found: dict[str, list[Row]] = defaultdict(list)
    for at in range(0, len(questions), 500):
        rows = Question.objects.filter(
            pk__in=questions[at : at + 500], interface__in=comparable()
        ).defer("shown")
        some = {row.pk: row for row in rows}
        responses = Response.objects.filter(question__in=some, counts=True).select_related(
            "assignment"
        )
        for response in responses.order_by("pk"):
            question = some[response.question_id]
            for unit, value in interface_of(question.interface).measured(question, response):
                if unit[0] != "flag":
                    found[question.interface].append(
                        Row(question.pk, response.assignment.worker_id, unit, value)
                    )
    return dict(found)


def comparable() -> list[str]:
    """The interfaces whose answers can be taken apart into units."""
    return [name for name in names() if interface_of(name).tolerance is not None]


def measured(rows: dict[str, list[Row]]) -> list[Measured]:
    """Agreement on each kind of unit."""
    return [agreement(interface, what, mine) for interface, what, mine in by_kind(rows)]


def by_kind(rows: dict[str, list[Row]]) -> Iterator[tuple[str, str, list[Row]]]:
    """(interface, kind of unit, what was said of those), in the order of the names."""
    for interface, some in sorted(rows.items()):
        kinds: dict[str, list[Row]] = defaultdict(list)
        for row in some:
            kinds[row.unit[0]].append(row)
        yield from ((interface, what, mine) for what, mine in sorted(kinds.items()))


def agreement(interface: str, what: str, rows: Iterable[Row]) -> Measured:
    """κ, and α with its intervals, of units that at least two people said something of."""
    said: dict[tuple[int, Unit], dict[int, str]] = defaultdict(dict)
    for row in rows:
        said[row.question, row.unit][row.worker] = row.value
    units = {unit: votes for unit, votes in said.items() if len(votes) > 1}
    workers = {worker for votes in units.values() for worker in votes}
    questions = sorted({question for question, _ in units})
    answers = len(
        {(question, worker) for (question, _), votes in units.items() for worker in votes}
    )
    if not units:
        return Measured(interface, what, 0, 0, 0, 0, *[None] * 7)
    value, unit, annotator, cluster = _arrays(units, questions, sorted(workers))
    categories, code = np.unique(value, return_inverse=True)
    table = tally(unit, code, (len(units), categories.size))
    n = table.sum(axis=1)
    observed = float(((table.power(2).sum(axis=1) - n) / (n * (n - 1))).mean())
    alpha = float(krippendorff_alpha(code, unit, annotator, level="nominal"))
    ends: list[float | None] = [None] * 4
    if len(questions) > 1 and not math.isnan(alpha):
        weights = resample_weights(
            len(units), RESAMPLES, rng=np.random.default_rng(SEED), cluster=cluster
        )
        drawn = np.asarray(
            krippendorff_alpha(code, unit, annotator, level="nominal", weights=weights)
        )
        drawn = drawn[np.isfinite(drawn)]
        if drawn.size:
            ends = []
            for level in LEVELS:
                for side in (-1, 1):
                    ends.append(float(np.quantile(drawn, (1 + side * level) / 2)))
    kappa = float(fleiss_kappa(table))
    known = [None if math.isnan(one) else one for one in (observed, kappa, alpha)]
    return Measured(
        interface, what, len(questions), len(units), answers, len(workers), *known, *ends
    )


def _arrays(
    units: dict[tuple[int, Unit], dict[int, str]], questions: list[int], workers: list[int]
) -> tuple[Any, IntArray, IntArray, IntArray]:
    """Values, units and annotators of all answers, and the question of each unit, as codes."""
    who = {worker: at for at, worker in enumerate(workers)}
    place = {question: at for at, question in enumerate(questions)}
    flat = [
        (value, at, who[worker])
        for at, votes in enumerate(units.values())
        for worker, value in votes.items()
    ]
    values = np.array([one[0] for one in flat])
    numbers = np.array([one[1:] for one in flat], dtype=np.int64)
    cluster = np.array([place[question] for question, _ in units], dtype=np.int64)
    return values, numbers[:, 0], numbers[:, 1], cluster
