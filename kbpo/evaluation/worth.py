"""What each metric and each judge is worth, and what a question is worth: measured on what people
have rated, and stored with the evaluation.

A metric is worth the factor by which it makes fewer judgments do (`estimators.components`): it
depends on how it goes with people within systems, and on how much people differ. The outputs that
were rated are taken for a random part of each system's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import pearsonr, spearmanr

from estimators.components import (
    WORTH,
    MetricWorth,
    VarianceComponents,
    metric_worth,
    variance_components,
)
from estimators.prmse import prmse
from kbpo.scores.bring import scorers
from kbpo.scores.read import read_scores
from kbpo.submissions.models import Submission
from kbpo.tracks.base import Track as Kind
from scoring.arrays import Floats, Ids
from scoring.data import Data

FEWEST = 50
"""Rated things below which nothing is told"""
RESAMPLES, SEED = 200, 20_180_715
FEWEST_OF_ONE = 10
"""Rated things of one system that say how a metric goes with people there"""
EXAMPLES = 20
"""Things that are kept of each quadrant: the first that everybody may see is shown"""
UNKNOWN = 0.2
"""Share of resamples without a ρ from which on its interval is not known either"""
TOGETHER = "All together"
"""The model that learns from all of them"""


@dataclass(frozen=True, eq=False)
class Rated:
    """Single judgments under a criterion: n of them, about k things."""

    rows: Ids
    """(k,) rows of the pool that are rated, ascending"""
    owner: Ids
    """(k,) column of the first system that predicts each"""
    mean: Floats
    """(k,)"""
    values: Floats
    """(n,)"""
    item: Ids
    """(n,) place among the k"""

    def matrix(self) -> Floats:
        """(k, R) the first, second, … judgment of each; NaN where there is none."""
        sizes = np.bincount(self.item, minlength=self.rows.size)
        place = np.arange(self.item.size) - (np.cumsum(sizes) - sizes)[self.item]
        matrix = np.full((self.rows.size, int(sizes.max(initial=1))), np.nan)
        matrix[self.item, place] = self.values
        return matrix


def worth(kind: Kind, data: Data, means: dict[str, Floats]) -> dict[str, Any]:
    """Of each criterion what its question and each metric and judge is worth. `means` has the
    estimate of every system under each criterion.
    """
    told: dict[str, dict[str, Any]] = {}
    opinions = kind.opinions(data.pool.instance[data.judged])
    everything = scorers(kind.track)
    numbers = [one["id"] for one in everything]
    scores = read_scores(kind.corpus, data.pool.instance, numbers).value
    circular = [one["source"] == "computed" and one["name"] in kind.circular for one in everything]
    scores[np.ix_(_only_references(data), np.flatnonzero(circular))] = np.nan
    for criterion in data.f:
        rated = _rated(data, criterion, opinions.get(criterion))
        told[criterion] = {"rated": int(rated.rows.size), "judgments": int(rated.values.size)}
        if rated.rows.size < FEWEST:
            continue
        told[criterion] |= {
            "components": _components(rated),
            "scorers": [
                told_of | _of_scorer(data, rated, scores[:, place], means[criterion])
                for place, told_of in enumerate(map(_named, everything))
            ],
            "together": {"name": TOGETHER}
            | _of_scorer(data, rated, data.g[criterion], means[criterion]),
        }
    return told


def _only_references(data: Data) -> Ids:
    """The rows of the pool that references alone predict."""
    references = Submission.objects.filter(pk__in=data.systems, role=Submission.Role.REFERENCE)
    numbers = list(references.values_list("pk", flat=True))
    others = data.pool.member[:, np.flatnonzero(~np.isin(data.systems, numbers))]
    return np.flatnonzero(np.asarray(others.sum(axis=1)).ravel() == 0)


def _named(scorer: dict[str, Any]) -> dict[str, Any]:
    keys = ("id", "name", "label", "version", "prompt", "source", "used")
    return {key: scorer[key] for key in keys}


def _rated(data: Data, criterion: str, opinions: Sequence[Sequence[float]] | None) -> Rated:
    """The single judgments of what is rated; a verdict that is taken for true is one judgment."""
    verdict = data.f[criterion]
    member = data.pool.member[data.judged].toarray() > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(member, verdict, 0.0).sum(axis=1) / member.sum(axis=1)
    predicted = member.any(axis=1)
    kept = np.flatnonzero(predicted & ~np.isnan(mean))
    said = (
        [[value] for value in mean[kept].tolist()]
        if opinions is None
        else [list(opinions[place]) for place in kept.tolist()]
    )
    values = np.array([value for some in said for value in some], dtype=np.float64)
    item = np.repeat(np.arange(kept.size), [len(some) for some in said]).astype(np.int64)
    return Rated(
        data.judged[kept], member[kept].argmax(axis=1).astype(np.int64), mean[kept], values, item
    )


def _components(rated: Rated) -> dict[str, Any]:
    """σ_f², σ_a² and γ with their 80 % intervals, over resampled things."""
    found = variance_components(
        rated.values,
        rated.item,
        group=rated.owner[rated.item],
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(SEED),
    )
    told: dict[str, Any] = {"warnings": list(found.warnings), "repeated": found.n_repeated}
    for name in ("sigma_f2", "sigma_a2", "gamma"):
        told[name] = _number(getattr(found, name))
        ends = found.confidence_interval(name)
        told[f"{name}_80"] = [_number(float(end)) for end in ends]
    told["most"] = _most(found)
    return told


def _most(found: VarianceComponents) -> float | None:
    """What a perfect metric would be worth: (1 + γ)/γ."""
    return (1 + found.gamma) / found.gamma if found.gamma > 0 else None


def _of_scorer(data: Data, rated: Rated, score: Floats, means: Floats) -> dict[str, Any]:
    """How one goes with people, thing by thing and system by system, and what it is worth."""
    here = score[rated.rows]
    known = ~np.isnan(here)
    if known.sum() < FEWEST or not np.ptp(here[known]) or not np.ptp(rated.mean[known]):
        return {"n": int(known.sum())}
    found = metric_worth(
        rated.values,
        rated.item,
        here,
        group=rated.owner[rated.item],
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(SEED),
    )
    told: dict[str, Any] = {
        "n": int(known.sum()),
        "pearson": _number(float(pearsonr(here[known], rated.mean[known])[0])),
        "spearman": _number(float(spearmanr(here[known], rated.mean[known])[0])),
        **_without_noise(found),
        "r": _number(found.r),
        "worth": _number(found.data_efficiency),
    }
    for level in (80, 95):
        ends = found.confidence_interval("data_efficiency", level / 100)
        told[f"worth_{level}"] = [_number(float(end)) for end in ends]
    return told | _by_system(data, rated, score, known, means)


def _without_noise(found: MetricWorth) -> dict[str, Any]:
    """ρ and its 80 % interval. Where what people differ by leaves too little between the outputs, ρ
    comes out beyond what a correlation can be: then it is not known, and its interval is as far as
    it lies where correlations do.
    """
    told: dict[str, Any] = {
        "rho": found.rho if abs(found.rho) <= 1 else None,
        "rho_80": [None, None],
    }
    if found.replicates is None or not math.isfinite(found.rho):
        return told
    known = np.isfinite(found.replicates.replicates[:, WORTH.index("rho")])
    low, high = found.confidence_interval("rho")
    if known.mean() >= 1 - UNKNOWN and low <= 1 and high >= -1:
        told["rho_80"] = [max(-1.0, low), min(1.0, high)]
    return told


def _by_system(
    data: Data, rated: Rated, score: Floats, known: NDArray[np.bool_], means: Floats
) -> dict[str, Any]:
    """What it alone says of each system, brought to the mean and the spread of what people say, and
    how far it is off.
    """
    here, people = score[rated.rows][known], rated.mean[known]
    slope = float(people.std()) / float(here.std())
    slope *= -1.0 if np.corrcoef(here, people)[0, 1] < 0 else 1.0
    scaled = float(people.mean()) + slope * (score - float(here.mean()))
    alone: dict[str, float] = {}
    bias: dict[str, float] = {}
    for column in np.flatnonzero(data.shown & ~np.isnan(means)).tolist():
        mine = np.flatnonzero(np.asarray(data.pool.member[:, [column]].toarray()).ravel())
        if np.isnan(scaled[mine]).any():
            continue  # half of a system says nothing of it
        number = str(data.systems[column])
        alone[number] = float(scaled[mine].mean())
        bias[number] = alone[number] - float(means[column])
    numbers = list(alone)
    ours = [float(means[data.systems.index(int(one))]) for one in numbers]
    theirs = [alone[one] for one in numbers]
    between = None
    if len(numbers) > 2 and np.ptp(ours) > 0 and np.ptp(theirs) > 0:
        between = _number(float(pearsonr(ours, theirs)[0]))
    there = scaled[rated.rows][known]
    told = _quadrants(here, people, slope, there, data.pool.instance[rated.rows][known])
    owner = rated.owner[known]
    of_rated = prmse(rated.matrix()[known], there)
    return {
        "between": between,
        "alone": alone,
        "bias": bias,
        "within": {
            str(data.systems[column]): float(np.corrcoef(here[mine], people[mine])[0, 1])
            for column in np.flatnonzero(data.shown).tolist()
            if np.count_nonzero(mine := owner == column) >= FEWEST_OF_ONE
            and np.ptp(here[mine])
            and np.ptp(people[mine])
        },
        "prmse": _number(of_rated.value),
    } | told


def _quadrants(
    here: Floats, people: Floats, slope: float, scaled: Floats, instance: Ids
) -> dict[str, Any]:
    """How often both like a thing, the metric alone, people alone, neither: people at the middle of
    their scale, the metric so that it likes as many as people do. And some of each: where the two
    agree those that they agree most on, else those that they part most on.
    """
    liked = people > 0.5
    cut = np.quantile(here * np.sign(slope), 1 - liked.mean()) if liked.any() else math.inf
    likes = here * np.sign(slope) >= cut
    shares = [likes & liked, likes & ~liked, ~likes & liked, ~likes & ~liked]
    gap = np.abs(scaled - people)
    orders = [np.argsort(sign * gap, kind="stable") for sign in (1, -1, -1, 1)]
    examples = [
        instance[order[one[order]]][:EXAMPLES].tolist()
        for one, order in zip(shares, orders, strict=True)
    ]
    return {"quadrants": [float(share.mean()) for share in shares], "examples": examples}


def _number(value: float) -> float | None:
    """The number as JSON has it: None where it is not finite."""
    return float(value) if math.isfinite(value) else None
