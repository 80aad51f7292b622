"""What people answer, given the true label: p(response | label)."""

from __future__ import annotations

import numpy as np

from estimators.checks import FloatArray


def symmetric(n_labels: int, quality: float) -> FloatArray:
    """Return the response table of somebody who is right with one probability for all labels.

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
    >>> symmetric(2, 0.75).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    if n_labels < 2 or not 0 < quality < 1:
        raise ValueError(
            f"n_labels must be at least 2 and quality inside (0, 1); got {n_labels}, {quality}"
        )
    table = np.full((n_labels, n_labels), (1 - quality) / (n_labels - 1))
    np.fill_diagonal(table, quality)
    return table


class Quality:
    """Response tables that are learned from answers, of each worker and of anybody.

    A worker's table is the mean of a Dirichlet distribution for each true label. Its prior is
    ``strength`` answers at the table of anybody; anybody's prior is 10 answers at ``quality``.
    An answer counts for each label by the posterior probability of that label. With ``tied`` the
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
        self._anybody = 10.0 * symmetric(n_labels, quality) / (n_labels if tied else 1)
        self._workers: dict[int, FloatArray] = {}

    def update(self, worker: int, response: int, posterior: FloatArray) -> None:
        """Count an answer; ``posterior`` (K,) is p(y) at its position after all answers."""
        own = self._workers.setdefault(worker, np.zeros((self.n_labels, self.n_labels)))
        own[:, response] += posterior
        self._anybody[:, response] += posterior

    def table(self, worker: int | None = None) -> FloatArray:
        """Return p(response | label) (K, K) of a worker, or of anybody."""
        anybody = self._mean(self._anybody)
        own = None if worker is None else self._workers.get(worker)
        if own is None:
            return anybody
        prior = self.strength * anybody / (self.n_labels if self.tied else 1)
        return self._mean(own + prior)

    def _mean(self, counts: FloatArray) -> FloatArray:
        if self.tied:
            return symmetric(self.n_labels, float(np.trace(counts) / counts.sum()))
        table: FloatArray = counts / counts.sum(axis=1, keepdims=True)
        return table
