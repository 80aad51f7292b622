"""Identifies the worker in a marketplace's frame without cookies: by the address of the frame and
signed form fields.
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
    """A worker's assignment of a HIT, as named by the marketplace or by our signed form."""

    hit: HIT
    assignment: str
    handle: str
    site: str
    external_id: str = ""
    """The worker's own id there; only the marketplace's address tells it, our forms carry the
    hash"""

    @property
    def proof(self) -> str:
        return proof.sign_form(self.hit.pk, self.assignment, self.handle, self.site)


def framed(
    view: Callable[Concatenate[HttpRequest, P], HttpResponse],
) -> Callable[..., HttpResponse]:
    """Wrap a view for pages that known marketplaces may show in a frame."""

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
    """Return the assignment in the address of the frame; None for an unknown marketplace."""
    worker, site = request.GET["workerId"], origin_of(request.GET.get("turkSubmitTo", ""))
    sound = 0 < len(worker) <= LONGEST_ID and 0 < len(assignment) <= LONGEST_ID
    if not sound or site not in frame_sites():
        return None
    return Go(hit, assignment, handle_of(hit.platform, worker), site, worker)


def go_of(said_by_form: str, hit: HIT) -> Go | None:
    """Return the assignment in our signed form; None if it is invalid, or of another HIT."""
    claims = proof.signed_fields(said_by_form)
    if claims.get("hit") != hit.pk or claims.get("site") not in frame_sites():
        return None
    return Go(hit, claims["assignment"], claims["worker"], claims["site"])


def origin_of(address: str) -> str:
    """Return scheme, host and port of an address; empty if it contains credentials."""
    try:
        parts = urlsplit(address)
        plain = parts.scheme in ("https", "http") and parts.hostname and "@" not in parts.netloc
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc}" if plain else ""
