"""Sees to it that no session waits for ever, also where a pooler stands in front of PostgreSQL.

The limits are asked for when a connection is opened (`kbpo.environment.patience`). PgBouncer
refuses that, or drops it if it is told to; so they are asked for once more, as a statement, in the
session.
"""

from __future__ import annotations

import re
from typing import Any

LIMITS = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")


def set_session_limits(connection: Any, **_: Any) -> None:
    """Set the limits of a newly opened session that its URL asks for."""
    asked = connection.settings_dict["OPTIONS"].get("options", "")
    said = dict(re.findall(r"(?:-c\s*|--)(\w+)=(\S+)", asked))
    limits = [(name, said[name]) for name in LIMITS if name in said]
    if limits:
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT {', '.join(['set_config(%s, %s, false)'] * len(limits))}",
                [part for limit in limits for part in limit],
            )
