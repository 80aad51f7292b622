"""Two systems side by side, over the API: public for those of the board; a token of their team is
needed for private runs.
"""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.utils.decorators import method_decorator
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from kbpo.evaluation.compare import Difference, differences
from kbpo.evaluation.leaderboard import NoBoard, compared_at
from kbpo.evaluation.models import Evaluation
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.web.api.answers import whole
from kbpo.web.api.parameters import BIGGEST, POPULATION, whole_number
from kbpo.web.api.tracks import public_track, view_for
from kbpo.web.api.view import APIView
from kbpo.web.expensive import expensive
from kbpo.web.public.compare import by_relation, overlap, permalink

WHY_HIDDEN = "Differences are shown once the track is closed."


@method_decorator(expensive, name="dispatch")
class Comparison(APIView):
    """How two systems differ: the differences of what the board prints, each with its interval; by
    relation, for all of them at once (`by_relation`); and what both predict or one alone, with the
    share of it that is right (`overlap`). While the test part is hidden there are none, and `why`
    says so. As it stands now, or as an evaluation or a day left it.
    """

    permission_classes = [AllowAny]

    @extend_schema(
        operation_id="compare",
        parameters=[
            whole("a", BIGGEST, "A submission of the board", required=True),
            whole("b", BIGGEST, "Another one", required=True),
            OpenApiParameter("distribution", str),
            OpenApiParameter("criterion", str),
            OpenApiParameter("population", str, description=POPULATION),
            whole("evaluation", BIGGEST, "As this evaluation left it"),
        ],
        responses=OpenApiTypes.OBJECT,
    )
    def get(self, request: Request, slug: str) -> Response:
        track = public_track(slug)
        first, second = (_system(request, track, name) for name in ("a", "b"))
        if first == second:
            raise ValidationError({"b": ["These are one and the same system."]})
        view = view_for(request, track)
        asked = {name: getattr(view, name) for name in ("distribution", "criterion", "population")}
        try:
            evaluation = compared_at(track, view.number)
        except NoBoard as problem:
            raise Http404(str(problem)) from problem
        if evaluation is None:
            raise Http404("Nothing on this track is scored yet.")
        return Response(
            {
                "a": _named(first),
                "b": _named(second),
                **asked,
                "evaluation": evaluation.number,
                "page": permalink(evaluation, view, first.pk, second.pk),
                "differences": [
                    _difference_as_json(
                        one, kind_of(track).measures.printed(one.quantity, view.criterion).label
                    )
                    for one in differences(evaluation, first.pk, second.pk, **asked)
                ],
                "by_relation": _by_relation(evaluation, first, second),
                "why": WHY_HIDDEN if track.hides_test else "",
                "overlap": [_part(part) for part in overlap(request, evaluation, first, second)],
            }
        )


def _system(request: Request, track: Track, name: str) -> Submission:
    """Return the submission that a parameter names. Raises ValidationError or Http404 with a
    sentence.
    """
    asked = whole_number(request, name, 0, least=1)
    if not asked:
        raise ValidationError({name: ["Which submission? Say its number."]})
    systems = (
        Submission.objects.compared_by(request.user).filter(track=track).select_related("team")
    )
    system = systems.filter(pk=asked).first()
    if system is None:
        raise Http404(f"Submission {asked} is not on this board, nor a private run of your team.")
    return system


def _named(submission: Submission) -> dict[str, Any]:
    return {
        "submission": submission.pk,
        "team": submission.public_team,
        "name": submission.public_name,
    }


def _by_relation(
    evaluation: Evaluation, first: Submission, second: Submission
) -> dict[str, Any] | None:
    """As the page has it: without relations of few judgments, which it counts; None where the
    evaluation kept nothing of this pair.
    """
    table = by_relation(evaluation, first, second)
    if table is None:
        return None
    records = []
    for difference, row in zip(table["differences"], table["rows"], strict=True):
        record = _difference_as_json(difference, row["name"])
        records.append({"name": record.pop("quantity"), **record})
    return {"least": table["least"], "left_out": table["left_out"], "differences": records}


def _part(part: dict[str, Any]) -> dict[str, Any]:
    """Return what both systems predict, or one of them alone; without a share the reason, in
    words.
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
