"""What is known of the error of those who judged: how far they agree, and what experts corrected.

An interval covers what sampling leaves open. That the crowd errs is seen in two ways only: people
who were asked the same disagree, and experts who check a random part contradict them. The first is
told beside every score; the second corrects it (`correction/`), and only then it is in an interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from math import nan
from statistics import mean
from typing import NamedTuple

import numpy as np

from kbpo.evaluation.models import Evaluation
from kbpo.instances.merge import Said, in_place, newest_of
from kbpo.instances.models import Label
from kbpo.submissions.models import Submission
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.models import Track
from kbpo.tracks.registry import class_of, kind_of
from scoring.arrays import Bools, Floats, Ids
from scoring.data import Data, Noise

ALL = "all"
"""What all systems that stand on the board are kept under, beside the single ones"""
MOST_OF_ONE = 0.5
"""Share of the ratings; with more of them by one person systems are not ranked"""
KEY = "agreement"
"""What an evaluation keeps it under"""


@dataclass(frozen=True)
class Judges:
    """Those who judged what a submission's guaranteed number rests on, or a whole board's."""

    answers: int
    """of people, about what at least two were asked"""
    agree: float | None
    """the share of these answers that agree with their majority; None if there are none"""
    in_interval: bool
    """Single ratings count, and what people differ by is part of every interval"""
    twice: int = 0
    """things of which two or more people said how good they are, where single ratings count"""
    differ: float | None = None
    """how far two of these people lie apart, in [0, 1], the mean over those things"""
    people: int = 0
    """how many gave ratings, of those who are known, where a level of their own would count"""
    of_unknown: int = 0
    """ratings of which nobody knows who gave them, there"""
    largest: float = 0.0
    """the largest share of the ratings that one known person gave"""
    second: int = 0
    """second opinions, however they arose, where single ratings count"""
    second_drawn: int = 0
    """of these, those that were drawn at random"""
    is_separable: bool = True
    """annotator noise is known apart from what things differ by"""


def judges_of(evaluation: Evaluation | None, submission: Submission | None = None) -> Judges:
    """Return what an evaluation knows of a submission's judges, or of the whole board's."""
    kept = evaluation.settings.get(KEY, {}) if evaluation is not None else {}
    counts = kept.get(str(submission.pk) if submission is not None else ALL, {})
    return Judges(
        counts.get("answers", 0),
        counts.get("agree"),
        evaluation is not None and _differ(evaluation.track),
        counts.get("twice", 0),
        counts.get("differ"),
        counts.get("people", 0),
        counts.get("of_unknown", 0),
        counts.get("largest", 0.0),
        counts.get("second", 0),
        counts.get("second_drawn", 0),
        counts.get("is_separable", True),
    )


def are_of_one_person(evaluation: Evaluation) -> bool:
    """Return whether one person gave more than half of the ratings of a board: it has no ranks."""
    return judges_of(evaluation).largest > MOST_OF_ONE


def _differ(track: Track) -> bool:
    """Whether single ratings count under a track's criterion."""
    criteria = {criterion.name: criterion for criterion in kind_of(track).criteria}
    return criteria[track.criterion].single == "mean"


def agreement(track: Track, data: Data, standing: set[int]) -> dict[str, dict[str, float | int]]:
    """Return what `judges_of` reads: for each system, and for all that stand on the board."""
    if not data.judged.size:
        return {}
    pool = data.pool
    code, first, row = np.unique(pool.target[data.judged], return_index=True, return_inverse=True)
    judged = (pool.member[data.judged].toarray() > 0) & ~np.isnan(data.f[track.criterion])
    predicted = np.zeros((code.size, len(data.systems)), dtype=np.bool_)
    np.logical_or.at(predicted, row, judged)
    which = {str(system): predicted[:, column] for column, system in enumerate(data.systems)}
    columns = [column for column, system in enumerate(data.systems) if system in standing]
    which[ALL] = np.asarray(predicted[:, columns].any(axis=1))
    if _differ(track):
        opinions = kind_of(track).opinions(pool.instance[data.judged[first]])
        apart = np.array([_apart(ratings) for ratings in opinions[track.criterion]])
        noise = data.noise[track.criterion].of(first)
        told = {
            name: _mean_apart(apart[inside]) | _raters(noise, inside) | _second(noise, inside)
            for name, inside in which.items()
        }
    else:
        answers, against = answers_about(pool.target_id[code], class_of(track.kind))
        told = {name: _share(answers, against, inside) for name, inside in which.items()}
    return {name: share for name, share in told.items() if share}


