"""Strengths of systems that are compared two by two: Bradley and Terry, ties after Davidson.

Win rates are the board's own estimates: shares of all pairs, each with its probability. Strengths
stand beside them: what tells two systems apart who never met the same opponents.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from estimators.preferences import bradley_terry
from kbpo.tracks.base import Duels
from kbpo.tracks.base import Track as Kind

LEVEL, SEED = 0.8, 20_180_715
FEWEST = 2
"""Inputs below which no interval can be told"""


def strengths(kind: Kind, systems: Sequence[int]) -> dict[str, Any]:
    """Criterion -> what all judgments of two systems come to; nothing where systems are judged one
    by one.
    """
    told = {}
    for criterion, duels in kind.duels(systems).items():
        told[criterion] = _of(duels, systems)
    return told


def _of(duels: Duels, systems: Sequence[int]) -> dict[str, Any]:
    told: dict[str, Any] = {"judgments": int(duels.outcome.size), "rows": []}
    judged = np.unique(np.concatenate([duels.left, duels.right]))
    if judged.size < 2 or np.unique(duels.cluster).size < FEWEST:
        return told | {"why": "Too little is judged to tell strengths."}
    try:
        found = bradley_terry(
            np.searchsorted(judged, duels.left),
            np.searchsorted(judged, duels.right),
            duels.outcome,
            cluster=np.unique(duels.cluster, return_inverse=True)[1],
        )
    except ValueError:
        return told | {
            "why": "Some systems never lost so far, or nothing but ties was said: their strength has no end."
        }
    low, high = (np.asarray(end) for end in found.confidence_interval(LEVEL))
    ranks = found.compare(rng=np.random.default_rng(SEED), confidence_level=LEVEL)[1]
    order = np.argsort(-found.value)
    told["ties"] = float((duels.outcome == 0.5).mean())
    told["rows"] = [
        {
            "system": int(systems[judged[at]]),
            "strength": _number(found.value[at]),
            "low80": _number(low[at]),
            "high80": _number(high[at]),
            "best": int(ranks.best[at]),
            "worst": int(ranks.worst[at]),
            "judgments": int(found.n[at]),
        }
        for at in order.tolist()
    ]
    return told


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
