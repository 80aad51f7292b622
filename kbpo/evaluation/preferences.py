"""Strengths of systems that are compared two by two: Bradley and Terry, ties after Davidson.

Win rates are the board's own estimates: shares of all pairs, each with its probability. Strengths
stand beside them: what tells two systems apart who never met the same opponents.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from estimators.preferences import bradley_terry
from kbpo.tracks.base import Duels
from kbpo.tracks.base import Track as Kind
from scoring.compare import LEVEL as RANKED
from scoring.report import Strength, Strengths

LEVEL, SEED = 0.8, 20_180_715
FEWEST = 10
"""Inputs below which nothing is told: what fewer agree on by luck would look certain"""


def strengths(kind: Kind, systems: Sequence[int]) -> dict[str, Strengths]:
    """Return the strengths of systems under each criterion; empty where systems are judged one by
    one.
    """
    return {
        criterion: _fit_strengths(duels, systems)
        for criterion, duels in kind.duels(systems).items()
    }


def _fit_strengths(duels: Duels, systems: Sequence[int]) -> Strengths:
    """Return strengths with intervals and ranks, the strongest first, or the reason why there are
    none.
    """
    judgments = int(duels.outcome.size)
    judged = np.unique(np.concatenate([duels.left, duels.right]))
    if judged.size < 2 or np.unique(duels.cluster).size < FEWEST:
        why = f"Strengths are told from {FEWEST} inputs on that are judged."
        return Strengths(judgments, why=why)
    try:
        fitted = bradley_terry(
            np.searchsorted(judged, duels.left),
            np.searchsorted(judged, duels.right),
            duels.outcome,
            cluster=np.unique(duels.cluster, return_inverse=True)[1],
        )
    except ValueError:
        why = "Some systems never lost so far, or all was a tie: their strength has no end."
        return Strengths(judgments, why=why)
    low, high = (np.asarray(end) for end in fitted.confidence_interval(LEVEL))
    ranks = fitted.compare(rng=np.random.default_rng(SEED), confidence_level=RANKED)[1]
    rows = tuple(
        Strength(
            system=int(systems[judged[place]]),
            strength=_number(fitted.value[place]),
            low80=_number(low[place]),
            high80=_number(high[place]),
            best=int(ranks.best[place]),
            worst=int(ranks.worst[place]),
            judgments=int(fitted.n[place]),
        )
        for place in np.argsort(-fitted.value).tolist()
    )
    return Strengths(judgments, rows, float((duels.outcome == 0.5).mean()))


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
