"""One's own teams over the API: their people and invitations, what they have spent, their news."""

from __future__ import annotations

from decimal import Decimal
from hashlib import sha256
from typing import Any, cast

from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from kbpo import clock
from kbpo.accounts import teams
from kbpo.accounts.models import Invitation, Team, Token, User
from kbpo.accounts.teams import roles_of
from kbpo.web.api.answers import Json, declined, page_of_list, whole
from kbpo.web.api.errors import Refused, no_team
from kbpo.web.api.parameters import BIGGEST, whole_number
from kbpo.web.api.said import Said, read
from kbpo.web.api.submissions import PAGING, listed
from kbpo.web.api.view import APIView
from kbpo.web.http import check_may_act
from kbpo.web.research.ledger import ledger_of, run_of
from kbpo.web.research.news import mark_read, news_of, since_of
from kbpo.web.research.teams import (
    ONLY_OWNERS,
    check_may_leave,
    find_team,
    invite,
    money_of,
    open_invitations,
    withdraw,
)

SLUG: Json = {"type": "string", "maxLength": 80, "pattern": "^[-a-zA-Z0-9_]*$"}


class Teams(APIView):
    """The teams that you belong to: their members, and their money on every track."""

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
        run = run_of(team, str(number)) if number else None
        return listed(ledger_of(team, run), request, self)


class ReadForm(Said):
    """What is read of a team's news."""

    team = serializers.SlugField(
        required=False, max_length=80, help_text="Which of your teams; without it, the first one"
    )
    until = serializers.DateTimeField(help_text="What happened until then; `now` of what was shown")


class News(APIView):
    """What happened to the runs of a team of yours since you last said that you had read it."""

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
        said = read(ReadForm, request)
        team, until = (
            _team_of(request, said.get("team", "")),
            said["until"],
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


BY_API = "By the API."


class RoleForm(Said):
    """Which role somebody has in a team."""

    role = serializers.ChoiceField(list(teams.ROLES))


class InviteForm(Said):
    """What the link makes of who opens it."""

    role = serializers.ChoiceField(
        ["member", "observer"],
        required=False,
        default="member",
        help_text="An observer may look, and change nothing",
    )


class Member(APIView):
    """Somebody who belongs to a team of yours."""

    @extend_schema(
        operation_id="set_role",
        request=RoleForm,
        responses={200: OpenApiTypes.OBJECT, **declined(409)},
    )
    def patch(self, request: Request, team: str, member: str) -> Response:
        """Give a member of a team that you own a role. The answer is the team."""
        row, person = _found(request, team, member)
        said = read(RoleForm, request)
        user = cast(User, request.user)
        if not teams.may_manage(row, user):
            raise PermissionDenied(ONLY_OWNERS)
        teams.set_role(row, person, said["role"], user, BY_API)
        return Response(shown(row))

    @extend_schema(operation_id="remove_member", responses={204: None, **declined(409)})
    def delete(self, request: Request, team: str, member: str) -> Response:
        """Remove a member of a team that you own, whose open invitations end with it; under your
        own name: leave the team.
        """
        row, person = _found(request, team, member)
        user = cast(User, request.user)
        if person != user and not teams.may_manage(row, user):
            raise PermissionDenied(ONLY_OWNERS)
        if person == user:
            check_may_leave(row, user)
        teams.remove(row, person, user, BY_API)
        return Response(status=204)


def _found(request: Request, slug: str, name: str) -> tuple[Team, User]:
    """Return a team of yours and its member of that name. Raises Http404."""
    team = find_team(request, slug)
    person = team.members.filter(username=name.replace("\0", "")).first()
    if person is None:
        raise Http404(f"Nobody called “{name[:60]}” belongs to {team.name}.")
    return team, person


class Invitations(APIView):
    """The invitations of a team of yours that may still be used."""

    @extend_schema(operation_id="list_invitations", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, team: str) -> Response:
        """Return the invitations of a team of yours that may still be used, the latest first. Their
        links stand on the team's page.
        """
        invitations = open_invitations(find_team(request, team)).select_related("made_by")
        return Response({"invitations": [_invitation(row) for row in invitations.order_by("-pk")]})

    @extend_schema(operation_id="invite", request=InviteForm, responses={201: OpenApiTypes.OBJECT})
    def post(self, request: Request, team: str) -> Response:
        """Make a link that makes one person a member of a team of yours. It is told here, and on
        the team's page; whoever opens it sees all that the team sees.
        """
        own_team, user = find_team(request, team), cast(User, request.user)
        said = read(InviteForm, request)
        check_may_act(user, own_team)
        role = "observer" if said["role"] == "observer" else "researcher"
        row = invite(role, user, team=own_team, why=BY_API)
        url = request.build_absolute_uri(reverse("join", args=[row.code]))
        return Response(_invitation(row) | {"url": url}, status=201)


class InvitationDetail(APIView):
    """An invitation of a team of yours."""

    @extend_schema(operation_id="take_back_invitation", responses={204: None})
    def delete(self, request: Request, team: str, pk: int) -> Response:
        """Take an invitation of a team of yours back: its link works no more."""
        own_team = find_team(request, team)
        check_may_act(cast(User, request.user), own_team)
        invitations = Invitation.objects.filter(pk=pk, team=own_team)
        if not invitations.exists():
            raise Http404(f"There is no invitation {pk} of this team.")
        withdraw(invitations, cast(User, request.user), BY_API)
        return Response(status=204)


def _invitation(row: Invitation) -> dict[str, Any]:
    return {
        "id": row.pk,
        "role": "observer" if row.role == "observer" else "member",
        "made_by": row.made_by and row.made_by.get_username(),
        "made_at": row.created_at,
        "expires_at": row.expires_at,
        "uses_left": row.uses_left,
    }
