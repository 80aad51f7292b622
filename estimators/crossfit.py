"""The model g: free features predict people's judgments, and no label is used to predict itself.

Ridge-penalised logistic regression, fitted once for each fold on the labels of all other folds. All
rows of a target are in one fold, so that they never predict each other (cross-fitting: Chernozhukov
et al. 2018).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit

from estimators import checks
from estimators.checks import FloatArray, IntArray
from estimators.poisson import keyed_uniforms

Features: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix
SMALL = 1500  # up to here Newton's steps, with a dense Hessian, are the quicker way


class _Model(NamedTuple):
    intercept: float
    coefficients: FloatArray


def keyed_folds(keys: Iterable[str | bytes | int], k: int, *, key: bytes) -> IntArray:
    """Return the fold, 0 … k − 1, of each target key, by a keyed hash, so that it never changes and
    cannot be chosen.

    Parameters
    ----------
    keys : iterable of str, bytes or int
        Names of targets; equal names get equal folds.
    k : int
        Number of folds, at least 2.
    key : bytes
        The secret; independent of that of the design because the purpose is hashed in.

    Returns
    -------
    integer array
        One fold a key.

    Raises
    ------
    ValueError
        If k is below 2 or the key is empty or too long.

    Examples
    --------
    >>> fold = keyed_folds(["a", "b", "a"], 5, key=b"secret")
    >>> bool(fold[0] == fold[2] and 0 <= fold.min() and fold.max() < 5)
    True
    """
    if k < 2:
        raise ValueError(f"k must be at least 2; got {k!r}")
    names = (b"fold:" + (name if isinstance(name, bytes) else str(name).encode()) for name in keys)
    return np.floor(keyed_uniforms(names, key=key) * k).astype(np.int64)


def cross_fitted_predictions(
    features_labelled: Features,
    label: ArrayLike,
    features_all: Features,
    fold_labelled: ArrayLike,
    fold_all: ArrayLike,
    *,
    ridge: float = 1.0,
    weight: ArrayLike | None = None,
    clip: float = 0.02,
) -> FloatArray:
    """Return the probability g of the label 1 for every row of ``features_all``, by the logistic
    model of its fold, fitted on the labels of the other folds.

    Each model minimises ``−Σ w [f log g + (1 − f) log(1 − g)] + ½ ridge |β|²`` with ``g = 1 / (1 +
    exp(−(β₀ + x·β)))``; the intercept is not penalised, half a right and half a wrong label are
    added so that it stays finite.

    Parameters
    ----------
    features_labelled : (n, k) array or scipy.sparse
        Features of the labelled rows; one 0/1 column a system is the essential part.
    label : (n,) array
        In [0, 1]; NaN is missing and not learnt from.
    features_all : (N, k) array or scipy.sparse
        Features of all rows that g is wanted for.
    fold_labelled, fold_all : (n,) and (N,) integer array
        The folds of their targets.
    ridge : float
        Penalty, > 0.
    weight : (n,) array, optional
        Weight of each label, 1 if left out.
    clip : float
        g is kept within [clip, 1 − clip], away from what no model can know; in (0, ½).

    Returns
    -------
    (N,) array
        In (0, 1). A fold without labels outside itself gets ½.

    Raises
    ------
    ValueError
        If shapes disagree, a label is out of range, or ridge or clip is.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.repeat([[0.0], [1.0]], 50, axis=0)
    >>> fold = np.arange(100) % 2
    >>> g = cross_fitted_predictions(x, x[:, 0], x, fold, fold, ridge=0.1)
    >>> bool(g[0] < 0.1 and g[-1] > 0.9)
    True
    """
    f = checks.check_labels("label", label)
    labelled = np.flatnonzero(~np.isnan(f))
    learn, everything = (
        _check_matrix("features_labelled", features_labelled),
        _check_matrix("features_all", features_all),
    )
    if learn.shape != (f.size, everything.shape[1]):
        raise ValueError(
            f"features_labelled must be {(f.size, everything.shape[1])}; got {learn.shape}"
        )
    fold_known = checks.check_codes("fold_labelled", fold_labelled, f.size)[labelled]
    fold_wanted = checks.check_codes("fold_all", fold_all, everything.shape[0])
    w = np.ones(f.size) if weight is None else checks.check_non_negative("weight", weight)
    if not ridge > 0:
        raise ValueError(f"ridge must be positive; got {ridge!r}")
    if not 0 < clip < 0.5:
        raise ValueError(f"clip must lie strictly between 0 and 0.5; got {clip!r}")
    learn, f, w = learn[labelled], f[labelled], w[labelled]
    g = np.full(everything.shape[0], 0.5)
    start = _Model(0.0, np.zeros(everything.shape[1]))
    for fold in np.unique(fold_wanted):
        other, here = fold_known != fold, fold_wanted == fold
        if other.any():
            start = _fit_logistic(learn[other], f[other], w[other], ridge, start)
            g[here] = expit(start.intercept + everything[here] @ start.coefficients)
    return np.clip(g, clip, 1 - clip)


def _check_matrix(name: str, features: Features) -> sparse.csr_array:
    matrix = sparse.csr_array(features, dtype=np.float64)
    checks.check_finite(name, matrix.data)
    return matrix


def _fit_logistic(
    x: sparse.csr_array, f: FloatArray, w: FloatArray, ridge: float, start: _Model
) -> _Model:
    """Return the fitted model; columns that these rows do not use keep the coefficient 0."""
    used = np.unique(x.indices)
    x = x[:, used]
    f, w = np.concatenate([f, [0.0, 1.0]]), np.concatenate([w, [0.5, 0.5]])
    x = sparse.vstack([x, sparse.csr_array((2, used.size))], format="csr")
    begin = np.concatenate([[start.intercept], start.coefficients[used]])
    fitted = (_minimise_by_newton if used.size <= SMALL else _minimise_by_lbfgs)(
        x, f, w, ridge, begin
    )
    coefficients = np.zeros(start.coefficients.size)
    coefficients[used] = fitted[1:]
    return _Model(float(fitted[0]), coefficients)


def _penalised_loss(
    theta: FloatArray, x: sparse.csr_array, f: FloatArray, w: FloatArray, ridge: float
) -> tuple[float, FloatArray]:
    """Return the penalised negative log likelihood and its gradient."""
    eta = theta[0] + x @ theta[1:]
    loss = float(w @ (np.logaddexp(0, eta) - f * eta) + 0.5 * ridge * theta[1:] @ theta[1:])
    error = w * (expit(eta) - f)
    return loss, np.concatenate([[error.sum()], x.T @ error + ridge * theta[1:]])


def _minimise_by_newton(
    x: sparse.csr_array, f: FloatArray, w: FloatArray, ridge: float, theta: FloatArray
) -> FloatArray:
    """Return the minimum by Newton's method, with steps halved where they overshoot."""
    loss, gradient = _penalised_loss(theta, x, f, w, ridge)
    for _ in range(50):
        step = np.linalg.solve(_hessian(theta, x, w, ridge), gradient)
        scale = 1.0
        while True:
            attempt = theta - scale * step
            new_loss, new_gradient = _penalised_loss(attempt, x, f, w, ridge)
            if new_loss <= loss or scale < 1e-8:
                break
            scale /= 2
        theta, loss, gradient = attempt, new_loss, new_gradient
        if np.abs(step).max() * scale < 1e-9:
            break
    return theta


def _hessian(theta: FloatArray, x: sparse.csr_array, w: FloatArray, ridge: float) -> FloatArray:
    g = expit(theta[0] + x @ theta[1:])
    curvature = w * g * (1 - g)
    hessian = np.empty((theta.size, theta.size))
    hessian[1:, 1:] = (x.T @ x.multiply(curvature[:, None])).toarray() + ridge * np.eye(
        theta.size - 1
    )
    hessian[0, 0] = curvature.sum() + 1e-10
    hessian[0, 1:] = hessian[1:, 0] = x.T @ curvature
    return hessian


def _minimise_by_lbfgs(
    x: sparse.csr_array, f: FloatArray, w: FloatArray, ridge: float, theta: FloatArray
) -> FloatArray:
    """Return the minimum by L-BFGS, used if the columns are too many for a Hessian."""
    fitted: FloatArray = minimize(
        _penalised_loss,
        theta,
        args=(x, f, w, ridge),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 500, "gtol": 1e-6},
    ).x
    return fitted
