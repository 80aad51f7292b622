"""Reads the stored overlaps Σ_x p_i(x) p_j(x)."""

from __future__ import annotations

import numpy as np

from kbpo.sampling.models import SamplingDistribution
from scoring.arrays import Floats


def overlaps(kind: str, systems: list[int]) -> Floats:
    """Return Σ_x p_i p_j of every pair, shape (m, m)."""
    column = {system: j for j, system in enumerate(systems)}
    table = np.zeros((len(systems), len(systems)))
    stored = SamplingDistribution.objects.filter(kind=kind, submission__in=systems)
    for system, overlap_with in stored.values_list("submission_id", "overlaps"):
        for other in overlap_with.keys() & {str(system) for system in systems}:
            i, j = column[system], column[int(other)]
            table[i, j] = table[j, i] = overlap_with[other]
    return table
