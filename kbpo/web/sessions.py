"""Sessions in the database that know when they end: the row that was read says so."""

from __future__ import annotations

from datetime import datetime

from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session


class SessionStore(db.SessionStore):
    """A session, and until when it was kept as it was read."""

    ends: datetime | None = None

    def _get_session_from_db(self) -> Session | None:
        kept: Session | None = super()._get_session_from_db()  # type: ignore[misc]
        self.ends = None if kept is None else kept.expire_date
        return kept
