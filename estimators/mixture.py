"""Draws of several systems treated as draws from one mixture: the weights w_ij, the mixture q_i and
importance weights.

System i is scored with the draws of all systems: a draw of system j counts w_ij p_i(x) / (n_j
q_i(x)), where q_i(x) = Σ_j w_ij p_j(x) (Chaganty 2018, section 3.4.3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from estimators import checks
from estimators.checks import BoolArray, FloatArray, IntArray
from estimators.sums import sum_by_code

METHODS = ("heuristic", "balance", "uniform")
ENTRIES_AT_A_TIME = 1_000_000


def mixture_weights(overlap: ArrayLike, n: ArrayLike, *, method: str = "heuristic") -> FloatArray:
    """Return the mixture weights w_ij: the share of system j's draws in the score of system i,
    shape (m, m).

    `heuristic` (the published one): w_ij ∝ n_j Σ_x p_i(x) p_j(x); `balance`: w_ij = n_j / Σ_j n_j;
    `uniform`: the same for every system that has labelled draws.

    Parameters
    ----------
    overlap : array_like of float, shape (m, m)
        Σ_x p_i(x) p_j(x), symmetric; see :func:`estimators.distributions.pairwise_overlap`.
    n : array_like, shape (m,)
        Number of *labelled* draws of each system, 0 or more.
    method : {"heuristic", "balance", "uniform"}

    Returns
    -------
    ndarray of float64, shape (m, m)
        Row i sums to 1. It is all 0 where no labelled draw can tell anything of system i: under
        `heuristic` if i shares nothing with a system that has labels, otherwise only if nobody has
        labels.

    Raises
    ------
    ValueError
        An unknown method; an overlap that is negative, not finite or not symmetric; a number of
        draws below 0.

    References
    ----------
    Chaganty 2018, section 3.4.3; `balance`: Owen and Zhou 2000.

    Examples
    --------
    >>> mixture_weights([[0.5, 0.25], [0.25, 0.25]], [100, 300]).round(3).tolist()
    [[0.4, 0.6], [0.25, 0.75]]
    >>> mixture_weights([[0.5, 0.25], [0.25, 0.25]], [100, 300], method="balance").tolist()
    [[0.25, 0.75], [0.25, 0.75]]
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}")
    counts = checks.check_non_negative("n", n)
    return _mixture_shares(
        _check_overlap(overlap, counts.size),
        np.broadcast_to(counts, (counts.size, counts.size)),
        method,
    )


def _mixture_shares(overlap: FloatArray, counts: FloatArray, method: str) -> FloatArray:
    """Return w_ij where n_j is `counts` (m, m), row i for the score of system i."""
    pull = {
        "heuristic": overlap * counts,
        "balance": counts,
        "uniform": (counts > 0).astype(np.float64),
    }[method]
    total = pull.sum(axis=1, keepdims=True)
    shares: FloatArray = np.divide(pull, total, out=np.zeros_like(pull), where=total > 0)
    return shares


def proposal_probabilities(P: ArrayLike, W: ArrayLike) -> FloatArray:
    """Return the proposal probability q_i(x) = Σ_j w_ij p_j(x) of every instance x and system i,
    shape (n, m).

    Parameters
    ----------
    P : array_like of float, shape (n, m)
        Probability of each instance under each system.
    W : array_like of float, shape (m, m)
        Weights; each row sums to 1, or is all 0.

    Returns
    -------
    ndarray of float64, shape (n, m)

    Raises
    ------
    ValueError
        A probability or weight outside [0, 1]; a row of W that sums to neither 1 nor 0, within
        1e-9.

    References
    ----------
    Chaganty 2018, section 3.4.3.

    Examples
    --------
    >>> proposal_probabilities([[0.5, 0.0], [0.5, 1.0]],
    ...     [[0.4, 0.6], [0.25, 0.75]]).round(3).tolist()
    [[0.2, 0.125], [0.8, 0.875]]
    """
    probability, weight = checks.check_probabilities("P", P), checks.check_probabilities("W", W)
    if probability.ndim != 2 or weight.shape != (probability.shape[1],) * 2:
        raise ValueError(
            f"P must be (n, m) and W (m, m); got {probability.shape} and {weight.shape}"
        )
    sums = weight.sum(axis=1)
    for row in np.flatnonzero((np.abs(sums - 1) > 1e-9) & (sums != 0)):
        raise ValueError(f"every row of W must sum to 1; row {row} sums to {float(sums[row])!r}")
    mixed: FloatArray = probability @ weight.T
    return mixed


