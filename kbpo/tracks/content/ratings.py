"""Reads what people said of targets that are rated: single ratings, each in [0, 1]."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from estimators.ratings import judgment_variance
from kbpo.corpus.fetch import fetch
from kbpo.instances.merge import PEOPLE, RATINGS, replaced, values_of
from kbpo.tracks.base import Criterion
from scoring.data import Noise, SingleRatings


@dataclass(frozen=True)
class Rated:
    """What is known of one target."""

    ratings: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """criterion -> what each person said"""
    people: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """criterion -> who said so, beside each rating; "" where that is not known"""
    unanswered: bool = False
    """Somebody asked, and nobody could answer"""

    def value(self, criterion: Criterion) -> float:
        """What counts under a criterion: the mean of the ratings, or what most say; NaN without
        any.
        """
        ratings = self.ratings.get(criterion.name, ())
        if not ratings:
            return float("nan")
        mean = sum(ratings) / len(ratings)
        return mean if criterion.single == "mean" else float(mean > 0.5)


NOTHING = Rated()
NOBODY = SingleRatings(
    np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float64)
)


def rated(targets: Collection[int], *, public: bool = False) -> dict[int, Rated]:
    """The targets that have a label (a public one), with their ratings."""
    return {
        target: Rated(value.get(RATINGS, {}), value.get(PEOPLE, {}), unanswered)
        for target, value, unanswered in values_of(targets, replaced, public=public)
    }


def noise_of(targets: NDArray[np.int64], known: Mapping[int, Rated], criterion: str) -> Noise:
    """What people differ by under a criterion, and how many ratings each of these targets has.

    σ_a² is pooled over the targets that two people rated; as long as these are few, all that
    ratings differ by counts, too, which can only be too much.
    """
    ratings = {target: rated.ratings.get(criterion, ()) for target, rated in known.items()}
    sizes = (len(ratings.get(target, ())) for target in targets.tolist())
    count = np.fromiter(sizes, dtype=np.int64, count=targets.size)
    every = [value for rating in ratings.values() for value in rating]
    item = np.repeat(np.arange(len(ratings)), [len(rating) for rating in ratings.values()])
    variance = judgment_variance(every, item)
    each = (ratings.get(target, ()) for target in targets.tolist())
    within = np.array([np.var(said) * len(said) if said else 0.0 for said in each])
    return Noise(count, variance, _single(targets, known, criterion), within=within)


def _single(
    targets: NDArray[np.int64], rated_of: Mapping[int, Rated], criterion: str
) -> SingleRatings:
    """The ratings under a criterion of which is known who gave them."""
    places: list[int] = []
    names: list[str] = []
    values: list[float] = []
    for place, target in enumerate(targets.tolist()):
        rated = rated_of.get(target, NOTHING)
        people = rated.people.get(criterion, ())
        for name, value in zip(people, rated.ratings.get(criterion, ()), strict=False):
            if name:
                places.append(place)
                names.append(name)
                values.append(value)
    judges, code = np.unique(np.array(names, dtype=np.str_), return_inverse=True)
    return SingleRatings(
        np.array(places, dtype=np.int64),
        code,
        np.array(values, dtype=np.float64),
        tuple(judges.tolist()),
    )


def targets_of(instances: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n,) the target of each instance."""
    unique, place = np.unique(instances, return_inverse=True)
    target_of = dict(
        fetch("SELECT id, target_id FROM instances_instance WHERE id = ANY(%s)", [unique.tolist()])
    )
    return np.array([target_of[instance] for instance in unique.tolist()], dtype=np.int64)[place]
