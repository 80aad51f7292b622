"""The probabilities of the two inclusion routes are those with which labels come to be known,
whatever people give up.

A world in arrays: some targets are drawn and asked, documents are read, a follow-up asks what
nobody marked, more is drawn. People answer only a share of what a draw asks, another share of what
a follow-up asks, and mark most of what is true. What is easy to state is drawn more often and is
true more often, so that a wrong probability shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from scoring.combine import Chances
from scoring.data import Data
from scoring.default import Centred
from scoring.documents import NEVER, NO_MARK, Annotated, InDocuments, KnownDocuments
from scoring.inclusion import Inclusion
from scoring.pool import Pool

N, DOCUMENTS, READ = 3000, 150, 60
TRUE, MARKED, STATED_EARLY = (0.75, 0.45), 0.7, 0.7
REPEATS = 50
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class World:
    """What chance may do. Of two kinds of targets: thresholds before documents were read, and after
    the follow-up.
    """

    by_draw: float = 1.0
    """Share of what draws ask that people answer"""
    by_follow_up: float = 1.0
    """The same of what the follow-up asks"""
    early: tuple[float, float] = (0.8, 0.1)
    late: tuple[float, float] = (0.9, 0.5)
    fold: bool = True
    """The followed up documents are a second inclusion route"""

    def happen(self, rng: np.random.Generator) -> tuple[Data, Array]:
        """What the service would have read then, and the truth, of a system that predicts all and
        of an early one.
        """
        kind, of = rng.integers(0, 2, N), np.arange(N) % DOCUMENTS
        true, u, predicted = (
            rng.random(N) < np.array(TRUE)[kind],
            rng.random(N),
            rng.random(N) < STATED_EARLY,
        )
        before = np.where(predicted, np.array(self.early)[kind], 0.0)
        now = np.maximum(before, np.array(self.late)[kind])
        documents = np.sort(rng.choice(DOCUMENTS, READ, replace=False))
        read = np.isin(of, documents)
        drawn_before, covered = u < before, read & predicted
        marked = read & true & (rng.random(N) < MARKED)
        followed_up = covered & ~marked & ~drawn_before
        later = (
            (u < now) & ~drawn_before & ~marked & ~covered
        )  # in covered documents there is nothing left to ask
        answered = (drawn_before | later) & (rng.random(N) < self.by_draw) | followed_up & (
            rng.random(N) < self.by_follow_up
        )
        mark = np.where(marked & ~answered, np.where(drawn_before, NEVER, rng.random(N)), NO_MARK)
        cluster = np.where(covered & self.fold, np.searchsorted(documents, of), -1)
        counts = (u < now) | (cluster >= 0)
        judged = np.flatnonzero(counts)
        verdict = np.where(answered | marked, true, np.nan)[judged]
        data = Data(
            pool=_pool(of, u, np.column_stack([np.full(N, 1 / N), predicted / predicted.sum()])),
            shown=np.ones(2, dtype=bool),
            judged=judged,
            f={"relation": np.tile(verdict[:, None], 2)},
            draws={},
            inclusion=self._inclusion(now, before, predicted, u < now, counts, cluster),
            g={"relation": np.full(N, 0.6)},
            rho={"relation": 0.0},
            base="relation",
            unweighed="instance",
            facts=None,
            documents=Annotated(documents.tolist(), documents.tolist()),
            fold=KnownDocuments(documents.tolist() if self.fold else [], followed=frozenset({1})),
            in_documents=InDocuments(marked, mark, covered, followed_up),
        )
        return data, np.array([true.mean(), true[predicted].mean()])

    def _inclusion(
        self, pi: Array, before: Array, eligible: Array, drawn: Array, counts: Array, cluster: Array
    ) -> Inclusion:
        share = READ / DOCUMENTS if self.fold else 0.0
        beta = np.where(eligible, share, 0.0)
        return Inclusion(
            chances=Chances(pi, np.zeros(N), beta, before),
            drawn=drawn,
            counts=counts,
            cluster=cluster,
            of_document=share,
            n_clusters=READ if self.fold else 0,
            threshold=pi,
            released=1.0,
        )


def _pool(document: Array, u: Array, p: Array) -> Pool:
    number, weights = np.arange(N), sparse.csr_array(p)
    return Pool(
        systems=[1, 2],
        teams=[1, 2],
        instance=number,
        target=number,
        target_id=number,
        u=u,
        document=document,
        stratum=np.zeros(N, dtype=np.int64),
        types=np.full(N, "PER|GPE"),
        subject=number,
        object=number,
        p={"instance": weights},
        confidence=weights,
    )


WORLDS = {
    "all is answered": World(),
    "nothing is drawn late": World(by_draw=0.7, late=(0.0, 0.0)),
    "the follow-up is answered in part": World(by_follow_up=0.7),
    "draws are answered in part": World(by_draw=0.7),
    "both, the follow-up less": World(by_draw=0.9, by_follow_up=0.6),
    "both, the draws less": World(by_draw=0.6, by_follow_up=0.9),
    "all kinds alike": World(by_draw=0.7, by_follow_up=0.7, early=(0.5, 0.5), late=(0.7, 0.7)),
    "documents are no inclusion route": World(by_draw=0.7, fold=False),
    "documents are no inclusion route, the follow-up less": World(
        by_draw=0.9, by_follow_up=0.6, fold=False
    ),
    "documents are no inclusion route, the draws less": World(
        by_draw=0.6, by_follow_up=0.9, fold=False
    ),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.soak
def test_nothing_that_people_give_up_biases_what_is_printed(name: str) -> None:
    errors, deviations = [], []
    for repeat in range(REPEATS):
        data, truth = WORLDS[name].happen(np.random.default_rng(repeat))
        found = Centred(data).precision("instance", "relation")
        errors.append(np.asarray(found.value) - truth)
        deviations.append(np.sqrt(np.maximum(found.variance, found.anticipated)))
    error = np.array(errors)
    of_mean = error.std(axis=0, ddof=1) / np.sqrt(REPEATS)
    assert (np.abs(error.mean(axis=0)) < 3.5 * of_mean + 0.0005).all()
    assert (of_mean < 0.004).all(), "enough to see a bias"
    inside = np.abs(error) < 1.2816 * np.array(deviations)
    assert inside.mean() > 0.8 - 4 * (0.16 / inside.size) ** 0.5
