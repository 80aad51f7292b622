"""Computes precision, recall and F1 from the crowd's judgments, corrected by expert checks.

Recall is computed from totals. Each is corrected by the same checks as precision, including the
number of true relations of all systems together, so that a relation which experts reject is removed
from both numerator and denominator. Facts that people found in documents and no system predicted
are not checked by experts and stay unchanged. F1 combines both, with their covariance from
judgments and checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from estimators.anticipated import f1_weights
from estimators.estimate import Estimate
from estimators.noise import recall_from_corrected_totals
from estimators.recall import Recall, f1_of_recall
from scoring.arrays import Floats, Ids
from scoring.data import LIKE, method_suffix
from scoring.double_sampling import Corrected, Repaired
from scoring.floors import Floors
from scoring.inputs import estimates_for_similar_inputs
from scoring.score import Score, scores_of_systems

METHOD = "expert"
WIDEST = 0.5
"""Width of the 80 % interval beyond which a corrected number is not printed, as uninformative"""


@dataclass(frozen=True)
class Corrections:
    """The numbers of a track that were corrected by expert checks."""

    scores: list[Score] = field(default_factory=list)
    too_wide: list[Score] = field(default_factory=list)
    """Corrected numbers that are not printed"""
    covered: bool = False
    """Whether recall could be corrected, because all of its targets could be drawn"""


def compute_corrections(
    corrected: Corrected | None, criteria: Iterable[str], recall_criteria: Iterable[str]
) -> Corrections:
    """Return all corrections by expert checks on a track; empty if no checks are used."""
    if corrected is None:
        return Corrections()
    recalls = set(recall_criteria)
    covered = bool(recalls) and corrected.covers_pool()
    made = _Maker(corrected, criteria, recalls if covered else set())
    scores = [row for row in made.scores() if corrected.data.shown[row.column]]
    return Corrections(
        [row for row in scores if row.high80 - row.low80 <= WIDEST],
        [row for row in scores if not row.high80 - row.low80 <= WIDEST],
        covered,
    )


class _Maker:
    """Computes the corrected numbers of one track."""

    def __init__(self, corrected: Corrected, criteria: Iterable[str], recalls: set[str]) -> None:
        self.found, self.data, self.arranged = corrected, corrected.data, corrected.arranged
        self.floors = Floors(corrected.arranged)
        self.criteria, self.recalls = criteria, recalls

    def scores(self) -> Iterator[Score]:
        """Yield every number that can be corrected."""
        for criterion in self.criteria:
            recall = self._recall_and_correction(criterion)
            if recall is not None:
                plain, repaired, parts = recall
                yield from self._rows_with_correction(
                    repaired.recall, "recall", criterion, self.data.unweighed, parts.checked
                )
            for kind in self.data.pool.p:
                crowd = self.arranged.precision(kind, criterion)
                key = (self.data.mean, criterion, kind)
                number = crowd, self.arranged.for_criterion(criterion).design
                weight = self.data.pool.p[kind][self.arranged.row].toarray()
                better = self.found.correct_estimate(criterion, crowd, weight)
                told_p = self._with_floor(
                    better.estimate, crowd.anticipated, better.reach, criterion
                )
                for like, _ in estimates_for_similar_inputs(self.data, {key: number}).values():
                    between = np.maximum(np.asarray(like.variance) - crowd.variance, 0.0)
                    other = replace(
                        told_p,
                        variance=told_p.variance + between,
                        degrees_of_freedom=like.degrees_of_freedom,
                    )
                    if self.data.population == LIKE:
                        told_p, other = other, told_p
                    about = f"{METHOD}{method_suffix(self.data)}"
                    yield from self._rows_with_correction(other, *key, better.checked, about)
                yield from self._rows_with_correction(told_p, *key, better.checked)
                if recall is not None:
                    both = f1_of_recall(told_p, repaired.recall, repaired.design)
                    by_precision, by_recall = f1_weights(told_p, repaired.recall)
                    reach = by_precision * better.reach + by_recall * parts.reach
                    model = self.floors.f1(kind, criterion, crowd, plain).anticipated
                    both = self._with_floor(both, model, reach, criterion)
                    checked = np.minimum(better.checked, parts.checked)
                    yield from self._rows_with_correction(both, "f1", criterion, kind, checked)

    def _recall_and_correction(self, criterion: str) -> tuple[Recall, Recall, Repaired] | None:
        """Return recall from the crowd's judgments, the corrected recall, and the correction's
        parts; their `reach` is how much one contradicting check would add to the standard error of
        recall. None if recall cannot be corrected.
        """
        if criterion not in self.recalls:
            return None
        plain = self.floors.recall(criterion)
        if plain is None:
            return None
        under, row = self.arranged.for_criterion(criterion), self.arranged.row
        share = self.arranged.fact_shares("fact").shares_of_rows(row)
        systems = self.found.correct_estimate(criterion, plain.totals.systems, share)
        pool, pool_reach = self.found.correct_pool_total(
            criterion, plain.totals.pool, under.pool_weight("fact")
        )
        repaired = recall_from_corrected_totals(
            plain, systems.estimate, pool, self.found.check_probability(criterion)
        )
        truth = float(pool.value) + float(repaired.unseen.value)
        values = np.nan_to_num(np.asarray(repaired.recall.value))
        reach = (
            (np.abs(systems.reach - np.outer(pool_reach, values)) / truth)
            if truth > 0
            else systems.reach
        )
        better = self._with_floor(repaired.recall, plain.recall.anticipated, reach, criterion)
        df = np.minimum(
            np.asarray(repaired.recall.degrees_of_freedom), np.maximum(systems.checked - 1, 1)
        )
        repaired = replace(repaired, recall=replace(better, degrees_of_freedom=df))
        return plain, repaired, replace(systems, reach=reach)

    def _with_floor(
        self, estimate: Estimate, anticipated: object, reach: Floats, criterion: str
    ) -> Estimate:
        """Return the estimate with a lower bound of its variance: what the model expects, plus what
        the checks would add if the expert kept contradicting the crowd at the same rate.
        """
        reach_known = np.nan_to_num(reach)
        floor = np.asarray(anticipated, dtype=np.float64) + self.found.error(criterion) * (
            reach_known**2
        ).sum(axis=0)
        return replace(estimate, anticipated=floor)

    def _rows_with_correction(
        self,
        estimate: Estimate,
        quantity: str,
        criterion: str,
        kind: str,
        checked: Ids,
        method: str = METHOD,
    ) -> Iterator[Score]:
        for row in scores_of_systems(self.data, estimate, quantity, criterion, kind, method):
            if not np.isnan(row.value + row.variance):
                yield replace(row, n_checked=int(checked[row.column]))
