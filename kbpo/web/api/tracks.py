"""API: tracks and their files. No token is needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.http import Http404, HttpResponseBase, HttpResponseNotModified, StreamingHttpResponse
from django.urls import reverse
from django.utils.decorators import method_decorator
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.quality.hourly import track_pace
from kbpo.corpus.export import gzip_lines, mention_lines
from kbpo.corpus.models import Corpus
from kbpo.tracks.models import Track
from kbpo.tracks.registry import count_inputs, kind_of
from kbpo.tracks.texts.judgments import CannotImport
from kbpo.web.api.answers import refusals
from kbpo.web.api.view import PublicView, Refused
from kbpo.web.desk.judgments import judgment_file
from kbpo.web.expensive import limit_exports
from kbpo.web.http import public_track
from kbpo.web.public.board_files import track_as_json
from kbpo.web.public.documents import NOT_DOWNLOADABLE
from kbpo.web.public.track import MENTIONS_FILE_NAME, documents_file_name
from kbpo.web.table import start_iterating


class TrackList(PublicView):
    """All tracks."""

    @extend_schema(operation_id="list_tracks", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request) -> Response:
        return Response(
            {
                "tracks": [
                    track_as_json(row)
                    for row in Track.objects.exclude(status="draft").order_by("pk")
                ]
            }
        )


class TrackDetail(PublicView):
    """A track: criteria, corpus, and links to its files."""

    @extend_schema(operation_id="get_track", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, slug: str) -> Response:
        track = public_track(slug)
        keys = (
            "opened_at",
            "closes_on",
            "closed_at",
            "rules",
            "guidelines",
            "who_pays",
            "runs_a_week",
            "runs_in_all",
        )
        terms = {key: getattr(track, key) for key in keys}
        took = track_pace(track)
        terms["answer_seconds"] = {"median": took.seconds, "answers": took.answers}
        pages = {"page": "track", "board": "api-board", "releases": "api-releases"}
        pages["guidelines"] = "guidelines"
        links = {
            key: request.build_absolute_uri(reverse(name, args=[slug]))
            for key, name in pages.items()
        }
        more = {"corpus": _corpus_as_json(request, track), "links": links}
        return Response(track_as_json(track) | terms | more)


def _corpus_as_json(request: Request, track: Track) -> dict[str, Any]:
    corpus, kind = track.corpus, kind_of(track)
    links = {"schema": reverse("api-schema-of-track", args=[track.slug])}
    if corpus.may_be_downloaded:
        links["documents"] = reverse("api-documents", args=[track.slug])
        if corpus.has_mentions:
            links["mention_types"] = reverse("api-mention-types", args=[track.slug])
        if kind.baseline_script() is not None:
            links["baseline"] = reverse("baseline", args=[track.slug])
    return {
        "name": corpus.name,
        "description": corpus.description,
        "licence": corpus.licence,
        "documents": count_inputs(track),
        "digest": corpus.digest,
        "links": {name: request.build_absolute_uri(link) for name, link in links.items()},
    }


class Releases(PublicView):
    """The releases of a track: all data of its board, as files with their SHA-256."""

    @extend_schema(operation_id="list_releases", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, slug: str) -> Response:
        releases = public_track(slug).releases.filter(status="made").order_by("-number")
        keys, listed = ("number", "made_at", "size", "digest", "rows"), []
        for row in releases:
            link = request.build_absolute_uri(reverse("release", args=[slug, row.number]))
            record = {key: getattr(row, key) for key in keys}
            listed.append(record | {"file": row.file_name, "link": link})
        return Response({"releases": listed})


class SchemaDetail(PublicView):
    """The schema of a track's corpus, as in its file."""

    @extend_schema(operation_id="get_schema_of_track", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, slug: str) -> Response:
        return Response(public_track(slug).corpus.schema)


@method_decorator(limit_exports, name="dispatch")
class Documents(PublicView):
    """The documents or other inputs that systems are run on: JSON Lines, gzipped, streamed."""

    @extend_schema(
        operation_id="download_documents",
        responses={(200, "application/gzip"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, slug: str) -> HttpResponseBase:
        track = downloadable_track(slug)
        kind = kind_of(track)
        return gzipped_file(
            request,
            track.corpus,
            documents_file_name(track),
            kind.input_lines(),
            count_inputs(track),
        )


@method_decorator(limit_exports, name="dispatch")
class MentionTypes(PublicView):
    """The types of the mentions that came with a track's corpus: JSON Lines, gzipped, streamed.

    They replace `subject_type` and `object_type` if a run does not predict them.
    """

    @extend_schema(
        operation_id="download_mention_types",
        responses={(200, "application/gzip"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, slug: str) -> HttpResponseBase:
        corpus = downloadable_track(slug).corpus
        return gzipped_file(request, corpus, MENTIONS_FILE_NAME, mention_lines(corpus))


def downloadable_track(slug: str) -> Track:
    """Return the track. Raises Http404 with a sentence if its corpus may not be downloaded."""
    track = public_track(slug)
    if not track.corpus.may_be_downloaded:
        raise Http404(NOT_DOWNLOADABLE)
    return track


def gzipped_file(
    request: Request, corpus: Corpus, name: str, lines: Iterator[str], n: int = 0
) -> HttpResponseBase:
    """Return the lines as a streamed gzip file; 304 if the client has it already. `n` identifies
    the state of a corpus without a digest.
    """
    tag = f'"{corpus.digest or f"{corpus.pk}-{n}"}"'
    if request.headers.get("If-None-Match") == tag:
        return HttpResponseNotModified(headers={"ETag": tag})
    return StreamingHttpResponse(
        start_iterating(gzip_lines(lines)),
        content_type="application/gzip",
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "ETag": tag,
            "Cache-Control": "public, max-age=3600",
        },
    )


@method_decorator(limit_exports, name="get")
class TrackJudgments(PublicView):
    """All judgments of a track's texts: input_id, system, worker, prompt, value, seconds. Once
    the track is closed, everybody sees those of runs on the board; admins see all.
    """

    @extend_schema(
        operation_id="get_track_judgments",
        responses={(200, "text/tab-separated-values"): OpenApiTypes.STR, **refusals(409)},
    )
    def get(self, request: Request, slug: str) -> HttpResponseBase:
        track = public_track(slug)
        if track.status != Track.Status.CLOSED and not request.user.is_staff:
            raise Http404("Its judgments are for admins alone until the track is closed.")
        try:
            return judgment_file(track, public=not request.user.is_staff)
        except CannotImport as no:
            raise Refused(str(no), "kind") from no
