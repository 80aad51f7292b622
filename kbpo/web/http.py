"""Shared parts of views: access, client addresses, form fields, and read-only snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from functools import wraps
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Concatenate, ParamSpec, TypeVar, cast

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import connection, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.cache import never_cache

from kbpo.accounts.mail import is_mail_configured
from kbpo.accounts.models import User
from kbpo.corpus.cache import cache_reads
from kbpo.tracks.models import Track

P = ParamSpec("P")
R = TypeVar("R", bound=HttpResponseBase)


def for_admins(
    view: Callable[Concatenate[HttpRequest, P], R],
) -> Callable[Concatenate[HttpRequest, P], R]:
    """Return the view, limited to admins and never cached by browsers."""

    @wraps(view)
    @never_cache
    @login_required
    def view_for_admins(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if not current_admin(request).is_staff:
            raise PermissionDenied("This page is for the admins of this service.")
        return view(request, *args, **kwargs)

    return view_for_admins


def current_admin(request: HttpRequest) -> User:
    """Return `request.user` with the type User. The function checks nothing: it is for views that
    require log-in.
    """
    return cast(User, request.user)


def public_track(slug: str, *, drafts: bool = False) -> Track:
    """Return the track with its corpus. Raises Http404 if it does not exist, or is a draft unless
    `drafts`.
    """
    tracks = Track.objects.select_related("corpus").defer("corpus__hash_key")
    track = tracks.filter(slug=slug).first()
    if track is None or (track.status == Track.Status.DRAFT and not drafts):
        raise Http404(f"There is no track “{slug[:60]}”.")
    return track


def client_address(request: HttpRequest) -> str:
    """Return the client's IPv4 address, or the /64 network of its IPv6 address, which belongs to
    one person.

    Each of `PROXIES` proxies appends the address of its client to `X-Forwarded-For`. Entries
    further left were written by the client and are ignored. If the header is too short, or contains
    no address, the address of the connection is returned.
    """
    peer = str(request.META.get("REMOTE_ADDR", ""))
    hops = [hop.strip() for hop in request.headers.get("X-Forwarded-For", "").split(",")]
    visitor = hops[-settings.PROXIES] if 0 < settings.PROXIES <= len(hops) else peer
    return _network_of_address(visitor) or _network_of_address(peer) or peer


def client_network(request: HttpRequest) -> str:
    """Return the network of the client's provider: /24 for IPv4, /48 for IPv6."""
    address = client_address(request)
    try:
        network = ip_network(address)
    except ValueError:
        return address[:64]
    return str(network.supernet(new_prefix=24 if network.version == 4 else 48))


def _network_of_address(text: str) -> str:
    try:
        address = ip_address(text.removeprefix("[").partition("]")[0].partition("%")[0])
    except ValueError:
        return ""
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{IPv6Address(int(address) >> 64 << 64)}/64"


def has_typed_word(request: HttpRequest, word: str) -> bool:
    """Return whether the confirmation word was typed, in any case (see
    `templates/components/word.html`).
    """
    return request.POST.get("word", "").strip().lower() == word.lower()


def form_text(request: HttpRequest, name: str, max_length: int = 500) -> str:
    """Return the text of a form field, cut to `max_length` characters."""
    return request.POST.get(name, "").replace("\x00", "").strip()[:max_length]


def form_reason(request: HttpRequest, default: str = "") -> str:
    """Return the reason in the form, for the log; the default without one."""
    return form_text(request, "why") or default


def form_pk(request: HttpRequest, name: str = "pk") -> int:
    """Return the primary key in the form. Raises Http404."""
    text = request.POST.get(name, "")
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise Http404("The form names no row.")
    return int(text)


def run_action(
    request: HttpRequest,
    actions: Mapping[str, Callable[Concatenate[HttpRequest, P], R]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> R:
    """Return the response of the action that the form names. Raises SuspiciousOperation for an
    unknown action.
    """
    action = actions.get(request.POST.get("action", ""))
    if action is None:
        raise SuspiciousOperation("The form names no action of this page.")
    return action(request, *args, **kwargs)


def in_snapshot(
    view: Callable[Concatenate[HttpRequest, P], R],
) -> Callable[Concatenate[HttpRequest, P], R]:
    """Return the view with all its queries in one read-only snapshot. Requests that write are not
    affected, since they must see the latest data.
    """

    @wraps(view)
    def view_in_snapshot(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if request.method not in ("GET", "HEAD"):
            return view(request, *args, **kwargs)
        with database_snapshot():
            return view(request, *args, **kwargs)

    return view_in_snapshot


@contextmanager
def database_snapshot() -> Iterator[None]:
    """Run a block in one read-only snapshot of the database (REPEATABLE READ), and cache repeated
    reads in it (`cache_reads`). Inside another transaction reads are cached, but the transaction
    is unchanged.
    """
    if connection.in_atomic_block:
        with cache_reads():
            yield
        return
    with transaction.atomic(), cache_reads():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


OURS = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'self'"
"""Content security policy: scripts, styles, fonts and requests come from the site itself, and none
are inline
"""
UNFRAMED = "frame-ancestors 'none'; form-action 'self'"
"""Forbids frames; task pages in a marketplace's frame replace it by the allowed sites"""
HEADER = "Content-Security-Policy"


class PolicyMiddleware:
    """Adds the security policy headers to every response."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response[HEADER] = f"{OURS}; {response.headers.get(HEADER, UNFRAMED)}"
        return response


def add_contact(request: HttpRequest) -> dict[str, str | bool]:
    """Return the contact address for the footer, and whether the site sends mail."""
    return {"contact": settings.CONTACT, "sends_mail": is_mail_configured()}


def parse_amount(text: str, maximum: int = 100_000) -> Decimal | None:
    """Return an amount that was typed, rounded to the cent; None if it is invalid, negative or
    above `maximum`.
    """
    try:
        value = Decimal(text.strip().removeprefix("$"))
    except InvalidOperation:
        return None
    cents = value.is_finite() and 0 <= value <= maximum and value == value.quantize(Decimal("0.01"))
    return value.quantize(Decimal("0.01")) if cents else None
