"""Policies that decide about one input in rounds, and the exact optimum of a small case.

Every policy has one method, ``next(state) -> action``: a position to ask about, ``WAIT`` or
``RETURN``. :class:`estimators.onthejob.search.Search` is the tree search.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np

from estimators.checks import FloatArray, IntArray
from estimators.onthejob.delays import Delays
from estimators.onthejob.states import RETURN, WAIT, Costs, State


class Rounds:
    """A policy that asks in rounds: plan, send all queries, wait for all answers, plan again.

    ``plan`` returns how often each position is to be asked in the round that begins. A subclass
    writes it.

    Examples
    --------
    >>> issubclass(Vote, Rounds)
    True
    """

    def __init__(self) -> None:
        self._planned_for: State | None = None
        self._wanted: IntArray = np.zeros(0, dtype=np.int64)

    def plan(self, state: State) -> IntArray:
        """Return the number of queries (n,) about each position; nothing is in flight."""
        raise NotImplementedError

    def next(self, state: State) -> int:
        """Return the next action of the current round; plan a new round when all answers have
        arrived.
        """
        if any(sent < state.now for _, sent in state.in_flight):
            return WAIT
        planned = self._planned_for
        if (
            planned is None
            or planned.belief is not state.belief
            or planned.answered is not state.answered
        ):
            self._planned_for = state
            self._wanted = self.plan(replace(state, in_flight=())).copy()
            for position, _ in state.in_flight:
                self._wanted[position] -= 1
        if (self._wanted > 0).any():
            position = int((self._wanted > 0).argmax())
            self._wanted[position] -= 1
            return position
        return WAIT if state.in_flight else RETURN


class Vote(Rounds):
    """Asks n people about every position at once, without a model. See :func:`majority_responses`
    for the labels.

    Examples
    --------
    >>> import numpy as np
    >>> from estimators.onthejob.people import symmetric_response_table
    >>> from estimators.onthejob.states import Belief
    >>> state = State(Belief(np.zeros((1, 2)), np.zeros((2, 2)),
    ...     [symmetric_response_table(2, 0.75)]))
    >>> policy = Vote(1)
    >>> policy.next(state), policy.next(state.ask(0)) == WAIT
    (0, True)
    """

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n

    def plan(self, state: State) -> IntArray:
        n = 0 if state.answered else min(self.n, state.most)
        return np.full(len(state.belief.unary), n)


class Online(Rounds):
    """Never asks; returns the model's labels.

    Examples
    --------
    >>> import numpy as np
    >>> from estimators.onthejob.people import symmetric_response_table
    >>> from estimators.onthejob.states import Belief
    >>> state = State(Belief(np.zeros((1, 2)), np.zeros((2, 2)),
    ...     [symmetric_response_table(2, 0.75)]))
    >>> Online().next(state) == RETURN
    True
    """

    def plan(self, state: State) -> IntArray:
        return np.zeros(len(state.belief.unary), dtype=np.int64)


def min_votes_needed(
    uncertainty: FloatArray, *, error: float = 0.3, limit: float = 0.02
) -> IntArray:
    """Return the least number m of answers with ``u · error^m ≤ limit``.

    Parameters
    ----------
    uncertainty : (n,) array
        u = 1 − max_y p(y) of each position.
    error : float
        What an answer multiplies the uncertainty by.
    limit : float
        The uncertainty that is good enough.

    Returns
    -------
    (n,) integer array
        At least 0.

    Examples
    --------
    >>> import numpy as np
    >>> min_votes_needed(np.array([0.5, 0.2, 0.05, 0.02])).tolist()
    [3, 2, 1, 0]
    """
    ratio = np.log(np.maximum(uncertainty, 1e-300) / limit) / math.log(1 / error)
    return np.maximum(np.ceil(ratio - 1e-9), 0).astype(np.int64)


class Threshold(Rounds):
    """Asks about every position as often as :func:`min_votes_needed` returns, and checks again.

    It never considers time or the price of a query.

    Examples
    --------
    >>> import numpy as np
    >>> from estimators.onthejob.people import symmetric_response_table
    >>> from estimators.onthejob.states import Belief
    >>> state = State(Belief(np.zeros((1, 2)), np.zeros((2, 2)),
    ...     [symmetric_response_table(2, 0.75)]))
    >>> Threshold().plan(state).tolist()
    [3]
    """

    def plan(self, state: State) -> IntArray:
        wanted = min_votes_needed(1 - state.posterior.nodes.max(axis=1))
        free = [state.most - state.asked(i) for i in range(len(wanted))]
        return np.minimum(wanted, free)


class Lookahead(Rounds):
    """Asks as if the next round were the last one.

    ``V(i, m) = Σ_a P(a) max_y p_i(y | a) − m w_M`` is taken for each position by itself; the round
    is played if what it gains in sum exceeds w_T times the expected delay of its slowest answer.
    Optimal for one position where one round is left.

    Parameters
    ----------
    costs : Costs
        Prices of queries and time.
    delays : Delays
        How long answers take.
    at_once : int
        The largest number of queries about one position in one round; 1 asks one by one.

    Examples
    --------
    >>> import numpy as np
    >>> from estimators.onthejob.delays import Empirical
    >>> from estimators.onthejob.people import symmetric_response_table
    >>> from estimators.onthejob.states import Belief
    >>> state = State(Belief(np.zeros((1, 2)), np.zeros((2, 2)),
    ...     [symmetric_response_table(2, 0.75)]))
    >>> Lookahead(Costs(0.01, 0.005), Empirical([1.0])).plan(state).tolist()
    [5]
    """

    def __init__(self, costs: Costs, delays: Delays, *, at_once: int = 5) -> None:
        super().__init__()
        self.costs, self.delays, self.at_once = costs, delays, at_once

    def plan(self, state: State) -> IntArray:
        nodes = state.posterior.nodes
        wanted = np.zeros(len(nodes), dtype=np.int64)
        scale = 1 if self.costs.per_token else len(nodes)
        gain = 0.0
        for i in state.posterior.uncertain:
            free = min(self.at_once, state.most - state.asked(i))
            net = [
                state.belief.expected_gain(state.answered, m)[i] / scale - m * self.costs.query
                for m in range(free + 1)
            ]
            if len(nodes) == 1:  # one position: its number of queries decides the delay as well
                net = [v - self.costs.time * self.delays.expected_max(m) for m, v in enumerate(net)]
            wanted[i] = int(np.argmax(net))
            gain += max(net) - net[0]
        slowest = self.delays.expected_max(int(wanted.sum())) if len(nodes) > 1 else 0.0
        return wanted if gain > self.costs.time * slowest else np.zeros_like(wanted)


class Optimal(Rounds):
    """The optimum for one position, two labels, a symmetric table and delays that are all equal.

    Dynamic programming over the answers that have come. Answers that were asked for at once come at
    once, and are paid for, so to wait for all of them is optimal.

    Parameters
    ----------
    costs : Costs
        Prices of queries and time.
    delay : float
        The delay of every answer.

    Examples
    --------
    >>> import numpy as np
    >>> from estimators.onthejob.people import symmetric_response_table
    >>> from estimators.onthejob.states import Belief
    >>> state = State(Belief(np.zeros((1, 2)), np.zeros((2, 2)),
    ...     [symmetric_response_table(2, 0.75)]), most=7)
    >>> Optimal(Costs(0.01, 0.005), 1.0).plan(state).tolist()
    [3]
    """

    def __init__(self, costs: Costs, delay: float) -> None:
        super().__init__()
        self.costs, self.delay = costs, delay

    def values(self, state: State) -> list[float]:
        """Return the expected utility of asking m = 0, 1, … more at once, then of the optimum.

        Earlier costs are left out.
        """
        belief, most = state.belief, state.most

        @cache
        def options(evidence: tuple[tuple[int, int, int], ...]) -> list[float]:
            values = [belief.posterior(evidence).best]
            p, table = belief.posterior(evidence).nodes[0], belief.tables[0]
            for m in range(1, most - len(evidence) + 1):
                value = -m * self.costs.query - self.delay * self.costs.time
                for ones in range(m + 1):
                    chance = math.comb(m, ones) * float(
                        p @ (table[:, 1] ** ones * table[:, 0] ** (m - ones))
                    )
                    more = ((0, 0, 0),) * (m - ones) + ((0, 1, 0),) * ones
                    value += chance * max(options(tuple(sorted(evidence + more))))
                values.append(value)
            return values

        return options(state.answered)

    def plan(self, state: State) -> IntArray:
        return np.array([int(np.argmax(self.values(state)))])


def majority_responses(
    answered: tuple[tuple[int, int, int], ...], n: int, n_labels: int
) -> IntArray:
    """Return the most frequent response at each position; the lowest label wins ties.

    Parameters
    ----------
    answered : tuple of (position, response, table)
        Answers, as :class:`State` has them.
    n : int
        Number of positions.
    n_labels : int
        K.

    Returns
    -------
    (n,) integer array
        Label 0 where nobody answered.

    Examples
    --------
    >>> majority_responses(((0, 1, 0), (0, 1, 0), (0, 0, 0), (1, 0, 0), (1, 2, 0)), 2, 3).tolist()
    [1, 0]
    """
    counts = np.zeros((n, n_labels), dtype=np.int64)
    for position, response, _ in answered:
        counts[position, response] += 1
    return np.asarray(counts.argmax(axis=1))
