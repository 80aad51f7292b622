"""What people answer, given the true label: p(response | label)."""

from __future__ import annotations

import math
from functools import cache
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import ArrayLike

from estimators.checks import FloatArray


def symmetric_response_table(n_labels: int, quality: float) -> FloatArray:
    """Return the response table of an annotator with the same accuracy for all labels.

    ``p(r | y) = q`` if r = y, else ``(1 − q)/(K − 1)``.

    Parameters
    ----------
    n_labels : int
        K, at least 2.
    quality : float
        q, strictly between 0 and 1.

    Returns
    -------
    (K, K) array
        Row y, column r.

    Examples
    --------
    >>> symmetric_response_table(2, 0.75).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    if n_labels < 2 or not 0 < quality < 1:
        raise ValueError(
            f"n_labels must be at least 2 and quality inside (0, 1); got {n_labels}, {quality}"
        )
    table = np.full((n_labels, n_labels), (1 - quality) / (n_labels - 1))
    np.fill_diagonal(table, quality)
    return table


def expected_best_probability(p: ArrayLike, table: ArrayLike, m: int) -> FloatArray:
    """Return the expected probability of the best label after m more answers.

    ``Σ_a P(a) max_y p(y | a)`` over the multisets a of m responses.

    Parameters
    ----------
    p : (n, K) array
        Probabilities of the labels at each position.
    table : (K, K) array
        p(response | label).
    m : int
        Number of answers about each position, at least 0.

    Returns
    -------
    (n,) array
        At least max p, each position taken by itself.

    Examples
    --------
    >>> table = [[0.75, 0.25], [0.25, 0.75]]
    >>> [expected_best_probability([[0.5, 0.5]], table, m).tolist() for m in (0, 1, 2)]
    [[0.5], [0.75], [0.75]]
    """
    prior = np.asarray(p, dtype=np.float64)
    counts, ways = _response_multisets(prior.shape[1], m)
    log_table = np.log(np.maximum(np.asarray(table, dtype=np.float64), 1e-12))
    likelihood = np.exp(counts @ log_table.T) * ways[:, None]
    return np.asarray((prior[:, None, :] * likelihood).max(axis=2).sum(axis=1))


@cache
def _response_multisets(n_labels: int, m: int) -> tuple[FloatArray, FloatArray]:
    """Return the counts of labels in each multiset of m responses, and the number of its
    permutations.
    """
    drawn = list(combinations_with_replacement(range(n_labels), m))
    counts = np.array([np.bincount(a, minlength=n_labels) if a else [0] * n_labels for a in drawn])
    factorial = np.array([math.factorial(k) for k in range(m + 1)])
    return counts.astype(np.float64), math.factorial(m) / factorial[counts].prod(axis=1)


class Quality:
    """Response tables that are learned from answers, one for each worker and one for an average
    worker.

    A worker's table is the mean of a Dirichlet distribution for each true label. Its prior is
    ``strength`` answers at the average worker's table, whose prior is 10 answers at ``quality``. An
    answer counts for each label by the posterior probability of that label. With ``tied`` the
    probability of being right is the same for all labels: Beta(7, 3) at the default quality.

    Parameters
    ----------
    n_labels : int
        K.
    quality : float
        Prior probability of a right answer.
    strength : float
        How many answers of a worker weigh as much as what is known of all workers.
    tied : bool
        One probability of being right (True), or a table with a row for each label (False).

    Examples
    --------
    >>> import numpy as np
    >>> quality = Quality(2)
    >>> for _ in range(10):
    ...     quality.update(worker=5, response=1, posterior=np.array([0.0, 1.0]))
    >>> float(quality.table()[0, 0]), bool(quality.table(5)[0, 0] > quality.table(6)[0, 0])
    (0.85, True)
    """

    def __init__(
        self, n_labels: int, quality: float = 0.7, *, strength: float = 10.0, tied: bool = True
    ) -> None:
        self.n_labels, self.strength, self.tied = n_labels, strength, tied
        # A row for each true label holds 10 answers; tied, the rows are added up before division.
        self._anybody = (
            10.0 * symmetric_response_table(n_labels, quality) / (n_labels if tied else 1)
        )
        self._workers: dict[int, FloatArray] = {}

    def update(self, worker: int, response: int, posterior: FloatArray) -> None:
        """Add an answer to the counts of its worker and of all workers, weighted by ``posterior``
        (K,): the probability of each label at its position, given all answers.
        """
        own = self._workers.setdefault(worker, np.zeros((self.n_labels, self.n_labels)))
        own[:, response] += posterior
        self._anybody[:, response] += posterior

    def table(self, worker: int | None = None) -> FloatArray:
        """Return p(response | label) (K, K) of a worker, or of anybody."""
        anybody = self._mean_table(self._anybody)
        own = None if worker is None else self._workers.get(worker)
        if own is None:
            return anybody
        prior = self.strength * anybody / (self.n_labels if self.tied else 1)
        return self._mean_table(own + prior)

    def _mean_table(self, counts: FloatArray) -> FloatArray:
        if self.tied:
            return symmetric_response_table(self.n_labels, float(np.trace(counts) / counts.sum()))
        table: FloatArray = counts / counts.sum(axis=1, keepdims=True)
        return table
