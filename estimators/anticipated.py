"""The model's expected variance of recall and F1, a lower bound that keeps their intervals from
collapsing.

:func:`estimators.horvitz_thompson.anticipated_variance` computes it for precision, whose terms all
have one sign and one criterion. A term of recall is the prediction as its system predicts it, minus
its share of all true facts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from estimators import checks
from estimators.checks import FloatArray, IntArray
from estimators.design import Design
from estimators.estimate import Estimate
from estimators.sums import Support

MODEL_FREEDOM = 50.0
"""Degrees of freedom with which the model's expected variance is weighted"""
TINY = np.finfo(np.float64).tiny
BLOCK = 2**14
"""Number of rows whose terms are in memory at once, few enough for the processor's cache"""


@dataclass(frozen=True, eq=False)
class Belief:
    """The model's guesses for every prediction of a pool, and their expected accuracy.

    Attributes
    ----------
    pi : (N,) array
        Inclusion probability of each prediction's target.
    g, pool_g : (N,) array
        The model's guess that the prediction is right, and that it is a true fact of the pool (what
        the denominator of recall asks for: less, where the numerator asks for links too).
    pool_weight : (N,) array
        Share of a fact of the pool that each prediction stands for.
    target : (N,) integer array
        Target codes.
    correlation : float
        ρ, from :func:`estimators.model.error_correlation`.
    overconfidence : float
        c, at least 1: realised over predicted squared error of the model at the labels.

    Examples
    --------
    >>> import numpy as np
    >>> half = np.full(2, 0.5)
    >>> alike = Belief(
    ...     half, half, half, np.zeros(2), np.arange(2), correlation=0.0, overconfidence=1.0
    ... )
    >>> alike.variance(sparse.csr_array(np.eye(2)), [0.0, 0.0]).tolist()  # (1/½ − 1) · ½ · ½ each
    [0.25, 0.25]
    """

    pi: FloatArray
    g: FloatArray
    pool_g: FloatArray
    pool_weight: FloatArray
    target: IntArray
    correlation: float
    overconfidence: float

    def variance(self, own: sparse.sparray, share: ArrayLike) -> FloatArray:
        """Return the anticipated variance A_i of each system's estimate ``Σ_S [u_i(x) (f − g) − s_i
        v(x) (f° − g°)]/π``, where f is the verdict, g the model's guess of it, and ° marks both for
        the pool's facts.

        ``A_i = c Σ_τ (1/π − 1) {ρ [Σ_{x∈τ} d_i]² + (1 − ρ) Σ_{x∈τ} d_i²}`` with d_i² the variance
        that g and g° give the bracket: ``u² g(1−g) + (s v)² g°(1−g°) − 2 u s v g(1−g°)``, f never
        above f°. Predictions of a target are taken to err together to the extent ρ whatever the
        signs of their terms: those that others predict exclude rather than support each other, and
        count with the other sign.

        Parameters
        ----------
        own : (N, m) scipy.sparse.csc_array or csr_array
            u: what a right prediction adds to each system's estimate.
        share : (m,) array
            s: what a true fact of the pool takes away from it.

        Returns
        -------
        (m,) array
            Infinite where a system's own prediction can never be asked. For other predictions that
            cannot, the model alone stands, with its own variance.
        """
        by_system = sparse.csc_array(own)
        spans = zip(by_system.indptr, by_system.indptr[1:], strict=False)
        return self.variances_of_systems(
            (
                (
                    Support.from_rows(by_system.indices[begin:end], self.target),
                    by_system.data[begin:end],
                )
                for begin, end in spans
            ),
            share,
        )

    def variances_of_systems(
        self, supports: Iterable[tuple[Support, FloatArray]], share: ArrayLike
    ) -> FloatArray:
        """Return the anticipated variance of several systems, each given by its support (the rows
        that it predicts) and by u (n,), what a right prediction adds to its estimate, at these
        rows.
        """
        taken = np.asarray(share, dtype=np.float64)
        whole = float(self._inverse_pi_minus_one @ self._target_deviations**2)
        parts = float(
            self._inverse_pi_minus_one
            @ np.bincount(self.target, weights=self._deviations_from_pool**2)
        )
        rho, total = self.correlation, np.zeros(taken.size)
        for system, (support, u) in enumerate(supports):
            s = float(taken[system])
            together, apart = self._system_sums(support, u, s)
            if np.isinf(together):
                total[system] = np.inf
                continue
            expected = rho * (s**2 * whole + together) + (1 - rho) * (s**2 * parts + apart)
            total[system] = self.overconfidence * max(expected, 0.0)
        return total

    def _system_sums(self, support: Support, u: FloatArray, taken: float) -> tuple[float, float]:
        """Return the contributions of a system's own rows to the sums of squares over targets and
        over rows; both infinite if one of its rows can never be asked about.
        """
        taken_first = np.empty(u.size)
        together = apart = 0.0
        for begin in range(0, u.size, BLOCK):
            block = slice(begin, begin + BLOCK)
            row, moved = support.row[block], u[block]
            less, odds = taken * self._deviations_from_pool[row], self._row_odds[row]
            square = moved**2 * self._verdict_variance[row]
            if taken:
                square = square + less**2 - 2 * taken * moved * self._joint_coverage[row]
            square = np.maximum(square, 0.0)
            if (
                self._has_unreachable_targets
                and ((self.pi[row] == 0) & (square > 0) & (moved != 0)).any()
            ):
                return np.inf, np.inf
            term = np.sqrt(square) - less
            taken_first[block] = term
            together += float((odds * term) @ term)
            if taken:
                together += 2 * taken * float(term @ self._row_odds_times_deviation[row])
            apart += float(odds @ (square - less**2))
        chance = self._row_odds[support.row[support.several]]
        return together + support.sum_cross_products(taken_first, chance), apart

    @cached_property
    def _has_unreachable_targets(self) -> bool:
        """Return whether a target can never be asked about."""
        return not bool(np.all(self.pi))

    @cached_property
    def _inverse_pi_minus_one(self) -> FloatArray:
        """Return 1/π − 1 of each target, with its inclusion probability π; 1 if π is 0."""
        chance = np.ones(int(self.target.max(initial=-1)) + 1)
        chance[self.target] = self.pi
        odds: FloatArray = np.divide(1 - chance, chance, out=np.ones_like(chance), where=chance > 0)
        return odds

    @cached_property
    def _deviations_from_pool(self) -> FloatArray:
        """Return the standard deviation of each row's contribution to the number of true facts of
        the pool.
        """
        base: FloatArray = self.pool_weight * np.sqrt(self.pool_g * (1 - self.pool_g))
        return base

    @cached_property
    def _target_deviations(self) -> FloatArray:
        """Return the sums of `_deviations_from_pool` over each target."""
        return np.bincount(self.target, weights=self._deviations_from_pool).astype(np.float64)

    @cached_property
    def _row_odds(self) -> FloatArray:
        odds: FloatArray = self._inverse_pi_minus_one[self.target]
        return odds

    @cached_property
    def _row_odds_times_deviation(self) -> FloatArray:
        odds: FloatArray = (self._inverse_pi_minus_one * self._target_deviations)[self.target]
        return odds

    @cached_property
    def _verdict_variance(self) -> FloatArray:
        """Return the variance g (1 − g) of each row's verdict, where g is the model's probability
        that the prediction is right. g is limited to `pool_g`, the probability that it is a true
        fact of the pool.
        """
        g = np.minimum(self.g, self.pool_g)
        square: FloatArray = g * (1 - g)
        return square

    @cached_property
    def _joint_coverage(self) -> FloatArray:
        """Return v g (1 − g°): the covariance of the errors f − g and f° − g° (see `variance`),
        times the row's share v of a fact (`pool_weight`).
        """
        covered_by_both: FloatArray = (
            self.pool_weight * np.minimum(self.g, self.pool_g) * (1 - self.pool_g)
        )
        return covered_by_both


