"""The model g, which predicts judgments from features that need no people. It never replaces a
judgment; it narrows intervals.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from estimators import model
from estimators.crossfit import keyed_folds
from estimators.features import Claims, Features
from estimators.rating_model import fit_ratings
from estimators.ratings import LENT, expected_rating_error
from kbpo.corpus.cache import Arrays, cached_arrays
from kbpo.tracks.base import Track as Kind
from scoring.arrays import Floats, Ids
from scoring.data import Guess
from scoring.pool import Pool

VERSION = 6
FOLDS = 5
MOST_ERROR = 0.25
"""The expected squared error of the guess ½ for values 0 and 1"""
NEARLY_ALL = 0.9
"""Share of ratings that are 0 or 1 beyond which a criterion counts as nearly binary"""
LEAST_DOUBT = 0.06
"""Smallest g (1 − g) that is used for the error of such a criterion, since no g is certain"""
LEAST = 30
"""Number of labels below which nothing is fitted, and g is ½ everywhere."""


def guess_under_criterion(
    kind: type[Kind], criterion: str, lesson: Lesson, label: Floats, *, with_scorers: bool = True
) -> Guess:
    """Return the model's guess under a criterion, on the scale of its judgments: majorities or
    single ratings. If not `with_scorers` by metrics and judges, the features are the systems'
    outputs only; with ratings, people's answers only. In a comparison of two texts the guess is ½,
    whose error is smaller the more ties there are.
    """
    if kind.opposes:
        return Guess(
            np.full(label.size, 0.5), 0.0, 0, _error_of_constant_guess(label, lesson.pool.member)
        )
    if kind.measures.criterion(criterion).single == "mean":
        return guess_ratings(lesson.pool, label, key=lesson.key, with_scorers=with_scorers)
    return (lesson if with_scorers else lesson.unaided).guess(label)


def guess_ratings(pool: Pool, label: Floats, *, key: str, with_scorers: bool = True) -> Guess:
    """Return the guess of every instance's mean rating, cross-fitted in folds by target.

    An instance is treated as a row of the first system that predicts it. If not `with_scorers`,
    every guess is ½, and the centred estimate equals the mean of the ratings.
    """
    member = sparse.csr_array(pool.member, copy=True)
    predicted = np.flatnonzero(np.diff(member.indptr) > 0)
    member.sort_indices()
    owner = member.indices[member.indptr[predicted]].astype(np.int64)
    g, error = np.full(pool.instance.size, 0.5), np.full(pool.instance.size, 0.25)
    labels = int(np.count_nonzero(~np.isnan(label[predicted])))
    fitted = with_scorers and labels >= LEAST
    expected = _shrunk_system_means(label[predicted], owner)
    if fitted:
        by_target = keyed_folds(
            (int(target) for target in pool.target_id), FOLDS, key=key.encode()[:64]
        )
        parts = [part[predicted] for part in (pool.features, pool.scores) if part.size]
        g[predicted] = expected = fit_ratings(
            np.hstack(parts) if parts else np.zeros((predicted.size, 0)),
            label[predicted],
            by_target[pool.target[predicted]],
            system=_encode(owner),
            input=_encode(pool.input[predicted]),
            text=None if pool.text is None else pool.text[predicted],
        ).g
    error[predicted] = expected_rating_error(label[predicted], expected, owner)[owner]
    if fitted and _is_nearly_binary(label[predicted]):
        error[predicted] *= _relative_doubt(expected, owner)
    return Guess(g, 0.0, labels if fitted else 0, error)


def _is_nearly_binary(rating: Floats) -> bool:
    known = rating[~np.isnan(rating)]
    return bool(np.isin(known, (0.0, 1.0)).mean() >= NEARLY_ALL)


def _relative_doubt(g: Floats, system: Ids) -> Floats:
    """Return (n,) the relative uncertainty of the guess of a rating of 0 or 1: g (1 − g) over its
    mean of the system. People are asked more often about uncertain outputs.
    """
    doubt = np.maximum(g * (1 - g), LEAST_DOUBT)
    mean = np.bincount(system, doubt) / np.maximum(np.bincount(system), 1)
    return np.asarray(doubt / mean[system])


def _shrunk_system_means(rating: Floats, system: Ids) -> Floats:
    """Return (n,) the mean rating of each row's system, shrunk to the mean of all by the weight of
    one rating; ½ without ratings.
    """
    rated = np.flatnonzero(~np.isnan(rating))
    middle = float(rating[rated].mean()) if rated.size else 0.5
    m = int(system.max(initial=-1)) + 1
    count = np.bincount(system[rated], minlength=m)
    total = np.bincount(system[rated], weights=rating[rated], minlength=m)
    levels: Floats = ((total + middle) / (count + 1))[system]
    return levels


@dataclass(frozen=True, eq=False)
class Lesson:
    """The features of a pool from which the model learns to guess verdicts. They are the same for
    every criterion, and are computed once, if there are enough labels.
    """

    pool: Pool
    key: str
    """Key of the hash that assigns folds"""

    @cached_property
    def unaided(self) -> Lesson:
        """Return the same features without the scores of metrics and judges."""
        return Lesson(replace(self.pool, scorers=[], scores=np.zeros((0, 0))), self.key)

    @cached_property
    def _made_features(self) -> Arrays:
        """Return the features of the predicted rows: `at`, their `fold` by target, and `features`
        as a table. They depend on no judgment, so they are computed once.
        """
        fixed = self.pool.fixed
        if not fixed or self.pool.scorers:
            return self._make_features()
        digest = hashlib.sha256(self.key.encode())
        state = (*fixed, *self.pool.teams, self.pool.features.shape, FOLDS, digest.hexdigest())
        return cached_arrays(f"features-{fixed[0]}", state, self._make_features)

    def _make_features(self) -> Arrays:
        predicted = np.flatnonzero(np.asarray(self.pool.member.sum(axis=1)).ravel() > 0)
        features = claims_of_rows(self.pool, predicted).features()
        names = (int(target) for target in self.pool.target_id)
        return {
            "at": predicted,
            "fold": keyed_folds(names, FOLDS, key=self.key.encode()[:64])[
                self.pool.target[predicted]
            ],
            "data": features.matrix.data,
            "indices": features.matrix.indices,
            "indptr": features.matrix.indptr,
            "penalty": features.penalty,
            "names": np.array(features.names, dtype=np.str_),
        }

    def guess(self, label: Floats) -> Guess:
        """Return the model's guess of every instance: cross-fitted in folds by target, so that no
        label predicts itself.

        `label` (u,) is the mean verdict on an instance over the systems that predict it; NaN
        without a verdict.
        """
        g = np.full(self.pool.instance.size, 0.5)
        if np.count_nonzero(~np.isnan(label)) < LEAST:
            return Guess(g, 1.0, 0)
        made = self._made_features
        predicted, verdicts = made["at"], label[made["at"]]
        judged = np.flatnonzero(~np.isnan(verdicts))
        if judged.size < LEAST:
            return Guess(g, 1.0, 0)
        table = tuple(made[name] for name in ("data", "indices", "indptr"))
        features = Features(
            sparse.csr_array(table, shape=(predicted.size, made["names"].size)),
            np.asarray(made["penalty"]),
            tuple(made["names"].tolist()),
        )
        g[predicted] = model.fit_ridge_logistic(features, verdicts, made["fold"]).g
        judged_rows = predicted[judged]
        rho = model.error_correlation(
            label[judged_rows],
            g[judged_rows],
            self.pool.target[judged_rows],
            self.pool.member[judged_rows],
        )
        return Guess(g, rho, judged.size)


def claims_of_rows(pool: Pool, at: Ids) -> Claims:
    """Return the features of some rows of a pool."""
    return Claims(
        membership=pool.member[at],
        target=_encode(pool.target[at]),
        team=_encode(np.array(pool.teams)),
        confidence=pool.confidence[at],
        predicate=_encode(pool.stratum[at]),
        types=_encode(pool.types[at]),
        subject=_encode(pool.subject[at]),
        object=_encode(pool.object[at]),
        numbers=pool.features[at] if pool.features.size else None,
        scores=pool.scores[at] if pool.scorers else None,
    )


def _encode(values: NDArray[np.generic]) -> Ids:
    codes: Ids = np.unique(values, return_inverse=True)[1].astype(np.int64)
    return codes


def _error_of_constant_guess(label: Floats, member: sparse.csr_array) -> Floats:
    """Return (u,) the expected squared error of the guess ½, estimated from judged instances that
    the same systems (u, m) predict, and shrunk towards its maximum if there are few.
    """
    who = np.unique(member.toarray() > 0, axis=0, return_inverse=True)[1].ravel()
    known = np.flatnonzero(~np.isnan(label))
    squares = (label[known] - 0.5) ** 2
    n = int(who.max(initial=-1)) + 1
    of_these = np.bincount(who[known], weights=squares, minlength=n)
    count = np.bincount(who[known], minlength=n)
    return np.asarray(((of_these + LENT * MOST_ERROR) / (count + LENT))[who])


def mean_verdict_over_systems(
    kind: type[Kind], verdicts: Floats, member: sparse.csr_array
) -> Floats:
    """Return (u,) the mean verdict f_i(x) on each instance over the systems that predict it; NaN if
    one of these verdicts is missing. In a comparison of two texts, one system wins if the other
    loses, so the verdicts are counted as wins of each.
    """
    predicted = member.toarray() > 0
    if kind.opposes:
        verdicts = 0.5 + np.abs(verdicts - 0.5)
    return np.asarray(
        np.where(predicted, verdicts, 0.0).sum(axis=1) / np.maximum(predicted.sum(axis=1), 1)
    )
