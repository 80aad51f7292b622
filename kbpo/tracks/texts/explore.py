"""What the explorer shows of texts that people rated: the text, and what each criterion came to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from kbpo.corpus.fetch import fetch
from kbpo.instances.merge import PUBLIC
from kbpo.instances.models import Label
from kbpo.submissions.models import Prediction
from kbpo.tracks import base
from kbpo.tracks.base import Verdicts
from kbpo.tracks.measures import Criterion
from kbpo.tracks.texts.ratings import NOTHING, RatedTarget, rated

SHORT = 160
"""Characters of a text in a line."""


@dataclass(frozen=True, kw_only=True)
class Judgment:
    """The judgments of a text under one criterion."""

    label: str
    value: float | None
    """On the scale that people read"""
    n: int
    ratings: tuple[float, ...] = ()
    """What each of several people said, on the same scale"""


@dataclass(frozen=True, kw_only=True)
class Judged(base.Judged):
    """A text with its judgments."""

    text: str
    input: str
    """The id of what it was written for; empty where it was for nothing"""
    said: list[Judgment]
    sources: Callable[[], list[tuple[str, str]]] = list
    """What it was made for, as (heading, text)"""

    def explained(self) -> list[tuple[str, str]]:
        return self.sources()

    @property
    def is_judged(self) -> bool:
        """Return whether people have rated it, under any criterion."""
        return any(part.value is not None for part in self.said)

    def as_json(self) -> dict[str, Any]:
        """Return the text as JSON, with its input, and under each criterion the value and the
        number of annotators.
        """
        ratings = {part.label: {"value": part.value, "people": part.n} for part in self.said}
        return super().as_json() | {"input": self.input, "text": self.text, "said": ratings}

    @property
    def in_words(self) -> str:
        """Return its beginning, as its page is called."""
        return self.claim

    @property
    def claim(self) -> str:
        """Return its beginning, on one line."""
        line = " ".join(self.text.split())
        return line if len(line) <= SHORT else f"{line[:SHORT]}…"


def verdicts(criterion: Criterion, submission: int, *, public: bool) -> Verdicts:
    """Return the verdict on each judged prediction of a submission under a criterion, and whether
    those who judged it disagreed. With `public`, only public judgments are used.
    """
    visible = PUBLIC if public else ""
    judged = fetch(
        "SELECT p.id, i.target_id FROM submissions_prediction p JOIN instances_instance i ON i.id ="
        f" p.instance_id WHERE p.submission_id = %s AND EXISTS (SELECT 1 FROM"
        f" instances_label l WHERE l.target_id = i.target_id AND l.value <> '{{}}'::jsonb{visible})"
        " ORDER BY p.line, p.id",
        [submission],
    )
    rated_of = rated([target for _, target in judged], public=public)
    values = np.array([rated_of[target].value(criterion) for _, target in judged], dtype=np.float64)
    split = [_is_split(rated_of[target]) for _, target in judged]
    return Verdicts(
        [prediction for prediction, _ in judged], values, np.array(split, dtype=np.bool_)
    )


def _is_split(said: RatedTarget) -> bool:
    """Return whether two people rated a text differently."""
    return any(len(set(ratings)) > 1 for ratings in said.ratings.values())


def describe(
    criteria: Sequence[Criterion],
    sources_of: Callable[[Mapping[str, Any]], list[tuple[str, str]]],
    predictions: Sequence[int],
    *,
    public: bool,
    unjudged: Collection[int],
) -> list[base.Judged]:
    """Return the predictions with these ids, in order, with their texts and ratings; without these
    where they are named unjudged.
    """
    rows = Prediction.objects.filter(pk__in=predictions).select_related("instance__target")
    prediction_of = rows.in_bulk()
    targets = [prediction_of[pk].instance.target_id for pk in predictions]
    rated_of, sources = rated(targets, public=public), _sources(targets, public=public)
    judged: list[base.Judged] = []
    for pk, target in zip(predictions, targets, strict=True):
        rated_text = NOTHING if pk in unjudged else rated_of.get(target, NOTHING)
        content = prediction_of[pk].instance.target.content or {}
        judged.append(
            Judged(
                prediction=prediction_of[pk],
                votes=_people(rated_text),
                source="" if pk in unjudged else sources.get(target, ""),
                text=str(content.get("text", "")),
                input=str(content.get("input", "")),
                sources=partial(sources_of, content),
                said=[_rating(rated_text, criterion) for criterion in criteria],
            )
        )
    return judged


def _rating(rated_text: RatedTarget, criterion: Criterion) -> Judgment:
    value = rated_text.value(criterion)
    ratings = tuple(map(criterion.to_scale, rated_text.ratings.get(criterion.name, ())))
    shown = None if np.isnan(value) else criterion.to_scale(value)
    each = ratings if len(ratings) > 1 else ()
    return Judgment(label=criterion.label, value=shown, n=len(ratings), ratings=each)


def _people(rated_text: RatedTarget) -> str:
    """“2 people”, however many criteria each spoke of."""
    n = max((len(rating) for rating in rated_text.ratings.values()), default=0)
    return f"{n} {'person' if n == 1 else 'people'}" if n else ""


def _sources(targets: Sequence[int], *, public: bool) -> dict[int, str]:
    """Return the source of each target's latest label."""
    sources: dict[int, str] = {}
    for label in Label.objects.filter(target__in=targets).order_by("created_at", "pk"):
        if label.is_public or not public:
            sources[label.target_id] = label.source
    return sources
