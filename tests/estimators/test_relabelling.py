"""What is called what changes nothing: recall and expert-corrected precision under every
renaming.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from estimators.horvitz_thompson import anticipated_variance, inclusion_iid
from estimators.model import correlation, expected_error
from estimators.noise import expert_design, ppi
from estimators.poisson import planned_variance
from estimators.recall import f1, recall, with_anticipated

ROWS, TARGETS, DOCUMENTS, SYSTEMS = 7, 4, 3, 3
CORPUS = 9
quick = settings(deadline=None, max_examples=60)


@dataclass(frozen=True)
class World:
    """Labelled rows, each of a target; arrays by row where nothing else is said."""

    predicted: np.ndarray
    target: np.ndarray
    pi: np.ndarray
    label: np.ndarray
    g: np.ndarray
    other: np.ndarray
    """Any other probability of a row: an expert's verdict, a weight"""
    chance: np.ndarray
    """One number a target: with what probability an expert was asked"""
    total_g: np.ndarray
    """One number a system"""
    counts: np.ndarray
    """One number an annotated document"""

    def renamed(self, rows, targets, documents, systems):
        """Return the same world with rows and systems in these orders, target t called targets[t],
        document d documents[d].
        """
        old = np.argsort(documents)  # which old document stands where
        return World(
            predicted=self.predicted[rows][:, systems],
            target=targets[self.target][rows],
            pi=self.pi[rows],
            label=self.label[rows],
            g=self.g[rows],
            other=self.other[rows],
            chance=self.chance[rows],
            total_g=self.total_g[systems],
            counts=self.counts[old],
        )

    def recall(self):
        """Return recall with everything that it takes, the anticipated variance included."""
        found = recall(
            self.predicted,
            self.pi,
            self.label,
            self.g,
            self.total_g,
            2.5,
            self.counts,
            CORPUS,
            target=self.target,
            n_targets=TARGETS,
            pool_weight=self.other,
            pool_label=np.maximum(self.label, 0.5),
            pool_g=np.maximum(self.g, 0.5),
        )
        return with_anticipated(
            found,
            self.predicted,
            self.pi,
            self.g,
            self.label,
            self.g,
            target=self.target,
            correlation=0.4,
            pool_weight=self.other,
            pool_g=np.maximum(self.g, 0.5),
        )

    def corrected(self):
        """Return precision corrected by the experts' checks, and its design: whoever has other > ½
        was checked.
        """
        checked = self.chance > 0.5
        expert = np.where(checked, np.round(self.other), np.nan)
        p = self.predicted * (0.1 + self.g[:, None])
        estimate = ppi(
            p,
            self.pi,
            self.label,
            self.g,
            expert,
            self.chance,
            self.total_g,
            target=self.target,
            n_targets=TARGETS,
        )
        return estimate, expert_design(self.pi, self.chance, target=self.target, n_targets=TARGETS)


@st.composite
def worlds(draw):
    def column(values, n=ROWS):
        return np.array(draw(st.lists(values, min_size=n, max_size=n)))

    unit, chances = st.floats(0, 1), st.floats(0.2, 1)
    target = np.concatenate(
        [np.arange(TARGETS), column(st.integers(0, TARGETS - 1), ROWS - TARGETS)]
    )
    return World(
        predicted=column(st.tuples(*[st.integers(0, 1)] * SYSTEMS)),
        target=target,
        pi=column(chances, TARGETS)[target],
        label=column(unit),
        g=column(st.floats(0.05, 0.95)),
        other=column(unit),
        chance=column(chances, TARGETS)[target],
        total_g=column(st.floats(0, 4), SYSTEMS),
        counts=column(st.floats(0, 5), DOCUMENTS),
    )


orders = st.tuples(
    *(st.permutations(range(n)).map(np.array) for n in (ROWS, TARGETS, DOCUMENTS, SYSTEMS))
)


def agree(one, other):
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@given(worlds(), orders)
@quick
def test_names_and_orders_permute_recall_and_change_nothing_else(world, names):
    _, targets, documents, systems = names
    one, other = world.recall(), world.renamed(*names).recall()
    for before, after in ((one.recall, other.recall), (one.totals.systems, other.totals.systems)):
        agree(after.value, np.asarray(before.value)[systems])
        agree(after.variance, np.asarray(before.variance)[systems])
    agree(other.recall.anticipated, np.asarray(one.recall.anticipated)[systems])
    for name in ("value", "variance"):
        agree(getattr(other.pool_recall, name), getattr(one.pool_recall, name))
        agree(getattr(other.unseen, name), getattr(one.unseen, name))
    place = np.concatenate(
        [targets, TARGETS + documents]
    )  # where each row of the influence is found now
    agree(other.recall.influence[place], one.recall.influence[:, systems])
    pairs = np.ix_(systems, systems)
    agree(
        other.design.covariance(other.recall.influence),
        one.design.covariance(one.recall.influence)[pairs],
    )
    both = [
        f1(replace(found.totals.systems, value=np.full(SYSTEMS, 0.5)), found.recall, found.design)
        for found in (one, other)
    ]
    agree(both[1].value, np.asarray(both[0].value)[systems])
    agree(both[1].variance, np.asarray(both[0].variance)[systems])


@given(worlds(), orders)
@quick
def test_names_and_orders_permute_corrected_precision_and_change_nothing_else(world, names):
    _, targets, _, systems = names
    (one, design), (other, renamed) = world.corrected(), world.renamed(*names).corrected()
    agree(other.value, np.asarray(one.value)[systems])
    agree(other.variance, np.asarray(one.variance)[systems])
    assert other.n.tolist() == one.n[systems].tolist()
    place = np.concatenate([targets, TARGETS + targets])
    agree(other.influence[place], one.influence[:, systems])
    pairs = np.ix_(systems, systems)
    agree(renamed.covariance(other.influence), design.covariance(one.influence)[pairs])


@given(worlds())
@quick
def test_two_systems_that_state_the_same_are_told_the_same(world):
    twins = replace(
        world, predicted=world.predicted[:, [0, 0, 2]], total_g=world.total_g[[0, 0, 2]]
    )
    found, (estimate, _) = twins.recall(), twins.corrected()
    assert found.recall.value[0] == found.recall.value[1] or np.isnan(found.recall.value[:2]).all()
    assert estimate.value[0] == estimate.value[1] and estimate.variance[0] == estimate.variance[1]


def test_the_number_of_a_target_costs_nothing():
    """Keys of a large database are as good as 0, 1, …: nothing is as long as the largest of them is
    great.
    """
    rng = np.random.default_rng(4)
    near, draws = rng.integers(0, 6, size=12), np.array([3, 5])
    p, g = rng.dirichlet(np.ones(12), size=2).T, rng.uniform(0.2, 0.8, size=12)
    label = np.where(np.arange(12) % 3 == 0, 1.0, np.nan)
    answers = []
    for target in (near, near * 10**15 + 7):
        pi = inclusion_iid(p, draws, target=target)
        answers.append(
            [
                pi,
                expected_error(p[:, 0], g, target, correlation=0.3),
                correlation(label, g, target, p > 0.01),
                anticipated_variance(p, pi, g, label, g, target=target, correlation=0.3),
                planned_variance(p[:, 0], pi, g * (1 - g), target=target),
            ]
        )
    for one, other in zip(*answers, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
