"""Measures inter-annotator agreement: Fleiss' κ and Krippendorff's α with intervals, for each
interface, track and batch; and the reliability of all annotators of a track.

The units of agreement are defined by the interface. Units of one question are correlated, so the
bootstrap resamples questions.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from django.core.cache import cache
from django.db.models import Count, Max, Q

from annotation.interfaces.base import Unit
from annotation.interfaces.registry import interface_by_name, interface_names
from annotation.models import FIRST, Question, Response
from estimators.agreement import fleiss_kappa, krippendorff_alpha
from estimators.bootstrap import resample_weights
from estimators.checks import FloatArray, IntArray
from estimators.votes import cooccurrence_table
from kbpo.money.models import Purpose
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of

T = TypeVar("T")

LATEST = 2_000  # the latest questions, so that the page is current and fast
RESAMPLES = 300
SEED = 20_180_321
LEVELS = (0.80, 0.95)
CHOICE, TICKS = "choice", ("yes", "no")
"""Names of units: all ticks of a question as one choice, and a single tick"""
CACHED_SECONDS = 600
RELIABILITY_CACHED_SECONDS = 60
AT_ONCE = 500
"""Questions read at once; few, since each has a large payload"""


@dataclass(frozen=True)
class Row:
    """The value that one worker gave one unit of a question (the smallest part on which two people
    can agree).
    """

    question: int
    worker: int
    unit: Unit
    value: str


@dataclass(frozen=True)
class Measured:
    """The agreement of annotators on one kind of unit of one interface. Undefined numbers are None;
    the intervals of α are percentile intervals.
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


def measure_agreement(
    *, track: Track | None = None, payer: Purpose | None = None, latest: int = LATEST
) -> list[Measured]:
    """Return the agreement on the latest questions of a track or of one batch, one row for each
    interface and kind of unit.
    """
    return cached_agreement("agreement", agreement_by_kind, track=track, payer=payer, latest=latest)


def agreement_as_one_choice(
    interface: str,
    *,
    track: Track | None = None,
    payer: Purpose | None = None,
    latest: int = LATEST,
) -> list[Measured]:
    """Return the agreement on questions of this interface, with all ticks of a question as one
    choice: the unit for which the literature reports agreement on pairs. Empty without an answer.
    """

    def agreement_of_choices(rows: dict[str, list[Row]]) -> list[Measured]:
        choices = combine_ticks(rows.get(interface, ()))
        return [compute_agreement(interface, CHOICE, choices)] if choices else []

    return cached_agreement(
        f"choices:{interface}", agreement_of_choices, track=track, payer=payer, latest=latest
    )


