"""Who may see a page."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar, cast

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.views.decorators.cache import never_cache

from kbpo.accounts import teams
from kbpo.accounts.models import Team, User
from kbpo.tracks.models import Track
from kbpo.tracks.recall import recall_of

P = ParamSpec("P")
R = TypeVar("R", bound=HttpResponseBase)


def for_admins(
    view: Callable[Concatenate[HttpRequest, P], R],
) -> Callable[Concatenate[HttpRequest, P], R]:
    """Return the view, for admins; everybody else who is logged in is refused, and nothing of it is
    kept by a browser.
    """

    @wraps(view)
    @never_cache
    @login_required
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if not admin_of(request).is_staff:
            raise PermissionDenied("This page is for the admins of this service.")
        return view(request, *args, **kwargs)

    return guarded


def admin_of(request: HttpRequest) -> User:
    """Who asks, where a view is for people who are logged in."""
    return cast(User, request.user)


def check_may_act(user: User, team: Team) -> None:
    """Raise PermissionDenied for somebody who may only look at what a team does."""
    if not teams.may_act(team, user):
        raise PermissionDenied(teams.ONLY_LOOKS)


def track_of_relations(slug: str) -> Track:
    """Return the track of that name. Raises Http404 with a sentence where its systems predict no
    relations of documents: what is told of these has no meaning there.
    """
    track = get_object_or_404(Track.objects.select_related("corpus"), slug=slug)
    if recall_of(track) is None:
        raise Http404(f"On {track.name} systems predict no relations of documents: it has none.")
    return track
