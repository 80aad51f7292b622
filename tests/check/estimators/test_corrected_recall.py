"""Recall and F1 from crowd labels and expert checks: exact over all samples, and honest where the
crowd is not.
"""

import itertools

import numpy as np
import pytest

from estimators.design import Design
from estimators.horvitz_thompson import difference_estimate
from estimators.noise import (
    correct_by_expert_checks,
    expert_probabilities,
    recall_from_corrected_totals,
)
from estimators.recall import estimate_recall, f1_of_recall

TARGET = np.array([0, 1, 2, 1])  # two facts share the second target
MEMBER = np.array([[1.0, 0], [1, 1], [0, 1], [1, 0]])
TRUE = np.array([1.0, 0, 1, 1])
CROWD = np.array([[1.0, 1, 0.7, 1], [0.0, 1, 0, 1]])
G = np.array([0.8, 0.3, 0.5, 0.6])
PI, E = np.array([0.5, 0.7, 0.4]), np.array([0.6, 0.3, 0.8])
UNSEEN = np.array([2.0, 0, 1])


def both(member, pi, crowd, expert, e, target, counts, n_documents, total, pool_total, g):
    """Return recall from crowd labels, and as expert checks correct it."""
    found = estimate_recall(
        member,
        pi,
        crowd,
        g,
        total,
        pool_total,
        counts,
        n_documents,
        target=target,
        n_targets=3 if target is not None else None,
    )
    n = found.totals.pool.influence.size
    code = np.arange(n) if target is None else target
    design = Design(found.design.pi[:n])
    part = pi, crowd, expert, e
    systems = correct_by_expert_checks(found.totals.systems, design, member, *part, target=code)
    pool = correct_by_expert_checks(found.totals.pool, design, np.ones(len(pi)), *part, target=code)
    by_target = np.ones(n)
    by_target[code] = e
    return found, recall_from_corrected_totals(found, systems, pool, by_target)


@pytest.mark.parametrize("crowd", CROWD)
def test_the_totals_and_every_variance_are_exactly_unbiased(crowd):
    """Over all labels, all checks and all pairs of three documents."""
    ratio = np.array([0.3, 0.6])
    mean, second, variance, total = np.zeros(4), np.zeros((2, 2)), np.zeros((2, 2)), 0.0
    for drawn in itertools.combinations(range(3), 2):
        for state in itertools.product(range(3), repeat=3):
            s = np.array(state)
            chance = np.prod(np.choose(s, [1 - PI, PI * (1 - E), PI * E])) / 3
            rows = (s >= 1)[TARGET]
            expert = np.where((s == 2)[TARGET], TRUE, np.nan)[rows]
            found, told = both(
                MEMBER[rows],
                PI[TARGET][rows],
                crowd[rows],
                expert,
                E[TARGET][rows],
                TARGET[rows],
                UNSEEN[list(drawn)],
                3,
                MEMBER.T @ G,
                G.sum(),
                G[rows],
            )
            counted = told.totals
            value = np.append(counted.systems.value, [counted.pool.value, told.unseen.value])
            z = np.concatenate([counted.systems.influence, np.zeros((2, 2))])
            z = z - np.outer(np.concatenate([counted.pool.influence, told.unseen.influence]), ratio)
            contrast = value[:2] - ratio * value[2:].sum()
            mean, total = mean + chance * value, total + chance
            second += chance * np.outer(contrast, contrast)
            variance += chance * told.design.covariance(z)
            assert found.recall.value.shape == told.recall.value.shape
    assert total == pytest.approx(1)
    np.testing.assert_allclose(mean, [*(MEMBER.T @ TRUE), TRUE.sum(), UNSEEN.sum()])
    expected = mean[:2] - ratio * mean[2:].sum()
    np.testing.assert_allclose(variance, second - np.outer(expected, expected), atol=1e-10)


def test_checking_everything_is_asking_the_expert():
    """And without a check nothing is corrected."""
    sure, nothing = np.ones(4), np.full(4, np.nan)
    of_all = MEMBER, PI[TARGET], CROWD[0]
    rest = UNSEEN, 3, MEMBER.T @ G, G.sum(), G
    plain, told = both(*of_all, TRUE, sure, TARGET, *rest)
    by_expert = estimate_recall(
        MEMBER, PI[TARGET], TRUE, G, MEMBER.T @ G, G.sum(), UNSEEN, 3, target=TARGET
    )
    np.testing.assert_allclose(told.recall.value, by_expert.recall.value)
    np.testing.assert_allclose(told.recall.variance, by_expert.recall.variance)
    assert abs(told.recall.value - plain.recall.value).max() > 0.01
    _, same = both(*of_all, nothing, sure, TARGET, *rest)
    np.testing.assert_allclose(same.recall.value, plain.recall.value)
    np.testing.assert_allclose(same.recall.variance, plain.recall.variance)


