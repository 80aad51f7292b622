"""Tests of estimators.distributions: the four kinds by hand, and what every distribution must
satisfy.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from estimators import distributions

codes = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 5)), min_size=1, max_size=30
)

# Ada has three facts (two of them the same fact with two justifications), Bo one.
TOY = {"subject": [0, 0, 0, 1], "predicate": [0, 0, 1, 1], "object": [7, 7, 8, 8]}


def columns(facts: list[tuple[int, int, int]]) -> dict[str, np.ndarray]:
    subject, predicate, object_ = np.array(facts).T
    return {"subject": subject, "predicate": predicate, "object": object_}


def test_instance_weighs_every_prediction_alike():
    assert distributions.prediction_probabilities("instance", **TOY).tolist() == [0.25] * 4


def test_relation_weighs_every_predicate_alike():
    assert distributions.prediction_probabilities("relation", **TOY).tolist() == [0.25] * 4
    uneven = {"subject": [0, 1, 2], "predicate": [0, 0, 1], "object": [0, 0, 0]}
    assert distributions.prediction_probabilities("relation", **uneven).tolist() == [
        0.25,
        0.25,
        0.5,
    ]


def test_entity_weighs_every_subject_alike():
    assert distributions.prediction_probabilities("entity", **TOY) == pytest.approx(
        [1 / 6, 1 / 6, 1 / 6, 1 / 2]
    )


def test_entity_relation_counts_distinct_facts_not_justifications():
    # |subj-relns| is 2 for Ada and 1 for Bo; |subj| 3 and 1; |rel| 2 and 2: 2/6, 2/6, 2/6, 1/2,
    # which sum to 3/2.
    assert distributions.prediction_probabilities("entity_relation", **TOY) == pytest.approx(
        [2 / 9, 2 / 9, 2 / 9, 1 / 3]
    )


@pytest.mark.parametrize("kind", distributions.KINDS)
def test_a_system_without_predictions_has_an_empty_distribution(kind):
    assert distributions.prediction_probabilities(
        kind, subject=[], predicate=[], object=[]
    ).shape == (0,)


@pytest.mark.parametrize("kind", distributions.KINDS)
@given(facts=codes)
def test_weights_are_a_distribution_whatever_the_codes(kind, facts):
    p = distributions.prediction_probabilities(kind, **columns(facts))
    assert (p > 0).all()
    assert p.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("kind", distributions.KINDS)
@given(facts=codes, data=st.data())
def test_weights_follow_a_reordering_and_ignore_the_names_of_codes(kind, facts, data):
    order = data.draw(st.permutations(range(len(facts))))
    p = distributions.prediction_probabilities(kind, **columns(facts))
    renamed = {name: 100 - column[order] for name, column in columns(facts).items()}
    assert distributions.prediction_probabilities(kind, **renamed) == pytest.approx(
        p[order], rel=1e-12
    )


@given(facts=codes)
def test_relation_and_entity_give_each_group_the_same_total(facts):
    for kind, key in (("relation", "predicate"), ("entity", "subject")):
        group = columns(facts)[key]
        totals = np.bincount(
            group, weights=distributions.prediction_probabilities(kind, **columns(facts))
        )
        assert totals[np.unique(group)] == pytest.approx(1 / len(np.unique(group)))


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="got 'micro'"):
        distributions.prediction_probabilities("micro", **TOY)
    with pytest.raises(ValueError, match=r"predicate must have shape \(4,\)"):
        distributions.prediction_probabilities("entity", **{**TOY, "predicate": [0, 1]})
    with pytest.raises(ValueError, match="integer codes; got dtype float64"):
        distributions.prediction_probabilities("entity", **{**TOY, "object": [0.5, 1, 1, 1]})
    with pytest.raises(ValueError, match="-2"):
        distributions.prediction_probabilities("entity", **{**TOY, "subject": [0, -2, 0, 1]})


def test_normalise_turns_any_filter_into_a_distribution():
    assert distributions.normalise([0, 1, 1, 0]).tolist() == [0, 0.5, 0.5, 0]
    assert distributions.normalise([]).shape == (0,)
    with pytest.raises(ValueError, match="got 2 times 0"):
        distributions.normalise([0, 0])
    with pytest.raises(ValueError, match=r"-1\.0"):
        distributions.normalise([1, -1])
    with pytest.raises(ValueError, match="one dimension"):
        distributions.normalise([[1, 2]])


def test_overlap_of_identical_disjoint_and_nested_systems():
    same, other, part = [0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5], [1, 0, 0, 0]
    overlap = distributions.pairwise_overlap(np.column_stack([same, same, other, part]))
    assert overlap.tolist() == [
        [0.5, 0.5, 0, 0.5],
        [0.5, 0.5, 0, 0.5],
        [0, 0, 0.5, 0],
        [0.5, 0.5, 0, 1],
    ]


def test_overlap_of_a_sparse_table_is_that_of_the_dense_one():
    rng = np.random.default_rng(4)
    P = rng.random((50, 4)) * (rng.random((50, 4)) < 0.2)
    P /= P.sum(axis=0)
    found = distributions.pairwise_overlap(sparse.csc_array(P))
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, distributions.pairwise_overlap(P), rtol=1e-14)
    with pytest.raises(ValueError, match="column 0 sums to 0"):
        distributions.pairwise_overlap(sparse.csr_array(P / 2))
    with pytest.raises(ValueError, match=r"P must be in \[0, 1\]; got .*-0\.5"):
        distributions.pairwise_overlap(sparse.csr_array([[-0.5], [1.5]]))


def test_overlap_refuses_columns_that_are_no_distributions():
    with pytest.raises(ValueError, match=r"column 1 sums to 0\.9"):
        distributions.pairwise_overlap([[1.0, 0.9], [0.0, 0.0]])
    with pytest.raises(ValueError, match="two dimensions"):
        distributions.pairwise_overlap([1.0])
