"""Tests of estimators.agreement: the published worked examples of κ and α, chance, and bootstrap
weights.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimators import agreement, bootstrap

NAN = float("nan")
# Fleiss 1971 in the usual teaching example: 10 subjects, 14 raters, 5 categories.
FLEISS = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]
# Krippendorff 2011, section C: four observers, twelve units, missing answers.
OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
)


def long(table: np.ndarray) -> dict[str, np.ndarray]:
    annotator, unit = np.indices(table.shape)
    return {"values": table.ravel(), "unit": unit.ravel(), "annotator": annotator.ravel()}


def test_fleiss_kappa_of_the_known_example():
    assert agreement.fleiss_kappa(FLEISS) == pytest.approx(0.210, abs=5e-4)


@pytest.mark.parametrize(
    ("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_krippendorff_alpha_of_the_known_example(level, alpha):
    assert agreement.krippendorff_alpha(**long(OBSERVERS), level=level) == pytest.approx(
        alpha, abs=5e-4
    )


def test_full_agreement_is_one_and_no_variation_is_undefined():
    assert agreement.fleiss_kappa([[2, 0], [0, 2]]) == 1
    assert np.isnan(agreement.fleiss_kappa([[2, 0], [3, 0]]))
    same = np.array([[1.0, 2, 3], [1, 2, 3]])
    for level in agreement.LEVELS:
        assert agreement.krippendorff_alpha(**long(same), level=level) == 1
        assert np.isnan(agreement.krippendorff_alpha(**long(np.ones((2, 3))), level=level))


def test_nothing_to_compare_is_undefined():
    assert np.isnan(agreement.fleiss_kappa(np.zeros((0, 2))))
    assert np.isnan(agreement.fleiss_kappa([[1, 0], [0, 1]]))
    alone = np.array([[1.0, NAN], [NAN, 2.0]])
    assert np.isnan(agreement.krippendorff_alpha(**long(alone), level="nominal"))
    nobody = np.full((2, 2), NAN)
    assert np.isnan(agreement.krippendorff_alpha(**long(nobody), level="interval"))


def test_items_with_one_rating_are_left_out():
    assert agreement.fleiss_kappa([*FLEISS, [1, 0, 0, 0, 0]]) == agreement.fleiss_kappa(FLEISS)


@given(
    table=st.lists(
        st.lists(st.sampled_from([0.0, 1.0, 2.0, NAN]), min_size=6, max_size=6),
        min_size=2,
        max_size=4,
    ),
    seed=st.integers(0, 99),
)
def test_agreement_ignores_the_order_of_people_units_and_rows(table, seed):
    answers, rng = long(np.array(table)), np.random.default_rng(seed)
    order = rng.permutation(answers["values"].size)
    shuffled = {
        "values": answers["values"][order],
        "unit": 9 - answers["unit"][order],
        "annotator": 5 - answers["annotator"][order],
    }
    for level in agreement.LEVELS:
        here = agreement.krippendorff_alpha(**answers, level=level)
        assert agreement.krippendorff_alpha(**shuffled, level=level) == pytest.approx(
            here, nan_ok=True
        )
        assert np.isnan(here) or here <= 1


@given(st.floats(0.1, 10), st.floats(-5, 5))
def test_interval_alpha_does_not_know_the_unit_of_measurement(scale, shift):
    here = agreement.krippendorff_alpha(**long(OBSERVERS), level="interval")
    there = agreement.krippendorff_alpha(**long(scale * OBSERVERS + shift), level="interval")
    assert there == pytest.approx(here)


def test_weights_count_units_as_often_as_they_say():
    twice = np.array(FLEISS + FLEISS[:1])
    weights = np.ones((2, 10))
    weights[1, 0] = 2
    kappas = agreement.fleiss_kappa(FLEISS, weights=weights)
    assert kappas == pytest.approx([agreement.fleiss_kappa(FLEISS), agreement.fleiss_kappa(twice)])
    doubled = np.column_stack([OBSERVERS, OBSERVERS[:, 0]])
    weights = np.ones((1, 12))
    weights[0, 0] = 2
    for level in agreement.LEVELS:
        assert agreement.krippendorff_alpha(**long(OBSERVERS), level=level, weights=weights)[
            0
        ] == pytest.approx(agreement.krippendorff_alpha(**long(doubled), level=level))


def test_kappa_gets_its_interval_from_the_bootstrap():
    result = bootstrap.bootstrap(
        lambda weights: agreement.fleiss_kappa(FLEISS, weights=weights),
        len(FLEISS),
        rng=np.random.default_rng(0),
    )
    low, high = result.confidence_interval(0.8)
    assert low < result.value < high
    assert result.value == agreement.fleiss_kappa(FLEISS)


def test_bad_answers_are_named():
    with pytest.raises(ValueError, match=r"whole numbers; got 0\.5"):
        agreement.fleiss_kappa([[0.5, 1]])
    with pytest.raises(ValueError, match="two dimensions"):
        agreement.fleiss_kappa([1, 2])
    with pytest.raises(ValueError, match="got 'ratio'"):
        agreement.krippendorff_alpha([1], [0], [0], level="ratio")
    with pytest.raises(ValueError, match="annotator 3 on unit 7 again"):
        agreement.krippendorff_alpha([1, 2], [7, 7], [3, 3], level="nominal")
    with pytest.raises(ValueError, match=r"shape \(B, 10\)"):
        agreement.fleiss_kappa(FLEISS, weights=[1, 2])


@pytest.mark.statistical
def test_answers_at_random_agree_by_chance_only():
    rng = np.random.default_rng(8)
    table = rng.choice(3, size=(3, 4000), p=[0.6, 0.3, 0.1]).astype(float)
    counts = np.stack([(table == k).sum(axis=0) for k in range(3)], axis=1)
    assert abs(agreement.fleiss_kappa(counts)) < 0.04
    for level in agreement.LEVELS:
        assert abs(agreement.krippendorff_alpha(**long(table), level=level)) < 0.04
