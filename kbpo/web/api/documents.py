"""The documents of a track over the API: a list and a search; of one its text, the names in it,
what systems predict of it.
"""

from __future__ import annotations

from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kbpo.corpus.models import Document, Mention
from kbpo.web.api.answers import page_of_list, whole
from kbpo.web.api.parameters import BIGGEST, limit_of, whole_number, words
from kbpo.web.api.view import PublicView
from kbpo.web.public.documents import (
    LONGEST_WORDS,
    MOST_FOUND,
    claims_of,
    found_in,
    listed,
    readable,
    visible,
)
from kbpo.web.research.missed import missed_record

DEFAULT, MOST = 100, 500
WORDS = {"type": "string", "maxLength": LONGEST_WORDS}


class DocumentList(PublicView):
    """The documents of a track in pages, in the order in which they were loaded, or those that have
    some words: as long as `next` is not null there are more. Of a search that finds more than it
    lists `count` is null.
    """

    @extend_schema(
        operation_id="list_documents",
        parameters=[
            OpenApiParameter(
                "q",
                WORDS,
                description=(
                    f'Words of the text; "in quotes" one after the other, -without. At most'
                    f" {MOST_FOUND} documents are listed"
                ),
            ),
            whole("limit", MOST, f"{DEFAULT} where nothing is said"),
            whole("after", BIGGEST, "The page begins after this document"),
        ],
        responses={200: page_of_list(previous=False, is_counted=False)},
    )
    def get(self, request: Request, slug: str) -> Response:
        track = readable(request, slug)
        asked = words(request, "q", LONGEST_WORDS)
        limit = limit_of(request, DEFAULT, MOST)
        page = listed(track, asked, whole_number(request, "after", 0, least=1), limit)
        following = None
        if page.after:
            query = request.query_params.copy()
            query["after"] = str(page.after)
            following = request.build_absolute_uri(f"{request.path}?{query.urlencode()}")
        documents = [
            {
                "id": row.key,
                "title": row.title,
                "date": row.date,
                "begins": row.begins,
                "link": _link(request, "api-document", slug, row.key),
                "page": _link(request, "track-document", slug, row.key),
            }
            for row in page.rows
        ]
        count = page.n if page.all_found else None
        return Response({"count": count, "next": following, "results": documents})


def _link(request: Request, name: str, slug: str, key: str) -> str:
    return str(request.build_absolute_uri(reverse(name, args=[slug, key])))


class DocumentDetail(PublicView):
    """A document with its mentions, what the runs that you may see predict of it, and what its
    readers found: each with the runs that predict it. Before a track is closed these are your own,
    and what was read is not told.
    """

    @extend_schema(operation_id="get_document", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, slug: str, key: str) -> Response:
        track = readable(request, slug)
        document = get_object_or_404(Document, corpus=track.corpus, key=key.replace("\0", ""))
        mentions = Mention.objects.filter(document=document).order_by("begin", "end")
        claims = claims_of(request, document, visible(request, track, document))
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
                "found": [missed_record(*fact) for fact in found_in(request, track, document)],
            }
        )
