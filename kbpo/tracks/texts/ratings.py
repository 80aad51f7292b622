"""Reads the ratings of targets: single ratings, each in [0, 1]."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimators.ratings import judgment_variance
from kbpo.corpus.sql import fetch_rows
from kbpo.instances.merge import PEOPLE, PUBLIC, RATINGS, merge_latest_parts, merged_values
from kbpo.instances.models import Label
from kbpo.submissions.models import Prediction
from kbpo.tracks import base
from kbpo.tracks.base import Verdicts
from kbpo.tracks.measures import Criterion
from scoring.data import Noise, SingleRatings


@dataclass(frozen=True)
class RatedTarget:
    """The ratings of one target by criterion, with their annotators."""

    ratings: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """criterion -> the rating of each person"""
    people: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """criterion -> the annotator of each rating; "" if unknown"""
    unanswered: bool = False
    """Whether a question was asked that nobody could answer"""

    def value(self, criterion: Criterion) -> float:
        """Return the value under a criterion: the mean of the ratings, or the majority; NaN without
        ratings.
        """
        ratings = self.ratings.get(criterion.name, ())
        if not ratings:
            return float("nan")
        mean = sum(ratings) / len(ratings)
        return mean if criterion.single == "mean" else float(mean > 0.5)


NEARLY_ALL = 0.95
"""Share of rated targets with two ratings from which on all second opinions count as random"""
ASKED_OF_SEVERAL = (
    "SELECT DISTINCT target_id FROM instances_label"
    " WHERE target_id = ANY(%s) AND source = 'crowd' AND n > 1"
)
NOTHING = RatedTarget()
NOBODY = SingleRatings(
    np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float64)
)


def read_ratings(targets: Collection[int], *, public: bool = False) -> dict[int, RatedTarget]:
    """Return the targets that have a (public) label, with their ratings."""
    return {
        target: RatedTarget(value.get(RATINGS, {}), value.get(PEOPLE, {}), unanswered)
        for target, value, unanswered in merged_values(targets, merge_latest_parts, public=public)
    }


def select_second_opinions(rated_targets: Mapping[int, RatedTarget]) -> frozenset[int]:
    """Return the rated targets whose second ratings were drawn at random: their question was given
    to several people. If nearly all targets have two ratings, return all of them.

    Other second ratings, as of a text that two systems wrote, are not a random sample.
    """
    rated_ones = [target for target, one in rated_targets.items() if any(one.ratings.values())]
    several = [
        target
        for target in rated_ones
        if min(len(said) for said in rated_targets[target].ratings.values() if said) > 1
    ]
    if len(several) >= NEARLY_ALL * len(rated_ones):
        return frozenset(rated_ones)
    return frozenset(target for (target,) in fetch_rows(ASKED_OF_SEVERAL, [rated_ones]))


def rating_noise(
    targets: NDArray[np.int64],
    rated_targets: Mapping[int, RatedTarget],
    criterion: str,
    random: Collection[int],
) -> Noise:
    """Return the disagreement between annotators under a criterion, and how many ratings each
    target has.

    σ_a² is pooled over the `random` targets, whose second opinions were drawn at random; NaN if
    these are too few.
    """
    ratings = {target: rated.ratings.get(criterion, ()) for target, rated in rated_targets.items()}
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
    single = _ratings_with_annotator(targets, rated_targets, criterion)
    return Noise(count, variance, single, within=within, opinions=opinions)


def _ratings_with_annotator(
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


def targets_of_instances(instances: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return (n,) the target of each instance."""
    unique, place = np.unique(instances, return_inverse=True)
    target_of = dict(
        fetch_rows(
            "SELECT id, target_id FROM instances_instance WHERE id = ANY(%s)", [unique.tolist()]
        )
    )
    return np.array([target_of[instance] for instance in unique.tolist()], dtype=np.int64)[place]


SHORT = 160
"""Greatest number of characters of a text in a line"""


@dataclass(frozen=True, kw_only=True)
class Judgment:
    """The judgments of a text under one criterion, on the scale that readers see."""

    label: str
    value: float | None
    """The value on the scale for readers"""
    n: int
    ratings: tuple[float, ...] = ()
    """The ratings of several people, on the same scale"""


