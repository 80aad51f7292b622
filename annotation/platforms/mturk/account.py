"""Which endpoint is used, and whether its money is real. For real money two settings must agree."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings

from annotation.platforms.base import Account, PlatformDown, usable_account

SANDBOX = "mturk-requester-sandbox."
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def account() -> Account | None:
    """Return the endpoint that is set; None if there is none."""
    endpoint = settings.MTURK_ENDPOINT_URL
    if not endpoint:
        return None
    host = urlsplit(endpoint).hostname or ""
    real = host not in LOOPBACK and not host.startswith(SANDBOX)
    if real and not settings.REAL_MONEY:
        return Account(
            endpoint,
            real,
            False,
            f"{host} pays with real money, but REAL_MONEY is not true: nothing is published"
            " or paid there.",
        )
    if settings.REAL_MONEY and not real:
        return Account(
            endpoint,
            real,
            False,
            f"REAL_MONEY is true, but {host} is a place for trials: nothing is published"
            " or paid there.",
        )
    if real and not endpoint.startswith("https://"):
        return Account(
            endpoint,
            real,
            False,
            f"{host} must be spoken to over https: nothing is published there.",
        )
    return Account(
        endpoint, real, True, f"Real money moves at {host}." if real else f"Play money, at {host}."
    )


def refuse_other_endpoint(endpoint: str, what: str) -> None:
    """Raise PlatformDown, with a sentence, for what was made at another endpoint than the one that
    is set. So work in a sandbox is never paid with real money, and the books of two endpoints are
    never mixed.
    """
    now = usable().endpoint
    if endpoint != now:
        where = f"was made at {endpoint}" if endpoint else "was made before we noted where"
        raise PlatformDown(
            f"{what} {where}, and {now} is set (MTURK_ENDPOINT_URL): nothing is done with it here."
        )


def usable() -> Account:
    """Return the endpoint, if it can be used. Raises PlatformDown with a sentence."""
    return usable_account(account())
