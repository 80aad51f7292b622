"""Measures the worth of each metric, judge and question on outputs that people have rated; the
results are stored with the evaluation.

The worth of a metric is the factor by which it reduces the number of judgments
(`estimators.components`). It depends on the correlation with people within systems, and on how much
people differ. The rated outputs are assumed to be a random part of each system's outputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimators.bootstrap import bootstrap
from estimators.components import (
    WORTH,
    MetricWorth,
    metric_worth,
    variance_components,
)
from estimators.estimate import Estimate
from estimators.prmse import prmse
from kbpo.scores.bring import list_scorers
from kbpo.scores.read import read_scores
from kbpo.submissions.models import Submission
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.measures import Criterion
from scoring.arrays import Floats, Ids
from scoring.data import Data
from scoring.report import Components, Ends, Scorer, Worth

FEWEST = 50
"""Number of rated instances below which nothing is printed"""
RESAMPLES, BETWEEN, SEED = 200, 1000, 20_180_715
FEWEST_OF_ONE = 10
"""Number of rated instances of a system below which its correlation is not measured"""
EXAMPLES = 20
"""Number of instances that are stored for each quadrant; the page shows the first with public
judgments
"""
UNKNOWN = 0.2
"""Share of resamples without a ρ beyond which the interval of ρ is unknown"""
UNSCORED = 0.05
"""Share of a system's instances without a score (such as those without a reference) beyond which
the metric is ignored for the system
"""
PAIRS = 100
"""Number of instances with random second opinions below which there is no PRMSE"""
TOGETHER = "All together"
"""Name of the model that uses all metrics and judges"""


@dataclass(frozen=True, eq=False)
class Rated:
    """Single judgments under a criterion: n judgments of k instances."""

    rows: Ids
    """(k,) rated rows of the pool, ascending"""
    owner: Ids
    """(k,) column of the first system that predicts each row"""
    mean: Floats
    """(k,) mean judgment"""
    values: Floats
    """(n,) judgments"""
    item: Ids
    """(n,) index of the instance among the k"""

    def matrix(self) -> Floats:
        """Return the judgments of each instance as a matrix (k, R), padded with NaN."""
        sizes = np.bincount(self.item, minlength=self.rows.size)
        place = np.arange(self.item.size) - (np.cumsum(sizes) - sizes)[self.item]
        matrix = np.full((self.rows.size, int(sizes.max(initial=1))), np.nan)
        matrix[self.item, place] = self.values
        return matrix


@dataclass(frozen=True, eq=False)
class CriterionData:
    """The data with which each metric is compared under one criterion."""

    data: Data
    rated: Rated
    means: Estimate
    """Means of all systems"""
    criterion: Criterion


def measure_worth(kind: Kind, data: Data, means: dict[str, Estimate]) -> dict[str, Worth]:
    """Return, for each criterion, the variance components of its question and the worth of each
    metric and judge. `means` has the estimates of all systems by criterion.
    """
    worth_of: dict[str, Worth] = {}
    everything = list_scorers(kind.track)
    numbers = [scorer["id"] for scorer in everything]
    scores = read_scores(kind.track, data.pool.instance, numbers).value
    circular_names = {metric.name for metric in kind.metrics if metric.circular}
    circular = [
        scorer["source"] == "computed" and scorer["name"] in circular_names for scorer in everything
    ]
    scores[np.ix_(_rows_of_references_only(data), np.flatnonzero(circular))] = np.nan
    for criterion in data.f:
        rated = _single_judgments(data, criterion)
        measured = Worth(int(rated.rows.size), int(rated.values.size))
        if rated.rows.size >= FEWEST:
            asked = CriterionData(data, rated, means[criterion], kind.measures.criterion(criterion))
            measured = replace(
                measured,
                components=_components_with_intervals(rated),
                scorers=tuple(
                    Scorer(**_scorer_identity(scorer), **_scorer_figures(asked, scores[:, place]))
                    for place, scorer in enumerate(everything)
                ),
                together=Scorer(TOGETHER, TOGETHER, **_scorer_figures(asked, data.g[criterion])),
            )
        worth_of[criterion] = measured
    return worth_of


def _rows_of_references_only(data: Data) -> Ids:
    """Return the rows of the pool that only references predict."""
    references = Submission.objects.filter(pk__in=data.systems, role=Submission.Role.REFERENCE)
    numbers = list(references.values_list("pk", flat=True))
    submitted = data.pool.member[:, np.flatnonzero(~np.isin(data.systems, numbers))]
    return np.flatnonzero(np.asarray(submitted.sum(axis=1)).ravel() == 0)


def _scorer_identity(scorer: dict[str, Any]) -> dict[str, Any]:
    left_out = ("scored", "of", "made_at")
    return {key: value for key, value in scorer.items() if key not in left_out}


def _single_judgments(data: Data, criterion: str) -> Rated:
    """Return the single judgments of the rated instances. A majority verdict counts as one
    judgment.
    """
    verdict = data.f[criterion]
    member = data.pool.member[data.judged].toarray() > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(member, verdict, 0.0).sum(axis=1) / member.sum(axis=1)
    predicted = member.any(axis=1)
    kept = np.flatnonzero(predicted & ~np.isnan(mean))
    judgments = (
        [[value] for value in mean[kept].tolist()]
        if criterion not in data.noise
        else [list(data.noise[criterion].opinions[place]) for place in kept.tolist()]
    )
    values = np.array([value for ratings in judgments for value in ratings], dtype=np.float64)
    item = np.repeat(np.arange(kept.size), [len(ratings) for ratings in judgments]).astype(np.int64)
    return Rated(
        data.judged[kept], member[kept].argmax(axis=1).astype(np.int64), mean[kept], values, item
    )


def _components_with_intervals(rated: Rated) -> Components:
    """Return the variance between outputs (σ_f²), between annotators of one output (σ_a²) and their
    ratio γ, with 80 % bootstrap intervals.
    """
    estimated = variance_components(
        rated.values,
        rated.item,
        group=rated.owner[rated.item],
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(SEED),
    )
    return Components(
        sigma_f2=_finite_or_none(estimated.sigma_f2),
        sigma_a2=_finite_or_none(estimated.sigma_a2),
        gamma=_finite_or_none(estimated.gamma),
        sigma_f2_80=_finite_ends(estimated.confidence_interval("sigma_f2")),
        sigma_a2_80=_finite_ends(estimated.confidence_interval("sigma_a2")),
        gamma_80=_finite_ends(estimated.confidence_interval("gamma")),
        warnings=tuple(estimated.warnings),
        repeated=int(estimated.n_repeated),
        most=(1 + estimated.gamma) / estimated.gamma if estimated.gamma > 0 else None,
    )


def _scorer_figures(criterion_data: CriterionData, score: Floats) -> dict[str, Any]:
    """Return the correlation of a metric with people over instances and systems, and its worth."""
    rated = criterion_data.rated
    here = score[rated.rows]
    scored = ~np.isnan(here)
    if scored.sum() < FEWEST or not np.ptp(here[scored]) or not np.ptp(rated.mean[scored]):
        return {"n": int(scored.sum())}
    measured = metric_worth(
        rated.values,
        rated.item,
        here,
        group=rated.owner[rated.item],
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(SEED),
    )
    figures: dict[str, Any] = {
        "n": int(scored.sum()),
        **_correlation_with_people(here[scored], rated.mean[scored]),
        **_disattenuated_correlation(measured),
        "r": _finite_or_none(measured.r),
        "worth": _finite_or_none(measured.data_efficiency),
    }
    for level in (80, 95):
        ends = measured.confidence_interval("data_efficiency", level / 100)
        figures[f"worth_{level}"] = _finite_ends(ends)
    return figures | _metric_means_by_system(criterion_data, score, scored)


def _correlation_with_people(here: Floats, people: Floats) -> dict[str, Any]:
    """Return Pearson's and Spearman's correlation with 80 % bootstrap intervals."""

    def pearson_and_spearman(weights: Floats) -> Floats:
        ranks = [_weighted_ranks(weights, values) for values in (here, people)]
        return np.column_stack(
            [_weighted_correlation(weights, here, people), _weighted_correlation(weights, *ranks)]
        )

    rng = np.random.default_rng(SEED)
    correlations = bootstrap(pearson_and_spearman, here.size, n_resamples=RESAMPLES, rng=rng)
    low, high = correlations.confidence_interval(0.8, method="percentile")
    figures: dict[str, Any] = {}
    for place, name in enumerate(("pearson", "spearman")):
        figures[name] = _finite_or_none(float(np.asarray(correlations.value)[place]))
        figures[f"{name}_80"] = _finite_ends((np.asarray(low)[place], np.asarray(high)[place]))
    return figures


def _weighted_correlation(weights: Floats, x: Floats, y: Floats) -> Floats:
    """Return (B,) the correlation under each row of weights; x and y are (n,) or (B, n)."""
    size = weights.sum(axis=1, keepdims=True)
    apart = [
        variable - (weights * variable).sum(axis=1, keepdims=True) / size for variable in (x, y)
    ]
    squares = [(weights * deviation**2).sum(axis=1) for deviation in apart]
    with np.errstate(divide="ignore", invalid="ignore"):
        r: Floats = (weights * apart[0] * apart[1]).sum(axis=1) / np.sqrt(squares[0] * squares[1])
    return r


def _weighted_ranks(weights: Floats, values: Floats) -> Floats:
    """Return (B, n) the mean rank of each value in samples in which it occurs as often as the row
    of weights states.
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    begin, end = (np.searchsorted(ordered, ordered, side) for side in ("left", "right"))
    up_to = np.concatenate([np.zeros((len(weights), 1)), weights[:, order].cumsum(axis=1)], axis=1)
    ranks = np.empty_like(weights)
    ranks[:, order] = (up_to[:, begin] + up_to[:, end] + 1) / 2
    return ranks