def combine_ticks(rows: Iterable[Row]) -> list[Row]:
    """Combine the yes-or-no units (ticks) of each person in each question into one value. Other
    units are left out.
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
    """Compute a measure from the latest answers of a track or batch, and cache it until the answers
    change.
    """
    where: dict[str, object] = {}
    if payer or track is not None:
        where = payer.filter_condition("payer") if payer else {"track": track}
    asked = Question.objects.filter(**where, gold=None, responses__isnull=False)
    last = Response.objects.filter(question__in=asked).aggregate(Max("pk"))["pk__max"]
    uncounted = count_uncounted_answers(where)
    key = f"{name}:{track.pk if track else ''}:{payer}:{latest}:{last}:{uncounted}"
    measures: list[T] | None = cache.get(key)
    if measures is None:
        questions = list(asked.order_by("-pk").values_list("pk", flat=True).distinct()[:latest])
        measures = compute(unit_values_by_interface(questions))
        cache.set(key, measures, CACHED_SECONDS)
    return measures


def count_uncounted_answers(filters: dict[str, object]) -> int:
    """Return how many answers do not count; a change invalidates the cache."""
    of_questions = {f"question__{name}": value for name, value in filters.items()}
    return Response.objects.filter(**of_questions, counts=False).count()


def unit_values_by_interface(questions: Sequence[int]) -> dict[str, list[Row]]:
    """Return interface -> values of units in these questions, from counted answers. Only the first
    two people are included where a third is asked only after a disagreement.
    """
    comparable = [
        name
        for name in interface_names()
        if interface_by_name(name).agreement.tolerance is not None
    ]
    rows: dict[str, list[Row]] = defaultdict(list)
    for begin in range(0, len(questions), AT_ONCE):
        chunk = questions[begin : begin + AT_ONCE]
        asked = Question.objects.filter(pk__in=chunk, interface__in=comparable)
        question_of = asked.defer("shown").in_bulk()
        responses = Response.objects.filter(question__in=question_of, counts=True)
        people: dict[int, list[int]] = defaultdict(list)
        for response in responses.select_related("assignment").order_by("pk"):
            question, worker = question_of[response.question_id], response.assignment.worker_id
            if worker not in people[question.pk]:
                people[question.pk].append(worker)
            if question.staged and worker not in people[question.pk][:FIRST]:
                continue  # a third person, asked because two differ, is not a random one
            for unit, value in interface_by_name(question.interface).agreement_units(
                question, response, measured=True
            ):
                if unit[0] != "flag":
                    rows[question.interface].append(Row(question.pk, worker, unit, value))
    return dict(rows)


def agreement_by_kind(rows: dict[str, list[Row]]) -> list[Measured]:
    """Return the agreement of each interface on each kind of unit, in alphabetical order. If an
    interface has a name for all ticks of a question as one choice, that kind is included.
    """
    measures = []
    for interface, of_interface in sorted(rows.items()):
        kinds: dict[str, list[Row]] = defaultdict(list)
        for row in of_interface:
            kinds[row.unit[0]].append(row)
        choices = combine_ticks(of_interface)
        if choices and CHOICE in interface_by_name(interface).agreement.names:
            kinds[CHOICE] = choices
        for kind, of_kind in sorted(kinds.items()):
            measures.append(compute_agreement(interface, kind, of_kind))
    return measures


def compute_agreement(interface: str, unit_kind: str, rows: Iterable[Row]) -> Measured:
    """Compute Fleiss' κ, and Krippendorff's α with its intervals, over units with at least two
    values.
    """
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
        return Measured(interface, unit_kind, 0, 0, 0, 0, *[None] * 7)
    value, unit, annotator, cluster = _encode_answers(units, questions, workers)
    categories, code = np.unique(value, return_inverse=True)
    table = cooccurrence_table(unit, code, (len(units), categories.size))
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
    return Measured(
        interface, unit_kind, *counts, *defined, *_percentile_ends(drawn[np.isfinite(drawn)])
    )


def _percentile_ends(drawn: FloatArray) -> list[float | None]:
    """Return the ends of the percentile intervals at each of `LEVELS`; None without resamples."""
    ends: list[float | None] = []
    for level in LEVELS:
        for side in (-1, 1):
            end = float(np.quantile(drawn, (1 + side * level) / 2)) if drawn.size else None
            ends.append(end)
    return ends


def _encode_answers(
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


@dataclass(frozen=True)
class Reliability:
    """Figures about all annotators of a track together; excluded answers are left out."""

    kappa: float | None
    """Fleiss' κ over the latest questions, with all ticks of a question as one choice. None if no
    question has answers of two people, or answers are ratings"""
    gold_answers: int
    """Answers to active gold questions, if at least two people gave them; 0 if one person did"""
    gold_error: float | None
    """The share of wrong answers among `gold_answers`"""


NOT_KEPT = Reliability(None, 0, None)
"""Shown for past boards, whose reliability was not stored"""


def reliability_of_track(track: Track) -> Reliability:
    """Return the agreement and the errors on gold questions of a track's annotators, cached for a
    minute.
    """
    key = f"reliability:{track.pk}"
    cached: Reliability | None = cache.get(key)
    if cached is not None:
        return cached
    choices = agreement_as_one_choice(kind_of(track).asking[0].interface, track=track)
    figures = Reliability(choices[0].kappa if choices else None, *_gold_error_share(track))
    cache.set(key, figures, RELIABILITY_CACHED_SECONDS)
    return figures


def _gold_error_share(track: Track) -> tuple[int, float | None]:
    """Return the number of answers to gold, and the share of wrong ones."""
    answers = Response.objects.filter(
        question__track=track,
        question__gold__isnull=False,
        question__gold__retired_at=None,
        counts=True,
        assignment__signals__kind="gold",
    )
    wrong = Q(assignment__signals__against=True)
    sums = answers.aggregate(
        n=Count("assignment", distinct=True),
        wrong=Count("assignment", distinct=True, filter=wrong),
        people=Count("assignment__worker", distinct=True),
    )
    return (sums["n"], sums["wrong"] / sums["n"]) if sums["people"] > 1 else (0, None)
