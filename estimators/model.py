"""The service's model g: a cross-fitted ridge logistic regression of the labels on features that
need no judgments.

:func:`guess` is the entry point: it takes plain arrays and returns g for every prediction. No label
is used to predict itself: rows of a fold are predicted by a model that saw only the labels of the
other folds (Chernozhukov et al. 2018), and a fold holds whole targets. A fit can start from an
earlier one, also one with fewer systems, and is then quick.

:func:`error_correlation` and :func:`expected_error` say how far g may be trusted, for planning and
for anticipated variances.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import expit

from estimators import checks
from estimators.checks import FloatArray, IntArray
from estimators.features import Features, Matrix, prediction_features
from estimators.sums import sum_by_code

CLIP = 0.02
FLOOR = 0.06
ROUNDS, STEPS, TOLERANCE = 30, 6, 1e-10
"""A fit ends when no coefficient moves by more than the tolerance. The order of floating-point
additions, which differs between processors, then changes no printed digit.
"""
ROUNDING = 1e-13
"""Relative growth of the loss that counts as rounding error"""
BLOCK = 2**16
"""Number of rows whose features are in memory at once"""


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted model of labels: its cross-fitted predictions and its coefficients.

    Attributes
    ----------
    g : (n,) array
        Cross-fitted prediction for every row, within [0.02, 0.98].
    coefficients : (k, d) array
        One row a fold: fitted without that fold's labels.
    names : tuple of str
        Of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> fitted = Model(g=np.array([0.9, 0.2]), coefficients=np.zeros((5, 1)), names=("constant",))
    >>> len(fitted.coefficients), fitted.g.tolist()  # five folds, two predictions
    (5, [0.9, 0.2])
    """

    g: FloatArray
    coefficients: FloatArray
    names: tuple[str, ...]


def fit_and_predict(
    membership: Matrix,
    label: ArrayLike,
    fold: ArrayLike,
    *,
    target: ArrayLike,
    team: ArrayLike | None = None,
    confidence: Matrix | None = None,
    predicate: ArrayLike | None = None,
    types: ArrayLike | None = None,
    subject: ArrayLike | None = None,
    object: ArrayLike | None = None,
    numbers: ArrayLike | None = None,
    scores: ArrayLike | None = None,
    start: Model | None = None,
) -> Model:
    """Return a model fitted to the existing labels, with the expected label g of every prediction
    of the pool, by :func:`features` and :func:`fit_ridge_logistic`.

    Parameters
    ----------
    membership, target, team, confidence, predicate, types, subject, object, numbers, scores
        As for :func:`features`.
    label, fold, start
        As for :func:`fit_ridge_logistic`.

    Returns
    -------
    Model
        Its g is the prediction of every row, none made with the row's own label.

    Raises
    ------
    ValueError
        As both, and if the rows of a target lie in several folds.

    Examples
    --------
    Two systems; what both predict is right, what only the second predicts is wrong.

    >>> import numpy as np
    >>> both, label = np.repeat([1, 0], 30), np.repeat([1.0, 0.0], 30)
    >>> rows = np.arange(60)
    >>> model = fit_and_predict(np.column_stack([both, np.ones(60)]), label, rows % 5, target=rows)
    >>> bool(model.g[0] > 0.8 and model.g[-1] < 0.2)
    True
    """
    code = np.asarray(target)
    folds = checks.check_codes("fold", fold, code.size)
    _, first_row, group = np.unique(code, return_index=True, return_inverse=True)
    for odd in code[folds[first_row][group] != folds]:
        raise ValueError(f"fold must be one a target; target {odd} lies in several")
    columns = prediction_features(
        membership,
        target=target,
        team=team,
        confidence=confidence,
        predicate=predicate,
        types=types,
        subject=subject,
        object=object,
        numbers=numbers,
        scores=scores,
    )
    return fit_ridge_logistic(columns, label, folds, start=start)


