"""What the model expects the variance of recall and F1 to be: the floor that keeps their intervals
from collapsing.

:func:`estimators.horvitz_thompson.anticipated_variance` is the same for precision, whose terms all
have one sign and one criterion. A term of recall is the prediction as its system predicts it, less
its share of all true facts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from estimators import checks
from estimators.checks import FloatArray, IntArray
from estimators.design import Design
from estimators.estimate import Estimate


@dataclass(frozen=True, eq=False)
class Belief:
    """What the model g says of every prediction of a pool, and how far it may be trusted.

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
        ρ, from :func:`estimators.model.correlation`.
    overconfidence : float
        c, at least 1: realised over predicted squared error of the model at the labels.

    Examples
    --------
    >>> import numpy as np
    >>> half = np.full(2, 0.5)
    >>> alike = Belief(half, half, half, np.zeros(2), np.arange(2), correlation=0.0, overconfidence=1.0)
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
        """Return A_i of ``Σ_S [u_i(x) (f − g) − s_i v(x) (f° − g°)]/π``, one a system.

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
        taken = np.asarray(share, dtype=np.float64)
        base = self.pool_weight * np.sqrt(self.pool_g * (1 - self.pool_g))
        odds = self._odds()
        whole = np.bincount(self.target, weights=base)
        together = taken**2 * (odds @ whole**2)
        apart = taken**2 * (odds @ np.bincount(self.target, weights=base**2))
        never, by_system = np.zeros(taken.size, dtype=np.bool_), sparse.csc_array(own)
        for system in range(taken.size):
            span = slice(by_system.indptr[system], by_system.indptr[system + 1])
            row, u = by_system.indices[span], by_system.data[span]
            spread, less = self._spread(row, u, taken[system]), taken[system] * base[row]
            target, first = self.target[row], spread - less
            chance = odds[target]
            sums = np.bincount(target, weights=first)
            together[system] += 2 * taken[system] * (first @ (chance * whole[target]))
            together[system] += (sums * odds[: sums.size]) @ sums
            apart[system] += chance @ (spread**2 - less**2)
            never[system] = bool(((self.pi[row] == 0) & (spread > 0) & (u != 0)).any())
        rho = self.correlation
        total: FloatArray = self.overconfidence * np.maximum(
            rho * together + (1 - rho) * apart, 0.0
        )
        total[never] = np.inf
        return total

    def _odds(self) -> FloatArray:
        """Return 1/π − 1 of each target; 1 where π is 0."""
        chance = np.ones(int(self.target.max(initial=-1)) + 1)
        chance[self.target] = self.pi
        odds: FloatArray = np.divide(1 - chance, chance, out=np.ones_like(chance), where=chance > 0)
        return odds

    def _spread(self, row: IntArray, u: FloatArray, taken: float) -> FloatArray:
        """Return d of single predictions of a system."""
        whole = self.pool_g[row]
        g = np.minimum(self.g[row], whole)
        v = taken * self.pool_weight[row]
        variance = u**2 * g * (1 - g) + v**2 * whole * (1 - whole) - 2 * u * v * g * (1 - whole)
        spread: FloatArray = np.sqrt(np.maximum(variance, 0.0))
        return spread


def beyond_targets(influence: FloatArray, design: Design, n_targets: int) -> FloatArray:
    """Return the part of a variance that does not come from targets being asked one by one: that of
    the documents.

    To be added to what the model expects, which knows of targets only.

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
    >>> design = Design([0.5, 0.5, 0.5], cluster=[-1, 0, 1], beta=0.5)   # one target, two documents of four
    >>> beyond_targets(np.array([[1.0], [1.0], [3.0]]), design, 1).tolist()
    [2.0]
    """
    z = np.asarray(influence, dtype=np.float64)
    alone = np.einsum("t,tm,tm->m", 1 - design.pi[:n_targets], z[:n_targets], z[:n_targets])
    rest: FloatArray = np.maximum(np.atleast_1d(design.variance(z)) - alone, 0.0)
    return rest


def f1_weights(precision: Estimate, recall: Estimate) -> tuple[FloatArray, FloatArray]:
    """Return what a step of precision, and one of recall, is worth in F1: ``2 R²/(P + R)²`` and ``2
    P²/(P + R)²``.

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


def overconfidence(label: ArrayLike, g: ArrayLike) -> float:
    """Return c: realised over predicted squared error of the model at the labels, at least 1.

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
    >>> round(overconfidence([1, 0], [0.2, 0.8]), 6), overconfidence([1, 0], [0.8, 0.2])
    (4.0, 1.0)
    """
    f, guess = np.broadcast_arrays(checks.labels("label", label), checks.probabilities("g", g))
    known = ~np.isnan(f)
    predicted = float((guess * (1 - guess))[known].sum())
    realised = float(((f - guess)[known] ** 2).sum())
    if realised == 0:
        return 1.0
    return max(1.0, realised / predicted) if predicted > 0 else np.inf
