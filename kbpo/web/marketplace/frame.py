"""Who stands before a page in a marketplace's frame: no cookie tells, so signed words and the
frame's address do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.csrf import csrf_exempt

from annotation.models import HIT
from annotation.platforms import proof
from annotation.platforms.registry import frame_sites
from annotation.workers.worker import handle_of

P = ParamSpec("P")
LONGEST_ID = 120


@dataclass(frozen=True)
class Go:
    """One worker's go at a HIT, as the marketplace or our own signed form names it."""

    hit: HIT
    assignment: str
    handle: str
    site: str
    external_id: str = ""
    """The worker's own id there; only the marketplace's address tells it, our forms carry the
    hash"""

    @property
    def proof(self) -> str:
        return proof.prove(self.hit.pk, self.assignment, self.handle, self.site)


def framed(
    view: Callable[Concatenate[HttpRequest, P], HttpResponse],
) -> Callable[..., HttpResponse]:
    """Return the view, for pages that the marketplaces we know may show in a frame, and nobody
    else.
    """

    @wraps(view)
    @never_cache
    @csrf_exempt
    @xframe_options_exempt
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        response = view(request, *args, **kwargs)
        sites = " ".join(frame_sites()) or "'none'"
        response["Content-Security-Policy"] = f"frame-ancestors {sites}; form-action 'self' {sites}"
        response["Referrer-Policy"] = "no-referrer"
        return response

    return guarded


def go_of_address(request: HttpRequest, hit: HIT, assignment: str) -> Go | None:
    """Return the go that a marketplace names in the address; None if it is not one that we know."""
    worker, site = request.GET["workerId"], origin_of(request.GET.get("turkSubmitTo", ""))
    sound = 0 < len(worker) <= LONGEST_ID and 0 < len(assignment) <= LONGEST_ID
    if not sound or site not in frame_sites():
        return None
    return Go(hit, assignment, handle_of(hit.platform, worker), site, worker)


def go_of(said_by_form: str, hit: HIT) -> Go | None:
    """Return the go that our own form or address names; None if it is not ours, or of another
    HIT.
    """
    claims = proof.proven(said_by_form)
    if claims.get("hit") != hit.pk or claims.get("site") not in frame_sites():
        return None
    return Go(hit, claims["assignment"], claims["worker"], claims["site"])


def origin_of(address: str) -> str:
    """Scheme, host and port of an address; nothing if it has more than these that could lead
    elsewhere.
    """
    try:
        parts = urlsplit(address)
        plain = parts.scheme in ("https", "http") and parts.hostname and "@" not in parts.netloc
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc}" if plain else ""
