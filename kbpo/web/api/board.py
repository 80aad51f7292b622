"""API: boards, comparisons of two systems, and the worth of metrics."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.urls import reverse
from django.utils.decorators import method_decorator
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from kbpo.evaluation.compare import Difference, compute_differences
from kbpo.evaluation.leaderboard import NoBoard, evaluation_to_compare
from kbpo.evaluation.models import Evaluation
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.web.api.answers import page_schema, whole_number_parameter
from kbpo.web.api.view import (
    BIGGEST,
    PAGING,
    POPULATION,
    PublicView,
    list_table,
    option_in,
    whole_number,
)
from kbpo.web.expensive import limit_concurrency
from kbpo.web.http import public_track
from kbpo.web.public.board_files import board_as_json
from kbpo.web.public.board_view import NoView, View, board_for_view, parse_view
from kbpo.web.public.compare import differences_table, overlap_parts, permalink
from kbpo.web.public.metrics import FIGURES, metric_table, metric_worth_under


def board_view_for(request: Request, track: Track) -> View:
    """Return the view that the query parameters select. Raises ValidationError."""
    try:
        return parse_view(request.query_params, track)
    except NoView as problem:
        raise ValidationError({problem.name: [str(problem)]}) from problem


@method_decorator(limit_concurrency, name="dispatch")
class BoardDetail(PublicView):
    """The leaderboard of a track, with the figures of its page; by default the guaranteed view.

    `targets` of the evaluation counts all targets with an outcome: answered, without an answer, or
    found in documents read in full. The number of judgments on the page is smaller.
    """

    @extend_schema(
        operation_id="get_board",
        parameters=[
            *(OpenApiParameter(name, str) for name in ("distribution", "criterion", "sort")),
            OpenApiParameter("population", str, description=POPULATION),
            whole_number_parameter("evaluation", BIGGEST, "An earlier evaluation"),
        ],
        responses=OpenApiTypes.OBJECT,
    )
    def get(self, request: Request, slug: str) -> Response:
        track = public_track(slug)
        view = board_view_for(request, track)
        try:
            shown = board_for_view(track, view)
        except NoBoard as problem:
            raise NotFound(str(problem)) from problem
        return Response(board_as_json(shown))


WHY_HIDDEN = "Differences are shown once the track is closed."


@method_decorator(limit_concurrency, name="dispatch")
class Comparison(PublicView):
    """The differences between two systems: of the board's figures, each with its interval; by
    relation, with simultaneous intervals (`by_relation`); and what both or one of them predict,
    with the share that is right (`overlap`). While the test part is hidden there are none, and
    `why` gives the reason. `evaluation` selects an earlier evaluation.
    """

    @extend_schema(
        operation_id="compare",
        parameters=[
            whole_number_parameter("a", BIGGEST, "A submission on the board", required=True),
            whole_number_parameter("b", BIGGEST, "Another one", required=True),
            OpenApiParameter("distribution", str),
            OpenApiParameter("criterion", str),
            OpenApiParameter("population", str, description=POPULATION),
            whole_number_parameter("evaluation", BIGGEST, "An earlier evaluation"),
        ],
        responses=OpenApiTypes.OBJECT,
    )
    def get(self, request: Request, slug: str) -> Response:
        track = public_track(slug)
        first, second = (_find_system(request, track, name) for name in ("a", "b"))
        if first == second:
            raise ValidationError({"b": ["Both are the same system."]})
        view = board_view_for(request, track)
        asked = {name: getattr(view, name) for name in ("distribution", "criterion", "population")}
        try:
            evaluation = evaluation_to_compare(track, view.number)
        except NoBoard as problem:
            raise Http404(str(problem)) from problem
        if evaluation is None:
            raise Http404("Nothing on this track is scored yet.")
        return Response(
            {
                "a": _system_as_json(first),
                "b": _system_as_json(second),
                **asked,
                "evaluation": evaluation.number,
                "page": permalink(evaluation, view, first.pk, second.pk),
                "differences": [
                    _difference_as_json(
                        one,
                        kind_of(track)
                        .measures.quantity_as_printed(one.quantity, view.criterion)
                        .label,
                    )
                    for one in compute_differences(evaluation, first.pk, second.pk, **asked)
                ],
                "by_relation": _by_relation_as_json(evaluation, first, second),
                "why": WHY_HIDDEN if track.hides_test else "",
                "overlap": [
                    _overlap_as_json(part)
                    for part in overlap_parts(request, evaluation, first, second)
                ],
            }
        )


def _find_system(request: Request, track: Track, name: str) -> Submission:
    """Return the submission in a parameter. Raises ValidationError or Http404 with a sentence."""
    asked = whole_number(request, name, 0, minimum=1)
    if not asked:
        raise ValidationError({name: ["Name a submission by its number."]})
    systems = (
        Submission.objects.comparable_by(request.user).filter(track=track).select_related("team")
    )
    system = systems.filter(pk=asked).first()
    if system is None:
        raise Http404(f"Submission {asked} is not on this board, nor a private run of your team.")
    return system


def _system_as_json(submission: Submission) -> dict[str, Any]:
    return {
        "submission": submission.pk,
        "team": submission.public_team,
        "name": submission.public_name,
    }


def _by_relation_as_json(
    evaluation: Evaluation, first: Submission, second: Submission
) -> dict[str, Any] | None:
    """Return the differences by relation, without relations with few judgments; None if the
    evaluation stored nothing for this pair.
    """
    table = differences_table(evaluation, first, second)
    if table is None:
        return None
    records = []
    for difference, row in zip(table["differences"], table["rows"], strict=True):
        record = _difference_as_json(difference, row["name"])
        records.append({"name": record.pop("quantity"), **record})
    return {"least": table["least"], "left_out": table["left_out"], "differences": records}


def _overlap_as_json(part: dict[str, Any]) -> dict[str, Any]:
    """Return the predictions of both systems or one alone, with the share that is right or the
    reason why it is hidden.
    """
    share = part["share"]
    return {
        "of": part["key"],
        "n": part["n"],
        "criterion": part["criterion"],
        "share": share and {"value": share.estimate, "low80": share.low80, "high80": share.high80},
        "judged": part.get("judged"),
        "why": part.get("why", ""),
    }


def _difference_as_json(difference: Difference, label: str) -> dict[str, Any]:
    """Return a difference as JSON: both figures, the first minus the second, and its intervals."""
    return {
        "quantity": difference.quantity,
        "label": label,
        "a": difference.first.as_json(),
        "b": difference.second.as_json(),
        "difference": difference.value,
        "error": difference.error,
        "low80": difference.low80,
        "high80": difference.high80,
        "low95": difference.low95,
        "high95": difference.high95,
        "told_apart": difference.told_apart,
    }


@method_decorator(limit_concurrency, name="dispatch")
class Metrics(PublicView):
    """The worth of the metrics and judges of a track: one table of the page, with columns of its
    CSV file. `worth` has each metric (with correlations and PRMSE) and all together; `prompts` each
    question; `systems` each system; `width` and `judgments` the number of judgments that a system
    needs. `evaluation` is null before the first evaluation.
    """

    @extend_schema(
        operation_id="list_metrics",
        parameters=[
            OpenApiParameter("figure", str, enum=list(FIGURES), description="By default `worth`"),
            OpenApiParameter(
                "criterion", str, description="By default the one that ranks the track"
            ),
            *PAGING,
        ],
        responses={200: page_schema()},
    )
    def get(self, request: Request, slug: str) -> Response:
        track = public_track(slug)
        kind = kind_of(track)
        figure = option_in(request, "figure", FIGURES, "worth")
        criterion = option_in(
            request, "criterion", kind.measures.criterion_names(), track.criterion
        )
        evaluation = track.evaluations.order_by("-number").first()
        answer = list_table(metric_table(kind, evaluation, criterion, figure), request, self)
        stored = metric_worth_under(evaluation, criterion)
        answer.data |= {
            "figure": figure,
            "criterion": criterion,
            "evaluation": evaluation.number if evaluation else None,
            "rated": stored.rated,
            "judgments": stored.judgments,
            "page": reverse("metrics", args=[slug]),
        }
        return answer
