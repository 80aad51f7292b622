"""The published estimators on a track's draws with replacement: simple and joint (Chaganty 2018,
section 3.4).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from estimators.estimate import Estimate
from estimators.joint import joint_precision, joint_recall, simple_precision
from scoring.arrays import Floats
from scoring.data import Data, Draws

ROUNDING = 1e-12
"""A variance below this is none: sums of equal labels differ in their last digits."""


def precision(data: Data, draws: Draws, criterion: str, method: str) -> Estimate:
    """The precision of every system under a distribution, from the draws of that distribution."""
    f = data.f[criterion][np.searchsorted(data.judged, draws.row)]
    if method == "simple":
        own = f[np.arange(draws.row.size), draws.owner]
        return _floored(simple_precision(own, draws.owner, len(data.systems), ddof=1))
    return _floored(joint_precision(draws.P, draws.owner, f, draws.overlap, ddof=1))


def recall(data: Data, criterion: str) -> Estimate | None:
    """The recall of every system: what share of the facts of the annotated documents anybody found,
    times each system's share of the true facts among all draws. None without two annotated
    documents.

    All draws of all distributions count, each with its own probability: every (distribution,
    system) is a source.
    """
    facts = data.facts
    if facts is None or not data.draws:
        return None
    # As published: documents drawn uniformly. Of two stages that is the first.
    first = np.flatnonzero(np.isin(data.documents.documents, data.documents.first))
    uniform = np.isin(facts.document, first)
    if first.size < 2 or not uniform.any():
        return None
    m, kinds = len(data.systems), list(data.draws)
    row = np.concatenate([data.draws[kind].row for kind in kinds])
    source = np.concatenate([data.draws[kind].owner + at * m for at, kind in enumerate(kinds)])
    P = np.concatenate([data.pool.p[kind][row].toarray() for kind in kinds], axis=1)
    at = np.searchsorted(data.judged, row)
    stated = facts.stated[row]
    if criterion == "correct":
        stated = stated & (data.f["linking"][at] == 1)
    found = joint_recall(
        P,
        source,
        data.f["relation"][at, 0],
        np.zeros((P.shape[1], P.shape[1])),
        np.tile(stated, (1, len(kinds))),
        facts.found[uniform],
        weight=facts.pool_weight[row],
        document=facts.document[uniform],
        n_annotated=first.size,
        n_documents=facts.n_documents,
        ddof=1,
    )
    return Estimate(
        value=np.asarray(found.value)[:m],
        variance=np.asarray(found.variance)[:m],
        n=np.asarray(found.n)[:m],
        influence=found.influence[:, :m],
        degrees_of_freedom=np.full(m, float(first.size - 1)),
    )


def beside(data: Data, precision: Estimate, draws: Draws, found: Estimate) -> Estimate:
    """The precision with its influence among the rows of recall's: 0 for draws of other
    distributions.
    """
    kinds = list(data.draws)
    before = sum(data.draws[kind].row.size for kind in kinds[: kinds.index(draws.kind)])
    influence: Floats = np.zeros((found.influence.shape[0], len(data.systems)))
    influence[before : before + draws.row.size] = precision.influence
    return Estimate(precision.value, precision.variance, precision.n, influence)


def _floored(estimate: Estimate) -> Estimate:
    """The estimate; where all labels agree, so that no variance is seen, that of one label more
    that disagrees.
    """
    n = np.maximum(estimate.n, 1)
    p = np.clip(np.asarray(estimate.value), 0.5 / n, 1 - 0.5 / n)
    agree = np.asarray(estimate.variance) < ROUNDING
    return replace(estimate, anticipated=np.where(agree, p * (1 - p) / n, 0.0))
