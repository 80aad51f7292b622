"""API: metrics and judges of a track, and their scores.

The service calls no judge: a program of an admin asks for unscored items and sends scores.
"""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import Http404
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.parsers import FormParser, JSONParser, MultiPartParser
from rest_framework.permissions import AllowAny, BasePermission, IsAdminUser
from rest_framework.request import Request
from rest_framework.response import Response

from kbpo.accounts.models import User
from kbpo.scores.bring import (
    BadFile,
    Name,
    count_unscored,
    find_scorer,
    list_scorers,
    list_unscored,
    store_score_file,
    store_scores,
)
from kbpo.tracks.models import Track
from kbpo.web.api.answers import page_schema, refusals, whole_number_parameter
from kbpo.web.api.view import APIView, Refused, RequestBody, page_limit, whole_number
from kbpo.web.http import public_track

AT_ONCE, MOST, LAST = 100, 1000, 1 << 62
"""Numbers of items in one response: by default and at most; and the greatest item number"""
MOST_PROBLEMS = 100
"""Greatest number of problems of a file in one response"""
JUDGE_PARAMETERS = [
    OpenApiParameter("name", str, required=True),
    OpenApiParameter("version", str),
    OpenApiParameter("prompt", str),
]


class ForAdmins(IsAdminUser):
    """Allows admins only, with a sentence for others."""

    message = "Only admins of this service upload scores or run judges."


class JudgeForm(RequestBody):
    """Name, version and prompt of a judge."""

    name = serializers.CharField(max_length=200)
    version = serializers.CharField(max_length=200, required=False, allow_blank=True, default="")
    prompt = serializers.CharField(max_length=200, required=False, allow_blank=True, default="")

    def named(self) -> Name:
        """Return name, version and prompt."""
        cleaned = self.validated_data
        return Name(cleaned["name"], cleaned["version"], cleaned["prompt"])


class OneScore(RequestBody):
    """The score of one item."""

    id = serializers.IntegerField(min_value=1)
    value = serializers.FloatField()


class ScoresForm(JudgeForm):
    """Scores of a judge. `not_tuned` states that it was not tuned on judgments of this track."""

    scores = OneScore(many=True, allow_empty=False)
    not_tuned = serializers.BooleanField(required=False, default=False)


class FileOfScores(JudgeForm):
    """A file of scores to upload: CSV or JSON Lines. The other fields replace columns that the file
    does not have.
    """

    file = serializers.FileField(allow_empty_file=True)
    name = serializers.CharField(max_length=200, required=False, allow_blank=True, default="")
    not_tuned = serializers.BooleanField(required=False, default=False)


class Judges(APIView):
    """The metrics and judges of a track, with numbers of scores; upload a file of scores."""

    parser_classes = [MultiPartParser, FormParser]

    def get_permissions(self) -> list[BasePermission]:
        return [AllowAny() if self.request.method == "GET" else ForAdmins()]

    @extend_schema(operation_id="list_judges", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, slug: str) -> Response:
        return Response({"judges": list_scorers(public_track(slug))})

    @extend_schema(
        operation_id="import_scores",
        request=FileOfScores,
        responses={201: OpenApiTypes.OBJECT, **refusals(409, 422)},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Upload a file of scores: all of them are stored, or none."""
        track, form = _find_track(slug), FileOfScores(data=request.data)
        form.is_valid(raise_exception=True)
        cleaned = form.validated_data
        try:
            taken = store_score_file(
                track,
                cleaned["file"],
                form.named() if cleaned["name"] else None,
                _user_of(request),
                not_tuned=cleaned["not_tuned"],
            )
        except BadFile as refusal:
            names = ("code", "line", "text", "line_text")
            problems = [
                {name: getattr(message, name) for name in names}
                for message in refusal.report
                if message.severity == "error"
            ][:MOST_PROBLEMS]
            told = {"problems": problems, "n": refusal.report.errors}
            raise Refused(str(refusal), "bad_file", 422, **told) from refusal
        outcomes = {
            name: {**vars(outcome), "sentence": outcome.sentence} for name, outcome in taken.items()
        }
        return Response(outcomes, status=201)


class Unscored(APIView):
    """The items that a judge has not scored, in pages: id and content, without the systems. For
    admins.
    """

    permission_classes = [ForAdmins]

    @extend_schema(
        operation_id="list_unscored",
        parameters=[
            *JUDGE_PARAMETERS,
            whole_number_parameter("limit", MOST, f"By default {AT_ONCE}"),
            whole_number_parameter("after", LAST, "The page begins after this one", minimum=0),
        ],
        responses={200: page_schema(previous=False), **refusals(422)},
    )
    def get(self, request: Request, slug: str) -> Response:
        """Return a page of unscored items, which begins `after` an item id."""
        track, form = _find_track(slug), JudgeForm(data=request.query_params)
        form.is_valid(raise_exception=True)
        named = form.named()
        limit = page_limit(request, AT_ONCE, MOST)
        after = whole_number(request, "after", 0, LAST)
        waiting = list_unscored(track, named, after=after, limit=limit)
        asked = {**vars(named), "limit": limit, "after": waiting[-1]["id"] if waiting else after}
        address = reverse("api-unscored", args=[slug])
        following = f"{address}?{urlencode(asked)}" if len(waiting) == limit else None
        return Response(
            {
                "count": count_unscored(track, find_scorer(track, named)),
                "next": following,
                "results": waiting,
            }
        )


class Scores(APIView):
    """Upload scores of a judge: all of them are stored, or none."""

    permission_classes = [ForAdmins]
    parser_classes = [JSONParser]

    @extend_schema(
        operation_id="bring_scores",
        request=ScoresForm,
        responses={201: OpenApiTypes.OBJECT, **refusals(422)},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Store scores. An item that was scored before keeps its first score, so requests can be
        repeated.
        """
        track, form = _find_track(slug), ScoresForm(data=request.data)
        form.is_valid(raise_exception=True)
        scores = [(score["id"], score["value"]) for score in form.validated_data["scores"]]
        taken = store_scores(
            track,
            form.named(),
            scores,
            _user_of(request),
            not_tuned=form.validated_data["not_tuned"],
        )
        count = count_unscored(track, find_scorer(track, form.named()))
        answer = {"stored": taken.stored, "already": taken.already, "left": count}
        answer["needs_statement"] = taken.needs_statement
        return Response(answer, status=201)


def _find_track(slug: str) -> Track:
    row = Track.objects.select_related("corpus").filter(slug=slug).first()
    if row is None:
        raise Http404(f"There is no track {slug}.")
    return row


def _user_of(request: Request) -> User:
    assert isinstance(request.user, User)
    return request.user
