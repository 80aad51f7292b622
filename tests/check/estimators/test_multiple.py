"""All pairs at once: intervals, ranks and tie lines."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, studentized_range

from estimators import multiple
from estimators.multiple import rank_intervals, simultaneous_intervals, tie_groups


def compare(values, covariance, **options):
    return simultaneous_intervals(
        values, covariance, **({"rng": np.random.default_rng(0)} | options)
    )


@st.composite
def boards(draw):
    m = draw(st.integers(1, 6))
    root = np.array(draw(st.lists(st.floats(-1, 1), min_size=m * m, max_size=m * m))).reshape(m, m)
    values = np.array(draw(st.lists(st.integers(0, 8), min_size=m, max_size=m))) / 2.0
    return values, root @ root.T


@given(boards())
@settings(deadline=None, max_examples=40)
def test_intervals_hold_the_difference_and_are_antisymmetric(board):
    found = compare(*board, repeats=200)
    assert np.all((found.low <= found.difference) & (found.difference <= found.high))
    np.testing.assert_allclose(found.low, -found.high.T)
    np.testing.assert_array_equal(found.different, found.different.T)
    assert not found.different.diagonal().any()


@given(boards())
@settings(deadline=None, max_examples=40)
def test_step_down_finds_at_least_what_one_step_finds(board):
    found = compare(*board, repeats=200)
    one_step = (found.low > 0) | (found.high < 0)
    assert np.all(found.different >= one_step)


@given(boards())
@settings(deadline=None, max_examples=40)
def test_ranks_contain_the_printed_rank_and_groups_are_maximal(board):
    found = compare(*board, repeats=200)
    ranks = rank_intervals(found)
    above, ties = (found.difference < 0).sum(axis=1), (found.difference == 0).sum(axis=1)
    assert np.all(ranks.best <= above + 1)
    assert np.all(ranks.worst >= above + ties)
    groups = tie_groups(found)
    assert set().union(*groups) == set(range(len(board[0])))
    assert not any(set(a) < set(b) for a, b in itertools.permutations(groups, 2))
    for group in groups:
        assert not found.different[np.ix_(group, group)].any()


def test_two_systems_need_one_ordinary_interval():
    found = compare([0.5, 0.4], np.diag([0.01, 0.02]), repeats=200_000, confidence_level=0.95)
    assert found.critical == pytest.approx(norm.ppf(0.975), abs=0.02)
    assert found.high[0, 1] - 0.1 == pytest.approx(found.critical * np.sqrt(0.03))


def test_independent_systems_have_tukeys_critical_value():
    found = compare(np.zeros(5), np.eye(5), repeats=100_000, confidence_level=0.9)
    assert found.critical == pytest.approx(
        studentized_range.ppf(0.9, 5, 10**6) / np.sqrt(2), abs=0.02
    )
    few = compare(
        np.zeros(5), np.eye(5), repeats=100_000, confidence_level=0.9, degrees_of_freedom=8
    )
    assert few.critical == pytest.approx(studentized_range.ppf(0.9, 5, 8) / np.sqrt(2), abs=0.04)


def test_the_same_seed_gives_the_same_board_in_any_block_size(monkeypatch):
    rng = np.random.default_rng(3)
    values, covariance = rng.normal(size=6), np.eye(6)
    one = compare(values, covariance)
    monkeypatch.setattr(multiple, "CELLS", 100)
    assert compare(values, covariance).critical == one.critical


def test_whichever_eigenvectors_a_processor_gives_the_critical_value_is_the_same(monkeypatch):
    spread = np.eye(4) * 1e-3
    spread[:2, :2] = 1e-3  # twins: eigenvalues of 0, 1, 1 and 2 thousandths

    def critical() -> float:
        rng = np.random.default_rng(0)
        return simultaneous_intervals([0.5, 0.5, 0.6, 0.7], spread, rng=rng).critical

    usual, eigh = critical(), np.linalg.eigh
    turn = np.diag([-1.0, 1, 1, -1])
    turn[1:3, 1:3] = [[0.8, -0.6], [0.6, 0.8]]

    def elsewhere(matrix):
        eigenvalues, vectors = eigh(matrix)
        return np.add(eigenvalues, [1e-19, 0, 0, 0]), vectors @ turn

    monkeypatch.setattr(np.linalg, "eigh", elsewhere)
    assert critical() == pytest.approx(usual, rel=1e-12)


def test_a_twin_never_differs_and_what_is_certain_always_does():
    twins = np.array([[0.01, 0.01, 0], [0.01, 0.01, 0], [0, 0, 0.01]])
    found = compare([0.5, 0.5, 0.5], twins)
    assert found.low[0, 1] == found.high[0, 1] == 0
    assert tie_groups(found) == [(0, 1, 2)]
    assert compare([0.5, 0.4], np.zeros((2, 2))).different[0, 1]


def test_one_system_and_none():
    found = compare([0.5], [[0.01]])
    assert (found.critical, tie_groups(found)) == (0, [(0,)])
    assert rank_intervals(found).worst.tolist() == [1]
    assert tie_groups(compare([], np.zeros((0, 0)))) == []


def test_an_undefined_score_differs_from_nobody_and_may_rank_anywhere():
    found = compare([0.9, np.nan, 0.1], np.diag([1e-4, np.nan, 1e-4]))
    assert found.different[0, 2]
    assert not found.different[1].any()
    ranks = rank_intervals(found)
    assert (ranks.best[1], ranks.worst[1]) == (1, 3)
    assert tie_groups(found) == [(0,), (2,)]


def test_ranks_by_hand():
    found = compare([0.1, 0.9, 0.85, 0.5], np.eye(4) * 1e-3)
    ranks = rank_intervals(found)
    assert ranks.best.tolist() == [4, 1, 1, 3]
    assert ranks.worst.tolist() == [4, 2, 2, 3]
    assert tie_groups(found) == [(1, 2), (3,), (0,)]


@pytest.mark.parametrize(
    ("values", "covariance", "options", "message"),
    [
        ([0.1, 0.2], np.eye(3), {}, r"\(3, 3\)"),
        ([0.1, 0.2], [[1, 0.5], [0.1, 1]], {}, "symmetric"),
        ([0.1, 0.2], [[1, 2], [2, 1]], {}, "least eigenvalue"),
        ([0.1], [[1]], {"repeats": 10}, "10"),
        ([0.1], [[1]], {"confidence_level": 0.0}, r"0\.0"),
        ([0.1], [[np.inf]], {}, "inf"),
    ],
)
def test_it_names_the_offending_value(values, covariance, options, message):
    with pytest.raises(ValueError, match=message):
        compare(values, covariance, **options)


@pytest.mark.statistical
def test_all_statements_hold_together_as_often_as_the_level_says():
    rng = np.random.default_rng(9)
    truth = np.array([0.5, 0.5, 0.5, 0.6, 0.6, 0.9])
    shared = rng.normal(size=(6, 3))
    covariance = (shared @ shared.T + np.eye(6)) * 1e-3
    root, repeats = np.linalg.cholesky(covariance), 400
    intervals = ranks = false = 0
    below = (truth[:, None] < truth[None, :] - 1e-9).sum(axis=1) + 1
    lowest = 6 - (truth[:, None] > truth[None, :] + 1e-9).sum(axis=1)
    for _ in range(repeats):
        found = compare(truth + root @ rng.standard_normal(6), covariance, repeats=1000, rng=rng)
        exact = truth[:, None] - truth[None, :]
        intervals += bool(np.all((found.low <= exact + 1e-12) & (exact <= found.high + 1e-12)))
        false += bool(np.any(found.different & (np.abs(exact) < 1e-9)))
        interval = rank_intervals(found)
        ranks += bool(np.all((interval.best <= below) & (interval.worst >= lowest)))
    slack = 3 * np.sqrt(0.16 / repeats)
    assert abs(intervals / repeats - 0.8) < slack
    assert false / repeats < 0.2 + slack
    assert ranks / repeats > 0.8 - slack


def test_a_reference_takes_no_place_and_the_others_rank_as_if_it_were_not_there():
    found = compare([0.95, 0.7, 0.5, 0.45], np.eye(4) * 1e-3)
    ranks = rank_intervals(found, ranked=[False, True, True, True])
    assert (ranks.best.tolist()[1:], ranks.worst.tolist()[1:]) == ([1, 2, 2], [1, 3, 3])
    assert tie_groups(found) == [(0,), (1,), (2, 3)], "it is compared all the same"
    with pytest.raises(ValueError, match="ranked must have shape"):
        rank_intervals(found, ranked=[True])