def fit_ridge_logistic(
    features: Features, label: ArrayLike, fold: ArrayLike, *, start: Model | None = None
) -> Model:
    """Return the cross-fitted ridge logistic regression of the labels on the features.

    For each fold k the coefficients minimise ``−Σ_{not in k} [f log g + (1 − f) log(1 − g)] + ½ Σ_j
    penalty_j β_j²``, half a right and half a wrong label added so that the constant stays finite.

    Parameters
    ----------
    features : Features
        Of all rows.
    label : (n,) array
        In [0, 1]; NaN where there is none.
    fold : (n,) integer array
        Fold of each row's target.
    start : Model, optional
        An earlier fit, perhaps with other systems: saves time, and changes nothing but the last
        digits.

    Returns
    -------
    Model
        Without a label outside a fold, its rows get ½.

    Raises
    ------
    ValueError
        If shapes disagree, or a label or fold is out of range.

    Examples
    --------
    >>> found = prediction_features([[1, 0], [1, 1], [0, 1]], target=[0, 1, 2])
    >>> fit_ridge_logistic(found, [float("nan")] * 3, [0, 1, 0]).g.tolist()
    [0.5, 0.5, 0.5]
    """
    f, n = checks.check_labels("label", label), features.matrix.shape[0]
    if f.shape != (n,):
        raise ValueError(f"label must have shape ({n},), one a row of the features; got {f.shape}")
    folds = checks.check_codes("fold", fold, n)
    n_folds = int(folds.max(initial=-1)) + 1
    labelled = np.flatnonzero(~np.isnan(f))
    rows = features.matrix[labelled]
    used = np.union1d(np.unique(rows.indices), [0]).astype(np.int64)
    coefficients = _earlier_coefficients(start, features.names, n_folds)
    unused = np.ones(len(features.names), dtype=np.bool_)
    unused[used] = False
    coefficients[:, unused] = 0.0
    problem = _make_problem(
        rows[:, used], f[labelled], folds[labelled], n_folds, features.penalty[used]
    )
    coefficients[:, used] = _minimise_by_newton(problem, coefficients[:, used].T).T
    g = np.empty(n)
    for begin in range(0, n, BLOCK):
        fold_of = folds[begin : begin + BLOCK]
        eta = features.matrix[begin : begin + BLOCK] @ coefficients.T
        g[begin : begin + BLOCK] = expit(eta[np.arange(fold_of.size), fold_of])
    return Model(np.clip(g, CLIP, 1 - CLIP), coefficients, features.names)


def error_correlation(
    label: ArrayLike,
    g: ArrayLike,
    target: ArrayLike,
    membership: Matrix,
    *,
    prior: tuple[float, float] = (1.0, 20.0),
) -> float:
    """Return the correlation of the errors f − g (label minus guess) of predictions that share a
    target.

    ``ρ = Σ [(Σ_{x∈τ} r)² − Σ r²] / Σ [(Σ_{x∈τ} s)² − Σ s²]``, r = f − g and s² = g (1 − g), over
    the labelled predictions of each system and target; clipped to [0, 1]. Only what one system
    predicts together counts: predicates that different systems predict of a pair exclude each
    other, those of one system rather agree.

    Parameters
    ----------
    label, g, target : (n,) array
        Labels (NaN is missing), cross-fitted predictions and target codes.
    membership : (n, m) array or scipy.sparse
        Which systems predict each row.
    prior : (float, float)
        A correlation and how many pairs of predictions it counts for: with few labels, be careful.

    Returns
    -------
    float
        ρ in [0, 1]; the prior's where no system predicts two labelled predictions of one target.

    Raises
    ------
    ValueError
        If shapes disagree or a value is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> g, target, one = np.full(4, 0.5), [0, 0, 1, 1], np.ones((4, 1))
    >>> together = error_correlation([1, 1, 0, 0], g, target, one, prior=(1.0, 0.0))
    >>> apart = error_correlation([1, 0, 0, 1], g, target, one, prior=(1.0, 0.0))
    >>> together, apart
    (1.0, 0.0)
    """
    f, guess = checks.check_labels("label", label), checks.check_probabilities("g", g)
    code = checks.check_codes("target", target, f.size)
    predicted = sparse.csr_array(membership, dtype=np.float64, copy=True)
    predicted.eliminate_zeros()
    if guess.shape != f.shape or predicted.shape[0] != f.size:
        raise ValueError(
            f"label, g and membership must agree; got {f.shape}, {guess.shape}"
            f" and {predicted.shape}"
        )
    labelled = np.flatnonzero(~np.isnan(f))
    cells = predicted[labelled].tocoo()
    row, system = cells.coords
    pair = np.unique(code[labelled][row] * predicted.shape[1] + system, return_inverse=True)[1]
    spread = np.sqrt(guess * (1 - guess))[labelled][row]
    shared = _sum_of_pair_products(spread, pair)
    agreeing = _sum_of_pair_products((f - guess)[labelled][row], pair)
    # A pair of predictions that g knows nothing of weighs ¼ + ¼.
    above, below = agreeing + 0.5 * prior[0] * prior[1], shared + 0.5 * prior[1]
    return float(np.clip(above / below, 0, 1)) if below > 0 else prior[0]


