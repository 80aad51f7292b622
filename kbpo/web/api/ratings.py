"""The single judgments of a track's texts over the API, in and out."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import IO, Any, cast

from django.http import Http404, HttpResponseBase
from django.utils.decorators import method_decorator
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.parsers import BaseParser, MultiPartParser
from rest_framework.permissions import AllowAny, BasePermission, IsAdminUser
from rest_framework.request import Request
from rest_framework.response import Response

from formats.messages import Report
from kbpo.accounts.models import User
from kbpo.tracks.models import Track
from kbpo.tracks.texts.judgments import CannotImport
from kbpo.web.api.answers import declined
from kbpo.web.api.errors import Refused
from kbpo.web.api.parameters import one_of
from kbpo.web.api.tracks import public_track
from kbpo.web.api.view import APIView
from kbpo.web.desk.judgments import bring, judgment_file
from kbpo.web.expensive import export

TOLD = 100
"""Messages that an answer holds"""


class Plain(BaseParser):
    """The file as the body."""

    media_type = "*/*"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        return stream.read()


@method_decorator(export, name="get")
class TrackJudgments(APIView):
    """All single judgments of a track's texts: input_id, system, worker, prompt, value, seconds.
    Admins read and import them; everybody reads those of a closed track's board, by the names that
    runs have there.
    """

    parser_classes = [MultiPartParser, Plain]

    def get_permissions(self) -> list[BasePermission]:
        return [IsAdminUser() if self.request.method == "POST" else AllowAny()]

    @extend_schema(
        operation_id="get_track_judgments",
        responses={(200, "text/tab-separated-values"): OpenApiTypes.STR, **declined(409)},
    )
    def get(self, request: Request, slug: str) -> HttpResponseBase:
        track = public_track(slug)
        if track.status != Track.Status.CLOSED and not request.user.is_staff:
            raise Http404("Its judgments are for admins alone until the track is closed.")
        try:
            return judgment_file(track, public=not request.user.is_staff)
        except CannotImport as no:
            raise Refused(str(no), "kind") from no

    @extend_schema(
        operation_id="import_track_judgments",
        parameters=[
            OpenApiParameter("partly", str, enum=["0", "1"], description="1: good lines only")
        ],
        request={"text/tab-separated-values": OpenApiTypes.STR},
        responses={200: OpenApiTypes.OBJECT, **declined(422)},
    )
    def post(self, request: Request, slug: str) -> Response:
        track, report = public_track(slug), Report()
        body = request.data if isinstance(request.data, bytes) else None
        sent = io.BytesIO(body) if body is not None else request.FILES.get("file")
        if sent is None:
            raise Refused("Send the file as the body, or as the field “file”.", "empty", 400)
        partly = one_of(request, "partly", ("0", "1"), "0") == "1"
        try:
            done = bring(track, sent, report, cast(User, request.user), partly=partly)
        except CannotImport as no:
            raise Refused(str(no), "refused", 422, problems=_messages_as_json(report)) from no
        counts = {
            "judgments": done.judgments,
            "texts": done.texts,
            "known": done.known,
            "set_aside": done.set_aside,
        }
        return Response(counts | {"problems": _messages_as_json(report)})


def _messages_as_json(report: Report) -> list[dict[str, object]]:
    """Return the first messages of a report, for programs."""
    return [
        {
            "line": message.line,
            "severity": message.severity,
            "code": message.code,
            "text": message.text,
        }
        for message in list(report)[:TOLD]
    ]