@dataclass(frozen=True, eq=False)
class Draws:
    """Checked draws of m systems: n rows of P, system and label, and the systems' overlap.

    `label` is (n, m): column i says whether the drawn prediction is right as system i predicts it;
    NaN is missing.
    """

    P: FloatArray
    system: IntArray
    label: FloatArray
    overlap: FloatArray

    @property
    def n_systems(self) -> int:
        """Return the number of systems, m."""
        return int(self.P.shape[1])

    def counts(self, labelled: BoolArray) -> IntArray:
        """Return n_j, the number of labelled draws of each system."""
        return np.bincount(self.system[labelled], minlength=self.n_systems)

    def inverse_proposal(self, i: int, labelled: BoolArray, method: str) -> FloatArray:
        """Return w_ij / (n_j q_i(x)) for every draw x of a system j, shape (n,).

        The result is 0 for a draw that is not labelled or does not count for i, which avoids
        division by 0: a draw that counts has q_i(x) ≥ w_ij p_j(x) > 0.
        """
        counts = self.counts(labelled)
        weight = mixture_weights(self.overlap, counts, method=method)[i]
        numerator = np.where(labelled, weight[self.system], 0.0)
        denominator = counts[self.system] * (self.P @ weight)
        inverse: FloatArray = np.divide(
            numerator, denominator, out=np.zeros_like(numerator), where=numerator > 0
        )
        return inverse

    def inverse_proposals(self, method: str) -> Iterator[tuple[slice, FloatArray]]:
        """Yield blocks of rows with w_ij / (n_j q_i(x)) of every system i, each (rows, m).

        As :meth:`inverse_proposal`, all systems at once: a draw counts for those whose column of
        `label` is known.
        """
        labelled = ~np.isnan(self.label)
        counts = sum_by_code(labelled.astype(np.float64), self.system, self.n_systems).T
        weight = _mixture_shares(self.overlap, counts, method)
        by_draw = np.divide(weight, counts, out=np.zeros_like(weight), where=counts > 0).T
        step = max(1, ENTRIES_AT_A_TIME // max(self.n_systems, 1))
        for start in range(0, self.system.size, step):
            rows = slice(start, start + step)
            numerator = by_draw[self.system[rows]] * labelled[rows]
            yield (
                rows,
                np.divide(numerator, self.P[rows] @ weight.T, out=numerator, where=numerator > 0),
            )

    def centred(self, terms: FloatArray, counted: BoolArray, *, ddof: int = 0) -> FloatArray:
        """Return each counted draw's term minus the mean of its system's counted draws, 0 for the
        others.

        The sum of squares is Σ_j n_j Var_j, Var_j the variance of the terms of system j's draws
        with divisor n_j − ddof; NaN from a system of which no more than ddof draws count. Terms are
        (n,), or (n, m) with a column for each score.
        """
        counts = sum_by_code(counted.astype(np.float64), self.system, self.n_systems)
        residual = np.where(counted, terms, 0.0)
        sums = sum_by_code(residual, self.system, self.n_systems)
        residual -= np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)[self.system]
        scale = np.full(counts.shape, np.nan)
        np.divide(counts, counts - ddof, out=scale, where=counts > ddof)
        residual *= np.sqrt(scale)[self.system]
        residual[~counted] = 0.0
        return residual


def check_draws(
    P: ArrayLike,
    system: ArrayLike,
    label: ArrayLike,
    overlap: ArrayLike | None,
    *,
    method: str = "heuristic",
) -> Draws:
    """Return checked draws. Raises ValueError with the value at fault.

    Only the heuristic weights use `overlap`; for the other methods it may be None.

    A `label` of shape (n,) holds for every system; with shape (n, m) column i is system i's. There
    a prediction that i does not make (p_i = 0) counts as labelled, and not right, as soon as
    anybody's column has a label.
    """
    probability = checks.check_probabilities("P", P)
    if probability.ndim != 2:
        raise ValueError(f"P must have two dimensions; got shape {probability.shape}")
    n, m = probability.shape
    drawn_from = checks.check_codes("system", system, n)
    if (drawn_from >= m).any():
        raise ValueError(f"system must be less than {m}; got {int(drawn_from.max())}")
    own = probability[np.arange(n), drawn_from]
    for row in np.flatnonzero(own == 0):
        raise ValueError(
            f"P of a draw under its own system must be positive; got 0.0 for draw {row}"
        )
    shared = np.zeros((m, m)) if overlap is None else _check_overlap(overlap, m)
    if method != "heuristic":
        return Draws(probability, drawn_from, _label_columns(label, probability), shared)
    if overlap is None:
        raise ValueError("overlap is needed for the heuristic weights; got None")
    for empty in np.flatnonzero(np.diag(shared)[drawn_from] == 0):
        raise ValueError(
            f"overlap of system {drawn_from[empty]} with itself must be positive; it has draws"
        )
    return Draws(probability, drawn_from, _label_columns(label, probability), shared)


def _label_columns(label: ArrayLike, P: FloatArray) -> FloatArray:
    values = checks.check_labels("label", label)
    if values.shape not in ((P.shape[0],), P.shape):
        raise ValueError(f"label must have shape ({P.shape[0]},) or {P.shape}; got {values.shape}")
    if values.ndim == 1:
        return np.broadcast_to(values[:, None], P.shape)
    judged = ~np.isnan(values).all(axis=1, keepdims=True)
    return np.where((P == 0) & judged, 0.0, values)


def _check_overlap(overlap: ArrayLike, m: int) -> FloatArray:
    shared = checks.check_non_negative("overlap", overlap)
    if shared.shape != (m, m):
        raise ValueError(f"overlap must have shape ({m}, {m}); got {shared.shape}")
    if not np.allclose(shared, shared.T, rtol=1e-9, atol=0):
        i, j = (
            int(index) for index in np.argwhere(~np.isclose(shared, shared.T, rtol=1e-9, atol=0))[0]
        )
        raise ValueError(
            f"overlap must be symmetric; got {float(shared[i, j])!r} and {float(shared[j, i])!r} "
            f"for systems {i} and {j}"
        )
    return shared
