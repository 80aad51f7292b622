"""Do the intervals keep their promise under the design that a new track has, with 0, 20 and 100
documents read?

    python benchmarks/coverage_default.py --repeats 300

In each repetition the runs arrive in random order, and each raises thresholds in stages, as the
service does (`kbpo/sampling/designs/`), until its guaranteed number is as narrow as asked. Some
documents were drawn at random before and are closed: what is marked there is true, what is not is
false, and their labels of pool targets fold in. Judgments are the gold standard's, or those of three
people who are right 85 times in 100, by majority. When all runs are judged, the service's own
`evaluation.score` makes every number of the board, and each is held against the exact truth.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from typing import Any

import coverage_redocred as shared
import numpy as np
import redocred
from redocred import Pool
from scipy import sparse
from scipy.stats import norm

from estimators import crossfit
from estimators.model import expected_error
from estimators.poisson import alone, multiplier, next_goal, planned_variance, water_fill
from kbpo.evaluation.data import Data
from kbpo.evaluation.default import Centred
from kbpo.evaluation.score import default_estimates, scores
from kbpo.inclusion.combine import Chances, any_of
from kbpo.inclusion.read import Inclusion
from kbpo.pool.pool import Pool as ServicePool
from kbpo.sampling import guess as guesses
from kbpo.sampling.designs.poisson import CLOSE, FIRST, STAGES
from kbpo.sampling.designs.state import worth

LEVEL = 0.8
FOLDS: list[Any] = []
Array = np.ndarray[Any, Any]


@dataclass
class Board:
    """What is fixed in one repetition, and the thresholds so far."""

    pool: Pool
    whole: ServicePool
    label: Array
    """What the crowd says of every instance; the gold standard says what documents mark"""
    documents: Array
    u: Array
    pi: Array
    """(t,) thresholds"""
    own: Array
    """(t, m) below which u each run would have asked by itself"""

    @classmethod
    def of(cls, pool: Pool, whole: ServicePool, label: Array, n: int, rng: Any) -> Board:
        """A board without runs; n documents are read."""
        documents = np.sort(rng.choice(pool.n_documents, n, replace=False))
        t = whole.target_id.size
        u = rng.random(t)
        return cls(
            pool,
            replace(whole, u=u),
            label,
            documents,
            u,
            np.zeros(t),
            np.zeros((t, len(pool.names))),
        )

    @property
    def beta(self) -> float:
        """Probability that a document is read."""
        return self.documents.size / self.pool.n_documents

    def data(self, arrived: list[int]) -> Data:
        """What the service reads when these runs have arrived and everything drawn is judged."""
        t = self.pi.size
        cluster = np.full(t, -1, dtype=np.int64)
        inside = np.isin(self.whole.document, self.documents)
        cluster[self.whole.target[inside]] = np.searchsorted(
            self.documents, self.whole.document[inside]
        )
        drawn = self.u < self.pi
        chance = Inclusion(
            chances=Chances(self.pi, np.zeros(t), np.full(t, self.beta), np.zeros(t)),
            drawn=drawn,
            counts=drawn | (cluster >= 0),
            cluster=cluster,
            of_document=self.beta,
            n_clusters=self.documents.size,
            threshold=self.pi,
            released=1.0,
        )
        columns = sorted(arrived)
        seen_by_model = replace(
            self.whole,
            systems=columns,
            teams=[self.whole.teams[at] for at in columns],
            p={kind: sparse.csr_array(p[:, columns]) for kind, p in self.whole.p.items()},
            confidence=sparse.csr_array(self.whole.confidence[:, columns]),
        )
        judged = np.flatnonzero(chance.counts[self.whole.target])
        known = np.full(self.whole.instance.size, np.nan)
        known[judged] = self.label[judged]
        found = guesses.guess(seen_by_model, known, key="coverage", seen={})
        f = np.tile(known[judged][:, None], (1, len(columns)))
        facts = shared.facts_of(self.pool, self.whole, self.documents, columns)
        return Data(
            pool=seen_by_model,
            shown=np.ones(len(columns), dtype=np.bool_),
            judged=judged,
            f={"relation": f},
            draws={},
            inclusion=chance,
            g={"relation": found.g},
            rho={"relation": found.rho},
            facts=facts,
            documents=shared.read_documents(self.documents),
            fold=shared.folding(self.documents),
            mean="precision",
            alone={at: self.own[:, run] for at, run in enumerate(columns)},
        )

    def arrive(self, arrived: list[int], target: float, kind: str) -> int:
        """How many stages the last of the runs took until its number was as narrow as asked."""
        run = arrived[-1]
        weight = self.whole.p[kind][:, [run]].toarray().ravel()
        mine = np.flatnonzero(weight)
        p, names = weight[mine], self.whole.target[mine]
        own, row = np.unique(names, return_inverse=True)
        goal, realised = FIRST * target, None
        by_document = worth(np.full(own.size, self.beta))
        data = self.data(arrived)
        for stage in range(1, STAGES + 1):
            g = data.g["relation"][mine]
            learnt = bool((data.g["relation"] != 0.5).any())
            v = (
                expected_error(p, g, row, correlation=data.rho["relation"])
                if learnt
                else np.full(p.size, 0.25)
            )
            if realised is not None:
                planned = planned_variance(p, self.chance(own, by_document)[row], v, target=row)
                goal = next_goal(
                    planned, *realised, target_variance=target, stage=stage - 1, most=FIRST
                )
            self.raise_to(run, goal, own, row, p, v, by_document)
            data = self.data(arrived)
            estimate = Centred(data).precision(kind, "relation")
            at = sorted(arrived).index(run)
            realised = (
                float(np.asarray(estimate.variance)[at]),
                float(np.asarray(estimate.anticipated)[at]),
            )
            if not np.asarray(estimate.n)[at]:
                realised = np.inf, np.inf
            if enough(realised, CLOSE * target) or (self.pi[own] >= 1).all():
                return stage
        return STAGES

    def chance(self, own: Array, by_document: Array) -> Array:
        """(t',) what a raise starts from: asked so far, or in a document that is read."""
        return any_of(self.pi[own], by_document) if self.beta else self.pi[own]

    def raise_to(
        self, run: int, goal: float, own: Array, row: Array, p: Array, v: Array, by_document: Array
    ) -> None:
        """Nothing; thresholds stand as a run plans them for this variance."""
        start = self.chance(own, by_document)
        raised = np.zeros(own.size)
        raised[row] = water_fill(p, start[row], v, target_variance=goal, target=row)
        closed = 1 - by_document
        higher = np.where(raised > start, (raised - by_document) / closed, 0.0)
        self.pi[own] = np.clip(higher, self.pi[own], 1.0)
        share = multiplier(p, start[row], v, target_variance=goal, target=row)
        by_itself = np.zeros(own.size)
        by_itself[row] = alone(p, v, share, target=row)
        by_itself = np.clip((by_itself - by_document) / closed, 0.0, self.pi[own])
        self.own[own, run] = np.maximum(self.own[own, run], by_itself)


def remembered(keys: Any, k: int, *, key: bytes) -> Any:
    """The folds of the first call: all repetitions have the same targets."""
    if not FOLDS:
        FOLDS.append(crossfit.folds(keys, k, key=key))
    return FOLDS[0]


def enough(realised: tuple[float, float], target: float) -> bool:
    """Whether a stage came to what was asked."""
    return max(realised) <= target


def study(
    pool: Pool, *, repeats: int, n_documents: int, half_width: float, accuracy: float, seed: int
) -> tuple[dict[Any, shared.Tally], float]:
    """(quantity, distribution, method, system) -> tally; and how many targets were asked on
    average.
    """
    rng = np.random.default_rng(seed)
    truth = shared.truths(pool)
    whole = shared.service_pool(pool)
    target = (half_width / norm.ppf(0.5 + LEVEL / 2)) ** 2
    tallies: dict[Any, shared.Tally] = {}
    asked = 0.0
    for _ in range(repeats):
        label = shared.judged(pool, accuracy, rng)[: whole.instance.size]
        board = Board.of(pool, whole, label, n_documents, rng)
        arrived: list[int] = []
        for run in rng.permutation(len(pool.names)).tolist():
            arrived.append(run)
            board.arrive(arrived, target, "entity_relation")
        asked += float((board.u < board.pi).sum()) / repeats
        data = board.data(arrived)
        found = default_estimates(data, ("relation",), ("relation",))
        for score in scores(data, found, ("relation",), ("relation",)):
            key = (score.quantity, score.distribution, score.method, score.column)
            tally = tallies.setdefault(key, shared.Tally())
            tally.add(score, truth[score.quantity, score.distribution][score.column])
    return tallies, asked


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--systems", type=int, default=9)
    parser.add_argument("--repeats", type=int, default=300)
    parser.add_argument("--documents", type=int, nargs="+", default=[0, 20, 100])
    parser.add_argument("--accuracy", type=float, nargs="+", default=[1.0, 0.85])
    parser.add_argument("--half-width", type=float, default=0.03)
    parser.add_argument("--seed", type=int, default=1)
    said = parser.parse_args()
    if not redocred.available():
        return
    pool = redocred.read(redocred.names(said.systems))
    guesses.folds = remembered  # type: ignore[attr-defined]
    for accuracy in said.accuracy:
        for n_documents in said.documents:
            began = time.perf_counter()
            tallies, asked = study(
                pool,
                repeats=said.repeats,
                n_documents=n_documents,
                half_width=said.half_width,
                accuracy=accuracy,
                seed=said.seed,
            )
            name = (
                f"workers right {accuracy:.0%} of the time, {n_documents} documents, {len(pool.names)}"
                f" runs, {said.repeats} repetitions; {asked:.0f} targets asked;"
                f" {time.perf_counter() - began:.0f} s"
            )
            shared.report(pool, tallies, name)


if __name__ == "__main__":
    main()
