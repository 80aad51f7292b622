"""One document of a track over the API: its text, the names in it, what systems predict of it."""

from __future__ import annotations

from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from kbpo.corpus.models import Document, Mention
from kbpo.web.public.documents import claims_of, found_in, readable, visible
from kbpo.web.research.missed import missed_record


class DocumentDetail(APIView):
    """A document with its mentions, what the runs that you may see state of it, and what its
    readers found: each with the runs that predict it. Before a track is closed these are your own,
    and what was read is not told.
    """

    permission_classes = [AllowAny]

    @extend_schema(operation_id="get_document", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, slug: str, key: str) -> Response:
        track = readable(request, slug)
        document = get_object_or_404(Document, corpus=track.corpus, key=key.replace("\0", ""))
        mentions = Mention.objects.filter(document=document).order_by("begin", "end")
        claims = claims_of(request, document, visible(request, track))
        return Response(
            {
                "id": document.key,
                "title": document.title,
                "date": document.date,
                "text": document.text,
                "mentions": [[row.begin, row.end, row.type] for row in mentions],
                "claims": [
                    claim.as_json() | {"systems": [run.pk for run in runs]}
                    for claim, runs in claims
                ],
                "found": [missed_record(*one) for one in found_in(request, track, document)],
            }
        )