def combine_variances(anticipated: ArrayLike, influence: ArrayLike, pi: ArrayLike) -> FloatArray:
    """Return the anticipated variance, corrected by the realised one according to its degrees of
    freedom.

    ``A + w (V − A)`` with ``V = Σ v_τ``, ``v_τ = (1 − π) z_τ²`` and ``w = d/(d + 50)``, where ``d =
    V²/Σ v_τ²`` are the degrees of freedom of Satterthwaite. Where π varies much, as for recall of a
    sample that was drawn for precision, a few targets make most of V: on boards of six real runs V
    was 0.2 to 3.2 times the exact variance, A 0.85 to 1.26 times, so that intervals from the larger
    of the two were a fifth too wide.

    Parameters
    ----------
    anticipated : (m,) array
        A, what the model expects.
    influence : (t, m) array
        z, of targets that are drawn independently.
    pi : (t,) array
        Inclusion probabilities, in (0, 1].

    Returns
    -------
    (m,) array
        A itself without any influence.

    References
    ----------
    Satterthwaite, F. E. (1946). An approximate distribution of estimates of variance components.
    *Biometrics Bulletin* 2, 110–114.

    Examples
    --------
    >>> import numpy as np
    >>> z = np.sqrt(np.full((50, 1), 0.04))  # 50 equal terms: V = 1, d = 50
    >>> combine_variances([2.0], z, np.full(50, 0.5)).round(9).tolist()
    [1.5]
    """
    expected = np.asarray(anticipated, dtype=np.float64)
    terms = (1 - np.asarray(pi, dtype=np.float64))[:, None] * np.square(influence)
    realised, squares = terms.sum(axis=0), np.square(terms).sum(axis=0)
    freedom = np.divide(realised**2, squares, out=np.zeros_like(realised), where=squares > TINY)
    weight = freedom / (freedom + MODEL_FREEDOM)
    with np.errstate(invalid="ignore"):
        moved = expected + weight * (realised - expected)
    combined: FloatArray = np.where(np.isfinite(expected), moved, expected)
    return combined


