"""Measures inter-annotator agreement: Fleiss' κ and Krippendorff's α with intervals, for each
interface, track and batch.

The units of agreement are defined by the interface. Units of one question are correlated, so the
bootstrap resamples questions.
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
from annotation.models import FIRST, Question, Response
from estimators.agreement import fleiss_kappa, krippendorff_alpha
from estimators.bootstrap import resample_weights
from estimators.checks import FloatArray, IntArray
from estimators.votes import tally
from kbpo.money.purpose import Purpose
from kbpo.tracks.models import Track

T = TypeVar("T")

LATEST = 2_000  # questions: what people do now, and no page that waits for what they did a year ago
RESAMPLES = 300
SEED = 20_180_321
LEVELS = (0.80, 0.95)
CHOICE, TICKS = "choice", ("yes", "no")
"""Name of all ticks of a question as one choice, and of one tick"""
HELD = 600  # seconds that a measure of the same answers is kept
AT_ONCE = 500
"""Questions read at once, since each has a large payload"""


@dataclass(frozen=True)
class Row:
    """One worker's value of one unit of a question."""

    question: int
    worker: int
    unit: Unit
    value: str


@dataclass(frozen=True)
class Measured:
    """Agreement on one kind of unit of one interface. Undefined numbers are None; the intervals of
    α are percentiles.
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
    """Return the agreement on the latest questions of a track or of one batch, one row for each
    interface and kind of unit.
    """
    return cached_agreement("agreement", measured, track=track, payer=payer, latest=latest)


def agreement_as_one_choice(
    interface: str,
    *,
    track: Track | None = None,
    payer: Purpose | None = None,
    latest: int = LATEST,
) -> list[Measured]:
    """Return the agreement on all ticks of a question of this interface as one choice, the unit in
    which agreement on pairs is published; empty without an answer.
    """

    def of_choices(rows: dict[str, list[Row]]) -> list[Measured]:
        found = as_one_choice(rows.get(interface, ()))
        return [agreement(interface, CHOICE, found)] if found else []

    return cached_agreement(
        f"choices:{interface}", of_choices, track=track, payer=payer, latest=latest
    )


def as_one_choice(rows: Iterable[Row]) -> list[Row]:
    """Combine the ticks of each person in each question to one value; only kinds of units with yes
    or no are included.
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


def cached_agreement(
    name: str,
    compute: Callable[[dict[str, list[Row]]], list[T]],
    *,
    track: Track | None,
    payer: Purpose | None,
    latest: int,
) -> list[T]:
    """Compute a measure from the latest answers of a track or batch, and cache it until there are
    other answers.
    """
    where: dict[str, object] = {}
    if payer or track is not None:
        where = payer.at("payer") if payer else {"track": track}
    asked = Question.objects.filter(**where, gold=None, responses__isnull=False)
    last = Response.objects.filter(question__in=asked).aggregate(Max("pk"))["pk__max"]
    key = f"{name}:{track.pk if track else ''}:{payer}:{latest}:{last}:{excluded(where)}"
    reckoned: list[T] | None = cache.get(key)
    if reckoned is None:
        questions = list(asked.order_by("-pk").values_list("pk", flat=True).distinct()[:latest])
        reckoned = compute(rows_of(questions))
        cache.set(key, reckoned, HELD)
    return reckoned


def excluded(where: dict[str, object]) -> int:
    """Return how many answers do not count; a change invalidates the cache."""
    of_questions = {f"question__{name}": value for name, value in where.items()}
    return Response.objects.filter(**of_questions, counts=False).count()


def rows_of(questions: Sequence[int]) -> dict[str, list[Row]]:
    """Return interface -> values of units in these questions, from counted answers; of the first
    two people alone where a third is asked only after a disagreement.
    """
    rows: dict[str, list[Row]] = defaultdict(list)
    for begin in range(0, len(questions), AT_ONCE):
        chunk = questions[begin : begin + AT_ONCE]
        asked = Question.objects.filter(pk__in=chunk, interface__in=comparable_interfaces())
        question_of = asked.defer("shown").in_bulk()
        responses = Response.objects.filter(question__in=question_of, counts=True)
        people: dict[int, list[int]] = defaultdict(list)
        for response in responses.select_related("assignment").order_by("pk"):
            question, worker = question_of[response.question_id], response.assignment.worker_id
            if worker not in people[question.pk]:
                people[question.pk].append(worker)
            if question.staged and worker not in people[question.pk][:FIRST]:
                continue  # whoever is asked since the first two differ is no random person
            for unit, value in interface_of(question.interface).units(
                question, response, measured=True
            ):
                if unit[0] != "flag":
                    rows[question.interface].append(Row(question.pk, worker, unit, value))
    return dict(rows)


