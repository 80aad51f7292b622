"""Documents of a second stage: probabilities that sum to their number, draws that keep them, totals
without bias.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimators.documents import estimate_unseen_facts
from estimators.second_stage import (
    proportional_inclusion_probabilities,
    summed_tf_idf,
    systematic_sample,
)


def test_tf_idf_by_hand():
    found = summed_tf_idf(
        [0, 1, 1, 2], [0, 0, 1, 0], [3, 1, 2, 1], 3
    )  # entity 0 is everywhere: its idf is 0
    np.testing.assert_allclose(found, [0, 2 * np.log(3), 0])
    with pytest.raises(ValueError, match="count must be above 0"):
        summed_tf_idf([0], [0], [0], 3)
    with pytest.raises(ValueError, match="document must be below 2"):
        summed_tf_idf([2], [0], [1], 2)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=40), st.data())
@settings(deadline=None, max_examples=60)
def test_probabilities_sum_to_the_number_and_none_is_below_the_uniform_part(size, data):
    n = data.draw(st.integers(1, len(size)))
    uniform = data.draw(st.sampled_from([0.1, 0.5, 1.0]))
    pi = proportional_inclusion_probabilities(size, n, uniform=uniform)
    assert pi.sum() == pytest.approx(n)
    assert (pi <= 1).all()
    assert (pi >= uniform * n / len(size) * (1 - 1e-9)).all()


@given(st.lists(st.floats(0, 100), min_size=2, max_size=30), st.data())
@settings(deadline=None, max_examples=60)
def test_a_draw_has_exactly_its_size_and_no_document_twice(size, data):
    n = data.draw(st.integers(1, len(size)))
    pi = proportional_inclusion_probabilities(size, n)
    drawn = systematic_sample(pi, np.random.default_rng(data.draw(st.integers(0, 99))))
    assert np.unique(drawn).size == drawn.size == n
    again = systematic_sample(pi, np.random.default_rng(7))
    assert again.tolist() == systematic_sample(pi, np.random.default_rng(7)).tolist()


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="between 0 and 2"):
        proportional_inclusion_probabilities([1, 2], 3)
    with pytest.raises(ValueError, match="uniform must be in"):
        proportional_inclusion_probabilities([1, 2], 1, uniform=0)
    with pytest.raises(ValueError, match="whole number"):
        systematic_sample([0.5, 0.7], np.random.default_rng(1))


@pytest.mark.statistical
def test_every_document_is_drawn_with_its_probability():
    rng, repeats = np.random.default_rng(5), 8000
    pi = proportional_inclusion_probabilities(rng.gamma(0.7, size=25), 8, uniform=0.4)
    times = np.zeros(25)
    for _ in range(repeats):
        times[systematic_sample(pi, rng)] += 1
    error = np.sqrt(pi * (1 - pi) / repeats)
    assert (np.abs(times / repeats - pi) <= 4.5 * error + 1e-12).all()


@pytest.mark.statistical
def test_two_stages_estimate_the_total_without_bias_and_know_their_variance():
    rng, repeats, D, n1, n2 = np.random.default_rng(8), 2000, 120, 8, 30
    size = rng.gamma(0.8, size=D)
    missed = rng.poisson(0.5 + 2 * size).astype(float)  # what is missed goes with the size
    values, variances, plain = np.zeros(repeats), np.zeros(repeats), np.zeros(repeats)
    for at in range(repeats):
        order = rng.permutation(D)
        first, rest = order[:n1], order[n1:]
        pi = proportional_inclusion_probabilities(size[rest], n2)
        drawn = systematic_sample(pi, rng)
        counts = np.concatenate([missed[first], missed[rest[drawn]]])
        found = estimate_unseen_facts(counts, D, inclusion=np.concatenate([np.ones(n1), pi[drawn]]))
        values[at], variances[at] = found.value, found.variance
        plain[at] = estimate_unseen_facts(counts, D).value
    truth = missed.sum()
    assert abs(values.mean() - truth) < 4 * values.std() / np.sqrt(repeats)
    assert variances.mean() == pytest.approx(values.var(), rel=0.1)
    assert plain.mean() > 1.2 * truth  # without the probabilities it is far too high
