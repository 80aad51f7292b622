"""Puts entities into classes by how often they occur, the same wherever that is told."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kbpo.corpus.frequency import HIGH, MEDIUM


def limits(frequency: NDArray[np.int64], people: NDArray[np.bool_]) -> tuple[float, float]:
    """The document frequency up to which an entity is low, and above which it is high: percentiles
    over the persons and organisations that occur, or over all where there are none.
    """
    occurs = frequency > 0
    known = frequency[occurs & people] if (occurs & people).any() else frequency[occurs]
    low, high = np.percentile(known, [MEDIUM, HIGH]) if known.size else (1.0, 1.0)
    return float(low), float(high)


def classes(frequency: NDArray[np.int64], ends: tuple[float, float]) -> NDArray[np.str_]:
    """Low, medium or high, one for each frequency."""
    return np.where(frequency <= ends[0], "low", np.where(frequency <= ends[1], "medium", "high"))
