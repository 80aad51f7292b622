"""One's own teams over the API: who belongs to them, what they have spent, and their news."""

from __future__ import annotations

from decimal import Decimal
from hashlib import sha256
from typing import Any, cast

from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from kbpo import clock
from kbpo.accounts.models import Team, Token, User
from kbpo.accounts.teams import roles_of
from kbpo.money.spend import by_day
from kbpo.submissions.models import Submission
from kbpo.web.api.answers import Json, declined, page_of_list, whole
from kbpo.web.api.errors import Refused, no_team
from kbpo.web.api.parameters import BIGGEST, whole_number
from kbpo.web.api.said import Said
from kbpo.web.api.submissions import PAGING, page_of
from kbpo.web.api.view import APIView
from kbpo.web.research.news import mark_read, news_of, since_of
from kbpo.web.research.teams import money_of

SLUG: Json = {"type": "string", "maxLength": 80, "pattern": "^[-a-zA-Z0-9_]*$"}


class Teams(APIView):
    """The teams that you belong to: their members, and their money on every track."""

    permission_classes = [IsAuthenticated]

    @extend_schema(operation_id="list_teams", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request) -> Response:
        """Return the teams that you belong to. The first one is meant where none is named; `cap`
        and `left` are null where there is no cap.
        """
        user = cast(User, request.user)
        return Response({"teams": [shown(team) for team in user.teams.order_by("pk")]})


def shown(team: Team) -> dict[str, Any]:
    """Return a team as the API tells it to its members."""
    return {
        "slug": team.slug,
        "name": team.name,
        "members": [{"name": user.username, "role": role} for user, role in roles_of(team).items()],
        "budgets": [
            {
                "track": purse.track.slug,
                "spent": str(purse.spent),
                "reserved": str(purse.reserved),
                "cap": _text(purse.cap),
                "left": _text(purse.left),
            }
            for purse in money_of(team).purses
        ],
    }


def _text(amount: Decimal | None) -> str | None:
    return None if amount is None else str(amount)


class Ledger(APIView):
    """What was set aside for the runs of a team of yours, spent on answers and given back."""

    permission_classes = [IsAuthenticated]

    @extend_schema(
        operation_id="list_ledger",
        parameters=[
            OpenApiParameter("team", SLUG, description="Which of your teams"),
            whole("run", BIGGEST, "The number of a run: its movements alone"),
            *PAGING,
        ],
        responses={200: page_of_list(), **declined(404)},
    )
    def get(self, request: Request) -> Response:
        """Return what was set aside for the runs of a team of yours (`reserve`), spent on answers
        (`spend`) and given back (`release`): a row a day, run and direction, the latest first.
        """
        team = _team_of(request, request.query_params.get("team", ""))
        number = whole_number(request, "run", 0, BIGGEST, least=1)
        run = None
        if number:
            run = Submission.objects.filter(team=team, deleted_at=None, pk=number).first()
            if run is None:
                raise Http404("The team has no such run.")
        moved = by_day("submission", team, run.purpose if run else None)
        pages, page = page_of(moved, request, self)
        return pages.get_paginated_response(
            [
                {
                    "on": row["on"],
                    "submission": row["purpose_number"],
                    "kind": row["kind"],
                    "amount": str(row["amount"]),
                    "movements": row["n"],
                }
                for row in page
            ]
        )


class ReadForm(Said):
    """What is read of a team's news."""

    team = serializers.SlugField(
        required=False, max_length=80, help_text="Which of your teams; without it, the first one"
    )
    until = serializers.DateTimeField(help_text="What happened until then; `now` of what was shown")


class News(APIView):
    """What happened to the runs of a team of yours since you last said that you had read it."""

    permission_classes = [IsAuthenticated]
    scope = Token.Scope.UPLOAD

    @extend_schema(
        operation_id="list_news",
        parameters=[OpenApiParameter("team", SLUG, description="Which of your teams")],
        responses={200: OpenApiTypes.OBJECT, **declined(404)},
    )
    def get(self, request: Request) -> Response:
        """Return what happened to the runs of a team of yours since you last said that you had read
        it, the latest first.
        """
        return _news(request, _team_of(request, request.query_params.get("team", "")))

    @extend_schema(
        operation_id="read_news",
        request=ReadForm,
        responses={200: OpenApiTypes.OBJECT, **declined(404)},
    )
    def post(self, request: Request) -> Response:
        """Say until when you have read the news of a team. The answer is what is left of them."""
        form = ReadForm(data=request.data)
        form.is_valid(raise_exception=True)
        team, until = (
            _team_of(request, form.validated_data.get("team", "")),
            form.validated_data["until"],
        )
        if until > clock.now():
            raise Refused("Nobody has read what is still to happen.", "invalid", 400)
        mark_read(cast(User, request.user), team, until)
        return _news(request, team)


def _team_of(request: Request, slug: str) -> Team:
    """Return the team. Raises Http404 for one of others, and Refused where there is none."""
    team = cast(User, request.user).team(slug, looks=True)
    if team is not None:
        return team
    if slug:
        raise Http404("There is no such team, or it is not yours to see.")
    raise no_team()


def _news(request: Request, team: Team) -> Response:
    now, since = clock.now(), since_of(cast(User, request.user), team)
    pieces = [
        {
            "title": piece.title,
            "text": piece.text,
            "at": piece.at,
            "page": request.build_absolute_uri(piece.url),
        }
        for piece in news_of(team, since)
    ]
    told = {"team": team.slug, "since": since, "news": pieces}
    etag = f'W/"{sha256(repr(told).encode()).hexdigest()[:32]}"'  # of all but the time
    return Response(told | {"now": now}, headers={"ETag": etag})