def _disattenuated_correlation(measured: MetricWorth) -> dict[str, Any]:
    """Return the correlation ρ with error-free ratings (disattenuated), with its 80 % interval,
    clipped to [-1, 1]. ρ is unknown if annotator noise makes it exceed 1.
    """
    figures: dict[str, Any] = {
        "rho": measured.rho if abs(measured.rho) <= 1 else None,
        "rho_80": (None, None),
    }
    if measured.replicates is None or not math.isfinite(measured.rho):
        return figures
    defined = np.isfinite(measured.replicates.replicates[:, WORTH.index("rho")])
    low, high = measured.confidence_interval("rho")
    if defined.mean() >= 1 - UNKNOWN and low <= 1 and high >= -1:
        figures["rho_80"] = (max(-1.0, low), min(1.0, high))
    return figures


def _metric_means_by_system(
    criterion_data: CriterionData, score: Floats, scored: NDArray[np.bool_]
) -> dict[str, Any]:
    """Return the mean that the metric alone assigns to each system, on the scale of people's
    ratings, with its bias.
    """
    data, rated = criterion_data.data, criterion_data.rated
    here, people = score[rated.rows][scored], rated.mean[scored]
    slope = float(people.std()) / float(here.std())
    slope *= -1.0 if np.corrcoef(here, people)[0, 1] < 0 else 1.0
    scaled = float(people.mean()) + slope * (score - float(here.mean()))
    means = np.asarray(criterion_data.means.value)
    alone: dict[int, float] = {}
    left_out: list[int] = []
    columns = np.flatnonzero(data.shown & ~np.isnan(means)).tolist()
    for column in columns:
        mine = scaled[np.flatnonzero(np.asarray(data.pool.member[:, [column]].toarray()).ravel())]
        number = data.systems[column]
        if np.isnan(mine).mean() > UNSCORED:
            left_out.append(number)  # half of a system's outputs is not representative
        else:
            alone[number] = float(np.nanmean(mine))
    kept = [column for column in columns if data.systems[column] in alone]
    alone_scaled = scaled[rated.rows][scored]
    owner = rated.owner[scored]
    return {
        **_system_correlation(criterion_data.means, kept, np.array(list(alone.values()))),
        "alone": alone,
        "bias": {
            number: alone[number] - float(means[column])
            for number, column in zip(alone, kept, strict=True)
        },
        "left_out": tuple(left_out),
        "within": {
            data.systems[column]: float(np.corrcoef(here[mine], people[mine])[0, 1])
            for column in np.flatnonzero(data.shown).tolist()
            if np.count_nonzero(mine := owner == column) >= FEWEST_OF_ONE
            and np.ptp(here[mine])
            and np.ptp(people[mine])
        },
        **_prmse_with_interval(rated.matrix()[scored], alone_scaled),
        **_agreement_quadrants(
            criterion_data.criterion, people, alone_scaled, data.pool.instance[rated.rows][scored]
        ),
    }


