"""What people said of a submission's predictions, over the API: for those who may see it."""

from __future__ import annotations

from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from kbpo.web.api.submissions import find, page_of
from kbpo.web.research.judged import (
    VERDICTS,
    describe,
    may_see,
    only_public,
    verdicts,
)

NOT_YET = (
    "Judgments are shown once the submission's sample is drawn, and not after it is withdrawn."
)


class Judgments(APIView):
    """The judged predictions of a submission of yours, each part right or wrong, in pages. Before
    its own sample is answered these are the ones that were asked for it.
    """

    permission_classes = [IsAuthenticated]

    @extend_schema(
        operation_id="list_judgments",
        parameters=[
            OpenApiParameter("verdict", str, enum=list(VERDICTS)),
            OpenApiParameter("predicate", str),
            OpenApiParameter("limit", int),
            OpenApiParameter("offset", int),
        ],
        responses=OpenApiTypes.OBJECT,
    )
    def get(self, request: Request, pk: int) -> Response:
        submission = find(request, pk)
        if not may_see(request.user, submission):
            raise Http404(NOT_YET)
        verdict = request.query_params.get("verdict", "all")
        if verdict not in VERDICTS:
            raise ValidationError(
                {"verdict": [f"{verdict[:40]!r} is not one of {', '.join(VERDICTS)}."]}
            )
        predicate = request.query_params.get("predicate", "")
        public = only_public(request.user, submission)
        said = verdicts(submission, public=public)
        chosen = [
            prediction
            for prediction, right, name in zip(said.prediction, said.value, said.group, strict=True)
            if (not predicate or name == predicate)
            and (verdict == "all" or right == float(verdict == "right"))
        ]
        pages, page = page_of(chosen, request, self)
        judged = describe(submission, page, public=public)
        return pages.get_paginated_response([judgment.as_json() for judgment in judged])
