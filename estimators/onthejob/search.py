"""Monte Carlo tree search over queries, waits and the return of labels (LENSE)."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from estimators.onthejob.delays import Delays
from estimators.onthejob.states import RETURN, WAIT, Costs, Evidence, State

Flight = tuple[tuple[int, float], ...]
"""Queries without an answer: (position, time of asking)"""


class _Node:
    """A node of the search tree in which the system chooses its next action.

    ``returned`` is the utility of returning now. ``value`` is that of the best action known; it
    starts at the better one of returning now and returning when all answers in flight are there.
    ``pending`` is the gain of these answers in the expected number of right labels, each position
    by itself, by its marginals at its last answer.
    """

    __slots__ = (
        "answered",
        "children",
        "in_flight",
        "now",
        "pending",
        "returned",
        "untried",
        "value",
        "visits",
    )

    def __init__(
        self, answered: Evidence, in_flight: Flight, now: float, returned: float, pending: float
    ) -> None:
        self.answered, self.in_flight, self.now = answered, in_flight, now
        self.visits, self.value, self.returned, self.pending = 0, returned, returned, pending
        self.untried: list[int] | None = None
        self.children: dict[int, _Node | _Crowd] = {}


class _Draw:
    """A random draw of the next answer and its time, with one child for each response."""

    __slots__ = ("law", "nodes", "position", "value", "visits")

    def __init__(self, position: int, law: list[float], nodes: list[_Node]) -> None:
        self.position, self.law, self.nodes, self.visits = position, law, nodes, 0
        self.value = self.expected_value()

    def expected_value(self) -> float:
        """Return the expected value of the draw: the values of its nodes, weighted by their
        probabilities `law`.
        """
        return sum(p * node.value for p, node in zip(self.law, self.nodes, strict=True))


class _Crowd:
    """A node of the search tree in which the system waits for an answer; ``value`` is the mean of
    its draws.
    """

    __slots__ = ("draws", "value", "visits")

    def __init__(self) -> None:
        self.draws: list[_Draw] = []
        self.visits, self.value = 0, 0.0


class Search:
    """Monte Carlo tree search with progressive widening (after Chaganty 2018, algorithm 2).

    One simulation goes from the root down. Where the system decides, an action that was never tried
    is tried first, waiting before asking; else the one with the largest ``V + c √(log N_parent /
    N)``. A crowd node with N visits has max(1, ⌈√N⌉) draws of which answer comes first, and when;
    a single query in flight has one, at its expected delay, because utility is linear in time. The
    simulation goes on with the draw that has the fewest visits, and with a response in proportion
    to p(r), until a draw is new.

    Values are backed up to every node on the path. The publication takes the mean utility of all
    simulations, which mixes what exploring actions lost into a node's value. Here a node where the
    system decides has the value of its best action, the utility of returning now among them, and a
    draw has ``Σ_r p(r) V_r`` over all its K responses, which are computed in one batch. The value
    of a new node is that of returning now, or of waiting for all answers in flight, each position
    taken by itself.

    In chains a position has one query in flight at most: others use the time, and few simulations
    cannot find out that a second answer would mostly not be needed after the first.

    A search goes on from the subtree of the query that it chose; after an answer it begins anew,
    because no drawn delay equals the real one, but posteriors stay with the
    :class:`~estimators.onthejob.states.Belief`.

    Parameters
    ----------
    costs : Costs
        Prices of queries and time.
    delays : Delays
        How long answers take.
    rng : numpy.random.Generator
        Draws delays and the order of actions.
    simulations : int
        Visits of the root before its best action is chosen.
    exploration : float
        c.

    Examples
    --------
    >>> import numpy as np
    >>> from estimators.onthejob.delays import Empirical
    >>> from estimators.onthejob.people import symmetric_response_table
    >>> from estimators.onthejob.states import Belief
    >>> state = State(Belief(np.zeros((1, 2)), np.zeros((2, 2)),
    ...     [symmetric_response_table(2, 0.75)]))
    >>> search = Search(Costs(0.01, 0.005), Empirical([1.0]), np.random.default_rng(0))
    >>> search.next(state)
    0
    """

    def __init__(
        self,
        costs: Costs,
        delays: Delays,
        rng: np.random.Generator,
        *,
        simulations: int = 200,
        exploration: float = 0.5,
    ) -> None:
        self.costs, self.delays, self.rng = costs, delays, rng
        self.simulations, self.exploration = simulations, exploration
        self._state: State | None = None
        self._root = self._searched = _Node((), (), 0.0, 0.0, 0.0)

    def next(self, state: State) -> int:
        """Return the action with the largest value."""
        before = self._state
        if not (
            before is not None
            and before.belief is state.belief
            and before.answered == state.answered
            and before.in_flight == state.in_flight
            and before.now == state.now
        ):
            flight = Counter([position for position, _ in state.in_flight])
            pending = sum(
                state.belief.expected_gain(state.answered, m)[position]
                for position, m in flight.items()
            )
            self._root = self._make_node(state, state.answered, state.in_flight, state.now, pending)
        self._state = state
        root = self._searched = self._root
        if not self._legal_actions(root, state):
            return RETURN
        while root.visits < self.simulations:
            self._run_simulation(state)
        action = max(root.children, key=lambda a: root.children[a].value)
        if root.returned >= root.children[action].value:
            return RETURN
        child = root.children[action]
        if isinstance(child, _Node):  # the state that comes next, if the query is sent now
            self._root, self._state = child, state.ask(action)
        return action

    def top_of_search_tree(self) -> list[tuple[int, int, float, list[tuple[int, int, float]]]]:
        """Return the first two levels of the last search, without RETURN.

        For each action: the action, its visits, its value, and the same of each action after it;
        after WAIT, of each position whose answer came first (a mean over its draws).
        """
        levels = []
        for action, child in self._searched.children.items():
            if isinstance(child, _Node):
                below = [(a, node.visits, node.value) for a, node in child.children.items()]
            else:
                below = []
                for position in sorted({draw.position for draw in child.draws}):
                    draws = [draw for draw in child.draws if draw.position == position]
                    mean = sum(draw.value for draw in draws) / len(draws)
                    below.append((position, sum(draw.visits for draw in draws), mean))
            levels.append((action, child.visits, child.value, below))
        return levels

    def _make_node(
        self, state: State, answered: Evidence, in_flight: Flight, now: float, pending: float
    ) -> _Node:
        n = 1 if self.costs.per_token else len(state.belief.unary)
        queries = len(answered) + len(in_flight)
        utility = state.belief.posterior(answered).best / n
        utility -= self.costs.query * queries + self.costs.time * now
        node = _Node(answered, in_flight, now, utility, pending)
        waited = self.costs.time * self.delays.expected_max(len(in_flight))
        node.value = max(utility, utility + pending / n - waited)
        return node

    def _gain_of_one_more(self, node: _Node, position: int, state: State) -> float:
        """Return the expected gain of the answers in flight plus one more query about a
        position.
        """
        m = sum(query[0] == position for query in node.in_flight)
        gain = state.belief.expected_gain(node.answered, m + 1)[position]
        return (
            node.pending
            + gain
            - (state.belief.expected_gain(node.answered, m)[position] if m else 0.0)
        )

    def _run_simulation(self, state: State) -> None:
        node: _Node | _Crowd = self._root
        path: list[_Node | _Crowd | _Draw] = [node]
        new = False
        while not new:
            if isinstance(node, _Crowd):
                crowd, parent = node, path[-2]
                assert isinstance(parent, _Node)
                alone = len(parent.in_flight) == 1
                new = len(crowd.draws) < (1 if alone else max(1, math.ceil(crowd.visits**0.5)))
                if new:
                    crowd.draws.append(self._draw_next_answer(parent, state))
                    draw = crowd.draws[-1]
                else:
                    draw = min(crowd.draws, key=lambda one: one.visits)
                ranks = [p / (one.visits + 1) for p, one in zip(draw.law, draw.nodes, strict=True)]
                node = draw.nodes[ranks.index(max(ranks))]
                path += [draw, node]
                continue
            if node.untried is None:
                node.untried = self._legal_actions(node, state)
            if node.untried:
                action = node.untried.pop()
                if action == WAIT:
                    node.children[action] = _Crowd()
                else:
                    flight = (*node.in_flight, (action, node.now))
                    node.children[action] = self._make_node(
                        state,
                        node.answered,
                        flight,
                        node.now,
                        self._gain_of_one_more(node, action, state),
                    )
                node = node.children[action]
            elif node.children:
                log_visits = math.log(node.visits)
                node = max(
                    node.children.values(),
                    key=lambda child: (
                        child.value + self.exploration * math.sqrt(log_visits / child.visits)
                    ),
                )
            else:
                break  # nothing can be asked: the value is that of returning
            path.append(node)
        for visited in reversed(path):
            visited.visits += 1
            if isinstance(visited, _Node):
                if visited.children:  # else it is new and keeps the value that it began with
                    values = [child.value for child in visited.children.values()]
                    visited.value = max([visited.returned, *values])
            elif isinstance(visited, _Draw):
                visited.value = visited.expected_value()
            else:
                visited.value = sum(one.value for one in visited.draws) / len(visited.draws)

    def _legal_actions(self, node: _Node, state: State) -> list[int]:
        """Return the legal actions besides RETURN, ordered so that the last one is tried first."""
        asked = Counter([query[0] for query in node.answered])
        asked.update([query[0] for query in node.in_flight])
        uncertain = state.belief.posterior(node.answered).uncertain
        flying = {position for position, _ in node.in_flight}
        alone = len(state.belief.unary) == 1
        positions = [i for i in uncertain if asked[i] < state.most and (alone or i not in flying)]
        if len(positions) > 1:
            self.rng.shuffle(positions)
        return [*positions, WAIT] if node.in_flight else positions

    def _draw_next_answer(self, node: _Node, state: State) -> _Draw:
        """Draw which of the answers in flight comes first, and when."""
        if len(node.in_flight) == 1:
            sent = node.in_flight[0][1]
            arrivals = [sent + self.delays.expected(node.now - sent)]
        else:
            uniforms = self.rng.random(len(node.in_flight)).tolist()
            arrivals = [
                sent + self.delays.draw(uniform, node.now - sent)
                for uniform, (_, sent) in zip(uniforms, node.in_flight, strict=True)
            ]
        first = arrivals.index(min(arrivals))
        position, now = node.in_flight[first][0], max(arrivals[first], node.now)
        in_flight = node.in_flight[:first] + node.in_flight[first + 1 :]
        law = state.belief.next_response_probabilities(position, node.answered)
        m = sum(query[0] == position for query in node.in_flight)
        others = node.pending - state.belief.expected_gain(node.answered, m)[position]
        nodes = []
        for r in range(len(law)):
            answered = state.belief.after(node.answered, position, r)
            pending = others + (
                state.belief.expected_gain(answered, m - 1)[position] if m > 1 else 0.0
            )
            nodes.append(self._make_node(state, answered, in_flight, now, pending))
        return _Draw(position, law, nodes)
