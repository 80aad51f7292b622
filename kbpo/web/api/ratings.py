"""The single judgments of a track's texts over the API."""

from __future__ import annotations

from django.http import Http404, HttpResponseBase
from django.utils.decorators import method_decorator
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from kbpo.tracks.models import Track
from kbpo.tracks.texts.judgments import CannotImport
from kbpo.web.api.answers import declined
from kbpo.web.api.errors import Refused
from kbpo.web.api.tracks import public_track
from kbpo.web.api.view import PublicView
from kbpo.web.desk.judgments import judgment_file
from kbpo.web.expensive import export


@method_decorator(export, name="get")
class TrackJudgments(PublicView):
    """All single judgments of a track's texts: input_id, system, worker, prompt, value, seconds.
    Everybody reads those of a closed track's board, by the names that runs have there; admins all.
    """

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
