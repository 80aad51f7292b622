"""Recall, pool recall and F1: by hand, by enumeration, at the edges, and as often right as they
say.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimators.design import Design
from estimators.documents import document_probabilities, half_fact_changes
from estimators.estimate import Estimate
from estimators.horvitz_thompson import centred_difference_estimate
from estimators.recall import (
    add_anticipated_variance,
    add_missed_fact_floor,
    estimate_recall,
    estimate_totals,
    estimate_unseen_facts,
    f1_of_recall,
    recall_from_totals,
)


def known(counts, n_documents, **more):
    """Return recall of two systems over four facts that are all labelled: A predicts 0 and 1, B
    predicts 1, 2 and 3.
    """
    members = np.array([[1, 0], [1, 1], [0, 1], [0, 1]])
    return estimate_recall(
        members,
        np.ones(4),
        [1, 1, 0, 1],
        np.full(4, 0.5),
        [1.0, 1.5],
        2.0,
        counts,
        n_documents,
        **more,
    )


def test_everything_known_by_hand():
    found = known([1, 0, 0], 3)
    assert found.totals.systems.value.tolist() == [2, 2]
    assert found.totals.pool.value == 3
    assert found.recall.value.tolist() == [0.5, 0.5]
    assert found.pool_recall.value == 0.75
    assert found.recall.variance.tolist() == [0, 0]
    assert found.recall.degrees_of_freedom == np.inf


def test_the_documents_terms_by_hand():
    found = known([2, 0], 10)  # M = 10; T = 3; r = 2/13
    r = 2 / 13
    terms = -r * np.array([10.0, 0.0]) / 13
    assert found.recall.influence.shape == (6, 2)
    np.testing.assert_allclose(found.recall.influence[4:, 0], terms)
    assert found.recall.variance[0] == pytest.approx(0.8 * 2 * np.sum((terms - terms.mean()) ** 2))
    assert found.recall.degrees_of_freedom == 1


def test_totals_that_are_known_give_the_same_again():
    found = estimate_recall(
        [[1, 0], [1, 1]], [0.5, 0.4], [1, 0], [0.5, 0.7], [1.2, 0.7], 1.9, [2, 0, 1], 9
    )
    again = recall_from_totals(found.totals, found.unseen, found.design)
    for one, other in ((again.recall, found.recall), (again.pool_recall, found.pool_recall)):
        np.testing.assert_array_equal(one.value, other.value)
        np.testing.assert_array_equal(one.variance, other.variance)
        np.testing.assert_array_equal(one.influence, other.influence)


def test_no_annotated_document_leaves_recall_undefined():
    found = known([], 10)
    assert np.isnan(found.recall.value).all()
    assert np.isnan(found.recall.variance).all()
    assert np.isnan(found.pool_recall.value)
    assert np.isnan(estimate_unseen_facts([], 10).value)
    assert found.totals.pool.value == 3


def test_one_annotated_document_gives_a_value_without_a_variance():
    found = known([1], 10)
    assert found.recall.value[0] == pytest.approx(2 / 13)
    assert np.isnan(found.recall.variance).all()
    assert found.recall.confidence_interval(method="wilson").low.tolist() == [0, 0]


def test_one_system_is_the_pool():
    found = estimate_recall(
        [[1], [1]], np.full(2, 0.5), [1, 0], np.full(2, 0.4), [0.8], 0.8, [1, 2, 0], 9
    )
    assert found.recall.value[0] == pytest.approx(found.pool_recall.value)
    assert found.recall.variance[0] == pytest.approx(found.pool_recall.variance)


def test_identical_systems_have_equal_recall_and_a_certain_difference():
    members = np.repeat(np.array([[1], [1], [0]]), 2, axis=1)
    found = estimate_recall(
        members, np.full(3, 0.5), [1, 0, 1], np.full(3, 0.4), [0.8, 0.8], 1.2, [1, 2, 0], 9
    )
    z = found.recall.influence
    assert found.design.variance(z[:, 0] - z[:, 1]) == 0


def test_nothing_true_anywhere_is_undefined():
    found = estimate_recall([[1]], np.ones(1), [0], [0.5], [0.5], 0.5, [0, 0], 5)
    assert np.isnan(found.recall.value[0])
    assert add_anticipated_variance(found, [[1]], [1.0], [0.5], [0], [0.5]) is found


def test_a_numerator_may_ask_for_more_than_the_denominator():
    members, correct = np.ones((2, 2)), np.array([[1.0, 0.0], [0.0, 0.0]])
    found = estimate_recall(
        members, np.ones(2), correct, 0.5, [1, 1], 1.0, [0, 0], 2, pool_label=[1, 1]
    )
    assert found.recall.value.tolist() == [0.5, 0.0]
    with pytest.raises(ValueError, match="pool_label"):
        estimate_totals(members, np.ones(2), correct, 0.5, [1, 1], 1.0)


def test_influence_is_the_derivative_of_recall():
    rng = np.random.default_rng(4)
    members, pi = rng.integers(0, 2, (12, 3)), rng.uniform(0.2, 0.9, 12)
    f, g, counts = (
        rng.integers(0, 2, 12).astype(float),
        np.full(12, 0.5),
        np.array([1.0, 3.0, 0.0, 2.0]),
    )
    total_g, pool_g = np.array([6.0, 5.0, 4.0]), 9.0
    found = estimate_recall(members, pi, f, g, total_g, pool_g, counts, 20)
    direction = (
        found.totals.systems.influence.sum(axis=0),
        found.totals.pool.influence.sum(),
        found.unseen.value,
    )
    step = 1e-6
    nudged = estimate_recall(
        members,
        pi,
        f,
        g,
        total_g + step * direction[0],
        pool_g + step * direction[1],
        counts * (1 + step),
        20,
    )
    slope = (nudged.recall.value - found.recall.value) / step
    np.testing.assert_allclose(slope, found.recall.influence.sum(axis=0), atol=1e-5)


@given(st.lists(st.integers(0, 9), min_size=3, max_size=6), st.data())
@settings(deadline=None, max_examples=30)
def test_the_total_of_unseen_facts_and_its_variance_are_exactly_unbiased(everywhere, data):
    n = data.draw(st.integers(2, len(everywhere)))
    drawn = [
        estimate_unseen_facts(sample, len(everywhere))
        for sample in itertools.combinations(everywhere, n)
    ]
    values = np.array([estimate.value for estimate in drawn])
    assert values.mean() == pytest.approx(sum(everywhere))
    assert np.mean([estimate.variance for estimate in drawn]) == pytest.approx(
        values.var(), abs=1e-9
    )


def test_two_stage_documents_count_for_themselves_and_for_others():
    counts, inclusion = np.array([5.0, 1.0, 2.0]), np.array([1.0, 0.25, 0.5])
    estimate = estimate_unseen_facts(counts, 50, inclusion=inclusion)
    assert estimate.value == 5 + 4 + 4
    assert estimate.degrees_of_freedom == 1
    assert estimate_unseen_facts(
        counts + np.array([90, 0, 0]), 50, inclusion=inclusion
    ).variance == pytest.approx(estimate.variance)


def test_equal_probabilities_given_or_worked_out_agree():
    one, other = (
        estimate_unseen_facts([1, 2, 6], 12),
        estimate_unseen_facts([1, 2, 6], 12, inclusion=np.full(3, 0.25)),
    )
    assert one.value == other.value
    assert one.variance == pytest.approx(other.variance)


def test_a_regression_that_explains_everything_leaves_no_variance():
    length = np.array([1.0, 2.0, 5.0, 3.0])
    estimate = estimate_unseen_facts(
        2 + 3 * length, 10, features=length[:, None], feature_totals=[40.0]
    )
    assert estimate.value == pytest.approx(2 * 10 + 3 * 40)
    assert estimate.variance == pytest.approx(0, abs=1e-9)
    assert estimate.degrees_of_freedom == 2


def test_a_constant_feature_changes_nothing():
    plain, with_constant = (
        estimate_unseen_facts([1, 2, 6, 0], 12),
        estimate_unseen_facts([1, 2, 6, 0], 12, features=np.zeros((4, 1)), feature_totals=[0.0]),
    )
    assert plain.value == pytest.approx(with_constant.value)
    assert plain.variance == pytest.approx(with_constant.variance)


@pytest.mark.parametrize(
    ("arguments", "more", "message"),
    [
        (([1, -1], 5), {}, r"-1\.0"),
        (([1, np.nan], 5), {}, "nan"),
        (([1, 1], 1), {}, "at most 1"),
        (([1, 1], 5), {"inclusion": [0.5]}, r"\(2,\)"),
        (([1, 1], 5), {"inclusion": [0.5, 0.0]}, r"0\.0"),
        (
            ([1, 1], 5),
            {"features": np.ones((2, 1)), "feature_totals": [5]},
            "more than 2 documents",
        ),
        (([1, 1], 5), {"features": np.ones((2, 1))}, "feature_totals"),
    ],
)
def test_unseen_names_the_offending_value(arguments, more, message):
    with pytest.raises(ValueError, match=message):
        estimate_unseen_facts(*arguments, **more)


def test_recall_refuses_what_does_not_fit():
    arguments = [[1], [1]], np.full(2, 0.9), [1, 0], np.full(2, 0.5), [1.0], 1.0, [1, 1], 4
    with pytest.raises(ValueError, match="membership must be in"):
        estimate_recall([[2], [1]], *arguments[1:])


def test_documents_have_the_share_that_was_drawn_or_what_was_recorded():
    assert document_probabilities(3, 12, None).tolist() == [0.25] * 3
    assert document_probabilities(2, 12, [1.0, 0.5]).tolist() == [1.0, 0.5]
    with pytest.raises(ValueError, match=r"shape \(3,\); got \(2,\)"):
        document_probabilities(3, 12, [1.0, 0.5])


def test_the_anticipated_variance_by_hand_with_its_document_term():
    members, pi, g = (
        np.array([[1, 0], [1, 1], [0, 1]]),
        np.array([0.5, 0.25, 1.0]),
        np.array([0.5, 0.8, 0.4]),
    )
    asked, label = np.array([0, 1]), np.array([1.0, 0.0])
    found = estimate_recall(
        members[asked], pi[asked], label, g[asked], members.T @ g, float(g.sum()), [2, 0, 4], 12
    )
    anticipated = add_anticipated_variance(found, members, pi, g, label, g[asked])
    truth = found.totals.pool.value + 4 * 6  # T + M
    too_sure = (0.5**2 + 0.8**2) / (0.5 * 0.5 + 0.8 * 0.2)
    documents = (
        3 * (12 / 3) ** 2 * (1 - 3 / 12) * np.var([2, 0, 4], ddof=1) / truth**2
    )  # of M, and r has −r M
    for i, r in enumerate(found.recall.value):
        terms = [
            (members[x, i] - r) ** 2 * (1 / pi[x] - 1) * g[x] * (1 - g[x]) / truth**2
            for x in range(3)
        ]
        assert anticipated.recall.anticipated[i] == pytest.approx(
            too_sure * sum(terms) + r**2 * documents
        )
    assert anticipated.recall.value is found.recall.value
    low, high = anticipated.recall.confidence_interval(0.8, method="wilson")
    assert np.all(
        (low <= np.clip(found.recall.value, 0, 1)) & (np.clip(found.recall.value, 0, 1) <= high)
    )


def test_f1_by_hand_with_its_covariance():
    design = Design(np.array([0.5]))
    P = Estimate(0.5, 0.02, 9, np.array([0.2]))
    R = Estimate(0.25, 0.005, 7, np.array([0.1]))
    both = f1_of_recall(P, R, design)
    assert both.value == pytest.approx(1 / 3)
    slope = 2 * (0.25**2 * 0.2 + 0.5**2 * 0.1) / 0.75**2
    assert both.variance == pytest.approx(0.5 * slope**2)
    assert both.n == 7


@given(st.floats(0.01, 1), st.floats(0.01, 1))
def test_the_influence_of_f1_is_its_derivative(P, R):
    step, z = 1e-7, np.array([0.3])
    design = Design(np.array([0.5]))
    both = f1_of_recall(Estimate(P, 0.0, 1, z), Estimate(R, 0.0, 1, 2 * z), design)
    nudged = f1_of_recall(
        Estimate(P + step * 0.3, 0.0, 1, z), Estimate(R + step * 0.6, 0.0, 1, z), design
    )
    assert (nudged.value - both.value) / step == pytest.approx(both.influence[0], abs=1e-4)


def test_f1_of_nothing_is_nothing_and_of_the_undefined_undefined():
    design, z = Design(np.array([0.5])), np.zeros(1)
    zero, undefined = Estimate(0.0, 0.0, 1, z), Estimate(np.nan, np.nan, 0, z)
    assert (f1_of_recall(zero, zero, design).value, f1_of_recall(zero, zero, design).variance) == (
        0,
        0,
    )
    assert np.isnan(f1_of_recall(undefined, zero, design).value)
    assert np.isnan(f1_of_recall(undefined, zero, design).variance)


def test_f1_takes_precision_without_document_rows():
    found = known([2, 0], 10)
    p = np.array([[0.5, 0], [0.5, 1 / 3], [0, 1 / 3], [0, 1 / 3]])
    precision = centred_difference_estimate(
        p, np.ones(4), [1, 1, 0, 1], np.full(4, 0.5), [0.5, 0.5]
    )
    both = f1_of_recall(precision, found.recall, found.design)
    np.testing.assert_allclose(
        both.value,
        [
            2 * r / (1 + r) if i == 0 else 2 * (2 / 3) * r / (2 / 3 + r)
            for i, r in enumerate(found.recall.value)
        ],
    )
    with pytest.raises(ValueError, match="rows"):
        f1_of_recall(precision, found.recall, Design(np.ones(2)))


class Corpus:
    """120 documents of unequal sizes, two systems, a pool with labels that agree within
    documents.
    """

    def __init__(self, seed=0, n_documents=120):
        rng = np.random.default_rng(seed)
        size = rng.poisson(rng.gamma(4, 3, n_documents)) + 1
        self.document = np.repeat(np.arange(n_documents), size)
        quality = rng.beta(3, 2, n_documents)
        self.f = (rng.random(self.document.size) < quality[self.document]).astype(float)
        state = rng.random((self.document.size, 2)) < np.where(
            self.f[:, None] == 1, [0.7, 0.5], [0.4, 0.2]
        )
        self.pool = state.any(axis=1)
        self.members = state.astype(float)
        missed = (self.f == 1) & ~self.pool
        self.counts = np.bincount(self.document[missed], minlength=n_documents)
        self.truth = self.members[self.f == 1].sum(axis=0) / self.f.sum()
        self.n_documents = n_documents

    def replay(self, rng, n_drawn, pi_1):
        """Return recall from one sample of targets and documents; g is a constant."""
        drawn = rng.choice(self.n_documents, n_drawn, replace=False)
        rows = self.pool & (rng.random(self.document.size) < pi_1)
        pi = np.full(rows.sum(), pi_1)
        g = 0.6
        return estimate_recall(
            self.members[rows],
            pi,
            self.f[rows],
            np.full(rows.sum(), g),
            g * self.members.sum(axis=0),
            g * self.pool.sum(),
            self.counts[drawn],
            self.n_documents,
        )


@pytest.mark.statistical
def test_recall_covers_as_often_as_it_says():
    corpus, rng, repeats = Corpus(), np.random.default_rng(1), 500
    hits, values, variances = np.zeros(2), [], []
    for _ in range(repeats):
        found = corpus.replay(rng, 30, 0.15)
        low, high = found.recall.confidence_interval(0.8, method="wilson")
        hits += (low <= corpus.truth) & (corpus.truth <= high)
        values.append(found.recall.value)
        variances.append(found.recall.variance)
    assert np.all((hits / repeats > 0.74) & (hits / repeats < 0.87))
    ratio = np.mean(variances, axis=0) / np.var(values, axis=0)
    assert np.all((ratio > 0.8) & (ratio < 1.25))


def held_over_all_samples(missed, n_read, *, floor):
    """Return how often the 80 % interval of recall holds the truth, over all sets of documents that
    could be read; all that is predicted, two facts a document, is judged.
    """
    facts, truth = 2 * len(missed), 2 * len(missed) / (2 * len(missed) + sum(missed))
    ones, held = np.ones(facts), []
    for counts in itertools.combinations(missed, n_read):
        found = estimate_recall(
            ones[:, None], ones, ones, 0.5 * ones, [facts / 2], facts / 2, counts, len(missed)
        )
        told = add_missed_fact_floor(found.recall, found) if floor else found.recall
        low, high = told.confidence_interval(0.8, method="wilson")
        held.append(bool(low[0] - 1e-12 <= truth <= high[0] + 1e-12))
    return np.mean(held)


@pytest.mark.parametrize(
    ("missed", "n_read"),
    [([1] + [0] * 9, 2), ([2, 1] + [0] * 8, 3), ([3, 0, 0, 0, 0, 0, 0], 2), ([1] * 3 + [0] * 9, 2)],
)
def test_documents_without_a_missed_fact_do_not_say_that_none_was_missed(missed, n_read):
    """Else the interval is the point 1 unless a document with a missed fact happens to be read."""
    assert held_over_all_samples(missed, n_read, floor=False) < 0.6
    assert held_over_all_samples(missed, n_read, floor=True) >= 0.8


def test_where_missed_facts_were_found_nothing_changes():
    for counts in ([1, 0], [2, 1, 0, 0], [5, 1, 3]):
        found = known(counts, 10)
        assert add_missed_fact_floor(found.recall, found) is found.recall
    found = known([0, 0], 2)
    assert add_missed_fact_floor(found.recall, found) is found.recall, "all documents were read"


def test_two_documents_of_a_thousand_without_a_missed_fact_leave_recall_open():
    ones = np.ones(3000)
    found = estimate_recall(ones[:, None], ones, ones, 0.5 * ones, [1500], 1500, [0, 0], 1000)
    few = add_missed_fact_floor(found.recall, found).confidence_interval(0.8, method="wilson")
    assert few.low[0] < 0.5 and few.high[0] == 1
    found = estimate_recall(ones[:, None], ones, ones, 0.5 * ones, [1500], 1500, [0] * 100, 1000)
    many = add_missed_fact_floor(found.recall, found).confidence_interval(0.8, method="wilson")
    assert 0.98 < many.low[0] < 0.999, "of some 300 facts read none was missed"


def test_documents_of_unequal_chances_carry_half_a_missed_fact_each_with_its_weight():
    estimate = estimate_unseen_facts([0, 0, 0], 50, inclusion=[1.0, 0.25, 0.5])
    assert estimate.variance == 0
    assert estimate.anticipated == pytest.approx(0.5 * (0.75 * 16 + 0.5 * 4) / 2)
    more, variance = half_fact_changes([1.0, 0.25, 0.5])
    assert more == pytest.approx(0.5 * (4 + 2) / 2) and variance == estimate.anticipated
    assert half_fact_changes([1.0, 1.0]) == (0.0, 0.0), "all documents were read"