@dataclass(frozen=True, kw_only=True)
class Judged(base.Judged):
    """A text with its judgments."""

    text: str
    input: str
    """The id of its input; empty if there is none"""
    said: list[Judgment]
    sources: Callable[[], list[tuple[str, str]]] = list
    """Function that returns its input as (heading, text)"""

    def extra_page_values(self) -> list[tuple[str, str]]:
        return self.sources()

    @property
    def is_judged(self) -> bool:
        """Return whether people have rated the text under any criterion."""
        return any(part.value is not None for part in self.said)

    def as_json(self) -> dict[str, Any]:
        """Return the text as JSON, with its input, and under each criterion the value and the
        number of annotators.
        """
        ratings = {part.label: {"value": part.value, "people": part.n} for part in self.said}
        return super().as_json() | {"input": self.input, "text": self.text, "said": ratings}

    @property
    def claim_text(self) -> str:
        """Return the beginning of the text, as the title of its page."""
        return self.claim

    @property
    def claim(self) -> str:
        """Return the beginning of the text on one line."""
        line = " ".join(self.text.split())
        return line if len(line) <= SHORT else f"{line[:SHORT]}…"


def submission_verdicts(criterion: Criterion, submission: int, *, public: bool) -> Verdicts:
    """Return the verdict on each judged prediction of a submission under a criterion, and whether
    the annotators disagreed. With `public`, only public judgments are used.
    """
    visible = PUBLIC if public else ""
    judged = fetch_rows(
        "SELECT p.id, i.target_id FROM submissions_prediction p JOIN instances_instance i ON i.id ="
        f" p.instance_id WHERE p.submission_id = %s AND EXISTS (SELECT 1 FROM"
        f" instances_label l WHERE l.target_id = i.target_id AND l.value <> '{{}}'::jsonb{visible})"
        " ORDER BY p.line, p.id",
        [submission],
    )
    rated_of = read_ratings([target for _, target in judged], public=public)
    values = np.array([rated_of[target].value(criterion) for _, target in judged], dtype=np.float64)
    split = [
        any(len(set(ratings)) > 1 for ratings in rated_of[target].ratings.values())
        for _, target in judged
    ]
    return Verdicts(
        [prediction for prediction, _ in judged], values, np.array(split, dtype=np.bool_)
    )


def describe_predictions(
    criteria: Sequence[Criterion],
    sources_of: Callable[[Mapping[str, Any]], list[tuple[str, str]]],
    predictions: Sequence[int],
    *,
    public: bool,
    unjudged: Collection[int],
) -> list[base.Judged]:
    """Return the predictions with these ids, in order, with their texts and ratings; ratings of
    predictions in `unjudged` are left out.
    """
    rows = Prediction.objects.filter(pk__in=predictions).select_related("instance__target")
    prediction_of = rows.in_bulk()
    targets = [prediction_of[pk].instance.target_id for pk in predictions]
    rated_of, sources = read_ratings(targets, public=public), _label_sources(targets, public=public)
    judged: list[base.Judged] = []
    for pk, target in zip(predictions, targets, strict=True):
        rated_text = NOTHING if pk in unjudged else rated_of.get(target, NOTHING)
        content = prediction_of[pk].instance.target.content or {}
        n = max((len(rating) for rating in rated_text.ratings.values()), default=0)
        judged.append(
            Judged(
                prediction=prediction_of[pk],
                votes=f"{n} {'person' if n == 1 else 'people'}" if n else "",
                source="" if pk in unjudged else sources.get(target, ""),
                text=str(content.get("text", "")),
                input=str(content.get("input", "")),
                sources=partial(sources_of, content),
                said=[_rating_judgment(rated_text, criterion) for criterion in criteria],
            )
        )
    return judged


def _rating_judgment(rated_text: RatedTarget, criterion: Criterion) -> Judgment:
    value = rated_text.value(criterion)
    ratings = tuple(map(criterion.to_scale, rated_text.ratings.get(criterion.name, ())))
    shown = None if np.isnan(value) else criterion.to_scale(value)
    each = ratings if len(ratings) > 1 else ()
    return Judgment(label=criterion.label, value=shown, n=len(ratings), ratings=each)


def _label_sources(targets: Sequence[int], *, public: bool) -> dict[int, str]:
    """Return the source of each target's latest label."""
    sources: dict[int, str] = {}
    for label in Label.objects.filter(target__in=targets).order_by("created_at", "pk"):
        if label.is_public or not public:
            sources[label.target_id] = label.source
    return sources