def _sum_of_pair_products(values: FloatArray, code: IntArray) -> float:
    """Return Σ (Σ v)² − Σ v² over the codes: twice the products of values with the same code."""
    return float(
        np.sum(sum_by_code(values, code, int(code.max(initial=-1)) + 1) ** 2) - np.sum(values**2)
    )


def expected_error(
    p: ArrayLike, g: ArrayLike, target: ArrayLike, *, correlation: float = 1.0, floor: float = FLOOR
) -> FloatArray:
    """Return v, the expected squared error of the guess g at each prediction of a system, as input
    of water-filling.

    ``v = max(g (1 − g), floor)``, scaled up within each target so that ``Σ p² v`` is the expected
    variance of the target's summed term: ``ρ (Σ p √v)² + (1 − ρ) Σ p² v``. Several statements about
    one pair are right or wrong together to the extent ρ, and worth more of a question.

    Parameters
    ----------
    p, g, target : (n,) array
        Weight, prediction and target code of each prediction of one system.
    correlation : float
        ρ, from :func:`error_correlation`.
    floor : float
        Least expected squared error: no model is surer than that before it has been shown.

    Returns
    -------
    (n,) array
        v of each prediction.

    Raises
    ------
    ValueError
        If shapes disagree or a value is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> half = [0.5, 0.5]
    >>> expected_error(half, half, [0, 0]).tolist(), expected_error(half, half, [0, 1]).tolist()
    ([0.5, 0.5], [0.25, 0.25])
    """
    weight, guess = checks.check_non_negative("p", p), checks.check_probabilities("g", g)
    if guess.shape != weight.shape or weight.ndim != 1:
        raise ValueError(
            f"p and g must have the same one-dimensional shape; got {weight.shape} and"
            f" {guess.shape}"
        )
    code, share = (
        checks.dense_codes("target", target, weight.size),
        float(checks.check_probabilities("correlation", correlation)),
    )
    v = np.maximum(guess * (1 - guess), floor)
    n_targets = int(code.max(initial=-1)) + 1
    together = sum_by_code(weight * np.sqrt(v), code, n_targets) ** 2
    apart = sum_by_code(weight**2 * v, code, n_targets)
    growth = np.divide(together, apart, out=np.ones(n_targets), where=apart > 0)
    scaled: FloatArray = v * (1 - share + share * growth)[code]
    return scaled


class _Problem(NamedTuple):
    """Labelled rows, fold by fold, followed by the two half labels that every fold is fitted on.

    ``weight`` (n, k) is 0 if the fold is not fitted on the row; ``ends`` (k + 1,) is where each
    fold's rows begin.
    """

    x: FloatArray
    f: FloatArray
    weight: FloatArray
    ends: IntArray
    penalty: FloatArray


