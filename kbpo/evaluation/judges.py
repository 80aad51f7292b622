"""Measures the error of judgments: agreement among people, and corrections by experts.

An interval covers sampling error only. Errors of the crowd are visible in two ways: people who were
asked the same question disagree, and experts who check a random part contradict them. Agreement is
shown next to every score; the checks correct scores (`correction.py`), and only then the error is
in an interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, groupby
from math import nan
from statistics import mean
from typing import NamedTuple

import numpy as np

from kbpo.evaluation.models import Evaluation
from kbpo.instances.merge import Statement, count_dissenters, newest_labels, unreplaced_labels
from kbpo.instances.models import STAGED, Label
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from scoring.arrays import Bools, Floats, Ids
from scoring.data import Data, Noise
from scoring.report import Judges

MOST_OF_ONE = 0.5
"""Share of the ratings by one person beyond which systems are not ranked"""


def judge_statistics(evaluation: Evaluation | None, submission: Submission | None = None) -> Judges:
    """Return the agreement statistics of the annotators behind a submission's number, or behind the
    whole board.
    """
    if evaluation is None:
        return Judges()
    report = evaluation.report
    if submission is None:
        judges = report.board_judges
    else:
        judges = report.judges.get(submission.pk, Judges())
    return replace(judges, in_interval=_uses_ratings(evaluation.track))


def have_single_raters(evaluation: Evaluation) -> bool:
    """Return whether one person gave more than half of the ratings; such a board has no ranks."""
    return judge_statistics(evaluation).largest > MOST_OF_ONE


def _uses_ratings(track: Track) -> bool:
    """Return whether single ratings count under a track's criterion."""
    criteria = {criterion.name: criterion for criterion in kind_of(track).measures.criteria}
    return criteria[track.criterion].single == "mean"


def measure_agreement(
    track: Track, data: Data, board_submissions: set[int]
) -> tuple[Judges, dict[int, Judges]]:
    """Return the agreement statistics of the whole board, and of each system."""
    if not data.judged.size:
        return Judges(), {}
    pool = data.pool
    code, first, row = np.unique(pool.target[data.judged], return_index=True, return_inverse=True)
    judged = (pool.member[data.judged].toarray() > 0) & ~np.isnan(data.f[track.criterion])
    predicted = np.zeros((code.size, len(data.systems)), dtype=np.bool_)
    np.logical_or.at(predicted, row, judged)
    if _uses_ratings(track):
        noise = data.noise[track.criterion].select_instances(first)
        apart = np.array([_mean_pair_distance(ratings) for ratings in noise.opinions])

        def agreement_of_instances(instance_mask: Bools) -> Judges:
            told = (
                _distance_figures(apart[instance_mask])
                | _count_raters(noise, instance_mask)
                | _count_second_opinions(noise, instance_mask)
            )
            return Judges(**told)  # type: ignore[arg-type]
    else:
        answers, against = count_answers_and_dissent(pool.target_id[code])

        def agreement_of_instances(instance_mask: Bools) -> Judges:
            n = float(answers[instance_mask].sum())
            return Judges(round(n), 1 - float(against[instance_mask].sum()) / n) if n else Judges()

    columns = [column for column, system in enumerate(data.systems) if system in board_submissions]
    return agreement_of_instances(np.asarray(predicted[:, columns].any(axis=1))), {
        system: agreement_of_instances(predicted[:, column])
        for column, system in enumerate(data.systems)
    }


def _mean_pair_distance(ratings: Sequence[float]) -> float:
    """Return the mean absolute difference over all pairs of ratings; NaN with fewer than two."""
    if len(ratings) < 2:
        return nan
    return mean(abs(one - other) for one, other in combinations(ratings, 2))


def _distance_figures(distances: Floats) -> dict[str, float | int]:
    known = distances[~np.isnan(distances)]
    return {"twice": known.size, "differ": float(known.mean())} if known.size else {}


def _count_raters(noise: Noise, instance_mask: Bools) -> dict[str, float | int]:
    """Return how many people rated the instances, and how many ratings have no known author. Empty
    for comparisons of two texts.
    """
    if noise.lowers is not None:
        return {}
    known = noise.single.judge[instance_mask[noise.single.at]]
    given, n = np.unique(known, return_counts=True)[1], int(noise.count[instance_mask].sum())
    if not n:
        return {}
    largest = float(given.max(initial=0)) / n
    return {"people": given.size, "of_unknown": n - known.size, "largest": largest}


def _count_second_opinions(noise: Noise, instance_mask: Bools) -> dict[str, float | int]:
    """Return how many second opinions the instances have, and how many of these were drawn at
    random.
    """
    second = np.maximum(noise.count - 1, 0) * instance_mask
    if not noise.count[instance_mask].any():
        return {}
    drawn = second if noise.within is None else second[~np.isnan(noise.within)]
    return {
        "second": int(second.sum()),
        "second_drawn": int(drawn.sum()),
        "is_separable": noise.is_separable,
    }


def count_answers_and_dissent(ids: Ids) -> tuple[Floats, Floats]:
    """Return the number of answers behind each target's judgment, and how many of them differ from
    the majority. Answers to questions have priority over marks of readers of the document. Both are
    0 if a single person, an expert or a gold standard gave the label. If a third person was asked
    only because two disagreed, only the first two answers are used.
    """
    answers, against = np.zeros(ids.size), np.zeros(ids.size)
    for target, source, labels in _current_labels_by_source(ids):
        place, n = int(np.searchsorted(ids, target)), sum(label.n for label in labels)
        if n > 1 and (source == Label.Source.CROWD or not answers[place]):
            differ = None
            if source == Label.Source.CROWD and len(labels) > 1:
                differ = count_dissenters([label.said for label in labels])
            if differ is None:
                against[place] = sum(label.n * label.disagreement for label in labels)
            else:
                asked = sum(label.said.n for label in labels)
                against[place] = differ if n == asked else min(differ, n / 2)
            answers[place] = n
    return answers, against


class _Kept(NamedTuple):
    """A label that no later label replaced, with the number of people behind it and their
    disagreement.
    """

    said: Statement
    n: int
    """Number of people who were asked independently of earlier answers"""
    disagreement: float


def _before_third_answer(label: Label) -> _Kept:
    if label.method == STAGED and label.n > 2:
        return _Kept(Statement.from_label(label), 2, 0.5)
    return _Kept(Statement.from_label(label), label.n, label.disagreement)


def _current_labels_by_source(ids: Ids) -> Iterator[tuple[int, str, list[_Kept]]]:
    """Yield each target, a source of labels, and that source's current labels, the crowd first."""
    rows = Label.objects.filter(
        target__in=ids.tolist(), source__in=[Label.Source.CROWD, Label.Source.DOCUMENT]
    ).order_by("target_id", "source", "created_at", "pk")
    for (target, source), group in groupby(rows, key=lambda row: (row.target_id, row.source)):
        kept = [(_before_third_answer(row), row.question, row.again) for row in group]
        judgments = [label for label in unreplaced_labels(kept) if label.said.value]
        if judgments:
            yield target, source, newest_labels((label, label.said.question) for label in judgments)
