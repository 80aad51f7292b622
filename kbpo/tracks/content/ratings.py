"""Reads what people said of targets that are rated: single ratings, each in [0, 1]."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kbpo.corpus.fetch import fetch
from kbpo.instances.merge import RATINGS, values_of
from kbpo.tracks.base import Criterion


@dataclass(frozen=True)
class Rated:
    """What is known of one target."""

    ratings: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """criterion -> what each person said"""
    in_vain: bool = False
    """Somebody asked, and nobody could answer"""

    def value(self, criterion: Criterion) -> float:
        """What counts under a criterion: the mean of the ratings, or what most say; NaN without
        any.
        """
        said = self.ratings.get(criterion.name, ())
        if not said:
            return float("nan")
        mean = sum(said) / len(said)
        return mean if criterion.single == "mean" else float(mean > 0.5)


NOTHING = Rated()


def rated(targets: Collection[int], *, public: bool = False) -> dict[int, Rated]:
    """The targets that have a label (a public one), with their ratings."""
    return {
        target: Rated(value.get(RATINGS, {}), in_vain)
        for target, value, in_vain in values_of(targets, public=public)
    }


def targets_of(instances: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n,) the target of each instance."""
    unique, place = np.unique(instances, return_inverse=True)
    rows = dict(
        fetch("SELECT id, target_id FROM instances_instance WHERE id = ANY(%s)", [unique.tolist()])
    )
    return np.array([rows[one] for one in unique.tolist()], dtype=np.int64)[place]
