"""Reads how two systems of a board differ: the difference of each printed number, with its interval
from both samples; and the difference by relation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations, pairwise

from scipy.special import ndtri, stdtrit

from kbpo.evaluation.leaderboard import ranking_comparison
from kbpo.evaluation.models import Evaluation
from kbpo.submissions.models import Submission
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.measures import UNWEIGHED
from kbpo.tracks.registry import kind_of, track_class
from scoring.data import ENDINGS
from scoring.report import Comparison, Figure, Key, Named, Report
from scoring.score import DEFAULT


@dataclass(frozen=True)
class Difference:
    """The values of one number for two systems, and the first minus the second with its
    intervals.
    """

    quantity: str
    first: Figure
    second: Figure
    value: float
    error: float
    """Standard error"""
    low80: float
    high80: float
    low95: float
    high95: float
    told_apart: bool | None
    """Whether the two differ significantly among all pairs of the board; None if not tested"""

    @classmethod
    def from_figures(
        cls, quantity: str, first: Figure, second: Figure, error: float, z80: float, z95: float
    ) -> Difference:
        """Return the difference of two figures. `z80` and `z95` are the half-widths of its
        intervals in standard errors.
        """
        assert first.value is not None and second.value is not None
        value = first.value - second.value
        half80, half95 = z80 * error, z95 * error
        low, high = value - half95, value + half95
        ends = value - half80, value + half80, low, high
        return cls(quantity, first, second, value, error, *ends, None)

    @property
    def excludes_zero(self) -> bool:
        """Return whether the 80 % interval excludes zero."""
        return self.low80 > 0 or self.high80 < 0


def compute_differences(
    evaluation: Evaluation,
    first: int,
    second: int,
    *,
    distribution: str,
    criterion: str,
    population: str = "",
) -> list[Difference]:
    """Return the difference of two systems in each quantity that both have and that the kind of
    track compares.
    """
    report, kind = evaluation.report, kind_of(evaluation.track)
    about = () if population in ("", kind.measures.population) else (population,)
    method = f"{DEFAULT}{ENDINGS[population]}" if about else DEFAULT
    found = []
    for quantity in kind.measures.quantities:
        if not quantity.short:
            continue
        weighed = distribution if quantity.weighed else UNWEIGHED
        key = (quantity.name, criterion, weighed)
        own, other = (report.figure(system, *key, method) for system in (first, second))
        if own is None or other is None or own.value is None or other.value is None:
            continue
        stored = _stored_comparison(report, (*key, *about), {first, second})
        if stored is not None:
            error = stored.error(first, second)
            z80, z95 = (_t_quantile(stored.df, level) for level in (0.8, 0.95))
            difference = Difference.from_figures(quantity.name, own, other, error, z80, z95)
            apart = _is_separated(stored, first, second)
            found.append(replace(difference, told_apart=apart))
    return found


def _stored_comparison(report: Report, key: Named, pair: set[int]) -> Comparison | None:
    """Return the stored comparison of two systems on one number, from the public report or, if one
    of the systems is private, from the private one. None if no covariance is stored, as on a shared
    track that is open.
    """
    for comparisons in (report.comparisons, report.private):
        stored = comparisons.get(key)
        if stored and stored.covariance is not None and pair <= set(stored.systems):
            return stored
    return None


def _is_separated(comparison: Comparison, first: int, second: int) -> bool | None:
    """Return whether the board ranks the two systems as different; None if it ranks by another
    quantity.
    """
    if comparison.different is None:
        return None
    i, k = (comparison.systems.index(submission) for submission in (first, second))
    return comparison.different[i][k]


def _t_quantile(df: float | None, level: float) -> float:
    return float(ndtri(0.5 + level / 2) if df is None else stdtrit(df, 0.5 + level / 2))


def closest_systems(
    evaluation: Evaluation | None, *, distribution: str, criterion: str
) -> tuple[int, int] | None:
    """Return the two neighbouring systems of a board with the smallest difference; None with fewer
    than two.
    """
    if evaluation is None:
        return None
    quantity, stored = ranking_comparison(
        evaluation, distribution=distribution, criterion=criterion
    )
    scored = Submission.objects.filter(pk__in=stored.systems, status="scored")
    ranked = []
    for pk in scored.values_list("pk", flat=True):
        figure = evaluation.report.figures.get(Key(pk, quantity, criterion, distribution, DEFAULT))
        if figure is not None and figure.value is not None:
            ranked.append((figure.value, pk))
    ranked.sort(reverse=True)
    pairs = [(high - low, winner, other) for (high, winner), (low, other) in pairwise(ranked)]
    return min(pairs)[1:] if pairs else None


def strata_group(kind: type[Kind]) -> str:
    """Return the group of slices whose slices are strata; empty if the kind has none."""
    return next((name for name, group in kind.groups.items() if group.strata), "")


def differences_by_relation(
    evaluation: Evaluation, first: int, second: int, *, min_judgments: int
) -> list[Difference]:
    """Return the first's precision minus the second's in every relation in which both have
    `min_judgments` judgments; the largest difference first.

    The intervals are simultaneous: each has the confidence level 1/n-th power of the stated one for
    n relations, which suffices for normal estimates with any dependence (Šidák 1967). The selection
    of relations depends on numbers of judgments, never on verdicts.
    """
    stored = evaluation.details.relations
    if not {first, second} <= set(stored.systems) or first == second:
        return []
    places = sorted(stored.systems.index(submission) for submission in (first, second))
    pair = list(combinations(range(len(stored.systems)), 2)).index((places[0], places[1]))
    figures = [_precision_by_relation(evaluation, submission) for submission in (first, second)]
    relations: list[tuple[str, Figure, Figure, float]] = []
    for name, errors in stored.errors.items():
        own, other, error = figures[0].get(name), figures[1].get(name), errors[pair]
        if own is None or other is None or error is None:
            continue
        if min(own.n_labels, other.n_labels) >= min_judgments:
            relations.append((name, own, other, error))
    z80, z95 = (simultaneous_quantile(level, len(relations)) for level in (0.80, 0.95))
    differences = [Difference.from_figures(*relation, z80, z95) for relation in relations]
    found = [replace(one, told_apart=one.low95 > 0 or one.high95 < 0) for one in differences]
    return sorted(found, key=lambda difference: (-difference.value, difference.quantity))


def simultaneous_quantile(level: float, n: int) -> float:
    """Return the normal quantile for n two-sided intervals that hold simultaneously at a level,
    with any dependence.
    """
    return float(ndtri(0.5 + level ** (1 / max(n, 1)) / 2))


def _precision_by_relation(evaluation: Evaluation, submission: int) -> dict[str, Figure]:
    """Return relation -> figure of a system's precision, where it has one."""
    track, kind = evaluation.track, track_class(evaluation.track.kind)
    found = {}
    for key, stored in evaluation.details.figures.items():
        group, _, name = key.slice.partition(":")
        is_mean = (key.quantity, key.criterion) == (kind.measures.mean, track.criterion)
        if key.submission == submission and is_mean and group == strata_group(kind):
            figure = stored.printed
            if figure.value is not None:
                found[name] = figure
    return found
