"""The model g: guesses, from what is free, what people will say. It never replaces a judgment; it narrows intervals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from estimators.crossfit import folds, predict
from kbpo.sampling.pool import Pool
from kbpo.sampling.probabilities import Floats

VERSION = 1
FOLDS = 5
LEAST = 30
"""Fewer labels than this teach nothing: g is then ½ everywhere."""


def guess(pool: Pool, label: Floats, *, key: str) -> Floats:
    """g (u,) in (0, 1): cross-fitted in folds by target, so that no label predicts itself.

    `label` (u,) is the mean verdict on an instance over the systems that state it; NaN where there is none.
    """
    known = np.flatnonzero(~np.isnan(label))
    if known.size < LEAST:
        return np.full(pool.instance.size, 0.5)
    x = features(pool)
    fold = folds((int(one) for one in pool.target_id[pool.target]), FOLDS, key=key.encode()[:64])
    return np.asarray(predict(x[known], label[known], x, fold[known], fold))


def features(pool: Pool) -> sparse.csr_array:
    """(u, k): one 0/1 column a system and a team, confidences, how many say so, predicate and types."""
    member = pool.member
    team_of = np.array(pool.teams)
    teams = [np.asarray(member[:, np.flatnonzero(team_of == one)].sum(axis=1)) > 0 for one in sorted(set(pool.teams))]
    confidence = pool.confidence.copy()
    confidence.data = np.clip(confidence.data, 0.0, 1.0) - 0.5
    count = np.asarray(member.sum(axis=1)).ravel()
    total = np.bincount(pool.target, weights=count, minlength=pool.target_id.size)[pool.target]
    numbers = np.column_stack([*teams, np.log(count), np.log(total), count / total]).astype(np.float64)
    blocks = [member, confidence, sparse.csr_array(numbers), _one_hot(pool.predicate), _one_hot(pool.types)]
    return sparse.csr_array(sparse.hstack(blocks, format="csr"))


def _one_hot(values: NDArray[np.generic]) -> sparse.csr_array:
    _, code = np.unique(values, return_inverse=True)
    return sparse.csr_array((np.ones(code.size), (np.arange(code.size), code)))


def one_verdict(verdicts: Floats, member: sparse.csr_array) -> Floats:
    """(u,) the mean of f_i(x) over the systems that state x; NaN where it is not known for one of them."""
    stated = member.toarray() > 0
    return np.asarray(np.where(stated, verdicts, 0.0).sum(axis=1) / np.maximum(stated.sum(axis=1), 1))
