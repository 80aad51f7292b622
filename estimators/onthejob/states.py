"""The state of one input while people answer, and the utility of stopping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from estimators.checks import FloatArray, IntArray
from estimators.onthejob.chains import forward_backward
from estimators.onthejob.people import expected_best_probability

WAIT = -1
"""Action: wait for the next answer"""
RETURN = -2
"""Action: return the labels"""

Evidence = tuple[tuple[int, int, int], ...]
"""Sorted answers (position, response, index of the response table)"""


@dataclass(frozen=True, eq=False)
class Posterior:
    """Marginals after some answers, in the forms that policies need.

    Attributes
    ----------
    nodes : (n, K) array
        p(y_i | x, answers).
    best : float
        Σ_i max_y p_i(y): the expected number of right labels.
    uncertain : tuple of int
        Positions that a search asks about: 1 − max_y p_i(y) > 0.002, the 12 most uncertain ones.

    Examples
    --------
    >>> Belief([[0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]], [[[0.9, 0.1], [0.1, 0.9]]]).posterior().best
    0.5
    """

    nodes: FloatArray
    best: float
    uncertain: tuple[int, ...]


class Belief:
    """The model's distribution of the labels of one input, updated by answers.

    ``p(y | x, r) ∝ p_θ(y | x) Π_j p(r_j | y_{q_j})``. Posteriors are cached by the multiset of
    answers.

    Parameters
    ----------
    unary : (n, K) array
        Scores of the labels at each position.
    transition : (K, K) array
        Scores of labels after labels.
    tables : sequence of (K, K) arrays
        p(response | label). The first one is anybody's and plans future answers; answers that have
        come name the table of who gave them.

    Examples
    --------
    >>> import numpy as np
    >>> from estimators.onthejob.people import symmetric_response_table
    >>> belief = Belief(np.zeros((1, 2)), np.zeros((2, 2)), [symmetric_response_table(2, 0.75)])
    >>> belief.posterior(((0, 1, 0),)).nodes.round(6).tolist()
    [[0.25, 0.75]]
    """

    def __init__(
        self, unary: ArrayLike, transition: ArrayLike, tables: Sequence[ArrayLike]
    ) -> None:
        self.unary = np.asarray(unary, dtype=np.float64)
        self.transition = np.asarray(transition, dtype=np.float64)
        self.tables = [np.asarray(table, dtype=np.float64) for table in tables]
        self._log = [np.log(np.maximum(table, 1e-12)) for table in self.tables]
        self._posteriors: dict[Evidence, Posterior] = {}
        self._gains: dict[tuple[Evidence, int], list[float]] = {}
        self._responses: dict[tuple[Evidence, int], list[float]] = {}

    def add_table(self, table: ArrayLike) -> int:
        """Add an annotator's response table and return its index."""
        self.tables.append(np.asarray(table, dtype=np.float64))
        self._log.append(np.log(np.maximum(self.tables[-1], 1e-12)))
        return len(self.tables) - 1

    def log_likelihood(self, evidence: Evidence) -> FloatArray:
        """Return the log-likelihood (n, K) of the answers at each position given each label: Σ_j
        log p(r_j | y).
        """
        scores = np.zeros_like(self.unary)
        for position, response, table in evidence:
            scores[position] += self._log[table][:, response]
        return scores

    def posterior(self, evidence: Evidence = ()) -> Posterior:
        """Return the marginals given some answers in any order."""
        key = tuple(sorted(evidence))
        if key not in self._posteriors:
            self._compute_posteriors([key])
        return self._posteriors[key]

    def next_response_probabilities(self, position: int, evidence: Evidence = ()) -> list[float]:
        """Return the probabilities of each response of an average annotator to the next query:
        p(r | position, answers) = Σ_y p_i(y) p(r | y).
        """
        key = (tuple(sorted(evidence)), position)
        if key not in self._responses:
            law = self.posterior(evidence).nodes[position] @ self.tables[0]
            self._responses[key] = law.tolist()
        return self._responses[key]

    def expected_gain(self, evidence: Evidence, m: int) -> list[float]:
        """Return the gain in the expected number of right labels from m more answers of an average
        annotator.

        One number for each position, which is taken by itself.
        """
        key = (evidence, m)
        if key not in self._gains:
            nodes = self.posterior(evidence).nodes
            value = expected_best_probability(nodes, self.tables[0], m)
            self._gains[key] = (value - nodes.max(axis=1)).tolist()
        return self._gains[key]

    def after(self, evidence: Evidence, position: int, response: int) -> Evidence:
        """Return the evidence with one more answer of an average annotator; its posterior is
        cached.

        All K answers at the position are computed in one batch: a search needs the others soon.
        """
        extended = tuple(sorted((*evidence, (position, response, 0))))
        if extended not in self._posteriors:
            n_labels = self.unary.shape[1]
            others = (tuple(sorted((*evidence, (position, r, 0)))) for r in range(n_labels))
            self._compute_posteriors([key for key in others if key not in self._posteriors])
        return extended

    def _compute_posteriors(self, keys: list[Evidence]) -> None:
        scores = np.stack([self.unary + self.log_likelihood(key) for key in keys])
        nodes = forward_backward(scores, self.transition)[1]
        largest = nodes.max(axis=2)
        best = largest.sum(axis=1)
        ranked = np.argsort(largest, axis=1, kind="stable")[:, :12]
        for b, key in enumerate(keys):
            asked = tuple(int(i) for i in ranked[b] if 1 - largest[b, i] > 0.002)
            self._posteriors[key] = Posterior(nodes[b], float(best[b]), asked)


