"""Says who is logged in: by a statement that is planned once, since every page of theirs asks."""

from __future__ import annotations

from django.contrib.auth.backends import ModelBackend

from kbpo.accounts.models import User
from kbpo.prepared import Columns, Prepared

USER = Columns(User, "u")
KNOWN = Prepared(f"SELECT {USER.sql} FROM accounts_user u WHERE u.id = %(user)s")


class PlannedBackend(ModelBackend):
    """Names and passwords of our own, as Django has them."""

    def get_user(self, user_id: int) -> User | None:
        """Return the person of a session; None where they are gone, or may not log in any more."""
        row = KNOWN.first(user=user_id)
        user = None if row is None else USER.row(row)
        return user if user is not None and self.user_can_authenticate(user) else None