def variance_beyond_targets(influence: FloatArray, design: Design, n_targets: int) -> FloatArray:
    """Return the part of a variance that is due to the sampling of documents, and not of single
    targets.

    It is added to the variance that the model expects, which covers targets only.

    Parameters
    ----------
    influence : (t, m) array
        Targets first, then documents.
    design : Design
        Of the same rows.
    n_targets : int
        Rows that are targets.

    Returns
    -------
    (m,) array
        At least 0.

    Examples
    --------
    >>> import numpy as np
    >>> # one target, two documents of four
    >>> design = Design([0.5, 0.5, 0.5], cluster=[-1, 0, 1], beta=0.5)
    >>> variance_beyond_targets(np.array([[1.0], [1.0], [3.0]]), design, 1).tolist()
    [2.0]
    """
    z = np.asarray(influence, dtype=np.float64)
    alone = np.einsum("t,tm,tm->m", 1 - design.pi[:n_targets], z[:n_targets], z[:n_targets])
    remaining: FloatArray = np.maximum(np.atleast_1d(design.variance(z)) - alone, 0.0)
    return remaining


def f1_weights(precision: Estimate, recall: Estimate) -> tuple[FloatArray, FloatArray]:
    """Return the derivatives of F1 with respect to precision and to recall: ``2 R²/(P + R)²`` and
    ``2 P²/(P + R)²``.

    Parameters
    ----------
    precision, recall : Estimate
        Of the same systems.

    Returns
    -------
    (m,) array, (m,) array
        ½ both where precision and recall are 0.

    Examples
    --------
    >>> import numpy as np
    >>> half = Estimate(np.array([0.5]), np.array([0.01]), 4, np.array([[0.1]]))
    >>> [one.tolist() for one in f1_weights(half, half)]
    [[0.5], [0.5]]
    """
    P, R = np.asarray(precision.value, dtype=np.float64), np.asarray(recall.value, dtype=np.float64)
    nothing = (P == 0) & (R == 0)
    both = np.where(nothing, 1.0, P + R)
    return np.where(nothing, 0.5, 2 * R**2 / both**2), np.where(nothing, 0.5, 2 * P**2 / both**2)


def overconfidence_factor(label: ArrayLike, g: ArrayLike) -> float:
    """Return c, the factor by which the model underestimates its squared error at the labels:
    realised over predicted, at least 1.

    ``c = max(1, Σ_S (f − g)² / Σ_S g (1 − g))``

    Parameters
    ----------
    label, g : (n,) or (n, m) array
        Labels (NaN is missing) and the model's predictions, of shapes that go together.

    Returns
    -------
    float
        Infinite where the model was certain of everything and wrong somewhere.

    Examples
    --------
    >>> (round(overconfidence_factor([1, 0], [0.2, 0.8]), 6),
    ...  overconfidence_factor([1, 0], [0.8, 0.2]))
    (4.0, 1.0)
    """
    f, guess = np.broadcast_arrays(
        checks.check_labels("label", label), checks.check_probabilities("g", g)
    )
    labelled = ~np.isnan(f)
    predicted = float((guess * (1 - guess))[labelled].sum())
    realised = float(((f - guess)[labelled] ** 2).sum())
    if realised == 0:
        return 1.0
    return max(1.0, realised / predicted) if predicted > 0 else np.inf