def coarse(
    agreed: dict[str, dict[str, float | int]],
) -> dict[str, dict[str, float | int]]:
    """Return agreement as it may be printed while the test part is hidden: shares to 1 %, counts of
    answers to the nearest 10.
    """
    return {
        name: {
            field: value
            if field in ("people", "is_separable")
            else round(value, 2)
            if isinstance(value, float)
            else round(value, -1)
            for field, value in counts.items()
        }
        for name, counts in agreed.items()
    }


def _apart(ratings: Sequence[float]) -> float:
    """How far two ratings of one thing lie apart, the mean over all pairs; NaN without two."""
    if len(ratings) < 2:
        return nan
    return mean(abs(one - other) for one, other in combinations(ratings, 2))


def _mean_apart(apart: Floats) -> dict[str, float | int]:
    known = apart[~np.isnan(apart)]
    return {"twice": known.size, "differ": float(known.mean())} if known.size else {}


def _raters(noise: Noise, which: Bools) -> dict[str, float | int]:
    """How many people rated some of the instances, and how many ratings are of unknown ones.
    Nothing of pairs: who prefers one of two texts has no level.
    """
    if noise.lowers is not None:
        return {}
    known = noise.single.judge[which[noise.single.at]]
    given, n = np.unique(known, return_counts=True)[1], int(noise.count[which].sum())
    if not n:
        return {}
    largest = float(given.max(initial=0)) / n
    return {"people": given.size, "of_unknown": n - known.size, "largest": largest}


def _second(noise: Noise, which: Bools) -> dict[str, float | int]:
    """Return how many second opinions there are of some of the instances, and how many of these
    were drawn at random.
    """
    second = np.maximum(noise.count - 1, 0) * which
    if not noise.count[which].any():
        return {}
    drawn = second if noise.within is None else second[~np.isnan(noise.within)]
    return {
        "second": int(second.sum()),
        "second_drawn": int(drawn.sum()),
        "is_separable": noise.is_separable,
    }


def _share(answers: Floats, against: Floats, which: Bools) -> dict[str, float | int]:
    n = float(answers[which].sum())
    return {"answers": round(n), "agree": 1 - float(against[which].sum()) / n} if n else {}


def answers_about(ids: Ids, kind: type[Kind]) -> tuple[Floats, Floats]:
    """Return of each target how many answers its judgment is made of, and how many of them differ
    from their majority: of what people were asked in all questions about it, else of what readers
    of its document marked. 0 where one person alone, an expert or a gold standard said it.
    """
    answers, against = np.zeros(ids.size), np.zeros(ids.size)
    for target, source, labels in _labels(ids):
        place, n = int(np.searchsorted(ids, target)), sum(label.said.n for label in labels)
        if n > 1 and (source == Label.Source.CROWD or not answers[place]):
            differ = None
            if source == Label.Source.CROWD and len(labels) > 1:
                differ = kind.differing([label.said for label in labels])
            if differ is None:
                against[place] = sum(label.said.n * label.disagreement for label in labels)
            else:
                against[place] = differ
            answers[place] = n
    return answers, against


class _Kept(NamedTuple):
    """A label that stands."""

    said: Said
    disagreement: float


def _labels(ids: Ids) -> Iterator[tuple[int, str, list[_Kept]]]:
    """Target and source, the crowd's first, with the labels that stand: the newest of each
    question.
    """
    rows = Label.objects.filter(
        target__in=ids.tolist(), source__in=[Label.Source.CROWD, Label.Source.DOCUMENT]
    ).order_by("target_id", "source", "created_at", "pk")
    for (target, source), group in groupby(rows, key=lambda row: (row.target_id, row.source)):
        kept = [(_Kept(Said.of(row), row.disagreement), row.question, row.again) for row in group]
        judgments = [label for label in in_place(kept) if label.said.value]
        if judgments:
            yield target, source, newest_of((label, label.said.question) for label in judgments)
