"""All of a track as one file, over the API."""

from __future__ import annotations

from django.http import HttpResponseBase
from django.utils.decorators import method_decorator
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import Throttled
from rest_framework.permissions import AllowAny
from rest_framework.request import Request

from kbpo.web.api.view import APIView
from kbpo.web.expensive import export
from kbpo.web.http import address_of
from kbpo.web.public import whole
from kbpo.web.public.track import OUTPUTS


@method_decorator(export, name="dispatch")
class TrackZip(APIView):
    """All that one needs to take part in a track as one zip file, streamed: texts, schema,
    guidelines, baseline and its output, licence.
    """

    permission_classes = [AllowAny]

    @extend_schema(
        operation_id="download_track",
        responses={(200, "application/zip"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, slug: str) -> HttpResponseBase:
        try:
            return whole.answer(request, slug)
        except whole.TooMany as many:
            raise Throttled(OUTPUTS.wait(address_of(request)), str(many)) from many
