"""The model g: guesses, from what is free, what people will say. It never replaces a judgment; it
narrows intervals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from estimators import model
from estimators.crossfit import folds
from estimators.features import Claims
from kbpo.inclusion.disclosure import Disclosed
from kbpo.pool.pool import Matrix, Pool
from kbpo.pool.probabilities import Floats, Ids

VERSION = 4
FOLDS = 5
LEAST = 30
"""Fewer labels than this teach nothing: g is then ½ everywhere."""


@dataclass(frozen=True, eq=False)
class Guess:
    """What the model says of a pool, and how far it may be trusted."""

    g: Floats
    """(u,) in (0, 1)"""
    rho: float
    """How much the errors of instances that share a target go together; 1 as long as nobody
    knows"""
    labels: int
    """Labels that it was learnt from; 0: there were too few, and it says ½ of everything"""


def guess(pool: Pool, label: Floats, *, key: str, seen: Mapping[int, Disclosed]) -> Guess:
    """The model's guess of every instance: cross-fitted in folds by target, so that no label
    predicts itself.

    `label` (u,) is the mean verdict on an instance over the systems that state it; NaN where there
    is none. What a system states of targets that its team had `seen` teaches nothing: a judgment
    that it was shown to be wrong and left out would predict itself, and every estimate would
    believe that what it states is right.
    """
    member = _unseen(pool, pool.member, seen)
    at = np.flatnonzero(np.asarray(member.sum(axis=1)).ravel() > 0)
    g = np.full(pool.instance.size, 0.5)
    labels = int(np.count_nonzero(~np.isnan(label[at])))
    if labels < LEAST:
        return Guess(g, 1.0, 0)
    by_target = folds((int(one) for one in pool.target_id), FOLDS, key=key.encode()[:64])
    told = claims(pool, at, member, _unseen(pool, pool.confidence, seen))
    g[at] = model.fit(told.features(), label[at], by_target[pool.target[at]]).g
    rho = model.correlation(label[at], g[at], told.target, told.membership)
    return Guess(g, rho, labels)


def claims(pool: Pool, at: Ids, member: Matrix, confidence: Matrix) -> Claims:
    """What the model is told of some rows of a pool, of those statements (u, m) of them that
    count.
    """
    return Claims(
        membership=member[at],
        target=_codes(pool.target[at]),
        team=_codes(np.array(pool.teams)),
        confidence=confidence[at],
        predicate=_codes(pool.predicate[at]),
        types=_codes(pool.types[at]),
        subject=_codes(pool.subject[at]),
        object=_codes(pool.object[at]),
        numbers=pool.features[at] if pool.features.size else None,
    )


def _unseen(pool: Pool, entries: Matrix, seen: Mapping[int, Disclosed]) -> Matrix:
    """(u, m) entries without those of systems whose team had seen the target."""
    if not seen:
        return entries
    known = np.zeros((pool.target_id.size, len(pool.systems)), dtype=np.bool_)
    for column, one in seen.items():
        known[:, column] = one.known
    table = sparse.coo_array(entries)
    row, column = table.coords
    kept = ~known[pool.target[row], column]
    return sparse.csr_array((table.data[kept], (row[kept], column[kept])), shape=table.shape)


def _codes(values: NDArray[np.generic]) -> Ids:
    codes: Ids = np.unique(values, return_inverse=True)[1].astype(np.int64)
    return codes


def one_verdict(verdicts: Floats, member: sparse.csr_array) -> Floats:
    """(u,) the mean of f_i(x) over the systems that state x; NaN where it is not known for one of
    them.
    """
    stated = member.toarray() > 0
    return np.asarray(
        np.where(stated, verdicts, 0.0).sum(axis=1) / np.maximum(stated.sum(axis=1), 1)
    )
