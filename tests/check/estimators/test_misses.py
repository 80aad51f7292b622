"""What annotators miss: by hand, and in a world where they miss a known share."""

import numpy as np
import pytest

from estimators.design import Design
from estimators.misses import correct_recall_for_misses, marked_share
from estimators.recall import estimate_recall


def test_the_share_weighs_by_probabilities_and_leaves_out_what_is_not_known_or_not_there():
    design = Design(
        np.array([0.5, 1.0, 1.0, 1.0, 1.0, 0.2, 0.5]),
        cluster=[-1] * 5 + [0, 1],
        beta=np.array([0.2, 0.5]),
    )
    share = marked_share(
        true=[1, 1, np.nan, 0, 1],
        marked=[True, False, True, False, True],
        weight=[1, 1, 1, 1, 1],
        pi=[0.5, 1, 1, 1, 1],
        document=[0, 1, 1, 1, -1],
        design=design,
    )
    assert share.value == pytest.approx(10 / 12)  # 1/(0.5·0.2) against 1/0.5
    assert share.n == 2


def test_a_missing_share_leaves_the_corrected_recall_undefined():
    plain = estimate_recall(
        [[1], [1]], np.ones(2), [1, 1], np.full(2, 0.5), [1.0], 1.0, [1, 1, 0, 0], 4
    )
    share = marked_share([0, 1], [False, False], np.ones(2), np.ones(2), [0, -1], plain.design)
    assert np.isnan(share.value)
    assert share.n == 0
    assert np.isnan(correct_recall_for_misses(plain, share).recall.value).all()
    nobody = marked_share([1, 1], [False, False], np.ones(2), np.ones(2), [0, 1], plain.design)
    assert nobody.value == 0
    assert np.isnan(correct_recall_for_misses(plain, nobody).recall.value).all()


def test_who_misses_nothing_changes_nothing():
    plain = estimate_recall(
        [[1], [1]], np.full(2, 0.5), [1, 1], np.full(2, 0.5), [1.0], 1.0, [1, 1, 0], 6
    )
    share = marked_share([1, 1], [True, True], np.ones(2), np.full(2, 0.5), [0, 1], plain.design)
    corrected = correct_recall_for_misses(plain, share)
    assert corrected.recall.value == pytest.approx(plain.recall.value)
    assert corrected.recall.variance == pytest.approx(plain.recall.variance)
    assert corrected.unseen.variance == pytest.approx(plain.unseen.variance)


def test_where_all_of_a_document_is_known_the_documents_alone_carry_the_influence():
    folded = Design(np.array([0.6, 1.0, 0.5, 0.5]), cluster=[0, -1, 0, 1], beta=0.5)
    share = marked_share(
        [1, 1, 1, 0, np.nan],
        [True, False, True, False, True],
        np.ones(5),
        np.ones(5),
        [0, 0, 1, 1, 1],
        folded,
        target=[7, 8, 9, 10, 11],
    )
    assert share.value == pytest.approx(2 / 3)
    assert share.n == 3
    # k_d - c l_d over beta L: (1 - 4/3)/3 and (1 - 2/3)/3
    np.testing.assert_allclose(share.influence, [0, 0, -1 / 9, 1 / 9])
    assert share.variance == pytest.approx(0.5 * 2 * 2 / 81)


@pytest.mark.statistical
@pytest.mark.parametrize("n_d", [30, 120])
@pytest.mark.soak
def test_the_correction_repairs_recall_and_knows_its_variance(n_d):
    rng, repeats, D, c, pi = np.random.default_rng(3), 1500, 120, 0.7, 0.4
    place = np.repeat(np.arange(D), 8)
    f = (rng.random(place.size) < 0.6).astype(float)
    members = (rng.random((place.size, 1)) < 0.7).astype(float)
    missed = rng.poisson(3, D)
    truth = float(f @ members[:, 0]) / (f.sum() + missed.sum())
    ends = np.zeros((repeats, 2, 3))
    for at in range(repeats):
        marked = rng.random(place.size) < c
        drawn = rng.permutation(D)[:n_d]
        counts = rng.binomial(missed[drawn], c)
        rows = np.flatnonzero(rng.random(place.size) < pi)
        position = np.full(D, -1)
        position[drawn] = np.arange(n_d)
        half, chance = np.full(rows.size, 0.5), np.full(rows.size, pi)
        total = float(members.sum() / 2)
        plain = estimate_recall(
            members[rows], chance, f[rows], half, [total], place.size / 2, counts, D
        )
        share = marked_share(
            f[rows], marked[rows], np.ones(rows.size), chance, position[place[rows]], plain.design
        )
        corrected = correct_recall_for_misses(plain, share)
        ends[at, 0] = (
            share.value,
            share.variance,
            abs(share.value - c) < 1.2816 * np.sqrt(share.variance),
        )
        value, variance = corrected.recall.value[0], corrected.recall.variance[0]
        ends[at, 1] = value, variance, abs(value - truth) < 1.2816 * np.sqrt(variance)
    for which, true in ((0, c), (1, truth)):
        value, variance, covered = ends[:, which].T
        # A ratio's own bias is of order 1/n.
        assert abs(value.mean() - true) < 4 * value.std() / np.sqrt(repeats) + 0.004
        if (
            n_d < D
        ):  # else all that is left to chance is what people mark, and that is not in the design
            assert variance.mean() == pytest.approx(value.var(), rel=0.2)
            assert covered.mean() > 0.755
