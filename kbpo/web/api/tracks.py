"""Tracks and boards over the API: public, no token needed."""

from __future__ import annotations

from django.http import Http404
from django.utils.decorators import method_decorator
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from kbpo.evaluation.leaderboard import NoBoard
from kbpo.tracks.models import Track
from kbpo.web.api.answers import whole
from kbpo.web.api.parameters import BIGGEST, POPULATION
from kbpo.web.api.view import APIView
from kbpo.web.expensive import expensive
from kbpo.web.public.board_files import as_json, as_track
from kbpo.web.public.board_view import NoView, View, board_of, view_of


def public_track(slug: str, *, drafts: bool = False) -> Track:
    """Return the track with its corpus. Raises Http404 for what does not exist, and for drafts
    where they are not asked for.
    """
    tracks = Track.objects.select_related("corpus").defer("corpus__hash_key")
    track = tracks.filter(slug=slug).first()
    if track is None or (track.status == Track.Status.DRAFT and not drafts):
        raise Http404(f"There is no track “{slug[:60]}”.")
    return track


def view_for(request: Request, track: Track) -> View:
    """Return what the parameters of an address ask for. Raises ValidationError."""
    try:
        return view_of(request.query_params, track)
    except NoView as problem:
        raise ValidationError({problem.name: [str(problem)]}) from problem


class TrackList(APIView):
    """The tracks there are."""

    permission_classes = [AllowAny]

    @extend_schema(operation_id="list_tracks", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request) -> Response:
        return Response(
            {
                "tracks": [
                    as_track(row) for row in Track.objects.exclude(status="draft").order_by("pk")
                ]
            }
        )


@method_decorator(expensive, name="dispatch")
class BoardDetail(APIView):
    """The leaderboard of a track, as it stands on the page; if nothing else is asked for, what the
    track guarantees.

    `targets` of its evaluation counts every one whose outcome counts: drawn and answered, drawn and
    given up, or found in documents read in full. The page tells how many people judged one by one,
    which are fewer. `next` names the two systems, better one first, that the fewest more judgments
    part: about how many (null where fewer are left) and for how much at most; null where the board
    ranks by no mean, all are told apart, nobody is asked, or an earlier evaluation is asked for.
    """

    permission_classes = [AllowAny]

    @extend_schema(
        operation_id="get_board",
        parameters=[
            *(OpenApiParameter(name, str) for name in ("distribution", "criterion", "sort")),
            OpenApiParameter("population", str, description=POPULATION),
            whole("evaluation", BIGGEST, "The board of this evaluation"),
        ],
        responses=OpenApiTypes.OBJECT,
    )
    def get(self, request: Request, slug: str) -> Response:
        track = public_track(slug)
        view = view_for(request, track)
        try:
            shown = board_of(track, view)
        except NoBoard as problem:
            raise NotFound(str(problem)) from problem
        return Response(as_json(shown))