def _make_problem(
    rows: sparse.csr_array, f: FloatArray, fold: IntArray, n_folds: int, penalty: FloatArray
) -> _Problem:
    order = np.argsort(fold, kind="stable")
    halves = np.zeros((2, rows.shape[1]))
    halves[:, 0] = 1.0
    return _Problem(
        np.concatenate([rows[order].toarray(), halves]),
        np.concatenate([f[order], [0.0, 1.0]])[:, None],
        np.concatenate([fold[order][:, None] != np.arange(n_folds), np.full((2, n_folds), 0.5)]),
        np.searchsorted(fold[order], np.arange(n_folds + 1)),
        penalty[:, None],
    )


def _minimise_by_newton(problem: _Problem, start: FloatArray) -> FloatArray:
    """Return the coefficients (d, k) that minimise each fold's loss, by Newton's method with
    Hessians that are recomputed every few steps.

    A Hessian is taken at the folds' mean and without the fold's own rows, so that one product
    serves all folds. They differ little, and a few cheap steps take each to its own minimum.
    """
    beta = start.copy()
    eta = problem.x @ beta
    loss = _penalised_losses(problem, beta, eta)
    for _ in range(ROUNDS):
        inverse = _inverse_hessians(problem, beta.mean(axis=1))
        for _ in range(STEPS):
            error = problem.weight * (expit(eta) - problem.f)
            step: FloatArray = np.einsum(
                "kij,jk->ik", inverse, problem.x.T @ error + problem.penalty * beta
            )
            move, scale = problem.x @ step, np.ones(beta.shape[1])
            while True:
                attempt = _penalised_losses(problem, beta - scale * step, eta - scale * move)
                worse = (attempt > loss + ROUNDING * np.abs(loss)) & (scale > 1e-6)
                if not worse.any():
                    break
                scale[worse] /= 2
            beta, eta, loss = beta - scale * step, eta - scale * move, attempt
            if np.abs(step).max() < TOLERANCE:
                return beta
    return beta


def _inverse_hessians(problem: _Problem, beta: FloatArray) -> FloatArray:
    """Return the inverse of Xᵀ W X + penalty for each fold, (k, d, d), W at common coefficients."""
    g = expit(problem.x @ beta)
    last, n_folds = problem.ends[-1], problem.weight.shape[1]
    scaled = problem.x[:last] * np.sqrt(g * (1 - g))[:last, None]
    parts = [scaled[problem.ends[k] : problem.ends[k + 1]] for k in range(n_folds)]
    blocks = np.stack([part.T @ part for part in parts])
    whole = blocks.sum(axis=0) + np.diag(problem.penalty[:, 0])
    whole[0, 0] += g[-1] * (1 - g[-1])  # the two halves
    inverses: FloatArray = np.linalg.inv(whole - blocks)
    return inverses


def _penalised_losses(problem: _Problem, beta: FloatArray, eta: FloatArray) -> FloatArray:
    """Return the penalised negative log likelihood of each fold."""
    misfit = np.einsum("nk,nk->k", problem.weight, np.logaddexp(0, eta) - problem.f * eta)
    return np.asarray(misfit + 0.5 * np.sum(problem.penalty * beta**2, axis=0))


def _earlier_coefficients(start: Model | None, names: tuple[str, ...], n_folds: int) -> FloatArray:
    """Return an earlier model's coefficients in the order of these names, 0 for new ones."""
    coefficients = np.zeros((n_folds, len(names)))
    if start is not None and len(start.coefficients) == n_folds:
        place = {name: j for j, name in enumerate(start.names)}
        pairs = [(j, place[name]) for j, name in enumerate(names) if name in place]
        here, before = np.array(pairs, dtype=np.int64).T
        coefficients[:, here] = start.coefficients[:, before]
    return coefficients
