"""What policies do on small inputs: by hand, by enumeration and against the optimum."""

from itertools import product

import numpy as np
import pytest

from estimators.onthejob.delays import Empirical
from estimators.onthejob.people import expected_best_probability, symmetric_response_table
from estimators.onthejob.policies import (
    Lookahead,
    Online,
    Optimal,
    Threshold,
    Vote,
    majority_responses,
    min_votes_needed,
)
from estimators.onthejob.search import Search
from estimators.onthejob.states import RETURN, WAIT, Belief, Costs, State


def state_of(*probabilities, quality=0.75, most=5):
    """Return a state whose positions are independent, with these probabilities of labels."""
    p = np.array(probabilities)
    n_labels = p.shape[1]
    belief = Belief(
        np.log(p), np.zeros((n_labels,) * 2), [symmetric_response_table(n_labels, quality)]
    )
    return State(belief, most=most)


def play(policy, state, rng, labels, delays=(1.0, 2.0), quality=0.75):
    """Return the last state of an input that is answered by people of one quality."""
    n_labels = state.belief.unary.shape[1]
    table = symmetric_response_table(n_labels, quality)
    arrivals = []
    while (action := policy.next(state)) != RETURN:
        if action == WAIT:
            first = int(np.argmin(arrivals))
            label = labels[state.in_flight[first][0]]
            response = int(rng.choice(n_labels, p=table[label]))
            state = state.answer(first, response, arrivals.pop(first))
        else:
            state = state.ask(action)
            arrivals.append(state.now + float(rng.choice(delays)))
    return state


def test_utility_by_hand_for_soup_on_george_str():
    """Positions Soup, on, George, str.; labels PER, LOC, NONE.

    The model says George is PER .6, LOC .3. Answers of people who are right 7 times in 10 are
    LOC, LOC, PER: PER .6 · .15² · .7 = .00945, LOC .3 · .7² · .15 = .02205, NONE .1 · .15³ =
    .0003375, so that LOC has .02205/.0318375 = .69258.
    """
    state = state_of(
        (0.02, 0.03, 0.95), (0.005, 0.005, 0.99), (0.6, 0.3, 0.1), (0.1, 0.8, 0.1), quality=0.7
    )
    for response, now in ((1, 2.0), (1, 3.0), (0, 5.0)):
        state = state.ask(2).answer(0, response, now)
    assert state.labels().tolist() == [2, 2, 1, 1]
    right = 0.95 + 0.99 + 0.02205 / 0.0318375 + 0.8
    assert state.utility(Costs(0.01, 0.002, per_token=True)) == pytest.approx(right - 0.04)
    assert state.utility(Costs(0.01, 0.002)) == pytest.approx(right / 4 - 0.04)


def test_votes_ask_everybody_at_once_wait_for_all_and_return():
    rng = np.random.default_rng(0)
    state = play(Vote(3), state_of((0.5, 0.5), (0.5, 0.5)), rng, [0, 1])
    assert [state.asked(i) for i in (0, 1)] == [3, 3]
    assert not state.in_flight
    assert state.now <= 2.0  # all were asked at time 0
    assert Vote(3).plan(state_of((0.5, 0.5), most=2)).tolist() == [2]


def test_online_never_asks():
    assert Online().next(state_of((0.5, 0.5))) == RETURN


def test_the_lowest_label_wins_a_tied_majority():
    answers = ((0, 2, 0), (0, 1, 0), (1, 0, 0), (1, 1, 0), (1, 1, 0))
    assert majority_responses(answers, 3, 3).tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("uncertainty", "m"),
    [(0.75, 4), (0.5, 3), (0.3, 3), (0.22, 2), (0.06, 1), (0.02 / 0.3, 1), (0.02, 0), (0.0, 0)],
)
def test_threshold_asks_by_table(uncertainty, m):
    assert min_votes_needed(np.array([uncertainty])).tolist() == [m]
    smaller = 0.3 ** np.arange(6) * uncertainty <= 0.02 + 1e-12
    assert smaller.argmax() == m


