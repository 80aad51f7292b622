"""The gradient equals differences, and learning finds what generated the answers."""

import numpy as np
import pytest
from scipy import sparse

from estimators.onthejob.chains import forward_backward
from estimators.onthejob.learner import Learner, pad_rows


def inputs(rng, sizes, n_features, n_labels):
    return [
        (
            sparse.random_array((n, n_features), density=0.5, rng=rng, format="csr"),
            np.log(rng.dirichlet(np.ones(n_labels), size=n)),
        )
        for n in sizes
    ]


@pytest.mark.parametrize("sizes", [[1, 1, 1], [4, 1, 3]])
def test_the_gradient_equals_differences(sizes):
    rng = np.random.default_rng(0)
    learner = Learner(5, 3)
    learner.weights, learner.steps = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    data = inputs(rng, sizes, 5, 3)
    _, stacked, of_unary, of_steps = learner.gradient(data)
    for parameters, analytic in (
        (learner.weights, stacked.T @ of_unary),
        (learner.steps, of_steps),
    ):
        numeric = np.zeros_like(parameters)
        for index in np.ndindex(parameters.shape):
            values = []
            for change in (1e-5, -2e-5):
                parameters[index] += change
                values.append(learner.gradient(data)[0])
            parameters[index] += 1e-5
            numeric[index] = (values[0] - values[1]) / 2e-5
        np.testing.assert_allclose(analytic, numeric, atol=1e-6)


def test_the_objective_is_the_log_likelihood_of_the_answers():
    rng = np.random.default_rng(1)
    learner = Learner(4, 2)
    learner.weights = rng.normal(size=(4, 2))
    ((features, log_likelihood),) = inputs(rng, [1], 4, 2)
    p = np.exp((features @ learner.weights)[0])
    expected = np.log(p @ np.exp(log_likelihood[0]) / p.sum())
    assert learner.gradient([(features, log_likelihood)])[0] == pytest.approx(expected)


def test_an_input_without_answers_changes_nothing():
    learner = Learner(3, 2)
    features = sparse.csr_array(np.eye(3))
    learner.learn(features, np.zeros((3, 2)))
    assert not learner.weights.any()
    assert not learner.steps.any()


def stream(rng, n, quality):
    """Yield features, true labels and log-likelihoods of one answer at each position."""
    for _ in range(n):
        labels = rng.integers(2, size=4).cumsum() % 2
        noise = rng.integers(2, 12, size=4)
        features = np.zeros((4, 12))
        features[np.arange(4), labels] = 1
        features[np.arange(4), noise] = 1
        answers = np.where(rng.random(4) < quality, labels, 1 - labels)
        likelihood = np.where(answers[:, None] == np.arange(2), quality, 1 - quality)
        yield sparse.csr_array(features), labels, np.log(likelihood)


@pytest.mark.parametrize("objective", ["marginal", "map"])
def test_the_model_learns_labels_from_answers_that_err(objective):
    rng = np.random.default_rng(2)
    learner = Learner(12, 2, rate=0.1, objective=objective)
    right = []
    for features, labels, log_likelihood in stream(rng, 120, 0.8):
        unary, transition = learner.scores(features)
        nodes = forward_backward(unary[None], transition)[1][0]
        right.append((nodes.argmax(axis=1) == labels).mean())
        learner.learn(features, log_likelihood)
    assert np.mean(right[60:]) > 0.95 > np.mean(right[:5])


def test_the_marginal_objective_is_less_sure_than_training_on_its_own_labels():
    sure = {}
    for objective in ("marginal", "map"):
        rng = np.random.default_rng(3)
        learner = Learner(12, 2, objective=objective, calibrated=False)
        for features, _, log_likelihood in stream(rng, 60, 0.7):
            learner.learn(features, log_likelihood)
        unary, transition = learner.scores(features)
        sure[objective] = forward_backward(unary[None], transition)[1][0].max(axis=1).mean()
    assert sure["marginal"] < sure["map"]


def test_the_temperature_makes_a_model_less_sure_that_learned_noise():
    rng = np.random.default_rng(4)
    learner = Learner(200, 2, rate=1.0)
    for _ in range(60):  # features say nothing of the answers
        features = sparse.csr_array((rng.random((1, 200)) < 0.05).astype(float))
        answer = rng.integers(2)
        learner.learn(features, np.log(np.where(np.arange(2) == answer, 0.9, 0.1))[None])
    assert learner.temperature > 1
    assert np.abs(learner.scores(features)[0]).max() == pytest.approx(
        np.abs(learner._unary_scores(features)).max() / learner.temperature
    )


def test_padding_keeps_every_row():
    batch, lengths = pad_rows([np.full((2, 3), 1.0), np.full((1, 3), 2.0)])
    assert batch.sum() == 12
    assert lengths.tolist() == [2, 1]
    assert not batch[1, 1:].any()


def test_an_unknown_objective_is_refused():
    with pytest.raises(ValueError, match="objective must be"):
        Learner(1, 2, objective="gold")