def _system_correlation(
    means: Estimate, columns: Sequence[int], metric_means: Floats
) -> dict[str, Any]:
    """Return the correlation of the metric with people over systems, with an 80 % interval for the
    sampling error of people's means, on Fisher's z scale.
    """
    figures: dict[str, Any] = {"between": None, "between_80": (None, None)}
    people = np.asarray(means.value)[list(columns)]
    if people.size < 3 or not np.ptp(people) or not np.ptp(metric_means):
        return figures
    figures["between"] = r = _finite_or_none(float(np.corrcoef(people, metric_means)[0, 1]))
    error = np.sqrt(np.maximum(np.asarray(means.variance)[list(columns)], 0.0))
    if r is None or not np.isfinite(error).all():
        return figures
    rng = np.random.default_rng(SEED)
    drawn = people + error * rng.standard_normal((BETWEEN, people.size))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.arctanh(_weighted_correlation(np.ones_like(drawn), drawn, metric_means))
        ends = np.tanh(2 * np.arctanh(r) - np.nanquantile(z, (0.9, 0.1)))
    figures["between_80"] = _finite_ends(ends)
    return figures


def _prmse_with_interval(ratings: Floats, score: Floats) -> dict[str, Any]:
    """Return PRMSE with its 80 % bootstrap interval, the number of instances with random second
    opinions, and warnings. Undefined below 100 such instances, and if the variance of true scores
    may be 0.
    """
    estimate = prmse(ratings, score, n_resamples=RESAMPLES, rng=np.random.default_rng(SEED))
    warnings = list(estimate.warnings[1:])  # it stands beside other measures here
    value, ends = estimate.value, (math.nan, math.nan)
    if estimate.replicates is not None and math.isfinite(value):
        low, high = estimate.replicates.confidence_interval(0.8, method="percentile")
        ends = (float(np.asarray(low)[0]), float(np.asarray(high)[0]))
        if estimate.n_multiple < PAIRS:
            reason = f"{PAIRS} second opinions drawn at random; there are {estimate.n_multiple}"
            warnings.append(f"PRMSE needs {reason}.")
        elif np.asarray(low)[1] <= 0:
            warnings.append("The interval of the variance of true scores contains 0: no PRMSE.")
        if estimate.n_multiple < PAIRS or np.asarray(low)[1] <= 0:
            value, ends = math.nan, (math.nan, math.nan)
    return {
        "prmse": _finite_or_none(value),
        "prmse_80": _finite_ends(ends),
        "prmse_warnings": tuple(warnings),
        "n_multiple": estimate.n_multiple,
    }


