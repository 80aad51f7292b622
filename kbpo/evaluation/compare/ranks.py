"""Compares the systems of a board, all pairs at once: where each may rank, and which cannot be told
apart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from estimators.design import Design
from estimators.estimate import Estimate
from estimators.multiple import rank_intervals, simultaneous_intervals, tie_groups
from kbpo.tracks.base import Track as Kind
from scoring.arrays import Floats, Ids
from scoring.data import Data
from scoring.score import Key

Named = tuple[str, ...]
"""A key; with the population, where that is not what the kind says first"""

LEVEL = 0.95
"""Of all statements about a board together."""
SEED = 20_171_017
ROUNDING = 1e-18
"""A variance that is less than this share of what is expected is none: the terms of labels that all
agree differ in their last digits, which have a sign by chance"""
PRIVATE = "private"
"""Where the covariances that private runs take part in stand among an evaluation's comparisons"""


def comparisons(
    kind: type[Kind],
    data: Data,
    estimates: Mapping[Named, tuple[Estimate, Design]],
    board: set[int],
    references: Collection[int] = (),
) -> dict[str, dict[str, Any]]:
    """For the headline of every criterion under every distribution: ranks and tie groups of the
    systems on the board, of which references take no place; for all numbers the covariance that
    differences are made of.
    """
    chosen = ranking_keys(kind, estimates)
    columns = np.array(
        [column for column, system in enumerate(data.systems) if system in board], dtype=np.int64
    )
    if not columns.size:
        return {}
    return {
        "|".join(key): _joint(data, estimate, columns)
        | (
            _compare(estimate, columns, data.systems, _sign(kind, key), references)
            if key in chosen
            else {}
        )
        for key, estimate in estimates.items()
    }


def with_private(
    data: Data,
    estimates: Mapping[Named, tuple[Estimate, Design]],
    scored: set[int],
    board: set[int],
) -> dict[str, dict[str, Any]]:
    """The covariance of all numbers of what is scored, private or not, for teams that compare what
    is theirs; nothing where all of it is on the board.
    """
    columns = np.flatnonzero(np.isin(data.systems, list(scored))).astype(np.int64)
    if scored <= board or not columns.size:
        return {}
    joint = {"|".join(key): _joint(data, estimate, columns) for key, estimate in estimates.items()}
    return {PRIVATE: joint}


def is_ranked(
    kind: type[Kind], data: Data, key: Key, found: tuple[Estimate, Design], column: int, stage: int
) -> bool:
    """Whether a system's place among all that take part and have a number is decided: every other
    is better or worse, all pairs at once.

    Its page may be looked at after each of its stages. The k-th spends 5 %/(k (k + 1)), so that
    a place is wrongly decided at any of them with 5 % at most.
    """
    estimate, _ = found
    defined = data.shown & ~np.isnan(np.asarray(estimate.value))
    columns = np.flatnonzero(defined).astype(np.int64)
    if columns.size < 2 or not defined[column]:
        return False
    level = 1 - (1 - LEVEL) / (stage * (stage + 1))
    comparison = _compare(found, columns, data.systems, _sign(kind, key), level=level)
    place = columns.tolist().index(column)
    return bool(comparison["best"][place] == comparison["worst"][place])


def ranking_keys(kind: type[Kind], keys: Iterable[Named]) -> set[Named]:
    """Of numbers that there are, those by which systems are ranked: of each criterion and
    distribution the first in the order of the kind's quantities.
    """
    order = [quantity.name for quantity in kind.quantities]
    weighed = [key for key in keys if kind.quantity(key[0]).weighed]
    best: dict[Named, Named] = {}
    for key in sorted(weighed, key=lambda key: order.index(key[0])):
        best.setdefault(key[1:], key)
    return set(best.values())


def _sign(kind: type[Kind], key: Named) -> float:
    return 1.0 if kind.higher_is_better(key[0], key[1]) else -1.0


def covariance_of(estimate: Estimate, design: Design, columns: Ids) -> Floats:
    """The joint covariance, nowhere surer of a system than its printed interval: V scaled up to the
    anticipated A.

    Scaled, the numbers keep their correlations, so that a copy still differs by nothing; where all
    labels agree V is 0, or what rounding left of it, and there is nothing to scale.
    """
    covered = np.atleast_2d(design.covariance(np.nan_to_num(estimate.influence[:, columns])))
    realised = np.diagonal(covered).copy()
    floor = np.broadcast_to(estimate.anticipated, np.shape(estimate.value))[columns]
    floor = np.where(np.isfinite(floor), floor, 1.0)  # where nothing is known anything may be true
    informative = realised > ROUNDING * floor
    scale = np.sqrt(
        np.divide(
            np.maximum(realised, floor), realised, out=np.ones(columns.size), where=informative
        )
    )
    covariance: Floats = np.where(
        np.outer(informative, informative), covered * np.outer(scale, scale), 0.0
    )
    covariance[np.diag_indices(columns.size)] += np.where(informative, 0.0, floor)
    return covariance


def _degrees(estimate: Estimate, columns: Ids) -> float:
    """The fewest degrees of freedom of the systems that have a number; one without has none. A
    single rating has 0, with which nothing could be compared: it counts as 1, the widest there is.
    """
    value = np.asarray(estimate.value)
    degrees = np.broadcast_to(estimate.degrees_of_freedom, value.shape)[columns]
    return max(1.0, float(np.min(degrees, where=~np.isnan(value[columns]), initial=np.inf)))


def _joint(data: Data, number: tuple[Estimate, Design], columns: Ids) -> dict[str, Any]:
    """The systems and the covariance of their numbers; `df` is null where it is infinite."""
    estimate, design = number
    df = _degrees(estimate, columns)
    covariance = covariance_of(estimate, design, columns)
    return {
        "systems": [data.systems[column] for column in columns],
        "covariance": covariance.tolist(),
        "df": df if np.isfinite(df) else None,
    }


def _compare(
    number: tuple[Estimate, Design],
    columns: Ids,
    submissions: list[int],
    sign: float,
    references: Collection[int] = (),
    *,
    level: float = LEVEL,
) -> dict[str, Any]:
    """Ranks and ties; `sign` is −1 where less is better."""
    estimate, design = number
    values = sign * np.asarray(estimate.value)[columns]
    covariance = covariance_of(estimate, design, columns)
    df = _degrees(estimate, columns)
    family = simultaneous_intervals(
        values,
        covariance,
        rng=np.random.default_rng(SEED),
        confidence_level=level,
        degrees_of_freedom=df,
    )
    systems = [submissions[column] for column in columns]
    ranked = [system not in references for system in systems]
    ranks = rank_intervals(family, ranked=ranked)
    return {
        "best": [
            rank if kept else None for rank, kept in zip(ranks.best.tolist(), ranked, strict=True)
        ],
        "worst": [
            rank if kept else None for rank, kept in zip(ranks.worst.tolist(), ranked, strict=True)
        ],
        "groups": [[systems[column] for column in group] for group in tie_groups(family)],
        "critical": float(family.critical),
        "different": family.different.tolist(),
        "level": level,
    }
