"""Simple, joint, recall and F1 by thresholds: right on average, with intervals that hold, over many
samples of a world that no database holds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from estimators.estimate import Estimate
from scoring.by_thresholds import ByThresholds, floored
from scoring.combine import Chances
from scoring.data import Data
from scoring.documents import Annotated, Facts, KnownDocuments
from scoring.inclusion import Disclosed, Inclusion
from scoring.pool import Pool
from scoring.published import simple_f1, simple_recall
from scoring.score import published_scores

PREDICTED = (range(220), range(120, 420))
N, UNSTATED, TRUE, DOCUMENTS, READ, REPEATS = 420, 80, 0.5, 100, 40, 400
NAMES = ("simple", "joint", "recall", "f1", "simple recall", "simple f1")
Array = np.ndarray[Any, Any]


def own_thresholds() -> Array:
    """(N, 2) below which u each run would have asked by itself: neither the same everywhere, nor
    independent of what is true, as those that follow a model's opinion are not.
    """
    rng = np.random.default_rng(8)
    own = np.zeros((N, 2))
    for column, which in enumerate(PREDICTED):
        own[list(which), column] = 0.2 + 0.5 * rng.random(len(which))
    return own


def happen(rng: Any, true: Array, own: Array, answered: float) -> Data:
    """What the service would have read: two runs, each asked about what lies below its thresholds,
    some documents that were read in full, and questions of which some were given up.
    """
    member = np.stack([np.isin(np.arange(N), list(which)) for which in PREDICTED], axis=1)
    u, pi = rng.random(N), own.max(axis=1)
    drawn, number, nothing = u < pi, np.arange(N), np.zeros(N)
    judged = np.flatnonzero(drawn)
    verdict = np.where(rng.random(N) < answered, true[:N], np.nan)[judged]
    pool = Pool(
        systems=[1, 2],
        teams=[1, 2],
        instance=number,
        target=number,
        target_id=number,
        u=u,
        document=number % DOCUMENTS,
        stratum=np.zeros(N, dtype=np.int64),
        types=np.full(N, "PER|GPE"),
        subject=number,
        object=number,
        p={"instance": sparse.csr_array(member / member.sum(axis=0))},
        confidence=sparse.csr_array(member.astype(float)),
    )
    chance = Inclusion(
        chances=Chances(pi, nothing, nothing, nothing),
        drawn=drawn,
        counts=drawn,
        cluster=np.full(N, -1),
        of_document=0.0,
        n_clusters=0,
        threshold=pi,
        released=1.0,
    )
    documents = np.sort(rng.choice(DOCUMENTS, READ, replace=False))
    code = np.full(DOCUMENTS, -1)
    code[documents] = np.arange(READ)
    inside = code[np.arange(N + UNSTATED) % DOCUMENTS]
    found = np.flatnonzero(true & (inside >= 0))
    facts = Facts(
        fact=number,
        in_scope=np.ones(N, dtype=bool),
        pool_weight=np.ones(N),
        predicted=member,
        document=inside[found],
        stratum=np.zeros(found.size, dtype=np.int64),
        found=found < N,
        n_annotated=READ,
        n_documents=DOCUMENTS,
        inside=inside[:N],
        marked=true[:N] & (inside[:N] >= 0),
        code=np.where(found < N, found, -1),
        links=np.full((found.size, 2), ""),
        missed=np.bincount(inside[found[found >= N]], minlength=READ),
    )
    return Data(
        pool=pool,
        shown=np.ones(2, dtype=bool),
        judged=judged,
        f={"relation": np.tile(verdict[:, None], 2)},
        draws={},
        inclusion=chance,
        g={"relation": np.full(N, 0.6)},
        rho={"relation": 0.0},
        base="relation",
        unweighed="instance",
        found_also={"correct": "linking"},
        facts=facts,
        documents=Annotated(documents.tolist(), documents.tolist()),
        alone={0: own[:, 0], 1: own[:, 1]},
        mean="precision",
    )


def truth(true: Array) -> Array:
    """(6, 2): precision twice, recall and F1 twice, of both runs."""
    precision = np.array([true[list(which)].mean() for which in PREDICTED])
    recall = np.array([true[list(which)].sum() / true.sum() for which in PREDICTED])
    f1 = 2 * precision * recall / (precision + recall)
    return np.stack([precision, precision, recall, f1, recall, f1])


@pytest.mark.soak
@pytest.mark.statistical
@pytest.mark.parametrize("answered", [1.0, 0.7])
def test_each_is_right_on_average_and_its_intervals_hold(answered: float) -> None:
    rng: Any = np.random.default_rng(11)
    own = own_thresholds()
    true = np.concatenate(
        [rng.random(N) < 0.3 + 0.6 * (own.max(axis=1) - 0.2), rng.random(UNSTATED) < TRUE]
    )
    expected, error, inside = truth(true), [], []
    for _ in range(REPEATS):
        found = ByThresholds(happen(rng, true, own, answered))
        simple, joint = (
            found.precision("instance", "relation", method) for method in ("simple", "joint")
        )
        recall = found.recall("relation")
        alone = simple_recall(found.data, "relation")
        assert recall is not None and alone is not None
        told = (simple, joint, recall, found.f1(joint, recall), alone, simple_f1(simple, alone))
        error.append(np.stack([one.value for one in told]) - expected)
        ends = [one.confidence_interval(0.80, method="wilson") for one in told]
        inside.append(
            [(low <= one) & (one <= high) for (low, high), one in zip(ends, expected, strict=True)]
        )
    mean, spread = np.mean(error, axis=0), np.std(error, axis=0, ddof=1) / REPEATS**0.5
    held = np.mean(inside, axis=(0, 2))
    assert (np.abs(mean) < 4 * spread).all() and spread.max() < 0.005
    assert ((held > 0.75) & (held < 0.85)).all(), dict(zip(NAMES, held.tolist(), strict=True))


@pytest.mark.soak
@pytest.mark.statistical
def test_where_chances_are_very_unequal_intervals_hold_or_nothing_is_printed() -> None:
    """Without the floor one heavy judgment that dominates leaves no variance: 0.6 were held."""
    rng: Any = np.random.default_rng(12)
    own = own_thresholds()
    own[own > 0] = 10 ** rng.uniform(-2, 0, size=(own > 0).sum())
    true = np.concatenate([rng.random(N) < 0.7, rng.random(UNSTATED) < TRUE])
    expected, inside, printed = truth(true), [], []
    for _ in range(REPEATS):
        found = ByThresholds(happen(rng, true, own, 1.0))
        for at, method in enumerate(("simple", "joint")):
            one = found.precision("instance", "relation", method)
            low, high = one.confidence_interval(0.80, method="wilson")
            known = ~np.isnan(np.asarray(one.value))
            printed.append(known)
            inside.extend(((low <= expected[at]) & (expected[at] <= high))[known].tolist())
    assert 0.2 < np.mean(printed) < 0.99, np.mean(printed)
    assert np.mean(inside) > 0.75, np.mean(inside)


def linked(data: Data) -> Data:
    """The data with verdicts of links on all that was judged: one third are wrong."""
    linking = np.where(np.arange(N) % 3 == 0, 0.0, 1.0)[data.judged]
    return replace(data, f=data.f | {"linking": np.tile(linking[:, None], 2)})


def everything_judged(data: Data) -> Data:
    return replace(data, judged=np.arange(N), f={"relation": np.ones((N, 2))})


def test_simple_recall_counts_what_is_found_in_documents_and_under_correct_what_is_right() -> None:
    rng: Any = np.random.default_rng(14)
    true = rng.random(N + UNSTATED) < TRUE
    data = linked(everything_judged(happen(rng, true, own_thresholds(), 1.0)))
    read = np.isin(np.arange(N + UNSTATED) % DOCUMENTS, data.documents.documents) & true
    for criterion, counts in (
        ("relation", np.ones(N, dtype=bool)),
        ("correct", np.arange(N) % 3 > 0),
    ):
        found = simple_recall(data, criterion)
        assert found is not None
        shares = [
            sum(bool(read[at] and counts[at]) for at in which) / read.sum() for which in PREDICTED
        ]
        assert np.asarray(found.value) == pytest.approx(shares)
    only = replace(data, documents=Annotated(data.documents.documents, data.documents.first[:1]))
    assert simple_recall(only, "relation") is None, "one document has no variance"


def test_simple_recall_of_correct_is_not_printed_while_a_link_of_a_found_fact_is_unknown() -> None:
    rng: Any = np.random.default_rng(14)
    true = rng.random(N + UNSTATED) < TRUE
    data = linked(everything_judged(happen(rng, true, own_thresholds(), 1.0)))
    read = np.isin(np.arange(N) % DOCUMENTS, data.documents.documents)
    first = np.flatnonzero(read & true[:N])[0]
    elsewhere = np.flatnonzero(~read | ~true[:N])
    assert first < PREDICTED[1][0], "the first run alone predicts it"

    def is_known(data: Data, criterion: str = "correct") -> list[bool]:
        found = simple_recall(data, criterion)
        assert found is not None
        f1 = simple_f1(replace(found, value=np.array([0.5, 0.5])), found)
        known = ~np.isnan(np.asarray(found.value))
        assert (known == ~np.isnan(np.asarray(f1.value))).all()
        return known.tolist()

    def without(rows: Array) -> Data:
        kept = np.setdiff1d(np.arange(N), rows)
        return replace(data, judged=kept, f={name: one[kept] for name, one in data.f.items()})

    unanswered = data.f["linking"].copy()
    unanswered[first] = np.nan
    assert is_known(data) == [True, True]
    assert is_known(replace(data, f=data.f | {"linking": unanswered})) == [False, True]
    assert is_known(without(np.array([first]))) == [False, True]
    assert is_known(without(np.array([first])), "relation") == [True, True]
    assert is_known(without(elsewhere)) == [True, True], "other facts do not matter"


def test_simple_recall_is_not_printed_of_a_run_whose_team_could_see_judgments() -> None:
    rng: Any = np.random.default_rng(15)
    data = happen(rng, rng.random(N + UNSTATED) < TRUE, own_thresholds(), 1.0)
    nothing = np.zeros(N)
    no = np.zeros(N, dtype=bool)
    second = Disclosed(no, no, nothing, nothing, no, nothing, read=tuple(data.documents.documents))
    found = simple_recall(replace(data, disclosed={1: second}), "relation")
    assert found is not None
    assert np.isnan(np.asarray(found.value)).tolist() == [False, True]
    low, high = found.confidence_interval(0.80, method="wilson")
    assert np.isnan([low[1], high[1]]).all() and not np.isnan([low[0], high[0]]).any()


def test_a_mean_of_labels_that_is_worth_fewer_than_ten_is_not_printed() -> None:
    def of(n_effective: float, variance: float = 0.0) -> Estimate:
        one = Estimate(np.array([1.0]), np.array([variance]), np.array([40]), np.zeros((1, 1)))
        return floored(one, np.array([n_effective]))

    assert np.isnan(np.asarray(of(9.9).value)[0]) and np.asarray(of(10.0).value)[0] == 1.0
    p = 10.5 / 11
    assert np.asarray(of(10.0).anticipated)[0] == pytest.approx(p * (1 - p) / 10)
    assert np.asarray(of(float("inf")).anticipated)[0] == 0.0, "all is known"


def test_what_documents_carry_is_not_printed_of_the_draws_alone() -> None:
    rng: Any = np.random.default_rng(13)
    true = rng.random(N + UNSTATED) < TRUE
    data = happen(rng, true, own_thresholds() / 4, 1.0)
    alone = ByThresholds(data)
    inside = np.isin(np.arange(N) % DOCUMENTS, data.documents.documents)
    beta = READ / DOCUMENTS
    code = np.searchsorted(data.documents.documents, np.arange(N) % DOCUMENTS)
    chance = replace(
        data.inclusion,
        chances=replace(data.inclusion.chances, document=np.full(N, beta)),
        counts=data.inclusion.drawn | inside,
        cluster=np.where(inside, code, -1),
        of_document=beta,
        n_clusters=READ,
    )
    judged = np.flatnonzero(chance.counts)
    f = {"relation": np.tile(true[:N][judged].astype(float)[:, None], 2)}
    folded = ByThresholds(
        replace(
            data,
            inclusion=chance,
            judged=judged,
            f=f,
            fold=KnownDocuments(list(range(READ)), closed=True),
        )
    )
    for method in ("simple", "joint"):
        before = alone.precision("instance", "relation", method)
        after = folded.precision("instance", "relation", method)
        assert not np.isnan(np.asarray(before.value)).any()
        assert np.isnan(np.asarray(after.value)).all()
    recall = folded.recall("relation")
    assert recall is not None and np.isnan(np.asarray(recall.value)).all()


def test_labels_of_simple_and_joint_are_those_that_each_rests_on() -> None:
    rng: Any = np.random.default_rng(5)
    own = own_thresholds()
    data = happen(rng, rng.random(N + UNSTATED) < TRUE, own, 0.8)
    labels = {
        (one.method, one.column): one.n_labels
        for one in published_scores(data, ("relation",), ("relation",))
        if one.quantity == "precision"
    }
    known = np.zeros(N, dtype=bool)
    known[data.judged[~np.isnan(data.f["relation"][:, 0])]] = True
    for column, which in enumerate(PREDICTED):
        mine = known & np.isin(np.arange(N), list(which))
        assert labels["joint", column] == mine.sum()
        assert (
            labels["simple", column] == (mine & (data.pool.u < own[:, column])).sum() < mine.sum()
        )
