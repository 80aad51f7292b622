"""Authentication: the user of a session, and the repeated password check for risky actions."""

from __future__ import annotations

from django.contrib.auth.backends import ModelBackend

from kbpo.accounts.limits import Limit
from kbpo.accounts.models import User
from kbpo.prepared import Columns, Prepared

USER = Columns(User, "u")
KNOWN = Prepared(f"SELECT {USER.sql} FROM accounts_user u WHERE u.id = %(user)s")


class PlannedBackend(ModelBackend):
    """Django's own backend with a prepared query for the user."""

    def get_user(self, user_id: int) -> User | None:
        """Return the user of a session; None if they are gone or inactive."""
        row = KNOWN.fetch_first(user=user_id)
        user = None if row is None else USER.row(row)
        return user if user is not None and self.user_can_authenticate(user) else None


TRIES = Limit("password_again", 10, 900)
"""Greatest number of wrong passwords of one person in a quarter of an hour, over all pages"""
WRONG = "Nothing was changed: that is not your password."
TOO_MANY = "Nothing was changed: too many tries. Wait a quarter of an hour."


def password_refusal(user: User, password: str) -> str:
    """Return why the password is refused, as a sentence; empty if it is right. Used for actions
    that an open session alone must not allow.
    """
    if not TRIES.count_action(str(user.pk)):
        return TOO_MANY
    if not user.check_password(password):
        return WRONG
    TRIES.reset_count(str(user.pk))
    return ""
