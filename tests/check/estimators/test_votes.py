"""Tests of majority, token majority and Dawid and Skene's model: Ada is always right, Bo mostly, Cy
never looks.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimators.agreement import dawid_skene, majority_answers, token_majority

NAN = float("nan")


def test_the_majority_is_what_most_say():
    result = majority_answers([2, 2, 5, 1, NAN], unit=[3, 3, 3, 9, 9], annotator=[0, 1, 2, 0, 1])
    assert result.unit.tolist() == [3, 9]
    assert result.value.tolist() == [2, 1]
    assert result.share == pytest.approx([2 / 3, 1])
    assert result.n.tolist() == [3, 1]


def test_a_tie_is_missing_unless_told_otherwise():
    votes = {"values": [0, 1, 2, 2], "unit": [0, 0, 1, 1]}
    assert np.isnan(majority_answers(**votes).value[0])
    assert majority_answers(**votes, ties="lowest").value.tolist() == [0, 2]
    assert majority_answers(**votes, ties="highest").value.tolist() == [1, 2]


def test_without_votes_there_is_no_majority():
    assert majority_answers([NAN], unit=[4]).unit.size == 0
    assert majority_answers([], unit=np.zeros(0, dtype=int)).value.size == 0


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=20), st.randoms()
)
def test_the_majority_ignores_the_order_of_votes(votes, random):
    shuffled = random.sample(votes, len(votes))
    here, there = (
        majority_answers([v for _, v in rows], unit=[u for u, _ in rows])
        for rows in (votes, shuffled)
    )
    assert np.array_equal(here.value, there.value, equal_nan=True)
    assert here.n.tolist() == there.n.tolist()
    assert ((here.share > 0) & (here.share <= 1)).all()


def test_tokens_that_most_marked_make_the_spans():
    # Two of three mark 0–2, all mark 4, one marks 6.
    result = token_majority(
        [[0, 3], [0, 3], [4, 5], [4, 5], [4, 5], [6, 7]], [0, 1, 0, 1, 2, 2], 8, 3
    )
    assert result.spans.tolist() == [[0, 3], [4, 5]]
    assert result.share == pytest.approx([2 / 3, 1])


def test_neighbouring_spans_stay_apart_if_most_see_two():
    apart = [[0, 2], [2, 4], [0, 2], [2, 4], [0, 4]]
    assert token_majority(apart, [0, 0, 1, 1, 2], 4, 3).spans.tolist() == [[0, 2], [2, 4]]
    together = [[0, 2], [2, 4], [0, 4], [0, 4]]
    assert token_majority(together, [0, 0, 1, 2], 4, 3).spans.tolist() == [[0, 4]]


def test_half_is_no_majority_and_nothing_is_no_span():
    assert token_majority([[0, 2]], [0], 5, 2).spans.shape == (0, 2)
    assert token_majority(
        np.zeros((0, 2), dtype=int), np.zeros(0, dtype=int), 5, 2
    ).spans.shape == (0, 2)
    assert token_majority([[0, 5]], [0], 5, 1).spans.tolist() == [[0, 5]]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(1, 4)), max_size=12))
def test_a_token_is_inside_iff_more_than_half_marked_it(marks):
    spans = np.array([[begin, min(begin + length, 10)] for _, begin, length in marks]).reshape(
        -1, 2
    )
    people = np.array([who for who, _, _ in marks], dtype=int)
    result = token_majority(spans, people, 10, 3)
    inside = np.zeros(10, dtype=bool)
    for begin, end in result.spans:
        assert not inside[begin:end].any()
        inside[begin:end] = True
    votes = [
        len({who for (begin, end), who in zip(spans, people, strict=True) if begin <= t < end})
        for t in range(10)
    ]
    assert inside.tolist() == [count >= 2 for count in votes]


def simulated(
    n_units: int, accuracy: list[float], seed: int
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    truth = (rng.random(n_units) < 0.6).astype(int)
    right = rng.random((len(accuracy), n_units)) < np.array(accuracy)[:, None]
    annotator, unit = np.indices(right.shape)
    values = np.where(right, truth, 1 - truth)
    return truth, {"values": values.ravel(), "unit": unit.ravel(), "annotator": annotator.ravel()}


def test_dawid_and_skene_agree_with_people_who_agree():
    unit = np.repeat(np.arange(12), 2)
    result = dawid_skene(unit % 3, unit=unit, annotator=[0, 1] * 12)
    assert result.posterior.argmax(axis=1).tolist() == [0, 1, 2] * 4
    assert result.posterior.sum(axis=1) == pytest.approx(np.ones(12))
    assert result.confusion.shape == (2, 3, 3)
    assert result.confusion.sum(axis=2) == pytest.approx(np.ones((2, 3)))
    assert result.converged


def test_where_people_answered_few_units_the_posterior_is_the_share_of_the_votes():
    value = [1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 0]
    result = dawid_skene(value, np.repeat(np.arange(4), 3), np.arange(12), n_classes=2)
    assert result.posterior[:, 1] == pytest.approx([1, 1, 0, 2 / 3])
    assert result.reason == "Half of the people gave 1 answers or fewer; the model needs 10."
    assert np.isnan(result.confusion).all()


@pytest.mark.parametrize(("answered", "stands"), [(19, True), (20, False)])
def test_only_people_with_twenty_answers_are_overruled_where_they_agree(answered, stands):
    # Four good people answer 60 units. Two answer the opposite of them on some, then agree on one.
    truth = np.arange(60) % 2
    rows = [(truth[u], u, who) for u in range(60) for who in range(4)]
    rows += [(1 - truth[u], u, who) for u in range(answered - 1) for who in (4, 5)]
    rows += [(1, 60, 4), (1, 60, 5)]
    value, unit, who = np.array(rows).T
    result = dawid_skene(value, unit, who)
    assert (result.posterior[60, 1] > 0.5) == stands
    assert result.posterior[:60].argmax(axis=1).tolist() == truth.tolist()


@pytest.mark.statistical
def test_dawid_and_skene_find_out_who_is_good_and_beat_the_majority():
    truth, votes = simulated(2000, [0.95, 0.6, 0.6, 0.6, 0.55], seed=2)
    result = dawid_skene(**votes)
    diagonal = result.confusion[:, [0, 1], [0, 1]].mean(axis=1)
    assert diagonal == pytest.approx([0.95, 0.6, 0.6, 0.6, 0.55], abs=0.05)
    assert result.prior == pytest.approx([0.4, 0.6], abs=0.05)
    by_model = (result.posterior.argmax(axis=1) == truth).mean()
    by_majority = (majority_answers(votes["values"], votes["unit"]).value == truth).mean()
    assert by_model > by_majority + 0.1


def test_units_with_the_same_votes_may_be_told_once_with_their_number():
    rng = np.random.default_rng(5)
    truth = rng.random(400) < 0.1
    right = np.array([0.95, 0.8, 0.7])
    votes = np.where(rng.random((400, 3)) < right, truth[:, None], ~truth[:, None]).astype(int)
    kinds, kind, times = np.unique(votes, axis=0, return_inverse=True, return_counts=True)
    every = dawid_skene(votes.ravel(), np.repeat(np.arange(400), 3), np.tile(np.arange(3), 400))
    n = len(kinds)
    once = dawid_skene(
        kinds.ravel(), np.repeat(np.arange(n), 3), np.tile(np.arange(3), n), times=times
    )
    np.testing.assert_allclose(once.prior, every.prior)
    np.testing.assert_allclose(once.confusion, every.confusion)
    np.testing.assert_allclose(once.posterior[kind.ravel()], every.posterior)
    with pytest.raises(ValueError, match="times must be positive"):
        dawid_skene([0, 1], [0, 1], [0, 0], times=[1, 0])


def test_missing_answers_are_left_out_and_codes_kept():
    result = dawid_skene([1, NAN, 0, 1], unit=[5, 5, 8, 9], annotator=[2, 4, 2, 4])
    assert result.unit.tolist() == [5, 8, 9]
    assert result.annotator.tolist() == [2, 4]
    none = dawid_skene([NAN], unit=[0], annotator=[0], n_classes=2)
    assert none.posterior.shape == (0, 2)
    assert none.converged


def test_naming_the_classes_otherwise_renames_the_posterior():
    _, votes = simulated(60, [0.9, 0.8, 0.7], seed=4)
    here = dawid_skene(**votes).posterior
    assert dawid_skene(**{**votes, "values": 1 - votes["values"]}).posterior[
        :, ::-1
    ] == pytest.approx(here)


def test_bad_votes_are_named():
    with pytest.raises(ValueError, match="got 'random'"):
        majority_answers([1], unit=[0], ties="random")
    with pytest.raises(ValueError, match="annotator 1 on unit 0 again"):
        majority_answers([1, 1], unit=[0, 0], annotator=[1, 1])
    with pytest.raises(ValueError, match=r"got 0\.5"):
        dawid_skene([0.5], unit=[0], annotator=[0])
    with pytest.raises(ValueError, match="n_classes = 2; got 2"):
        dawid_skene([2], unit=[0], annotator=[0], n_classes=2)
    with pytest.raises(ValueError, match="smoothing must be positive; got 0"):
        dawid_skene([1], unit=[0], annotator=[0], smoothing=0)
    with pytest.raises(ValueError, match=r"got \[3, 3\)"):
        token_majority([[3, 3]], [0], 5, 1)
    with pytest.raises(ValueError, match="less than 1; got 1"):
        token_majority([[0, 1]], [1], 5, 1)
