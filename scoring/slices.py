"""Scores parts of a pool (slices) from existing labels, without new judgments.

Precision in a slice S weights its predictions by p_i(x) / Σ_S p_i, and is estimated like the whole
(Chaganty 2018, section 6.1.2): labels keep their inclusion probabilities, so a slice is as unbiased
as the whole, but less precise. If all of a slice is judged, the number is exact; for slices with so
few claims that this happens by chance, it is not unbiased over samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from estimators.design import Design
from estimators.estimate import Estimate
from scoring.arrays import Bools, Ids
from scoring.data import LIKE, Data
from scoring.default import Centred
from scoring.documents import Facts
from scoring.floors import Floors
from scoring.inputs import estimates_for_similar_inputs
from scoring.rated import add_rating_noise_variance
from scoring.score import DEFAULT, Score, scores_of_systems


@dataclass(frozen=True)
class Cut:
    """One slice of a pool: the instances inside, and the distribution that weights them."""

    group: str
    name: str
    inside: Bools
    """(u,) whether the instance is in the slice"""
    kind: str
    """The distribution that weights it"""
    stratum: int | None = None
    """Its stratum if the slice is exactly one stratum, which may have recall too"""

    @property
    def key(self) -> str:
        """Return the key under which its estimates are stored."""
        return f"{self.group}:{self.name}"


@dataclass(frozen=True)
class SliceScore:
    """One number of one system in one slice, with the number of its predictions there."""

    slice: str
    n_predictions: int
    """Number of predictions of the system in the slice; those about one target, which is judged
    once, count once
    """
    score: Score


Keep: TypeAlias = Callable[[Cut, Estimate, Design], None]
"""Function that stores further results about the precisions of a slice"""


def score_cuts(
    data: Data,
    cuts: Iterable[Cut],
    criteria: Sequence[str],
    with_recall: bool,
    keep: Keep = lambda *_: None,
) -> Iterator[SliceScore]:
    """Yield the precision of each system in each slice in which it has predictions, first under the
    first criterion and then under the others. With `with_recall`, also yield recall in slices that
    are exactly one stratum.
    """
    if not data.judged.size:
        return
    for cut in cuts:
        part = restrict_data_to_slice(data, cut, with_facts=with_recall and cut.stratum is not None)
        size = part.pool.n_targets
        for score in _scores_of_slice(part, cut, criteria, with_recall, keep):
            if size[score.column]:
                yield SliceScore(cut.key, int(size[score.column]), score)


def restrict_data_to_slice(data: Data, cut: Cut, *, with_facts: bool = True) -> Data:
    """Return the data restricted to a slice: its instances, their labels and, for recall, facts,
    and its normalised distribution.
    """
    pool, inside = data.pool, np.flatnonzero(cut.inside)
    p = pool.p[cut.kind][inside]
    p.eliminate_zeros()
    totals = np.asarray(p.sum(axis=0)).ravel()
    p.data *= (1 / np.where(totals > 0, totals, 1.0))[p.indices]
    facts = _facts_of_slice(data.facts, inside, cut.stratum) if data.facts and with_facts else None
    return replace(data.restrict_to_rows(inside, {cut.kind: p}), facts=facts)


def _facts_of_slice(facts: Facts, inside: Ids, stratum: int | None) -> Facts:
    """Return the facts of a slice: those that the instances `inside` predict, and the true facts of
    `stratum` that annotation found. If `stratum` is None, no true facts are kept.
    """
    true = (
        facts.stratum == stratum
        if stratum is not None
        else np.zeros(facts.stratum.size, dtype=np.bool_)
    )
    return replace(
        facts,
        fact=facts.fact[inside],
        in_scope=facts.in_scope[inside],
        pool_weight=facts.pool_weight[inside],
        predicted=facts.predicted[inside],
        document=facts.document[true],
        stratum=facts.stratum[true],
        found=facts.found[true],
        code=facts.code[true],
        links=facts.links[true],
        inside=facts.inside[inside],
        marked=facts.marked[inside],
    )


def _scores_of_slice(
    part: Data, cut: Cut, criteria: Sequence[str], with_recall: bool, keep: Keep
) -> Iterator[Score]:
    """Yield the numbers of a slice, under the guaranteed criterion and then under the others. A
    system without labels in the slice gets none.
    """
    guaranteed = criteria[0]
    if not part.judged.size:
        for column in range(len(part.systems)):
            yield _without_value(
                Score(column, part.mean, guaranteed, cut.kind, DEFAULT, 0, 0, 0, 0, 0, 0, 0, 0, 0)
            )
        return
    arranged = Centred(part)
    for criterion in criteria:
        precision = arranged.precision_where_settled(cut.kind, criterion)
        precision, design = add_rating_noise_variance(arranged, cut.kind, criterion, precision)
        key = (part.mean, criterion, cut.kind)
        if part.population == LIKE:
            like = estimates_for_similar_inputs(part, {key: (precision, design)})
            precision, design = like.get(key, (precision, design))
        if criterion == guaranteed:
            keep(cut, precision, design)
        for score in scores_of_systems(part, precision, part.mean, criterion, cut.kind, DEFAULT):
            yield score if score.n_labels else _without_value(score)
    recall = None
    if with_recall and cut.stratum is not None:
        recall = Floors(arranged).recall(guaranteed)
    if recall is not None:
        recall_rows = scores_of_systems(
            part, recall.recall, "recall", guaranteed, cut.kind, DEFAULT
        )
        yield from (score for score in recall_rows if not math.isnan(score.value))


def _without_value(score: Score) -> Score:
    nan = math.nan
    return replace(score, value=nan, variance=nan, low80=nan, high80=nan, low95=nan, high95=nan)
