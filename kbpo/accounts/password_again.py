"""Asks for the password again, for actions that an open page must not allow."""

from __future__ import annotations

from kbpo.accounts.limits import Limit
from kbpo.accounts.models import User

TRIES = Limit("password_again", 10, 900)
"""Wrong passwords of one person in a quarter of an hour, on all pages together"""
WRONG = "Nothing was changed: that is not your password."
TOO_MANY = "Nothing was changed: too many tries. Wait a quarter of an hour."


def password_refusal(user: User, password: str) -> str:
    """Return why the password is refused, as a sentence; empty if it is right."""
    if not TRIES.count(str(user.pk)):
        return TOO_MANY
    if not user.check_password(password):
        return WRONG
    TRIES.forget(str(user.pk))
    return ""