def test_threshold_checks_again_when_all_answers_are_there():
    state = state_of((0.94, 0.06))
    policy = Threshold()
    assert policy.next(state) == 0
    state = state.ask(0)
    assert policy.next(state) == WAIT
    agreed, denied = state.answer(0, 0, 1.0), state.answer(0, 1, 1.0)
    assert Threshold().next(agreed) == 0  # .02 < 1 − .979
    assert Threshold().plan(denied).tolist() == [2]


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("m", [0, 1, 2, 4])
def test_the_value_of_answers_equals_enumeration(n_labels, m):
    rng = np.random.default_rng(m)
    p, table = rng.dirichlet(np.ones(n_labels)), rng.dirichlet(np.ones(n_labels), size=n_labels)
    expected = sum(
        max(p * np.prod([table[:, r] for r in answers] or [np.ones(n_labels)], axis=0))
        for answers in product(range(n_labels), repeat=m)
    )
    assert expected_best_probability([p], table, m)[0] == pytest.approx(expected, abs=1e-12)


def test_lookahead_is_optimal_where_one_round_is_left():
    """With delays so long that a second round never pays, the optimum asks once."""
    costs, delay = Costs(0.01, 0.2), 1.0
    for p in (0.5, 0.6, 0.8):
        state = state_of((p, 1 - p), quality=0.9)
        assert (
            Lookahead(costs, Empirical([delay])).plan(state).tolist()
            == Optimal(costs, delay).plan(state).tolist()
        )


def test_lookahead_asks_one_by_one():
    policy = Lookahead(Costs(0.01, 0.0), Empirical([1.0]), at_once=1)
    assert policy.plan(state_of((0.5, 0.5), (0.5, 0.5))).tolist() == [1, 1]


def test_a_round_that_costs_more_time_than_it_gains_is_not_played():
    state = state_of((0.5, 0.5), (0.6, 0.4))
    assert Lookahead(Costs(0.01, 0.01), Empirical([1.0])).plan(state).any()
    assert not Lookahead(Costs(0.01, 1.0), Empirical([1.0])).plan(state).any()


def test_the_optimum_equals_enumeration_with_two_answers_at_most():
    costs, delay, q = Costs(0.02, 0.01), 2.0, 0.8
    state = state_of((0.6, 0.4), quality=q, most=2)
    one = 0.6 * q + 0.4 * (1 - q)  # chance of response 0
    after_0, after_1 = 0.6 * q / one, max(0.4 * q, 0.6 * (1 - q)) / (1 - one)
    price = 0.02 + 0.01 * delay
    again = [
        expected_best_probability([[a, 1 - a]], symmetric_response_table(2, q), 1)[0] - price
        for a in (after_0, 1 - after_1)
    ]
    first = one * max(after_0, again[0]) + (1 - one) * max(after_1, again[1]) - price
    both = (
        expected_best_probability([[0.6, 0.4]], symmetric_response_table(2, q), 2)[0]
        - 0.04
        - 0.01 * delay
    )
    assert Optimal(costs, delay).values(state) == pytest.approx([0.6, first, both])


@pytest.mark.soak
def test_the_search_chooses_within_half_a_point_of_the_optimum():
    for case in range(20):
        rng = np.random.default_rng(case)
        quality, p = rng.uniform(0.6, 0.95), rng.uniform(0.1, 0.9)
        costs = Costs(rng.uniform(0.002, 0.03), rng.uniform(0, 0.01))
        state = state_of((p, 1 - p), quality=quality)
        values = Optimal(costs, 1.0).values(state)
        search = Search(costs, Empirical([1.0]), rng, simulations=5000)
        asked = state
        while (action := search.next(asked)) >= 0:
            asked = asked.ask(action)
        assert values[asked.n_queries] >= max(values) - 0.005


def search_with(costs, seed, simulations=50):
    return Search(
        costs, Empirical([1.0, 2.0]), np.random.default_rng(seed), simulations=simulations
    )


def policies():
    costs, delays = Costs(0.01, 0.002), Empirical([1.0, 2.0])
    return [
        *(Vote(3), Online(), Threshold(), Lookahead(costs, delays)),
        *(Optimal(costs, 1.5), search_with(costs, 0)),
    ]


@pytest.mark.parametrize("policy", policies(), ids=lambda policy: type(policy).__name__)
def test_a_policy_waits_only_for_queries_and_asks_nobody_too_often(policy):
    rng = np.random.default_rng(1)
    for p in (0.5, 0.7, 0.99):
        state = state_of((p, 1 - p), most=4)
        assert policy.next(state) != WAIT
        last = play(policy, state, rng, [0])
        assert last.asked(0) <= 4


