"""The model g: guesses, from what is free, what people will say. It never replaces a judgment; it narrows intervals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from estimators import model
from estimators.crossfit import folds
from kbpo.sampling.pool import Pool
from kbpo.sampling.probabilities import Floats, Ids

VERSION = 2
FOLDS = 5
LEAST = 30
"""Fewer labels than this teach nothing: g is then ½ everywhere."""


def guess(pool: Pool, label: Floats, *, key: str) -> Floats:
    """g (u,) in (0, 1): cross-fitted in folds by target, so that no label predicts itself.

    `label` (u,) is the mean verdict on an instance over the systems that state it; NaN where there is none.
    """
    if np.count_nonzero(~np.isnan(label)) < LEAST:
        return np.full(pool.instance.size, 0.5)
    by_target = folds((int(one) for one in pool.target_id), FOLDS, key=key.encode()[:64])
    return model.guess(
        pool.member, label, by_target[pool.target], target=pool.target, team=_codes(np.array(pool.teams)),
        confidence=pool.confidence, predicate=_codes(pool.predicate), types=_codes(pool.types),
    ).g  # fmt: skip


def _codes(values: NDArray[np.generic]) -> Ids:
    codes: Ids = np.unique(values, return_inverse=True)[1].astype(np.int64)
    return codes


def one_verdict(verdicts: Floats, member: sparse.csr_array) -> Floats:
    """(u,) the mean of f_i(x) over the systems that state x; NaN where it is not known for one of them."""
    stated = member.toarray() > 0
    return np.asarray(np.where(stated, verdicts, 0.0).sum(axis=1) / np.maximum(stated.sum(axis=1), 1))
