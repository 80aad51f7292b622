"""The authentication backend, which reads the user of a session with one prepared statement."""

from __future__ import annotations

from django.contrib.auth.backends import ModelBackend

from kbpo.accounts.models import User
from kbpo.prepared import Columns, Prepared

USER = Columns(User, "u")
KNOWN = Prepared(f"SELECT {USER.sql} FROM accounts_user u WHERE u.id = %(user)s")


class PlannedBackend(ModelBackend):
    """Django's own backend with a prepared query for the user."""

    def get_user(self, user_id: int) -> User | None:
        """Return the user of a session; None if they are gone or inactive."""
        row = KNOWN.first(user=user_id)
        user = None if row is None else USER.row(row)
        return user if user is not None and self.user_can_authenticate(user) else None
