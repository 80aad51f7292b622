"""What people said of a submission's predictions, over the API: for those who may see it."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from kbpo.submissions.tally import BANDS
from kbpo.tracks.registry import KINDS, class_of
from kbpo.web.api.submissions import find
from kbpo.web.research.explore import as_record, rows_of
from kbpo.web.research.explorer import SORTS, VERDICTS, Choice, Explorer, Unreadable, read_choice
from kbpo.web.research.judged import may_see, only_public

NOT_YET = (
    "Judgments are shown once the submission's sample is drawn, and not after it is withdrawn."
)
DEFAULT, MOST = 100, 500
FILTERS = [
    OpenApiParameter("verdict", str, enum=list(VERDICTS)),
    OpenApiParameter("part", str, description="Which part is wrong, as the kind of track calls it"),
    OpenApiParameter("votes", str, enum=["split"], description="Those who judged were divided"),
    OpenApiParameter(
        "who", str, enum=["alone"], description="No other system on the board says so"
    ),
    *(
        OpenApiParameter(facet.name, str, description=f"{facet.label}, on tracks of kind {kind}")
        for kind in KINDS
        for facet in class_of(kind).facets
    ),
    OpenApiParameter("confidence", str, enum=list(BANDS)),
    OpenApiParameter("q", str, description="Words of the text"),
    OpenApiParameter("document", str, description="Key of a document"),
    OpenApiParameter("sort", str, enum=list(SORTS)),
    OpenApiParameter("limit", int, description=f"{DEFAULT}; at most {MOST}"),
    OpenApiParameter("after", int, description="The page begins after this prediction"),
]


class Predictions(APIView):
    """The predictions of a submission of yours, each part right, wrong or not judged, in pages: as
    long as `next` is not null there are more. Before its own sample is answered only what was asked
    for it is told.
    """

    permission_classes = [IsAuthenticated]

    @extend_schema(
        operation_id="list_predictions", parameters=FILTERS, responses=OpenApiTypes.OBJECT
    )
    def get(self, request: Request, pk: int) -> Response:
        submission = find(request, pk)
        if not may_see(request.user, submission):
            raise Http404(NOT_YET)
        explorer = Explorer(submission, public=only_public(request.user, submission))
        try:
            choice = read_choice(request.query_params.dict(), submission)
        except Unreadable as wrong:
            raise ValidationError({wrong.field: [str(wrong)]}) from wrong
        page, _ = explorer.page(choice, _limit(request))
        following = _next(request, choice, page.after) if page.after else None
        rows = [as_record(row) for row in rows_of(explorer, page.ids)]
        return Response({"count": page.n, "next": following, "results": rows})


def _limit(request: Request) -> int:
    said: Any = request.query_params.get("limit", str(DEFAULT))
    if not (said.isascii() and said.isdecimal() and 0 < int(said) <= MOST):
        raise ValidationError({"limit": [f"{said[:40]!r} is not a number from 1 to {MOST}."]})
    return int(said)


def _next(request: Request, choice: Choice, after: int) -> str:
    limit = request.query_params.get("limit", "")
    query = choice.query(after=after, limit=limit)
    return request.build_absolute_uri(request.path + query)
