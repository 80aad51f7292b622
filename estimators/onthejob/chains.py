"""Inference in linear chains: forward-backward and Viterbi."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from estimators.checks import FloatArray, IntArray


def forward_backward(
    unary: ArrayLike, transition: ArrayLike, lengths: ArrayLike | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the normaliser and the marginals of a batch of linear chains.

    ``p(y) ∝ exp(Σ_i u_i(y_i) + Σ_{i>1} A[y_{i−1}, y_i])``, in O(n K²) for each chain.

    Parameters
    ----------
    unary : (B, n, K) array
        Scores u of each label at each position.
    transition : (K, K) array
        Scores A of a label (column) after another (row).
    lengths : (B,) integer array, optional
        Number of positions of each chain; positions beyond it are padding. All n if left out.

    Returns
    -------
    log_normaliser : (B,) array
        log Σ_y exp(score(y)).
    nodes : (B, n, K) array
        p(y_i); 0 at padding.
    pairs : (B, K, K) array
        Expected number of times that label k is followed by label l.

    Examples
    --------
    >>> import numpy as np
    >>> log_z, nodes, pairs = forward_backward(np.zeros((1, 2, 2)), np.zeros((2, 2)))
    >>> bool(np.isclose(log_z[0], np.log(4))), nodes[0, 0].tolist(), pairs[0].tolist()
    (True, [0.5, 0.5], [[0.25, 0.25], [0.25, 0.25]])
    """
    scores = np.asarray(unary, dtype=np.float64)
    steps = np.asarray(transition, dtype=np.float64)
    n_chains, n, _ = scores.shape
    top = scores.max(axis=2, keepdims=True)
    emission = np.exp(scores - top)
    highest_step = float(steps.max())
    move = np.exp(steps - highest_step)
    inside = np.ones((n_chains, n), dtype=bool)
    if lengths is not None:
        inside = np.arange(n) < np.asarray(lengths)[:, None]

    # Messages are probabilities scaled at each position; `scale` keeps what was divided out.
    forward = np.empty_like(emission)
    scale = np.ones((n_chains, n))
    message = emission[:, 0]
    for i in range(n):
        if i:
            message = (forward[:, i - 1] @ move) * emission[:, i]
        total = message.sum(axis=1)
        if lengths is None:
            scale[:, i] = total
            forward[:, i] = message / total[:, None]
        else:
            scale[:, i] = np.where(inside[:, i], total, 1.0)
            forward[:, i] = np.where(
                inside[:, i, None], message / total[:, None], forward[:, max(i - 1, 0)]
            )
    backward = np.ones_like(emission)
    for i in range(n - 2, -1, -1):
        message = (emission[:, i + 1] * backward[:, i + 1] / scale[:, i + 1, None]) @ move.T
        if lengths is None:
            backward[:, i] = message
        else:
            backward[:, i] = np.where(inside[:, i + 1, None], message, 1.0)

    nodes = forward * backward * inside[:, :, None]
    arriving = emission * backward / scale[:, :, None] * inside[:, :, None]
    pairs = np.matmul(forward[:, :-1].transpose(0, 2, 1), arriving[:, 1:]) * move
    count = inside.sum(axis=1)
    log_normaliser = (
        np.log(scale).sum(axis=1)
        + (top[:, :, 0] * inside).sum(axis=1)
        + np.maximum(count - 1, 0) * highest_step
    )
    return log_normaliser, nodes, pairs


def viterbi(unary: ArrayLike, transition: ArrayLike) -> IntArray:
    """Return the most probable sequence of labels of one chain; the lowest label wins ties.

    Parameters
    ----------
    unary : (n, K) array
        As for :func:`forward_backward`, of one chain.
    transition : (K, K) array
        As for :func:`forward_backward`.

    Returns
    -------
    (n,) integer array
        argmax_y p(y).

    Examples
    --------
    >>> import numpy as np
    >>> viterbi([[1.0, 0.0], [0.0, 0.5]], np.array([[0.0, -1.0], [-1.0, 0.0]])).tolist()
    [0, 0]
    """
    scores = np.asarray(unary, dtype=np.float64)
    steps = np.asarray(transition, dtype=np.float64)
    n = scores.shape[0]
    came_from = np.zeros(scores.shape, dtype=np.int64)
    best = scores[0]
    for i in range(1, n):
        through = best[:, None] + steps
        came_from[i] = through.argmax(axis=0)
        best = through.max(axis=0) + scores[i]
    labels = np.empty(n, dtype=np.int64)
    labels[-1] = best.argmax()
    for i in range(n - 1, 0, -1):
        labels[i - 1] = came_from[i, labels[i]]
    return labels
