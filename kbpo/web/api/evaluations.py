"""What was printed when, over the API: the evaluations of a track, and a run's scores over time."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from kbpo.evaluation.latest import Latest
from kbpo.web.api.answers import page_of_list
from kbpo.web.api.submissions import PAGING, page_of
from kbpo.web.api.tracks import public_track
from kbpo.web.api.view import APIView
from kbpo.web.public.board import withdrawn_from
from kbpo.web.research.history import history_of
from kbpo.web.research.submissions import find
from scoring.report import HEADLINE


class Evaluations(APIView):
    """The evaluations of a track at which the board has other runs than before, and the last of
    each day, the latest first, in pages; a board of any is had by its number. With them the runs
    that were withdrawn after they were scored.
    """

    permission_classes = [AllowAny]

    @extend_schema(
        operation_id="list_evaluations", parameters=PAGING, responses={200: page_of_list()}
    )
    def get(self, request: Request, slug: str) -> Response:
        track = public_track(slug)
        pages, page = page_of(track.evaluations.listed().order_by("-number"), request, self)
        answer = pages.get_paginated_response(
            [
                {
                    "number": evaluation.number,
                    "made_at": evaluation.made_at,
                    "systems": len(evaluation.standing),
                    "page": reverse("evaluation", args=[track.slug, evaluation.number]),
                }
                for evaluation in page
            ]
        )
        answer.data["withdrawn"] = [
            {"team": row.public_team, "name": row.public_name, "withdrawn_at": row.withdrawn_at}
            for row in withdrawn_from(track)
        ]
        return answer


class History(APIView):
    """What a run was ranked by in every evaluation that is kept, the first one first. Of yours, and
    of all on the board.
    """

    permission_classes = [AllowAny]

    @extend_schema(operation_id="get_history", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, pk: int) -> Response:
        submission = find(request, pk)
        history = history_of(Latest.of(submission)) if submission.has_score else None
        if history is None:
            raise Http404("This run has no score yet.")
        scores: list[dict[str, Any]] = [
            {"evaluation": evaluation.number, "made_at": evaluation.made_at}
            | figure.as_json(HEADLINE)
            for evaluation, figure in history.figures
        ]
        return Response({"quantity": history.quantity.name, "scores": scores})
