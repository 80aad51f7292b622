"""Reads what people said of targets that are rated: single ratings, each in [0, 1]."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from estimators.ratings import judgment_variance
from kbpo.corpus.fetch import fetch
from kbpo.instances.merge import PEOPLE, RATINGS, merge_by_replacing, values_of
from kbpo.tracks.measures import Criterion
from scoring.data import Noise, SingleRatings


@dataclass(frozen=True)
class RatedTarget:
    """The judgments of one target."""

    ratings: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """criterion -> what each person said"""
    people: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """criterion -> who said so, beside each rating; "" where that is not known"""
    unanswered: bool = False
    """Somebody asked, and nobody could answer"""

    def value(self, criterion: Criterion) -> float:
        """Return the value under a criterion: the mean of the ratings, or the majority; NaN without
        any.
        """
        ratings = self.ratings.get(criterion.name, ())
        if not ratings:
            return float("nan")
        mean = sum(ratings) / len(ratings)
        return mean if criterion.single == "mean" else float(mean > 0.5)


NEARLY_ALL = 0.95
"""Of the rated targets; with two ratings of so many, all second opinions count as random"""
ASKED_OF_SEVERAL = (
    "SELECT DISTINCT target_id FROM instances_label"
    " WHERE target_id = ANY(%s) AND source = 'crowd' AND n > 1"
)
NOTHING = RatedTarget()
NOBODY = SingleRatings(
    np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float64)
)


def rated(targets: Collection[int], *, public: bool = False) -> dict[int, RatedTarget]:
    """Return the targets that have a label (a public one), with their ratings."""
    return {
        target: RatedTarget(value.get(RATINGS, {}), value.get(PEOPLE, {}), unanswered)
        for target, value, unanswered in values_of(targets, merge_by_replacing, public=public)
    }


def select_second_opinions(known: Mapping[int, RatedTarget]) -> frozenset[int]:
    """Return the rated targets whose second opinions were drawn at random: a question of the
    service went to several people (its second share, or a track that asks several). Every target
    where (nearly) all have two ratings, as in a study that judged everything twice.

    Second ratings that arose otherwise, as where systems wrote the same text, are no random sample.
    """
    rated_ones = [target for target, one in known.items() if any(one.ratings.values())]
    several = [
        target
        for target in rated_ones
        if min(len(said) for said in known[target].ratings.values() if said) > 1
    ]
    if len(several) >= NEARLY_ALL * len(rated_ones):
        return frozenset(rated_ones)
    return frozenset(target for (target,) in fetch(ASKED_OF_SEVERAL, [rated_ones]))


def noise_of(
    targets: NDArray[np.int64],
    known: Mapping[int, RatedTarget],
    criterion: str,
    random: Collection[int],
) -> Noise:
    """Return the disagreement between annotators under a criterion, and how many ratings each
    target has.

    σ_a² is pooled over the `random` targets, whose second opinions were drawn at random; NaN where
    these are too few.
    """
    ratings = {target: rated.ratings.get(criterion, ()) for target, rated in known.items()}
    each = [ratings.get(target, ()) for target in targets.tolist()]
    count = np.array([len(said) for said in each], dtype=np.int64)
    drawn = [ratings[target] for target in sorted(random) if target in ratings]
    every = [value for said in drawn for value in said]
    item = np.repeat(np.arange(len(drawn)), [len(said) for said in drawn])
    within = np.array(
        [
            float(np.var(said) * len(said)) if said and target in random else np.nan
            for said, target in zip(each, targets.tolist(), strict=True)
        ],
        dtype=np.float64,
    )
    variance = judgment_variance(every, item.astype(np.int64))
    opinions = [
        said if target in random else said[:1]
        for said, target in zip(each, targets.tolist(), strict=True)
    ]
    single = _single(targets, known, criterion)
    return Noise(count, variance, single, within=within, opinions=opinions)


def _single(
    targets: NDArray[np.int64], rated_of: Mapping[int, RatedTarget], criterion: str
) -> SingleRatings:
    """Return the ratings under a criterion whose annotator is known."""
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
    """Return (n,) the target of each instance."""
    unique, place = np.unique(instances, return_inverse=True)
    target_of = dict(
        fetch("SELECT id, target_id FROM instances_instance WHERE id = ANY(%s)", [unique.tolist()])
    )
    return np.array([target_of[instance] for instance in unique.tolist()], dtype=np.int64)[place]