def test_waiting_is_never_an_action_of_the_search_with_nothing_in_flight():
    search = search_with(Costs(0.001, 0.0), 0)
    state = state_of((0.5, 0.5), (0.6, 0.4))
    search._state = state
    search._root = search._make_node(state, (), (), 0.0, 0.0)
    for _ in range(300):
        search._run_simulation(state)

    def nodes(node):
        yield node
        for child in node.children.values():
            if hasattr(child, "draws"):
                for draw in child.draws:
                    for one in draw.nodes:
                        yield from nodes(one)
            else:
                yield from nodes(child)

    seen = list(nodes(search._root))
    assert len(seen) > 300
    assert all(node.in_flight for node in seen if WAIT in node.children)
    assert all(WAIT in node.children for node in seen if node.in_flight and node.visits > 1)
    assert all(node.value >= node.returned for node in seen)


def test_dearer_queries_are_never_more_of_them():
    means = []
    for price in (0.001, 0.01, 0.03, 0.1):
        rng, queries = np.random.default_rng(2), []
        for i in range(15):
            p = rng.uniform(0.3, 0.9)
            policy = search_with(Costs(price, 0.001), i)
            queries.append(play(policy, state_of((p, 1 - p)), rng, [0]).n_queries)
        means.append(np.mean(queries))
    assert means == sorted(means, reverse=True)
    assert means[0] > means[-1]


def test_time_that_costs_everything_returns_at_once():
    assert search_with(Costs(0.001, 1e6), 0).next(state_of((0.5, 0.5))) == RETURN


def test_time_that_costs_nothing_asks_one_by_one():
    policy = search_with(Costs(0.01, 0.0), 0, simulations=500)
    state = state_of((0.5, 0.5), quality=0.8)
    for now in (1.0, 2.0):
        assert policy.next(state) == 0
        state = state.ask(0)
        assert policy.next(state) == WAIT
        state = state.answer(0, int(now) % 2, now)


def test_the_search_goes_on_from_the_subtree_of_its_query():
    search = search_with(Costs(0.01, 0.002), 0)
    state = state_of((0.5, 0.5))
    assert search.next(state) == 0
    kept = search._root
    assert kept.visits > 0
    search.next(state.ask(0))
    assert kept.in_flight == ((0, 0.0),)
    assert kept.visits >= 50


def test_answers_in_flight_count_before_the_tree_is_deep():
    """After one simulation to wait is already worth what three answers are expected to give."""
    state = state_of((0.5, 0.5)).ask(0).ask(0).ask(0)
    search = search_with(Costs(0.01, 0.0), 0, simulations=1)
    assert search.next(state) == WAIT
    ((action, _, value, _),) = search.top_of_search_tree()
    expected = expected_best_probability([[0.5, 0.5]], symmetric_response_table(2, 0.75), 3)[0]
    assert action == WAIT
    assert value == pytest.approx(expected - 0.03)


def test_the_tree_shows_two_levels_and_their_visits():
    search = search_with(Costs(0.01, 0.002), 0)
    action = search.next(state_of((0.5, 0.5), (0.6, 0.4)).ask(0))
    tree = {
        action: (visits, value, below)
        for action, visits, value, below in search.top_of_search_tree()
    }
    assert set(tree) == {WAIT, 1}
    assert tree[action][1] == max(value for _, value, _ in tree.values())
    assert [(position, visits) for position, visits, _ in tree[WAIT][2]] == [(0, tree[WAIT][0])]
    assert sum(visits for _, visits, _ in tree[1][2]) <= tree[1][0]


def test_the_search_asks_about_a_position_of_a_chain_once_at_a_time():
    search = search_with(Costs(0.001, 0.0), 0)
    state = state_of((0.5, 0.5), (0.5, 0.5))
    while (action := search.next(state)) >= 0:
        state = state.ask(action)
    assert action == WAIT
    assert sorted(position for position, _ in state.in_flight) in ([0], [1], [0, 1])


def test_the_search_is_the_same_with_the_same_seed():
    state = state_of((0.5, 0.3, 0.2), (0.4, 0.4, 0.2))
    trees = []
    for _ in range(2):
        search = search_with(Costs(0.01, 0.002), 7)
        search.next(state.ask(0).ask(1))
        trees.append(search.top_of_search_tree())
    assert trees[0] == trees[1]
