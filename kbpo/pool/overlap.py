"""Reads the stored overlaps Σ_x p_i(x) p_j(x)."""

from __future__ import annotations

import numpy as np

from kbpo.sampling.models import Overlap
from scoring.arrays import Floats


def overlaps(kind: str, systems: list[int]) -> Floats:
    """Return Σ_x p_i p_j of every pair, shape (m, m)."""
    column = {system: j for j, system in enumerate(systems)}
    table = np.zeros((len(systems), len(systems)))
    stored = Overlap.objects.filter(kind=kind, first__in=systems, second__in=systems)
    for system, other, value in stored.values_list("first_id", "second_id", "value"):
        table[column[system], column[other]] = table[column[other], column[system]] = value
    return table
