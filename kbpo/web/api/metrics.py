"""What metrics, judges and questions are worth, over the API: the tables of the page."""

from __future__ import annotations

from django.urls import reverse
from django.utils.decorators import method_decorator
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from kbpo.tracks.registry import kind_of
from kbpo.web.api.answers import page_of_list
from kbpo.web.api.parameters import one_of
from kbpo.web.api.submissions import PAGING, listed
from kbpo.web.api.tracks import public_track
from kbpo.web.api.view import APIView
from kbpo.web.expensive import expensive
from kbpo.web.public.metric_tables import FIGURES, table_of, worth_under


@method_decorator(expensive, name="dispatch")
class Metrics(APIView):
    """What the metrics and judges of a track are worth, and what limits it: a table of the page,
    as in its CSV file, with the same columns. `worth` is that of each metric (with correlations and
    PRMSE) and of all together; `prompts` what each question is worth; `systems` tells of each
    system; `width` and `judgments` of how many judgments a system needs. Before the first
    evaluation the number of it is null.
    """

    permission_classes = [AllowAny]

    @extend_schema(
        operation_id="list_metrics",
        parameters=[
            OpenApiParameter(
                "figure", str, enum=list(FIGURES), description="`worth` where nothing is said"
            ),
            OpenApiParameter(
                "criterion", str, description="Else that by which the track is ranked"
            ),
            *PAGING,
        ],
        responses={200: page_of_list()},
    )
    def get(self, request: Request, slug: str) -> Response:
        track = public_track(slug)
        kind = kind_of(track)
        figure = one_of(request, "figure", FIGURES, "worth")
        criterion = one_of(request, "criterion", kind.measures.criterion_names(), track.criterion)
        evaluation = track.evaluations.order_by("-number").first()
        answer = listed(table_of(kind, evaluation, criterion, figure), request, self)
        stored = worth_under(evaluation, criterion)
        answer.data |= {
            "figure": figure,
            "criterion": criterion,
            "evaluation": evaluation.number if evaluation else None,
            "rated": stored.rated,
            "judgments": stored.judgments,
            "page": reverse("metrics", args=[slug]),
        }
        return answer