def test_it_says_which_rows_are_missing():
    found, _ = both(
        MEMBER, PI[TARGET], CROWD[0], TRUE, np.ones(4), TARGET, UNSEEN, 3, MEMBER.T @ G, G.sum(), G
    )
    systems, pool = found.totals.systems, found.totals.pool
    with pytest.raises(ValueError, match="systems must have 6 rows of influence; got 3"):
        recall_from_corrected_totals(found, systems, pool, E)
    with pytest.raises(ValueError, match=r"expert_probability must have shape \(3,\)"):
        recall_from_corrected_totals(found, systems, pool, E[:2])


@pytest.mark.statistical
def test_a_biased_crowd_is_put_right_and_the_intervals_hold():
    """The crowd takes three in ten false relations for true: without checks nearly all 80 %
    intervals of precision miss; with them as many of precision, recall and F1 hold as they promise,
    and the mean errors are chance.
    """
    rng = np.random.default_rng(4)
    n, documents, read, repeats = 900, 90, 30, 300
    of, member = (
        np.arange(n) % documents,
        np.column_stack([np.arange(n) % 3 > 0, np.arange(n) % 2 == 0]),
    )
    member = member[member.any(axis=1)].astype(float)
    of = of[: len(member)]
    n = len(member)
    true = (rng.random(n) < 0.55).astype(float)
    missed = rng.poisson(3, documents).astype(float)
    crowd = np.where(true > 0, rng.random(n) < 0.97, rng.random(n) < 0.3).astype(float)
    p, g = member / member.sum(axis=0), np.full(n, 0.6)
    pi = np.where(np.arange(n) % 4 == 0, 0.8, 0.5)
    e = expert_probabilities(p / pi[:, None], np.full(n, 0.2), budget=0.3 * n)
    found_true = member.T @ true
    truth = [p.T @ true, found_true / (true.sum() + missed.sum())]
    truth.append(2 * truth[0] * truth[1] / (truth[0] + truth[1]))
    errors, held = {"crowd": [], "expert": []}, {0.8: [], 0.95: [], "crowd": []}
    for _ in range(repeats):
        rows = rng.random(n) < pi
        drawn = rng.choice(documents, read, replace=False)
        expert = np.where(rng.random(n) < e, true, np.nan)[rows]
        label = p[rows], pi[rows], crowd[rows]
        precision = difference_estimate(*label, g[rows], p.T @ g)
        found, told = both(
            member[rows],
            *label[1:],
            expert,
            e[rows],
            None,
            missed[drawn],
            documents,
            member.T @ g,
            g.sum(),
            g[rows],
        )
        better = correct_by_expert_checks(precision, Design(pi[rows]), *label, expert, e[rows])
        of_crowd = precision, found.recall, f1_of_recall(precision, found.recall, found.design)
        of_expert = better, told.recall, f1_of_recall(better, told.recall, told.design)
        for name, some in (("crowd", of_crowd), ("expert", of_expert)):
            errors[name].append([one.value - value for one, value in zip(some, truth, strict=True)])
        for level, some in ((0.8, of_expert), (0.95, of_expert), ("crowd", of_crowd)):
            ends = [
                one.confidence_interval(0.8 if level == "crowd" else level, method="t")
                for one in some
            ]
            held[level].append(
                [(low <= v) & (v <= high) for (low, high), v in zip(ends, truth, strict=True)]
            )
    bias = {name: np.mean(some, axis=0) for name, some in errors.items()}
    spread = np.std(errors["expert"], axis=0, ddof=1) / repeats**0.5
    assert (bias["crowd"][[0, 2]] > 0.03).all() and np.mean(held["crowd"], axis=0)[0].max() < 0.1
    assert (np.abs(bias["expert"]) < 4 * spread + 0.002).all()
    for level in (0.8, 0.95):
        error = (level * (1 - level) / repeats) ** 0.5
        assert (np.abs(np.mean(held[level], axis=0) - level) < 3.5 * error).all()
