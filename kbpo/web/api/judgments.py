"""API: the predictions of a run with their judgments, disputes, and missed facts."""

from __future__ import annotations

from typing import cast

from django.http import Http404
from django.utils.decorators import method_decorator
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.desk.experts import MOST_NOTE
from kbpo.accounts.models import User
from kbpo.tracks.base import ENTITY
from kbpo.tracks.registry import KINDS, track_class
from kbpo.web.api.answers import page_schema, refusals, whole_number_parameter
from kbpo.web.api.view import (
    BIGGEST,
    PAGING,
    APIView,
    PublicView,
    RequestBody,
    page_limit,
    paginate,
    read_body,
    whole_number,
)
from kbpo.web.expensive import limit_concurrency
from kbpo.web.public.documents import may_see_readers
from kbpo.web.research.explore import (
    FINDERS,
    MISSED_SORTS,
    NOT_READ_YET,
    find_missed,
    missed_record,
    prediction_record,
    prediction_rows,
)
from kbpo.web.research.explorer import (
    SORTS,
    VERDICTS,
    Unreadable,
    explorer_for,
    filter_parameters,
    read_choice,
)
from kbpo.web.research.judged import dispute
from kbpo.web.research.submissions import find_run

DEFAULT, MOST = 100, 500
FACET_PARAMETERS = {
    facet.name: OpenApiParameter(
        facet.name, str, description=f"{facet.label}, on tracks of kind {kind}"
    )
    for kind in KINDS
    for facet in track_class(kind).facets
}
TEXT_PARAMETERS = [
    OpenApiParameter("q", str, description="Words of the text"),
    OpenApiParameter("document", str, description="Key of a document"),
]
FILTERS = [
    OpenApiParameter("verdict", str, enum=list(VERDICTS)),
    OpenApiParameter("part", str, description="Wrong part, by its name on the kind of track"),
    OpenApiParameter("votes", str, enum=["split"], description="People disagreed"),
    OpenApiParameter(
        "who", str, enum=["alone"], description="No other system on the board predicts it"
    ),
    *FACET_PARAMETERS.values(),
    *TEXT_PARAMETERS,
    OpenApiParameter(
        ENTITY,
        str,
        description="Name of the subject or object, or of what either refers to, or words of it",
    ),
    OpenApiParameter("sort", str, enum=list(SORTS)),
    whole_number_parameter("limit", MOST, f"By default {DEFAULT}"),
    whole_number_parameter("after", BIGGEST, "The page begins after this prediction"),
]


@method_decorator(limit_concurrency, name="dispatch")
class Predictions(PublicView):
    """The predictions of a submission with their judgments, in pages: there are more as long as
    `next` is not null. Before the track is closed you see your own runs, with only the judgments
    that were ordered for them until their sample is answered; then every run on the board.
    """

    @extend_schema(
        operation_id="list_predictions",
        parameters=FILTERS,
        responses={200: page_schema(previous=False, is_counted=False)},
    )
    def get(self, request: Request, pk: int) -> Response:
        explorer = explorer_for(request, pk)
        try:
            choice = read_choice(filter_parameters(request), explorer.submission, strict=True)
        except Unreadable as wrong:
            raise ValidationError({wrong.field: [str(wrong)]}) from wrong
        limit = page_limit(request, DEFAULT, MOST)
        whole_number(request, "after", 1, minimum=1)  # raises for what the schema does not know
        page, _ = explorer.page(choice, limit)
        following = None
        if page.after:
            query = choice.query_string(
                after=page.after, limit=request.query_params.get("limit", "")
            )
            following = request.build_absolute_uri(request.path + query)
        records = [prediction_record(row) for row in prediction_rows(explorer, page.ids)]
        return Response({"count": page.n, "next": following, "results": records})


class DisputeForm(RequestBody):
    """The reason of a dispute."""

    note = serializers.CharField(max_length=MOST_NOTE, help_text="What is wrong with the judgment")


class Dispute(APIView):
    """Dispute the judgment of one of your predictions: an expert judges it blind."""

    @extend_schema(
        operation_id="dispute",
        request=DisputeForm,
        responses={201: OpenApiTypes.OBJECT, **refusals(409)},
    )
    def post(self, request: Request, pk: int, prediction: int) -> Response:
        submission = find_run(request, pk, own_team_only=True)
        cleaned = read_body(DisputeForm, request)
        user = cast(User, request.user)
        row = dispute(user, submission, prediction, cleaned["note"])
        return Response({"prediction": prediction, "status": row.status}, status=201)


@method_decorator(limit_concurrency, name="dispatch")
class Missed(PublicView):
    """True facts of fully read documents that a submission does not predict: those that other
    systems predict (`missed`), or none does (`nobody`). Before the track is closed only admins see
    them; then everybody does, for every run on the board.
    """

    @extend_schema(
        operation_id="list_missed",
        parameters=[
            OpenApiParameter("who", str, enum=list(FINDERS), description="By default `missed`"),
            *(
                FACET_PARAMETERS[name]
                for kind in KINDS
                for name in getattr(track_class(kind), "found_facets", ())
            ),
            *TEXT_PARAMETERS,
            OpenApiParameter(
                ENTITY, str, description="Name of the subject or object, or words of it"
            ),
            OpenApiParameter("sort", str, enum=list(MISSED_SORTS)),
            *PAGING,
        ],
        responses={200: page_schema()},
    )
    def get(self, request: Request, pk: int) -> Response:
        explorer = explorer_for(request, pk)
        if not may_see_readers(request.user, explorer.submission.track):
            raise Http404(NOT_READ_YET)
        try:
            missed = find_missed(request.user, explorer, filter_parameters(request), strict=True)
        except Unreadable as wrong:
            raise ValidationError({wrong.field: [str(wrong)]}) from wrong
        pages, page = paginate(missed.listed, request, self)
        return pages.get_paginated_response([missed_record(*fact) for fact in page])
