"""Slows down those who guess passwords, and locks nobody out of their own account.

Three counts of failures: of an address for one name, of an address over all names, of a name over
all addresses. The last one could be used to lock somebody out; so a browser in which somebody has
logged in before carries a signed cookie, and is not held up by what strangers do to its owner.
"""

from __future__ import annotations

from django.core import signing
from django.http import HttpRequest, HttpResponse

from kbpo.accounts.limits import Limit
from kbpo.accounts.models import User
from kbpo.web.address import address_of

QUARTER = 15 * 60
PAIR = Limit("login.pair", 8, QUARTER)
ADDRESS = Limit("login.address", 40, QUARTER)
NAME = Limit("login.name", 60, QUARTER)
COOKIE, SALT = "kbpo_known", "kbpo.web.known_browser"
A_YEAR = 365 * 24 * 3600


def is_paused(request: HttpRequest, name: str) -> bool:
    """Return whether too much was tried in the last quarter of an hour: from this address, or for
    this name from anywhere by browsers that its owner has never used.
    """
    address = address_of(request)
    if PAIR.is_reached(address, name):
        return True
    if _is_known(request, name):
        return False
    return ADDRESS.is_reached(address) or NAME.is_reached(name)


def count_failure(request: HttpRequest, name: str) -> None:
    """Nothing; one more failure is remembered."""
    address = address_of(request)
    PAIR.count(address, name)
    ADDRESS.count(address)
    NAME.count(name)


def forgive(request: HttpRequest, name: str) -> None:
    """Nothing; what this address tried for this name is forgotten: the right password was given."""
    PAIR.forget(address_of(request), name)


def remember(request: HttpRequest, response: HttpResponse, user: User) -> None:
    """Nothing; the browser carries from now on that its user has logged in here."""
    names = [one for one in _names_of(request) if one != user.username][:4]
    response.set_cookie(
        COOKIE,
        signing.dumps([user.username, *names], salt=SALT),
        max_age=A_YEAR,
        secure=request.is_secure(),
        httponly=True,
        samesite="Lax",
    )


def _is_known(request: HttpRequest, name: str) -> bool:
    return name.strip().lower() in [one.lower() for one in _names_of(request)]


def _names_of(request: HttpRequest) -> list[str]:
    """Return who has logged in with this browser, the last one first."""
    try:
        said = signing.loads(request.COOKIES.get(COOKIE, ""), salt=SALT, max_age=A_YEAR)
    except signing.BadSignature:
        return []
    return [str(one) for one in said] if isinstance(said, list) else []
