"""Slows down those who guess passwords, and locks nobody out of their own account.

Three counts of failures: of an address for one name, of an address over all names, of a name over
all addresses. Each could be used to lock somebody out, be it from behind the same address; so a
browser in which somebody has logged in before carries a signed cookie with a number of its own. For
the names in it what that browser tried counts, and nothing that is tried elsewhere.

In a new browser, what strangers tried for a name from elsewhere does not count in a network in
which its owner has logged in before: that has a count of its own. Nor does it count in one in which
nobody tried that name, until strangers came from many such: new networks together have a count,
too, so that many of them guess no more than the two allow.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from django.core import signing
from django.http import HttpRequest, HttpResponse

from kbpo.accounts.limits import Limit
from kbpo.accounts.models import User
from kbpo.web.address import address_of, network_of

QUARTER = 15 * 60
BROWSER = Limit("login.browser", 8, QUARTER)
PAIR = Limit("login.pair", 8, QUARTER)
ADDRESS = Limit("login.address", 40, QUARTER)
NAME = Limit("login.name", 40, QUARTER)
NEW_NETWORKS = Limit("login.new", 20, QUARTER)
"""Of one name, once `NAME` is reached, from networks where nobody had tried it"""
TRIED = Limit("login.tried", 1, QUARTER)
"""Whether a network has tried a name"""
AT_HOME = Limit("login.at_home", 20, QUARTER)
"""Of one name from a network in which its owner has logged in before"""
HOME = Limit("login.home", 1, 90 * 24 * 3600)
"""Whether somebody has logged in from a network: the right passwords that it gave"""
COOKIE, SALT = "kbpo_known", "kbpo.web.browser"
A_YEAR = 365 * 24 * 3600
MOST_NAMES = 5


@dataclass(frozen=True)
class _Known:
    """What the cookie of a browser says: its number, which it keeps, and who has logged in with
    it, the last one first.
    """

    number: str
    names: tuple[str, ...]


def pause(request: HttpRequest, name: str) -> int:
    """Return the seconds until a password is looked at again; 0 where it is now. Too much may have
    been tried in the last quarter of an hour: with this browser, where its owner has used it
    before; else from this address, or for this name from its owner's network or from anywhere else.
    """
    if (browser := _known(request)) is not None and name in browser.names:
        return BROWSER.pause(browser.number, name)
    address = address_of(request)
    if seconds := max(PAIR.pause(address, name), ADDRESS.pause(address)):
        return seconds
    network = network_of(request)
    if HOME.is_reached(network, _exactly(name)):
        return AT_HOME.pause(network, name)
    seconds = NAME.pause(name)
    return seconds and min(seconds, max(TRIED.pause(network, name), NEW_NETWORKS.pause(name)))


def count_failure(request: HttpRequest, name: str) -> None:
    """Nothing; one more failure is remembered."""
    if (browser := _known(request)) is not None and name in browser.names:
        BROWSER.count(browser.number, name)
        return
    address = address_of(request)
    PAIR.count(address, name)
    ADDRESS.count(address)
    network = network_of(request)
    if HOME.is_reached(network, _exactly(name)):
        AT_HOME.count(network, name)
        return
    TRIED.count(network, name)
    (NEW_NETWORKS if NAME.is_reached(name) else NAME).count(name)


def forgive(request: HttpRequest, name: str) -> None:
    """Nothing; what was tried for this name with this browser, or else from this address, is
    forgotten: the right password was given.
    """
    if (browser := _known(request)) is not None and name in browser.names:
        BROWSER.forget(browser.number, name)
    else:
        PAIR.forget(address_of(request), name)


def remember(request: HttpRequest, response: HttpResponse, user: User) -> None:
    """Nothing; the browser carries from now on that its user has shown here whose account it is,
    and their network is known.
    """
    HOME.count(network_of(request), _exactly(user.username))
    browser = _known(request) or _Known(secrets.token_urlsafe(12), ())
    names = [user.username, *(name for name in browser.names if name != user.username)]
    response.set_cookie(
        COOKIE,
        signing.dumps([browser.number, *names[:MOST_NAMES]], salt=SALT),
        max_age=A_YEAR,
        secure=request.is_secure(),
        httponly=True,
        samesite="Lax",
    )


def _exactly(name: str) -> str:
    """Return the name as a key that tells capitals apart: another account is not at home there."""
    return name.encode(errors="replace").hex()


def _known(request: HttpRequest) -> _Known | None:
    """Return what the browser's cookie says; None without one that we signed."""
    try:
        number, *names = signing.loads(request.COOKIES.get(COOKIE, ""), salt=SALT, max_age=A_YEAR)
    except (signing.BadSignature, TypeError, ValueError):
        return None
    return _Known(number, tuple(names))
