"""Precision from targets labelled with known, unequal probabilities: difference, centred, Hájek.

Rows are labelled predictions, p their weight under each system, π the inclusion probability of the
row's target, f the label and g the model's cross-fitted guess. Terms a (f − g) with a = p/π are
summed per target *before* they are squared: a target is asked about once, and its label decides
about all of its predictions.

References: Horvitz and Thompson (1952); Hájek (1971); Särndal, Swensson and Wretman (1992),
sections 5.7 and 6.3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from estimators import checks
from estimators.anticipated import overconfidence_factor
from estimators.checks import FloatArray, Numbers
from estimators.design import Design
from estimators.estimate import Estimate
from estimators.intervals import score_interval, wilson_interval
from estimators.labelled import (
    broadcast_to_systems,
    check_labelled_rows,
    columns,
    count_labelled_targets,
    estimate_from_terms,
    sum_by_target,
)
from estimators.sums import Support, sum_by_code

__all__ = [
    "anticipated_variance",
    "anticipated_variances",
    "centred_difference_estimate",
    "difference_estimate",
    "hajek_estimate",
    "iid_inclusion_probabilities",
    "score_interval",
    "wilson_interval",
]


def iid_inclusion_probabilities(
    P: ArrayLike, n: ArrayLike, *, target: ArrayLike | None = None
) -> FloatArray:
    """Return the probability that each row's target is drawn at least once by independent draws of
    every system.

    ``π = 1 − Π_j (1 − Σ_{x∈τ} p_j(x))^{n_j}``

    Parameters
    ----------
    P : (N, m) array
        p_j(x): column j is the distribution that system j's draws come from.
    n : (m,) integer array
        Draws made from each; 0 is allowed.
    target : (N,) integer array, optional
        Target codes; left out, every row is its own target.

    Returns
    -------
    (N,) array
        In [0, 1]; exactly 0 where nobody could draw the target.

    Raises
    ------
    ValueError
        If a probability leaves [0, 1] or a number of draws is negative.

    Examples
    --------
    >>> import numpy as np
    >>> iid_inclusion_probabilities(np.array([[0.5], [0.5]]), np.array([2])).tolist()
    [0.75, 0.75]
    """
    p = checks.check_probabilities("P", P)
    draws = checks.check_non_negative("n", n)
    if p.ndim != 2 or draws.shape != p.shape[1:]:
        raise ValueError(f"P must be (N, m) and n (m,); got {p.shape} and {draws.shape}")
    code = None if target is None else checks.dense_codes("target", target, p.shape[0])
    if code is not None:
        p = np.minimum(sum_by_code(p, code, int(code.max(initial=-1)) + 1), 1.0)
    with np.errstate(divide="ignore"):
        missed = np.log1p(-p[:, draws > 0]) @ draws[draws > 0]
    chance: FloatArray = -np.expm1(missed)
    return chance if code is None else chance[code]


def difference_estimate(
    p: ArrayLike,
    pi: ArrayLike,
    label: ArrayLike,
    g: ArrayLike,
    total_g: ArrayLike,
    *,
    target: ArrayLike | None = None,
    n_targets: int | None = None,
    design: Design | None = None,
    anticipated: ArrayLike = 0.0,
) -> Estimate:
    """Return the difference estimate of precision: the model's total, corrected by weighted
    residuals.

    ``π̂ = Σ_{X_i} p g + Σ_S a (f − g)``, ``V = Σ_τ (1 − π) [Σ_{x∈τ} a (f − g)]²``; both exactly
    unbiased under Poisson sampling with probabilities fixed beforehand and a g that did not see the
    label.

    Parameters
    ----------
    p : (n,) or (n, m) array
        Weight of each labelled prediction under each system, 0 where the system does not predict
        it.
    pi : (n,) array
        Inclusion probability of the row's target, in (0, 1].
    label : (n,) or (n, m) array
        f in [0, 1]; NaN is missing and left out. (n, m): column i is f_i, for criteria that depend
        on the system.
    g : (n,) or (n, m) array
        Cross-fitted prediction of f, in [0, 1].
    total_g : float or (m,) array
        Σ p g over **all** predictions of each system.
    target : (n,) integer array, optional
        Target codes; left out, every row is its own target.
    n_targets : int, optional
        Rows of the influence; the highest code + 1 if left out.
    design : Design, optional
        For labels that came in with documents (clusters); Poisson sampling with ``pi`` if left out.
    anticipated : float or (m,) array
        :func:`anticipated_variance`, carried along as the floor of "wilson" intervals.

    Returns
    -------
    Estimate
        Numbers for p (n,), arrays for (n, m). ``n`` counts labelled targets in the support; the
        influence has one row a target. Without any label the value is ``total_g`` and n is 0.

    Raises
    ------
    ValueError
        If shapes disagree, or a weight, probability, label or guess is out of range; the message
        names the value.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.full(2, 0.25)   # two of four predictions were asked, each with probability a half
    >>> estimate = difference_estimate(p, np.full(2, 0.5), np.array([1, 0]), np.full(2, 0.5), 0.5)
    >>> estimate.value, estimate.variance
    (0.5, 0.0625)
    """
    rows = check_labelled_rows(p, pi, label, g, target, n_targets, design)
    z = rows.a * rows.residual
    value = broadcast_to_systems(total_g, z.shape[1]) + z.sum(axis=0)
    return estimate_from_terms(
        rows, value, z, broadcast_to_systems(total_g, z.shape[1]), anticipated=anticipated
    )


def centred_difference_estimate(
    p: ArrayLike,
    pi: ArrayLike,
    label: ArrayLike,
    g: ArrayLike,
    total_g: ArrayLike,
    *,
    target: ArrayLike | None = None,
    n_targets: int | None = None,
    design: Design | None = None,
    total_p: ArrayLike = 1.0,
    anticipated: ArrayLike = 0.0,
) -> Estimate:
    """Return the centred difference estimate of precision: the model's total plus its weighted mean
    error.

    ``π̂ = Σ_{X_i} p g + μ``, ``μ = Σ_S a (f − g) / Σ_S a``, ``V = Σ_τ (1 − π) [Σ_{x∈τ} a (f − g −
    μ)]²``. Costs nothing with a good g and saves a bad one, whose common error μ removes; a
    constant g gives :func:`hajek_estimate`.

    Parameters
    ----------
    p, pi, label, g, total_g, target, n_targets, design, anticipated
        As for :func:`difference_estimate`.
    total_p : float or (m,) array
        Σ p over all predictions of each system: 1 for a distribution, else the weight of a slice.

    Returns
    -------
    Estimate
        As for :func:`difference_estimate`; without any label μ = 0.

    Raises
    ------
    ValueError
        As for :func:`difference_estimate`.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.full(3, 0.25)
    >>> round(centred_difference_estimate(p, np.full(3, 0.5), np.array([1, 1, 0]), np.full(3, 0.5),
    ...     0.5).value, 4)
    0.6667
    """
    rows = check_labelled_rows(p, pi, label, g, target, n_targets, design)
    model = broadcast_to_systems(total_g, rows.a.shape[1])
    mean = _ratio_or_nan((rows.a * rows.residual).sum(axis=0), rows.a.sum(axis=0), empty=0.0)
    z = np.where(rows.known, rows.a * (rows.residual - mean), 0.0)
    value = model + broadcast_to_systems(total_p, mean.size) * mean
    return estimate_from_terms(rows, value, z, model, anticipated=anticipated)


def hajek_estimate(
    p: ArrayLike,
    pi: ArrayLike,
    label: ArrayLike,
    *,
    target: ArrayLike | None = None,
    n_targets: int | None = None,
    design: Design | None = None,
) -> Estimate:
    """Return Hájek's estimate of precision, a weighted mean of the labels, which needs no model.

    ``π̂ = Σ_S a f / Σ_S a``, ``V = Σ_τ (1 − π) [Σ_{x∈τ} a (f − π̂)]²``. The anticipated variance
    comes from the labels themselves with half a right and half a wrong one added: ``Σ_τ (1 − π)
    [Σ_{x∈τ} a]² ḡ (1 − ḡ)``, so that an interval does not shrink to a point because all labels
    happen to agree.

    Parameters
    ----------
    p, pi, label, target, n_targets, design
        As for :func:`difference_estimate`.

    Returns
    -------
    Estimate
        NaN without a label in the support.

    Raises
    ------
    ValueError
        As for :func:`difference_estimate`.

    Examples
    --------
    >>> import numpy as np
    >>> round(hajek_estimate(np.full(3, 0.25), np.full(3, 0.5), np.array([1, 1, 0])).value, 4)
    0.6667
    """
    rows = check_labelled_rows(p, pi, label, 0.0, target, n_targets, design)
    mean = _ratio_or_nan((rows.a * rows.residual).sum(axis=0), rows.a.sum(axis=0), empty=np.nan)
    z = np.where(rows.known, rows.a * (rows.residual - np.nan_to_num(mean)), 0.0)
    count = count_labelled_targets(rows)
    smooth = (np.nan_to_num(mean) * count + 0.5) / (count + 1)
    weight = sum_by_target(rows, rows.a)
    anticipated = np.asarray(Design(rows.design.pi).variance(weight)) * smooth * (1 - smooth)
    return estimate_from_terms(rows, mean, z, np.zeros(z.shape[1]), anticipated=anticipated)


def anticipated_variance(
    p_all: ArrayLike | sparse.sparray | sparse.spmatrix,
    pi_all: ArrayLike,
    g_all: ArrayLike,
    label: ArrayLike,
    g: ArrayLike,
    *,
    target: ArrayLike | None = None,
    document_term: ArrayLike = 0.0,
    correlation: float = 1.0,
) -> Numbers:
    """Return the variance that the model expects of the difference estimate, a floor for the
    realised one.

    ``A_i = c Σ_τ (1/π − 1) {ρ [Σ_{x∈τ} p_i s]² + (1 − ρ) Σ_{x∈τ} p_i² s²}``, ``s² = g (1 − g)``,
    with
    ``c = max(1, Σ_S (f − g)² / Σ_S g (1 − g))`` over all labels of the pool: a model that is surer
    than it should be is scaled up. Predictions that share a target are taken to be wrong together
    (ρ = 1), the careful assumption, unless
    ``correlation`` says how much they are; without ``target`` this is ``c Σ p² (1/π − 1) g (1 −
    g)``.

    Parameters
    ----------
    p_all : (N,) or (N, m) array, dense or scipy.sparse
        Weights of all predictions.
    pi_all : (N,) array
        Inclusion probability of each prediction's target, in [0, 1].
    g_all : (N,) array
        The model's prediction for each.
    label, g : (n,) or (n, m) array
        Labels (NaN is missing) and the model's predictions at all labelled rows of the pool.
    target : (N,) integer array, optional
        Target codes.
    document_term : float or (m,) array
        :func:`estimators.anticipated.variance_beyond_targets` of the estimate's influence, where
        labels came in with documents; not below 0.
    correlation : float
        ρ in [0, 1], of the errors of predictions that share a target:
        :func:`estimators.model.error_correlation`.

    Returns
    -------
    float or (m,) array
        Infinite where a prediction with weight can never be asked (π = 0).

    Raises
    ------
    ValueError
        If a value is out of range or shapes disagree.

    Examples
    --------
    >>> import numpy as np
    >>> half = np.full(4, 0.5)
    >>> anticipated_variance(np.full(4, 0.25), half, half, np.array([1, 0]), np.full(2, 0.5))
    0.0625
    """
    single = not sparse.issparse(p_all) and np.ndim(np.asarray(p_all)) == 1
    weights = sparse.csc_array(
        np.asarray(p_all, dtype=np.float64)[:, None] if single else p_all, dtype=np.float64
    )
    if not weights.data.all():  # a stored zero times an infinite variance would be undefined
        weights = weights.copy()
        weights.eliminate_zeros()
    checks.check_non_negative("p_all", weights.data)
    if np.shape(pi_all) != (weights.shape[0],) or np.shape(g_all) != np.shape(pi_all):
        raise ValueError(
            f"p_all, pi_all, g_all must agree; got {weights.shape}, {np.shape(pi_all)},"
            f" {np.shape(g_all)}"
        )
    n = weights.shape[0]
    code = None if target is None else checks.dense_codes("target", target, n)
    nothing = np.zeros(0, dtype=np.int64)
    own = []
    for begin, end in zip(weights.indptr, weights.indptr[1:], strict=False):
        row = weights.indices[begin:end]
        support = Support(row, nothing, nothing) if code is None else Support.from_rows(row, code)
        own.append((support, weights.data[begin:end]))
    total = anticipated_variances(
        own, pi_all, g_all, label, g, document_term=document_term, correlation=correlation
    )
    return float(total[0]) if single else total


def anticipated_variances(
    supports: Sequence[tuple[Support, FloatArray]],
    pi_all: ArrayLike,
    g_all: ArrayLike,
    label: ArrayLike,
    g: ArrayLike,
    *,
    document_term: ArrayLike = 0.0,
    correlation: float = 1.0,
) -> FloatArray:
    """Return the anticipated variance (:func:`anticipated_variance`) of systems that are given one
    by one, without a common table of predictions.

    Parameters
    ----------
    supports : sequence of (Support, array)
        Of each system the rows that it predicts, and their weights (n,), none of which is 0.
    pi_all, g_all, label, g, document_term, correlation
        As for :func:`anticipated_variance`.

    Returns
    -------
    (m,) array
        Infinite where a prediction can never be asked (π = 0).

    Raises
    ------
    ValueError
        As :func:`anticipated_variance`.

    Examples
    --------
    >>> import numpy as np
    >>> # of one target
    >>> half, both = np.full(2, 0.5), Support.from_rows(np.arange(2), np.zeros(2, int))
    >>> anticipated_variances([(both, half)], half, half, [], []).tolist()  # (½ √¼ + ½ √¼)²
    [0.25]
    """
    chance, guess = (
        checks.check_probabilities("pi_all", pi_all),
        checks.check_probabilities("g_all", g_all),
    )
    if guess.shape != chance.shape:
        raise ValueError(f"pi_all and g_all must agree; got {chance.shape}, {guess.shape}")
    with np.errstate(divide="ignore"):
        odds = np.sqrt(guess * (1 - guess) * (1 / chance - 1))
    odds[(guess * (1 - guess)) == 0] = 0.0
    share = float(checks.check_probabilities("correlation", correlation))
    squares = np.zeros(len(supports))
    for system, (support, p) in enumerate(supports):
        term = p * odds[support.row]
        square = float(term @ term)
        if share and np.isfinite(square):  # what can never be asked stays infinite, whatever ρ
            square += share * support.sum_cross_products(term)
        squares[system] = square
    doubted = overconfidence_factor(
        *columns(checks.check_labels("label", label), checks.check_probabilities("g", g))
    )
    return np.asarray(doubted * squares + np.maximum(document_term, 0.0), dtype=np.float64).ravel()


def _ratio_or_nan(above: FloatArray, below: FloatArray, *, empty: float) -> FloatArray:
    ratio: FloatArray = np.divide(above, below, out=np.full(above.shape, empty), where=below > 0)
    return ratio
