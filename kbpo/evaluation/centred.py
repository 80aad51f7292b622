"""The default estimators on a track's targets: centred difference for precision, totals for recall.

One set of judged targets, each with the probability that it counts; every number is a sum of terms over them, so that
every variance and covariance is a quadratic form of one design.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from estimators import horvitz_thompson
from estimators import recall as totals
from estimators.design import Design
from estimators.estimate import Estimate
from kbpo.evaluation.data import Data
from kbpo.sampling.probabilities import Floats, Ids


@dataclass(frozen=True)
class Centred:
    """A track's data arranged for the default estimators: rows are the instances of targets that count."""

    data: Data

    @cached_property
    def at(self) -> Ids:
        """(n,) positions in `data.judged` of the rows that count."""
        return np.flatnonzero(self.data.inclusion.counts[self.data.pool.target[self.data.judged]])

    @cached_property
    def row(self) -> Ids:
        """(n,) their rows in the pool."""
        return self.data.judged[self.at]

    @cached_property
    def targets(self) -> tuple[Ids, Ids]:
        """(t',) the targets that count, and (n,) the code of each row's target among them."""
        unique, code = np.unique(self.data.pool.target[self.row], return_inverse=True)
        return unique, code.astype(np.int64)

    @cached_property
    def pi(self) -> Floats:
        """(u,) probability that each instance of the pool counts, times the share of questions that got an answer."""
        known = ~np.isnan(self.data.f["relation"][self.at, 0]) if self.at.size else np.ones(1, dtype=np.bool_)
        return np.asarray(self.data.inclusion.pi[self.data.pool.target] * known.mean())

    @cached_property
    def design(self) -> Design:
        """How the targets that count came in."""
        unique, code = self.targets
        pi = np.ones(unique.size)
        pi[code] = self.pi[self.row]
        chance = self.data.inclusion
        if not chance.n_clusters:
            return Design(pi)
        return Design(pi, cluster=chance.cluster[unique], beta=chance.beta, n_clusters=chance.n_clusters)

    def precision(self, kind: str, criterion: str) -> Estimate:
        """The precision of every system under a distribution."""
        data, p = self.data, self.data.pool.p[kind]
        g, f = data.g[criterion], data.f[criterion][self.at]
        total = np.asarray(p.T @ g).ravel()
        found = horvitz_thompson.centred(
            p[self.row].toarray(), self.pi[self.row], f, g[self.row], total,
            target=self.targets[1], n_targets=self.targets[0].size, design=self.design,
        )  # fmt: skip
        term = self.design.document_term(found.influence) if data.inclusion.n_clusters else 0.0
        floor = horvitz_thompson.anticipated_variance(
            p, self.pi, g, self._own(f), g[self.row], target=data.pool.target, document_term=term
        )
        return replace(found, anticipated=floor, total_g=total)

    def _own(self, f: Floats) -> Floats:
        """One verdict a row: the mean over the systems that state it."""
        member = self.data.pool.member[self.row].toarray() > 0
        return np.asarray(np.where(member, f, 0.0).sum(axis=1) / np.maximum(member.sum(axis=1), 1))

    def recall(self, criterion: str) -> totals.Recall | None:
        """The recall of every system; None without two annotated documents."""
        facts = self.data.facts
        if facts is None or facts.n_annotated < 2:
            return None
        share, pool_share = self.shares
        data, row = self.data, self.row
        relation, g = data.f["relation"][self.at, 0], data.g["relation"]
        own = data.f[criterion][self.at] if criterion != "relation" else None
        own_g = data.g[criterion]
        missed = np.bincount(facts.document[~facts.found], minlength=facts.n_annotated).astype(np.float64)
        chance = data.inclusion
        return totals.recall(
            share[row].toarray(),
            self.pi[row],
            relation if own is None else own,
            own_g[row],
            np.asarray(share.T @ own_g).ravel(),
            float(pool_share @ g),
            missed,
            facts.n_documents,
            target=self.targets[1],
            n_targets=self.targets[0].size,
            pool_label=relation,
            pool_g=g[row],
            pool_weight=pool_share[row],
            document=chance.cluster[data.pool.target[row]] if chance.n_clusters else None,
        )

    @cached_property
    def shares(self) -> tuple[sparse.csr_array, Floats]:
        """Share of a fact that each instance stands for: of the system's own (u, m), and of the pool's (u,).

        0 outside the scope.
        """
        facts, member = self.data.facts, self.data.pool.member
        assert facts is not None
        inside = sparse.csr_array(member * facts.in_scope[:, None])
        inside.eliminate_zeros()
        chooser = sparse.csr_array((np.ones(facts.fact.size), (facts.fact, np.arange(facts.fact.size))))
        own = sparse.coo_array(inside)
        of_system = np.asarray((chooser @ inside)[facts.fact[own.coords[0]], own.coords[1]]).ravel()
        share = sparse.csr_array((own.data / of_system, own.coords), shape=own.shape)
        of_pool = (chooser @ facts.in_scope.astype(np.float64))[facts.fact]
        return share, np.where(facts.in_scope, 1 / np.maximum(of_pool, 1), 0.0)
