"""The audited accuracy of a stream, and whether to ask again."""

import numpy as np
import pytest

from estimators.onthejob.audit import audit_probability, stream_accuracy
from estimators.onthejob.people import symmetric_response_table
from estimators.onthejob.worth import (
    is_another_answer_better,
    variance_reduction_of_answer,
    variance_reduction_of_question,
)
from estimators.poisson import is_selected


def test_an_audit_is_likelier_where_the_model_doubts():
    pi = audit_probability([0.5, 0.9, 0.99, 1.0], share=0.1, multiplier=0.4)
    assert pi.tolist() == pytest.approx([0.2, 0.12, 0.1, 0.1])
    assert audit_probability([0.5], share=0.1, multiplier=9.0).tolist() == [1.0]
    with pytest.raises(ValueError, match="share"):
        audit_probability([0.5], share=0.0, multiplier=1.0)


def test_the_estimate_by_hand_and_a_census():
    estimate = stream_accuracy([0.5, 0.5, 1.0], [1.0, np.nan, 0.5], [0.8, 0.9, 0.7])
    mean_error = (2 * 0.2 + 1 * -0.2) / 3
    assert estimate.value == pytest.approx(0.8 + mean_error)
    assert estimate.n == 2
    census = stream_accuracy(np.ones(3), [1.0, 0.0, 0.5], [0.8, 0.9, 0.7])
    assert census.value == pytest.approx(0.5)
    assert census.variance == pytest.approx(0)
    with pytest.raises(ValueError, match="one length"):
        stream_accuracy([0.5], [1.0, 0.0], [0.5, 0.5])


def live_stream(rng, n):
    """Return the expected accuracy and the right labels of a stream with a wrong model.

    The model takes everything for easier than it is. It asks until it is sure to 0.9 or three
    people were asked, so that both depend on the answers.
    """
    labels = rng.integers(2, size=n)
    doubt = rng.beta(1.2, 3, size=n)  # the chance that the model's first choice is wrong
    odds = np.log((1 - doubt / 3) / (doubt / 3))  # it believes in a third of it
    log_odds = np.where(rng.random(n) < doubt, 1 - labels, labels) * 2.0 - 1
    log_odds *= odds
    for _ in range(3):
        unsure = 1 / (1 + np.exp(-np.abs(log_odds))) < 0.9
        answers = np.where(rng.random(n) < 0.75, labels, 1 - labels)
        log_odds += np.where(unsure, (2 * answers - 1) * np.log(9), 0.0)  # right 3/4, believed .9
    expected = 1 / (1 + np.exp(-np.abs(log_odds)))
    return expected, ((log_odds > 0) == labels).astype(float)


@pytest.mark.statistical
@pytest.mark.soak
def test_intervals_of_the_audit_cover_with_a_wrong_model_and_live_decisions():
    errors, standard_errors, covered, bias_of_model = [], [], [], []
    for seed in range(500):
        rng = np.random.default_rng(seed)
        expected, right = live_stream(rng, 1000)
        pi = audit_probability(expected, share=0.1, multiplier=0.6)
        audited = is_selected(rng.random(1000), pi)
        estimate = stream_accuracy(pi, np.where(audited, right, np.nan), expected)
        low, high = estimate.confidence_interval(0.8, method="wilson")
        truth = right.mean()
        errors.append(estimate.value - truth)
        standard_errors.append(estimate.standard_error)
        covered.append(low <= truth <= high)
        bias_of_model.append(expected.mean() - truth)
    assert np.mean(bias_of_model) > 0.05  # the model is wrong
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(500)
    assert np.mean(standard_errors) == pytest.approx(np.std(errors), rel=0.15)
    assert 0.77 <= np.mean(covered) <= 0.83


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_worth_of_an_answer_is_the_variance_that_it_explains(seed):
    rng = np.random.default_rng(seed)
    p, values = rng.dirichlet(np.ones(3)), rng.normal(size=3)
    table = rng.dirichlet(np.ones(3), size=3)
    before = p @ values**2 - (p @ values) ** 2
    after = 0.0
    for r in range(3):
        joint = p * table[:, r]
        given = joint / joint.sum()
        after += joint.sum() * (given @ values**2 - (given @ values) ** 2)
    worth = variance_reduction_of_answer(p, table, values=values, weight=0.3, price=0.05)
    assert worth == pytest.approx(0.3**2 * (before - after) / 0.05)


def test_a_certain_label_or_a_person_who_guesses_is_worth_nothing():
    table = symmetric_response_table(2, 0.9)
    assert variance_reduction_of_answer([0, 1], table, values=[0, 1], weight=1.0, price=1.0) == 0
    half = np.full((2, 2), 0.5)
    assert variance_reduction_of_answer(
        [0.4, 0.6], half, values=[0, 1], weight=1.0, price=1.0
    ) == pytest.approx(0)


def test_a_question_lowers_the_variance_of_a_mean_by_its_share():
    v = 0.21  # of one question
    for n in (1, 10, 100):
        assert variance_reduction_of_question(v / n, n, 2.0) == pytest.approx(
            (v / n - v / (n + 1)) / 2.0
        )


def test_asking_again_pays_where_the_doubt_is_large_and_the_weight_high():
    def again(p, weight):
        return is_another_answer_better(
            [1 - p, p],
            symmetric_response_table(2, 0.8),
            values=[0, 1],
            weight=weight,
            price=0.05,
            variance=0.25 / 100,
            n=100,
            price_of_question=0.10,
        )

    worth = 0.6**2 / 4  # of an answer at p = ½: (E[f | r] − ½)² = .3²
    limit = 0.25 / 100 / 101 / 0.10 * 0.05
    at = np.sqrt(limit / worth)
    assert again(0.5, at * 1.01)
    assert not again(0.5, at * 0.99)
    assert not again(0.02, at * 1.01)


@pytest.mark.parametrize("price", [0.0, -1.0])
def test_a_price_must_be_positive(price):
    with pytest.raises(ValueError, match="price"):
        variance_reduction_of_question(0.1, 10, price)
    with pytest.raises(ValueError, match="price"):
        variance_reduction_of_answer([1.0], [[1.0]], values=[1], weight=1.0, price=price)
