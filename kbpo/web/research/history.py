"""The scores of a run by evaluation, and how its score is cited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from kbpo.evaluation.latest import Latest
from kbpo.evaluation.leaderboard import headlines
from kbpo.evaluation.models import Evaluation, Headline
from kbpo.tracks.measures import Quantity
from kbpo.tracks.registry import kind_of
from kbpo.web.components.drawing import Interval
from kbpo.web.public import cite
from scoring.report import Figure
from scoring.words import figure_text

MOST_POINTS = 200
"""Evaluations on the plot: the latest"""


@dataclass(frozen=True)
class History:
    """The main score of a run in each evaluation."""

    quantity: Quantity
    figures: list[tuple[Evaluation, Figure]]
    shown: Figure | None
    """What the evaluation says whose figures stand on the run's page, be it provisional"""

    @property
    def moments(self) -> list[tuple[Any, Interval]]:
        """Return the points of the plot."""
        return [
            (evaluation.made_at, Interval.of(figure))
            for evaluation, figure in self.figures[-MOST_POINTS:]
        ]

    @property
    def finding(self) -> str:
        """Return the plot in words."""
        (first, was), (last, now) = self.figures[0], self.figures[-1]
        if first.number == last.number:
            return f"{self.quantity.label} is {figure_text(now)} in evaluation {last.number}."
        return (
            f"{self.quantity.label} was {figure_text(was)} in evaluation {first.number} and is"
            f" {figure_text(now)} in evaluation {last.number}."
        )


def run_history(latest: Latest) -> History | None:
    """Return the final scores of a run in all public evaluations (of a private run in all stored
    ones); None before the first.
    """
    submission, newest = latest.submission, latest.evaluation
    track, kind = submission.track, kind_of(submission.track)
    headline = headlines(newest, [submission.pk]).get(submission.pk) if newest else None
    quantity = (
        headline[0]
        if headline
        else kind.measures.printed(kind.measures.headline(track.criterion), track.criterion)
    )
    rows = Headline.objects.filter(submission=submission, quantity=quantity.name, kind="final")
    if submission.is_on_board:
        rows = rows.filter(evaluation__in=track.evaluations.listed().values("pk"))
    rows = rows.select_related("evaluation").defer(
        "evaluation__packed", "evaluation__packed_details"
    )
    figures = [(row.evaluation, row.figure) for row in rows.order_by("evaluation__number")]
    return History(quantity, figures, headline[1] if headline else None) if figures else None


def history_context(request: HttpRequest, latest: Latest) -> dict[str, Any]:
    """Return the history of a run and the citation of its current or last score; empty before the
    first score.
    """
    submission = latest.submission
    history = run_history(latest) if submission.has_score else None
    if history is None:
        return {}
    evaluation, figure = history.figures[-1]
    still = ""
    if latest.evaluation is not None and history.shown is not None:
        evaluation, figure = latest.evaluation, history.shown
        still = ", provisional" if submission.status != "scored" else ""
    cited = f"{history.quantity.label} {figure_text(figure)}{still}"
    context: dict[str, Any] = {"history": history, "evaluation": evaluation, "cited": cited}
    if submission.is_on_board:
        permalink = request.build_absolute_uri(
            reverse("evaluation", args=[submission.track.slug, evaluation.number])
        )
        title = f"{submission.full_name} on {submission.track.name}"
        key = f"{submission.track.slug}-{submission.pk}-{evaluation.number}"
        context |= {
            "bibtex": cite.bibtex(key, title, submission.public_team, evaluation, permalink, cited),
            "permalink": permalink,
        }
    return context
