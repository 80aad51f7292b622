"""Database sessions that read their expiry together with their data."""

from __future__ import annotations

from datetime import datetime

from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session

from kbpo import clock
from kbpo.prepared import Columns, Prepared

SESSION = Columns(Session, "s")
KEPT = Prepared(f"""
    SELECT {SESSION.sql} FROM django_session s
    WHERE s.session_key = %(key)s AND s.expire_date > %(now)s
""")
"""A prepared statement, since every page of a logged-in user begins with this query."""


class SessionStore(db.SessionStore):
    """A database session that reads its expiry together with its data."""

    ends: datetime | None = None

    def _get_session_from_db(self) -> Session | None:
        row = KEPT.fetch_first(key=self.session_key, now=clock.now())
        kept = None if row is None else SESSION.row(row)
        if kept is None:
            self._session_key = None
        self.ends = None if kept is None else kept.expire_date
        return kept
