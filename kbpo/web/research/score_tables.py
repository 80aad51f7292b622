"""The tables of scores on a run's page, with expert corrections and sampling stages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.urls import reverse

from kbpo.evaluation.latest import Latest
from kbpo.evaluation.leaderboard import headline_figures
from kbpo.evaluation.models import Evaluation, Headline
from kbpo.sampling.designs.base import half_width_at
from kbpo.sampling.models import SampleBatch
from kbpo.submissions.models import Submission
from kbpo.tracks.measures import DEFAULT, UNWEIGHED, Quantity
from kbpo.tracks.models import Track
from kbpo.tracks.recall import kind_with_recall_or_none
from kbpo.tracks.registry import kind_of
from kbpo.web.components import drawing
from kbpo.web.components.drawing import Interval
from kbpo.web.public.board_files import bibtex
from scoring.report import Figure
from scoring.score import Key
from scoring.words import figure_text

SCOPES = {
    Track.Scope.SENTENCE: "within one sentence",
    Track.Scope.NEIGHBOURS: "within one sentence or two that follow each other",
    Track.Scope.DOCUMENT: "anywhere in one document",
}
"""Scope -> the distance of the two mentions within which recall counts a fact."""


STAGE_REASONS = {
    "target": "until the ordered interval is expected",
    "further": "further, as these were asked already",
    "budget": "as far as the money sufficed",
}
"""Reason for the end of a stage -> its description."""


def score_tables(latest: Latest, interim: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return a table of scores for each criterion, the guaranteed one first. `interim` is the
    interim interval while the run is judged.
    """
    submission, figures = latest.submission, latest.figures
    kind, guaranteed = kind_of(submission.track), submission.track.criterion
    interim = interim if submission.status != "scored" else None
    criteria = {criterion for _, criterion, _, _ in figures}
    has_recall = {key[1] for key in figures if not kind.measures.quantity(key[0]).weighed}
    scope = SCOPES[Track.Scope(submission.track.scope)] if has_recall else ""
    result: list[dict[str, Any]] = []
    for criterion in sorted(criteria, key=lambda name: (name != guaranteed, name)):
        rows = _score_rows(submission, figures, criterion, interim)
        rests_on = [  # judgments that the interim interval uses, and all judgments
            {"n": interim["now"].n, "now": row["figure"].n_labels}
            for row in rows
            if interim is not None and row["safe"] and interim["now"].n < row["figure"].n_labels
        ]
        result.append(
            {
                "name": kind.measures.criterion(criterion).label,
                "criterion": criterion,
                "rows": rows,
                "axis": drawing.axis_over(row["interval"] for row in rows),
                "scope": scope if criterion in has_recall else "",
                "watched": any(row["safe"] for row in rows),
                "rests_on": next(iter(rests_on), None),
                "has_few": any(
                    row["kind"] == "few" and row["interval"].estimate is not None for row in rows
                ),
                "holds_for": kind.words.populations.get(kind.measures.population, ""),
                "n_missing": rows[0]["figure"].n_missing if rows else 0,
            }
        )
    return result


def _score_rows(
    submission: Submission,
    figures: dict[tuple[str, str, str, str], Figure],
    criterion: str,
    interim: dict[str, Any] | None,
) -> list[dict[str, Any]]:
    """Return the rows of a criterion's table, each followed by its expert correction. Intervals are
    provisional until judging ends.
    """
    track, rows = submission.track, list[dict[str, Any]]()
    for key, label in _line_labels(track, criterion):
        if (*key, DEFAULT) not in figures:
            continue
        for method, name in ((DEFAULT, label), ("expert", f"{label}, corrected")):
            if (figure := figures.get((*key, method))) is None:
                continue
            row: dict[str, Any] = {
                "name": name,
                "figure": figure,
                "interval": drawing.Interval.from_figure(figure),
                "safe": False,
                "guaranteed": method == DEFAULT
                and key == (kind_of(track).measures.mean, track.criterion, track.distribution),
                "kind": "few" if figure.has_few_judgments else "final",
            }
            if submission.status != "scored":
                row["kind"] = "moment"
            if row["guaranteed"] and interim is not None:
                row |= {"interval": interim["interval"], "safe": True, "kind": "live"}
            rows.append(row)
    return rows