def comparable_interfaces() -> list[str]:
    """Return the interfaces whose answers have units."""
    return [name for name in names() if interface_of(name).agreement.tolerance is not None]


def measured(rows: dict[str, list[Row]]) -> list[Measured]:
    """Return the agreement on each kind of unit."""
    return [agreement(interface, what, mine) for interface, what, mine in rows_by_kind(rows)]


def rows_by_kind(rows: dict[str, list[Row]]) -> Iterator[tuple[str, str, list[Row]]]:
    """Yield (interface, kind of unit, its rows) in alphabetical order; with one choice for all
    ticks of a question if its interface has a name for it.
    """
    for interface, some in sorted(rows.items()):
        kinds: dict[str, list[Row]] = defaultdict(list)
        for row in some:
            kinds[row.unit[0]].append(row)
        if CHOICE in interface_of(interface).agreement.names and (chosen := as_one_choice(some)):
            kinds[CHOICE] = chosen
        yield from ((interface, what, mine) for what, mine in sorted(kinds.items()))


def agreement(interface: str, what: str, rows: Iterable[Row]) -> Measured:
    """Compute κ, and α with its intervals, over units with at least two values."""
    votes_of: dict[tuple[int, Unit], dict[int, str]] = defaultdict(dict)
    for row in rows:
        votes_of[row.question, row.unit][row.worker] = row.value
    units = {unit: votes for unit, votes in votes_of.items() if len(votes) > 1}
    answers = set()
    for (question, _), votes in units.items():
        for worker in votes:
            answers.add((question, worker))
    questions = sorted({question for question, _ in answers})
    workers = sorted({worker for _, worker in answers})
    if not units:
        return Measured(interface, what, 0, 0, 0, 0, *[None] * 7)
    value, unit, annotator, cluster = _as_codes(units, questions, workers)
    categories, code = np.unique(value, return_inverse=True)
    table = tally(unit, code, (len(units), categories.size))
    n = table.sum(axis=1)
    observed = float(((table.power(2).sum(axis=1) - n) / (n * (n - 1))).mean())
    alpha = float(krippendorff_alpha(code, unit, annotator, level="nominal"))
    drawn = np.zeros(0)
    if len(questions) > 1 and not math.isnan(alpha):
        rng = np.random.default_rng(SEED)
        weights = resample_weights(len(units), RESAMPLES, rng=rng, cluster=cluster)
        drawn = np.asarray(
            krippendorff_alpha(code, unit, annotator, level="nominal", weights=weights)
        )
    counts = len(questions), len(units), len(answers), len(workers)
    measures = (observed, float(fleiss_kappa(table)), alpha)
    defined = [None if math.isnan(number) else number for number in measures]
    return Measured(interface, what, *counts, *defined, *_interval_ends(drawn[np.isfinite(drawn)]))


def _interval_ends(drawn: FloatArray) -> list[float | None]:
    """Return the ends of the percentile intervals at each of `LEVELS`; None without resamples."""
    ends: list[float | None] = []
    for level in LEVELS:
        for side in (-1, 1):
            end = float(np.quantile(drawn, (1 + side * level) / 2)) if drawn.size else None
            ends.append(end)
    return ends


def _as_codes(
    units: dict[tuple[int, Unit], dict[int, str]], questions: list[int], workers: list[int]
) -> tuple[Any, IntArray, IntArray, IntArray]:
    """Return the values, units and annotators of all answers, and the question of each unit, as
    integer codes.
    """
    code_of_worker = {worker: code for code, worker in enumerate(workers)}
    code_of_question = {question: code for code, question in enumerate(questions)}
    values, units_of, annotators = [], [], []
    for unit, votes in enumerate(units.values()):
        for worker, value in votes.items():
            values.append(value)
            units_of.append(unit)
            annotators.append(code_of_worker[worker])
    cluster = [code_of_question[question] for question, _ in units]
    return (
        np.array(values),
        np.array(units_of, dtype=np.int64),
        np.array(annotators, dtype=np.int64),
        np.array(cluster, dtype=np.int64),
    )