@dataclass(frozen=True)
class Costs:
    """The costs of queries and of time, in units of accuracy.

    Attributes
    ----------
    query : float
        w_M, of one query.
    time : float
        w_T, of one unit of time.
    per_token : bool
        Whether accuracy is the number of right labels (True) or their share (False).

    Examples
    --------
    >>> Costs(query=0.01, time=0.0005)
    Costs(query=0.01, time=0.0005, per_token=False)
    """

    query: float = 0.01
    time: float = 0.0005
    per_token: bool = False


@dataclass(frozen=True, eq=False)
class State:
    """One input at one moment: its queries and answers so far.

    Attributes
    ----------
    belief : Belief
        The model's distribution.
    now : float
        Time since the input arrived.
    answered : tuple of (position, response, table)
        Answers so far, sorted.
    in_flight : tuple of (position, time of asking)
        Queries without an answer.
    most : int
        The largest number of queries about one position.

    Examples
    --------
    >>> import numpy as np
    >>> from estimators.onthejob.people import symmetric_response_table
    >>> state = State(Belief(np.zeros((1, 2)), np.zeros((2, 2)),
    ...     [symmetric_response_table(2, 0.75)]))
    >>> state = state.ask(0).answer(0, response=1, now=2.0)
    >>> state.n_queries, state.labels().tolist(), round(state.utility(Costs(0.01, 0.005)), 6)
    (1, [1], 0.73)
    """

    belief: Belief
    now: float = 0.0
    answered: Evidence = ()
    in_flight: tuple[tuple[int, float], ...] = ()
    most: int = 5

    @property
    def n_queries(self) -> int:
        """Return the number of queries so far."""
        return len(self.answered) + len(self.in_flight)

    @property
    def posterior(self) -> Posterior:
        """Return the marginals given the answers so far."""
        return self.belief.posterior(self.answered)

    def ask(self, position: int) -> State:
        """Return the state after a query about a position."""
        return replace(self, in_flight=(*self.in_flight, (position, self.now)))

    def answer(self, query: int, response: int, now: float, table: int = 0) -> State:
        """Return the state after the answer to the query at an index of ``in_flight``."""
        position = self.in_flight[query][0]
        return replace(
            self,
            now=now,
            answered=tuple(sorted((*self.answered, (position, response, table)))),
            in_flight=self.in_flight[:query] + self.in_flight[query + 1 :],
        )

    def asked(self, position: int) -> int:
        """Return the number of queries about a position."""
        queries = (*self.answered, *self.in_flight)
        return sum(query[0] == position for query in queries)

    def labels(self) -> IntArray:
        """Return the most probable label of each position."""
        return np.asarray(self.posterior.nodes.argmax(axis=1))

    def utility(self, costs: Costs) -> float:
        """Return the utility U = ExpAcc − (n_Q w_M + t w_T) of returning now: expected accuracy
        minus the costs of queries and of time.
        """
        n = 1 if costs.per_token else len(self.posterior.nodes)
        return self.posterior.best / n - costs.query * self.n_queries - costs.time * self.now


def expected_accuracy(nodes: ArrayLike, labels: ArrayLike | None = None) -> float:
    """Return the expected share of right labels.

    ``(1/n) Σ_i p_i(ŷ_i)``. The most probable label of each position is at least as good as the most
    probable sequence (:func:`estimators.onthejob.chains.viterbi`), which Chaganty 2018 returns.

    Parameters
    ----------
    nodes : (n, K) array
        Marginals p_i(y).
    labels : (n,) integer array, optional
        ŷ; the most probable label of each position if left out.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> expected_accuracy([[0.75, 0.25], [0.5, 0.5]]), expected_accuracy([[0.75, 0.25]], [1])
    (0.625, 0.25)
    """
    p = np.asarray(nodes, dtype=np.float64)
    chosen = p.argmax(axis=1) if labels is None else np.asarray(labels)
    return float(p[np.arange(len(p)), chosen].mean())