def _line_labels(track: Track, criterion: str) -> Iterator[tuple[Key, str]]:
    """Yield the keys of the table's rows with their labels; F1 names its precision."""
    kinds = sorted(track.distributions, key=lambda kind: kind != track.distribution)
    of_track = kind_of(track)
    for quantity in of_track.measures.quantities:
        if quantity.name == of_track.measures.mean:
            label = of_track.measures.quantity_as_printed(quantity.name, criterion).label
            for kind in kinds:
                weighed = of_track.measures.distributions[kind].label.lower()
                yield (quantity.name, criterion, kind), f"{label}, {weighed}"
        elif quantity.weighed:
            weighed = of_track.measures.distributions[track.distribution].label.lower()
            name = f"{quantity.label} of recall and precision, {weighed}"
            yield (quantity.name, criterion, track.distribution), name
        else:
            yield (quantity.name, criterion, UNWEIGHED), quantity.label


def reasons_not_corrected(latest: Latest) -> list[str]:
    """Return sentences on why scores are not corrected by expert checks; empty without checks."""
    return list(latest.report.not_corrected.get(latest.submission.pk, ()))


def expert_correction(latest: Latest) -> dict[str, Any] | None:
    """Return the guaranteed score with and without expert correction; None without checks."""
    corrected = latest.guaranteed("expert")
    if corrected is None:
        return None
    has_recall = kind_with_recall_or_none(latest.submission.track) is not None
    return {"figure": corrected, "crowd": latest.guaranteed(), "has_recall": has_recall}


def sampling_stages(submission: Submission) -> dict[str, Any] | None:
    """Return the sampling stages of a submission; None before the first draw."""
    batches: QuerySet[Any] = (
        SampleBatch.objects.filter(submission=submission, design=submission.track.design)
        .select_related("distribution")
        .annotate(n=Count("samples"))
        .order_by("stage", "pk")
    )
    stages = [_stage_row(submission, stage, stage.n) for stage in batches]
    return {"design": submission.track.design, "stages": stages} if stages else None


def _stage_row(submission: Submission, batch: SampleBatch, targets: int) -> dict[str, Any]:
    """Return one stage: time, reason, size, planned and realised half-width."""
    settings = batch.settings
    planned, came_to = settings.get("planned_variance"), settings.get("came_to")
    return {
        "planned": round(half_width_at(submission, planned), 3) if planned else None,
        "came_to": None if came_to is None else round(came_to, 3),
        "number": batch.stage,
        "drawn_at": batch.drawn_at,
        "settled_at": batch.settled_at,
        "distribution": kind_of(submission.track)
        .measures.distributions[batch.distribution.kind]
        .label,
        "targets": targets,
        "size": batch.size,
        "why": STAGE_REASONS.get(settings.get("why", ""), ""),
        "labels": settings.get("labels", 0),
    }


MOST_POINTS = 200
"""Greatest number of evaluations on the plot; the latest are shown"""


@dataclass(frozen=True)
class History:
    """The main score of a run in each evaluation."""

    quantity: Quantity
    figures: list[tuple[Evaluation, Figure]]
    shown: Figure | None
    """The figure on the run's page, from its evaluation, even if it is provisional"""

    @property
    def points_over_time(self) -> list[tuple[Any, Interval]]:
        """Return the points of the plot."""
        return [
            (evaluation.made_at, Interval.from_figure(figure))
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
    headline = headline_figures(newest, [submission.pk]).get(submission.pk) if newest else None
    quantity = (
        headline[0]
        if headline
        else kind.measures.quantity_as_printed(
            kind.measures.headline(track.criterion), track.criterion
        )
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
            "bibtex": bibtex(key, title, submission.public_team, evaluation, permalink, cited),
            "permalink": permalink,
        }
    return context
