"""Every rated thing as a point, the best single metric against people: of those alone whose
judgments everybody may see, for a team knows which point is its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from django.core.cache import cache
from django.utils.safestring import SafeString

from kbpo import clock
from kbpo.instances.models import Label
from kbpo.scores.models import Scorer
from kbpo.scores.read import read_scores
from kbpo.submissions.models import Prediction, Submission
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.texts.ratings import rated, targets_of
from kbpo.web.components import drawing, plots
from kbpo.web.public.judge_only import against_people
from scoring.report import Scorer as Scored

MOST = 500
"""Points that are drawn"""
KEPT_SECONDS = 60
"""So often at most all predictions of a board are read for those who look at this page"""
FEWEST = 3


@dataclass(frozen=True)
class Point:
    """One output: what the metric and what people say of it."""

    system: str
    score: float
    people: float


def points_of(kind: Kind, criterion: str, scorer: Scored | None) -> list[Point]:
    """The rated outputs of systems on the board, as far as their judgments are public; as they were
    a minute ago at most.
    """
    if not kind.rates or kind.opposes or scorer is None or scorer.id is None:
        return []
    public = Label.objects.filter(target__corpus=kind.track.corpus_id, public_at__lte=clock.now())
    if not public.exists():
        return []
    key = f"points.{kind.track.pk}.{criterion}.{scorer.id}"
    read = partial(_points, kind, criterion, scorer.id)
    points: list[Point] = cache.get_or_set(key, read, KEPT_SECONDS) or []
    return points


def _points(kind: Kind, criterion: str, scorer: int) -> list[Point]:
    board = Submission.objects.filter(track=kind.track).on_board().select_related("team")
    circular = [metric.name for metric in kind.metrics if metric.circular]
    if Scorer.objects.filter(pk=scorer, source="computed", name__in=circular).exists():
        board = board.exclude(role=Submission.Role.REFERENCE)
    names = {row.pk: row.full_name for row in board}
    predicted = list(
        Prediction.objects.filter(submission__in=names)
        .order_by("instance_id", "submission_id")
        .values_list("instance_id", "submission_id")
    )
    instances = np.unique(np.array([instance for instance, _ in predicted], dtype=np.int64))
    targets = dict(zip(instances.tolist(), targets_of(instances).tolist(), strict=True))
    rating_of = rated(set(targets.values()), public=True)
    scores = read_scores(kind.track, instances, [scorer]).value[:, 0]
    score_of = dict(zip(instances.tolist(), scores.tolist(), strict=True))
    asked = next(question for question in kind.measures.criteria if question.name == criterion)
    points = [
        Point(names[submission], score_of[instance], rating_of[targets[instance]].value(asked))
        for instance, submission in predicted
        if targets[instance] in rating_of
    ]
    return [point for point in points if not np.isnan([point.score, point.people]).any()]


def draw_points(points: list[Point], label: str, criterion: str) -> SafeString | str:
    """People against the metric, brought to their mean and spread;
    nothing where all say the same.
    """
    if len(points) < FEWEST:
        return ""
    score, people = (
        np.array([getattr(point, name) for point in points]) for name in ("score", "people")
    )
    if not score.std() or not people.std():
        return ""
    slope = people.std() / score.std() * (1.0 if np.corrcoef(score, people)[0, 1] >= 0 else -1.0)
    across = np.clip(people.mean() + slope * (score - score.mean()), 0.0, 1.0)
    dots = [
        plots.Dot(point.system, float(x), point.people, is_named=False)
        for point, x in zip(points[:MOST], across, strict=False)
    ]
    axis = drawing.Axis(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0))
    return against_people(dots, axis, label, criterion, "output")
