"""Inference in chains equals the enumeration of all sequences of labels."""

from itertools import product

import numpy as np
import pytest

from estimators.onthejob.chains import forward_backward, viterbi
from estimators.onthejob.people import symmetric_response_table
from estimators.onthejob.states import Belief, State, expected_accuracy


def enumerated(unary, transition):
    """Return all sequences and their unnormalised log-probabilities."""
    n, n_labels = unary.shape
    sequences = np.array(list(product(range(n_labels), repeat=n)))
    scores = unary[np.arange(n), sequences].sum(axis=1)
    scores += transition[sequences[:, :-1], sequences[:, 1:]].sum(axis=1)
    return sequences, scores


CASES = [(n, k, seed) for n in (1, 2, 3, 4) for k in (2, 3) for seed in (0, 1)]


@pytest.mark.parametrize(("n", "n_labels", "seed"), CASES)
def test_forward_backward_and_viterbi_equal_enumeration(n, n_labels, seed):
    rng = np.random.default_rng(seed)
    unary, transition = 3 * rng.normal(size=(n, n_labels)), 2 * rng.normal(size=(n_labels,) * 2)
    sequences, scores = enumerated(unary, transition)
    chance = np.exp(scores) / np.exp(scores).sum()
    log_z, nodes, pairs = forward_backward(unary[None], transition)
    assert log_z[0] == pytest.approx(np.log(np.exp(scores).sum()), abs=1e-12)
    expected = np.zeros((n, n_labels))
    counts = np.zeros((n_labels, n_labels))
    for y, p in zip(sequences, chance, strict=True):
        expected[np.arange(n), y] += p
        np.add.at(counts, (y[:-1], y[1:]), p)
    np.testing.assert_allclose(nodes[0], expected, atol=1e-12)
    np.testing.assert_allclose(pairs[0], counts, atol=1e-12)
    assert viterbi(unary, transition).tolist() == sequences[scores.argmax()].tolist()


def test_chains_of_different_lengths_in_one_batch_equal_single_chains():
    rng = np.random.default_rng(2)
    transition = rng.normal(size=(3, 3))
    chains = [rng.normal(size=(n, 3)) for n in (4, 1, 3)]
    batch = np.full((3, 4, 3), 9.0)  # the padding must not matter
    for b, one in enumerate(chains):
        batch[b, : len(one)] = one
    log_z, nodes, pairs = forward_backward(batch, transition, [4, 1, 3])
    for b, one in enumerate(chains):
        alone = forward_backward(one[None], transition)
        assert log_z[b] == pytest.approx(alone[0][0], abs=1e-12)
        np.testing.assert_allclose(nodes[b, : len(one)], alone[1][0], atol=1e-12)
        assert not nodes[b, len(one) :].any()
        np.testing.assert_allclose(pairs[b], alone[2][0], atol=1e-12)


def test_scores_that_differ_by_hundreds_do_not_overflow():
    log_z, nodes, _ = forward_backward([[[900.0, 0.0], [0.0, -900.0]]], np.zeros((2, 2)))
    assert log_z[0] == pytest.approx(900)
    np.testing.assert_allclose(nodes[0], [[1, 0], [1, 0]], atol=1e-12)


@pytest.mark.parametrize(("n", "n_labels", "seed"), CASES)
def test_posterior_next_response_and_expected_accuracy_equal_enumeration(n, n_labels, seed):
    rng = np.random.default_rng(seed)
    unary, transition = rng.normal(size=(n, n_labels)), rng.normal(size=(n_labels,) * 2)
    tables = [
        symmetric_response_table(n_labels, 0.7),
        rng.dirichlet(np.ones(n_labels), size=n_labels),
    ]
    belief = Belief(unary, transition, tables)
    evidence = tuple(
        (int(rng.integers(n)), int(rng.integers(n_labels)), int(rng.integers(2))) for _ in range(3)
    )
    sequences, scores = enumerated(unary, transition)
    joint = np.exp(scores)
    for position, response, table in evidence:
        joint *= tables[table][sequences[:, position], response]
    chance = joint / joint.sum()
    nodes = np.array(
        [[chance[sequences[:, i] == y].sum() for y in range(n_labels)] for i in range(n)]
    )
    posterior = belief.posterior(evidence)
    np.testing.assert_allclose(posterior.nodes, nodes, atol=1e-12)
    law = chance @ tables[0][sequences[:, 0]]
    np.testing.assert_allclose(belief.next_response_probabilities(0, evidence), law, atol=1e-12)
    y_hat = viterbi(unary + belief.log_likelihood(evidence), transition)
    right = (sequences == y_hat).mean(axis=1)
    assert expected_accuracy(nodes, y_hat) == pytest.approx(chance @ right, abs=1e-12)
    assert expected_accuracy(nodes) >= chance @ right - 1e-12
    assert posterior.best / n == pytest.approx(expected_accuracy(nodes), abs=1e-12)


def test_evidence_in_one_batch_equals_evidence_one_by_one():
    rng = np.random.default_rng(3)
    unary, transition = rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    batched = Belief(unary, transition, [symmetric_response_table(3, 0.8)])
    evidence = batched.after(((0, 1, 0),), 2, 1)
    alone = Belief(unary, transition, [symmetric_response_table(3, 0.8)]).posterior(
        ((2, 1, 0), (0, 1, 0))
    )
    np.testing.assert_allclose(batched.posterior(evidence).nodes, alone.nodes, atol=1e-14)


def test_queries_in_flight_change_no_posterior():
    belief = Belief([[0.4, 0.0]], np.zeros((2, 2)), [symmetric_response_table(2, 0.8)])
    state = State(belief)
    assert state.ask(0).posterior is state.posterior
