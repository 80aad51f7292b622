"""Stores an evaluation, and reduces the evaluations of its day that it replaces.

While people judge there is an evaluation every few seconds, each with thousands of figures. Readers
of a board may have noted its address, so the evaluation is kept with everything that the page
printed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime

from kbpo.evaluation.models import Evaluation, Headline
from kbpo.tracks.measures import UNWEIGHED
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from scoring.data import ENDINGS
from scoring.report import HEADLINE, Details, Report


def store_evaluation(
    evaluation: Evaluation, report: Report, details: Details, began: float
) -> None:
    """Save an evaluation with its report and its headlines. `began` is the monotonic time at which
    scoring began.
    """
    evaluation.set_report(report, details)
    evaluation.seconds = time.monotonic() - began
    evaluation.save()
    Headline.objects.bulk_create(headline_rows(evaluation), batch_size=2000)


def headline_rows(evaluation: Evaluation) -> Iterator[Headline]:
    """Yield a row for the headline figure and one for the mean of each submission, if the report
    has them.
    """
    track, report = evaluation.track, evaluation.report
    kind = kind_of(track)
    names = {kind.measures.headline(track.criterion), kind.measures.mean}
    for submission in {key.submission for key in report.figures}:
        for name in names:
            distribution = track.distribution if kind.measures.quantity(name).weighed else UNWEIGHED
            method = kind.measures.column_of(name).method
            figure = report.figure(submission, name, track.criterion, distribution, method)
            if figure is not None and figure.value is not None:
                of = {"submission_id": submission, "quantity": name}
                yield Headline(evaluation=evaluation, **of, **figure.as_json(HEADLINE))


def reduce_evaluations_since(track: Track, moment: datetime) -> None:
    """Reduce evaluations to what the board printed: those since a moment, except evaluations that
    ended a stage.
    """
    for evaluation in track.evaluations.with_full_report().filter(
        stage_end=False, made_at__gte=moment
    ):
        reduce_to_board(evaluation)
        evaluation.save()
        evaluation.headlines.all().delete()


def reduce_to_board(evaluation: Evaluation) -> None:
    """Reduce a complete evaluation to what the board printed, without saving it."""
    columns = {
        (column.quantity, f"{column.method}{population}")
        for column in kind_of(evaluation.track).measures.columns
        for population in ("", *ENDINGS.values())
    }
    evaluation.set_report(evaluation.report.reduce_to(columns, evaluation.standing), Details())
    evaluation.is_reduced = True
