"""Computes the contents of a report from a track's data: figures, and additional results."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from estimators.design import Design
from estimators.estimate import Estimate
from scoring.corrected import METHOD as EXPERT
from scoring.corrected import Corrections, compute_corrections
from scoring.data import ENDINGS, LIKE, THESE, Data
from scoring.double_sampling import Checks, Corrected
from scoring.inputs import estimates_for_similar_inputs
from scoring.published import bootstrap_intervals
from scoring.report import Figure, Key, Misses, Named
from scoring.saved import UNAIDED, alternative_estimates, means_without_scorers
from scoring.score import DEFAULT, PUBLISHED, Score, default_estimates, iterate_scores, marked_share
from scoring.score import Key as OfAll
from scoring.slices import SliceScore
from scoring.words import no_width_text

Estimates = dict[OfAll, tuple[Estimate, Design]]
PRINTED_METHODS = tuple(
    f"{method}{population}"
    for method in (DEFAULT, EXPERT, UNAIDED)
    for population in ("", *ENDINGS.values())
)
"""Methods of the guaranteed numbers of a shared track while it is open"""
REALS = ("value", "variance", "low80", "high80", "low95", "high95")
COUNTS = ("n_labels", "n_missing", "n_documents", "n_checked")

NO_LABEL = "Nothing that this system predicts has a label yet."
COUNTS_NOT = (
    "Labels of what this system predicts exist, but none counts yet: questions that come before"
    " them still wait."
)
TOO_FEW = (
    "Too few of the draws that it rests on, as published, have a label that counts, or documents"
    " that were read carry what is known."
)
NOT_ALL = (
    "By itself a system’s recall is known once all that it links in the documents that were read is"
    " judged."
)
OF_BOTH = "It is made of a precision and a recall, one of which is not known."


@dataclass(frozen=True)
class Computed:
    """Every number of a board, before it is stored."""

    data: Data
    criteria: tuple[str, ...]
    estimates: Estimates
    """Estimates for the given inputs or documents"""
    like: Estimates
    """Estimates for inputs or documents like these; empty for kinds with a single population"""
    alone: Estimates
    """The weighted means without metrics and judges; empty if none helps"""
    checked: Corrected | None
    better: Corrections
    """Numbers corrected by experts"""
    scores: list[Score]

    @classmethod
    def from_data(
        cls,
        data: Data,
        checks: Checks | None,
        criteria: tuple[str, ...],
        recall_criteria: tuple[str, ...],
        published: tuple[str, ...] = PUBLISHED,
    ) -> Computed:
        estimates = default_estimates(data, criteria, recall_criteria) if data.judged.size else {}
        checked = Corrected.from_data(data, checks)
        better = compute_corrections(checked, criteria, recall_criteria)
        alone, like = (
            means_without_scorers(data, criteria),
            estimates_for_similar_inputs(data, estimates),
        )
        return cls(
            data,
            criteria,
            estimates,
            like,
            alone,
            checked,
            better,
            [
                *iterate_scores(data, estimates, like, criteria, recall_criteria, published),
                *better.scores,
                *alternative_estimates(data, alone),
            ],
        )

    @property
    def shown_estimates(self) -> Estimates:
        """Return the estimates for the population that the board shows first."""
        return self.like if self.like and self.data.population == LIKE else self.estimates

    @property
    def estimates_to_compare(self) -> dict[Named, tuple[Estimate, Design]]:
        """Return the numbers used to compare systems, each with its design. Numbers about the
        population that is printed first keep their key; other keys get the name of the other
        population.
        """
        is_like = self.shown_estimates is self.like
        estimates, other = (self.estimates, THESE) if is_like else (self.like, LIKE)
        named: dict[Named, tuple[Estimate, Design]] = dict(self.shown_estimates.items())
        return named | {(*key, other): number for key, number in estimates.items()}

    def weighted_means(self, distribution: str) -> dict[str, Estimate]:
        """Return criterion -> the weighted mean of every system under a distribution."""
        return {
            criterion: estimate
            for (quantity, criterion, kind), (estimate, _) in self.estimates.items()
            if quantity == self.data.mean and kind == distribution
        }


def published_bootstrap_intervals(
    data: Data, criteria: Collection[str], methods: Collection[str]
) -> dict[tuple[str, str], dict[str, dict[int, tuple[float, float]]]]:
    """Return (criterion, distribution) -> method -> system -> the published 80 % interval of its
    precision; empty without draws that can be resampled.
    """
    wanted = [(criterion, method) for criterion in criteria for method in methods]
    found: dict[tuple[str, str], dict[str, dict[int, tuple[float, float]]]] = {}
    for distribution, draws in data.draws.items():
        for (criterion, method), (low, high) in bootstrap_intervals(data, draws, wanted).items():
            found.setdefault((criterion, distribution), {})[method] = {
                system: (float(low[column]), float(high[column]))
                for column, system in enumerate(data.systems)
                if not math.isnan(low[column])
            }
    return found


def make_figures(data: Data, scores: Iterable[Score], final: Collection[int]) -> dict[Key, Figure]:
    """Return the figures of the evaluated systems; those in `final` have no judgments pending."""
    found: dict[Key, Figure] = {}
    for score in scores:
        if data.shown[score.column]:
            key, figure = figure_of_score(data, score)
            kind = "final" if key.submission in final else "provisional"
            found[key] = replace(figure, kind=kind, note=_note_on_score(score))
    return found


def make_slice_figures(
    data: Data, scores: Iterable[SliceScore], final: Collection[int]
) -> dict[Key, Figure]:
    """Return the scores of all slices as figures by key; those of systems in `final` have no
    judgments pending.
    """
    found: dict[Key, Figure] = {}
    for part in scores:
        for key, figure in make_figures(data, [part.score], final).items():
            named = key._replace(slice=part.slice)
            found[named] = replace(figure, n_predictions=part.n_predictions)
    return found


def figure_of_score(data: Data, score: Score) -> tuple[Key, Figure]:
    """Return a score as a figure; numbers that are not finite become None."""
    key = Key(
        data.systems[score.column],
        score.quantity,
        score.criterion,
        score.distribution,
        score.method,
    )
    reals = {
        name: number if math.isfinite(number) else None
        for name in REALS
        for number in [getattr(score, name)]
    }
    counts = {name: getattr(score, name) for name in COUNTS}
    return key, Figure(**reals, **counts)  # type: ignore[arg-type]


def coarse_figures(
    figures: Mapping[Key, Figure], guaranteed: Collection[Named]
) -> dict[Key, Figure]:
    """Return the figures that a shared track prints while it is open: the guaranteed numbers with
    intervals, to 0.1 point, n to the nearest 10. Everything finer is stored once it is closed.
    """
    told: dict[Key, Figure] = {}
    for key, figure in figures.items():
        if key[1:4] in guaranteed and key.method in PRINTED_METHODS:
            reals = {
                name: _round_half_width(getattr(figure, name))
                for name in REALS
                if name != "variance"
            }
            counts = {
                name: round(getattr(figure, name), -1) for name in COUNTS if name != "n_documents"
            }
            told[key] = replace(figure, variance=None, **reals, **counts)  # type: ignore[arg-type]
    return told


def _round_half_width(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _note_on_score(score: Score) -> str:
    """Return a note on why a number is missing, or why its interval has no width."""
    if math.isnan(score.value):
        if not score.n_labels:
            return NO_LABEL
        if score.method not in PUBLISHED:
            return COUNTS_NOT
        if score.quantity == "f1":
            return OF_BOTH
        return NOT_ALL if (score.quantity, score.method) == ("recall", "simple") else TOO_FEW
    return "" if score.low95 < score.high95 else no_width_text(score.n_checked)


def share_of_missed_facts(data: Data) -> Misses | None:
    """Return the share of the true predictions in annotated documents that their annotation missed;
    None if unknown.
    """
    share = marked_share(data)
    if share is None or not share.n:
        return None
    value = min(1.0, float(share.value))
    inside = min(max(value, 0.5 / share.n), 1 - 0.5 / share.n)
    anticipated = inside * (1 - inside) / share.n  # unanimous answers show none
    share = replace(share, value=value, anticipated=anticipated)
    (low80, high80), (low95, high95) = (
        share.confidence_interval(level, method="wilson") for level in (0.80, 0.95)
    )
    return Misses(value, int(share.n), float(low80), float(high80), float(low95), float(high95))