def _agreement_quadrants(
    criterion: Criterion, people: Floats, scaled: Floats, instance: Ids
) -> dict[str, Any]:
    """Return the shares of instances that both people and the metric like, only the metric, only
    people, and neither, with examples of each. The metric's cut-off is chosen so that it likes as
    many instances as people do. Examples start with the clearest agreement or disagreement.
    """
    better = 1.0 if criterion.higher_is_better else -1.0
    liked = better * (people - criterion.liked_from) > 0
    good = better * scaled
    cut = np.quantile(good, 1 - liked.mean()) if liked.any() else math.inf
    likes = good >= cut
    quadrants = [likes & liked, likes & ~liked, ~likes & liked, ~likes & ~liked]
    gap = np.abs(scaled - people)
    orders = [np.argsort(sign * gap, kind="stable") for sign in (1, -1, -1, 1)]
    return {
        "quadrants": tuple(float(inside.mean()) for inside in quadrants),
        "examples": tuple(
            tuple(instance[order[inside[order]]][:EXAMPLES].tolist())
            for inside, order in zip(quadrants, orders, strict=True)
        ),
    }


def _finite_ends(ends: Iterable[Any]) -> Ends:
    """Return the ends of an interval; None for an end that is not finite."""
    low, high = (_finite_or_none(float(end)) for end in ends)
    return low, high


def _finite_or_none(value: float) -> float | None:
    """Return the number; None if it is not finite."""
    return float(value) if math.isfinite(value) else None
