"""Pooling bias: the score that a system loses because predictions that only it made were not
assessed.

Under pooling, only what the pool's systems and the human annotators found is assessed, and anything
else counts as wrong. A new team's unique finds are outside the pool, so its score is too low
(Chaganty 2018, sections 3.2 and 3.3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from estimators import checks
from estimators.checks import BoolArray, FloatArray, IntArray

METRICS = ("official", "anydoc")


@dataclass(frozen=True, eq=False)
class Scores:
    """Precision, recall and F1 of each system, (m,) each; NaN where undefined.

    Examples
    --------
    >>> import numpy as np
    >>> precision, recall, f1 = np.array([1.0]), np.array([0.5]), np.array([2 / 3])
    >>> Scores(precision=precision, recall=recall, f1=f1).recall.tolist()
    [0.5]
    """

    precision: FloatArray
    recall: FloatArray
    f1: FloatArray


@dataclass(frozen=True, eq=False)
class PoolingBias:
    """The precision, recall and F1 of each system with its team in the pool (`true`) and without it
    (`unpooled`).

    `precision`, `recall` and `f1`, (m,) each, are true minus unpooled: positive where the system is
    underrated.

    Examples
    --------
    >>> import numpy as np
    >>> pooled, alone = (Scores(*np.array([[1.0], [r], [2 * r / (1 + r)]])) for r in (0.75, 0.5))
    >>> PoolingBias(true=pooled, unpooled=alone).recall.tolist()
    [0.25]
    """

    true: Scores
    unpooled: Scores

    @property
    def precision(self) -> FloatArray:
        """Return true minus unpooled precision of each system."""
        return self.true.precision - self.unpooled.precision

    @property
    def recall(self) -> FloatArray:
        """Return true minus unpooled recall of each system."""
        return self.true.recall - self.unpooled.recall

    @property
    def f1(self) -> FloatArray:
        """Return true minus unpooled F1 of each system."""
        return self.true.f1 - self.unpooled.f1


def pooling_bias(
    membership: ArrayLike,
    label: ArrayLike,
    relation: ArrayLike,
    team: ArrayLike,
    *,
    human: ArrayLike,
    metric: str = "official",
) -> PoolingBias:
    """Return how much each system's scores would lose if its team had not been in the pool.

    An assessed instance is right if its label says so, and under `anydoc` if any assessed true
    instance says the same relation, whatever its provenance. Precision is the share of a system's
    instances that are right, the others and those that nobody assessed being wrong; recall the
    share of the relations known to be true that its right instances predict; F1 their harmonic
    mean. Without a team, what its systems alone found leaves the pool; what another team or a human
    annotator found too stays.

    Parameters
    ----------
    membership : array_like of bool, shape (n, m)
        Whether system i predicts instance x.
    label : array_like of float, shape (n,)
        1 true, 0 false, NaN not assessed (which counts as wrong).
    relation : array_like of int, shape (n,)
        Code of the relation that the instance says: the fact, whatever its provenance.
    team : array_like of int, shape (m,)
        Code of each system's team.
    human : array_like of bool, shape (n,)
        Whether human annotators found the instance by themselves.
    metric : {"official", "anydoc"}

    Returns
    -------
    PoolingBias
        Precision of a system that predicts nothing is NaN, and so is recall if no relation is known
        to be true; F1 is NaN where either is, and 0 where both are 0.

    Raises
    ------
    ValueError
        An unknown metric; labels other than 0, 1 and NaN; shapes that disagree.

    References
    ----------
    Chaganty 2018, sections 3.2 and 3.3, figure 3.2.

    Examples
    --------
    Instance 0 was found by people too, instance 1 by system 0 alone; both are true.

    >>> bias = pooling_bias([[1, 1], [1, 0]], [1, 1], [0, 1], team=[0, 1], human=[1, 0])
    >>> bias.true.precision.tolist(), bias.unpooled.precision.tolist()
    ([1.0, 1.0], [0.5, 1.0])
    >>> bias.recall.tolist()
    [0.0, 0.0]
    """
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}; got {metric!r}")
    member = _check_booleans("membership", membership, None)
    if member.ndim != 2:
        raise ValueError(f"membership must have two dimensions; got shape {member.shape}")
    n, m = member.shape
    truth, relations = _check_labels(label, n), checks.dense_codes("relation", relation, n)
    teams, people = checks.check_codes("team", team, m), _check_booleans("human", human, (n,))
    everything = _pool_scores(member, truth == 1, relations, metric)
    unpooled = Scores(np.full(m, np.nan), np.full(m, np.nan), np.full(m, np.nan))
    for team_code in np.unique(teams):
        own = teams == team_code
        pooled = people | member[:, ~own].any(axis=1)
        without = _pool_scores(
            member[:, own], (truth == 1) & (pooled | ~member[:, own].any(axis=1)), relations, metric
        )
        for name in ("precision", "recall", "f1"):
            getattr(unpooled, name)[own] = getattr(without, name)
    return PoolingBias(everything, unpooled)


def _pool_scores(member: BoolArray, true: BoolArray, relation: IntArray, metric: str) -> Scores:
    """Return the scores of the columns of `member`, where the `true` instances are true and all
    others are wrong.
    """
    n_relations = int(relation.max(initial=-1)) + 1
    predicted = np.bincount(relation[true], minlength=n_relations) > 0
    right = member & (true if metric == "official" else predicted[relation])[:, None]
    n_right = np.array(
        [np.count_nonzero(np.bincount(relation[column])) for column in right.T], dtype=np.float64
    )
    size, total = member.sum(axis=0), float(predicted.sum())
    precision = np.divide(right.sum(axis=0), size, out=np.full(size.size, np.nan), where=size > 0)
    recall = n_right / total if total else np.full(size.size, np.nan)
    both = precision + recall
    f1 = np.divide(
        2 * precision * recall, both, out=np.where(np.isnan(both), np.nan, 0.0), where=both > 0
    )
    return Scores(precision, recall, f1)


def _check_labels(label: ArrayLike, n: int) -> FloatArray:
    values = checks.check_labels("label", label)
    if values.shape != (n,):
        raise ValueError(f"label must have shape ({n},); got {values.shape}")
    for odd in values[(values > 0) & (values < 1)]:
        raise ValueError(f"label must be 0, 1 or NaN; got {float(odd)!r}")
    return values


def _check_booleans(name: str, values: ArrayLike, shape: tuple[int, ...] | None) -> BoolArray:
    array = np.asarray(values)
    if shape is not None and array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}; got {array.shape}")
    odd = (array != 0) & (array != 1)
    if odd.any():
        raise ValueError(f"{name} must be 0 or 1; got {array[odd][0]!r}")
    return array.astype(np.bool_)
