"""One's own teams over the API: who belongs to them, and what they have spent."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, cast

from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kbpo.accounts.models import Team, User
from kbpo.accounts.teams import roles_of
from kbpo.web.api.answers import Json, declined, page_of_list, whole
from kbpo.web.api.errors import no_team
from kbpo.web.api.parameters import BIGGEST, whole_number
from kbpo.web.api.submissions import PAGING, listed
from kbpo.web.api.view import APIView
from kbpo.web.research.ledger import ledger_of, run_of
from kbpo.web.research.teams import money_of

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


def _team_of(request: Request, slug: str) -> Team:
    """Return the team. Raises Http404 for one of others, and Refused where there is none."""
    team = cast(User, request.user).team(slug, looks=True)
    if team is not None:
        return team
    if slug:
        raise Http404("There is no such team, or it is not yours to see.")
    raise no_team()
