"""The people of a team over the API: roles, removing, leaving, invitations."""

from __future__ import annotations

from typing import Any, cast

from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.parsers import FormParser, JSONParser, MultiPartParser
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from kbpo.accounts import teams
from kbpo.accounts.models import Invitation, Team, User
from kbpo.web.api.answers import declined
from kbpo.web.api.errors import Refused
from kbpo.web.api.said import Said
from kbpo.web.api.teams import shown
from kbpo.web.api.view import APIView
from kbpo.web.http import check_may_act
from kbpo.web.research.teams import (
    ONLY_OWNERS,
    check_may_leave,
    find_team,
    invite,
    open_invitations,
    withdraw,
)

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

    permission_classes = [IsAuthenticated]
    parser_classes = [JSONParser, FormParser, MultiPartParser]

    @extend_schema(
        operation_id="set_role",
        request=RoleForm,
        responses={200: OpenApiTypes.OBJECT, **declined(409)},
    )
    def patch(self, request: Request, team: str, member: str) -> Response:
        """Give a member of a team that you own a role. The answer is the team."""
        row, person = _found(request, team, member)
        form = RoleForm(data=request.data)
        form.is_valid(raise_exception=True)
        user = cast(User, request.user)
        if not teams.may_manage(row, user):
            raise PermissionDenied(ONLY_OWNERS)
        try:
            teams.set_role(row, person, form.validated_data["role"], user, BY_API)
        except teams.CannotChange as refusal:
            raise Refused(str(refusal), "cannot_change") from refusal
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
        try:
            if person == user:
                check_may_leave(row, user)
            teams.remove(row, person, user, BY_API)
        except teams.CannotChange as refusal:
            raise Refused(str(refusal), "cannot_change") from refusal
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

    permission_classes = [IsAuthenticated]
    parser_classes = [JSONParser, FormParser, MultiPartParser]

    @extend_schema(operation_id="list_invitations", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, team: str) -> Response:
        """Return the invitations of a team of yours that may still be used, the latest first. Their
        links stand on the team's page.
        """
        invitations = open_invitations(find_team(request, team)).select_related("made_by")
        return Response({"invitations": [_shown(row) for row in invitations.order_by("-pk")]})

    @extend_schema(operation_id="invite", request=InviteForm, responses={201: OpenApiTypes.OBJECT})
    def post(self, request: Request, team: str) -> Response:
        """Make a link that makes one person a member of a team of yours. It is told here, and on
        the team's page; whoever opens it sees all that the team sees.
        """
        own_team, user = find_team(request, team), cast(User, request.user)
        form = InviteForm(data=request.data)
        form.is_valid(raise_exception=True)
        check_may_act(user, own_team)
        role = "observer" if form.validated_data["role"] == "observer" else "researcher"
        row = invite(role, user, team=own_team, why=BY_API)
        url = request.build_absolute_uri(reverse("join", args=[row.code]))
        return Response(_shown(row) | {"url": url}, status=201)


class InvitationDetail(APIView):
    """An invitation of a team of yours."""

    permission_classes = [IsAuthenticated]

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


def _shown(row: Invitation) -> dict[str, Any]:
    return {
        "id": row.pk,
        "role": "observer" if row.role == "observer" else "member",
        "made_by": row.made_by and row.made_by.get_username(),
        "made_at": row.created_at,
        "expires_at": row.expires_at,
        "uses_left": row.uses_left,
    }
