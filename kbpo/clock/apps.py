"""Sets the time limits of every database session, also behind a connection pooler.

The limits are requested when a connection is opened (`kbpo.environment.patience`). PgBouncer
refuses that, or drops it if configured so; therefore a statement sets them again.
"""

import re
from typing import Any

from django.apps import AppConfig
from django.db.backends.signals import connection_created

LIMITS = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")


class ClockConfig(AppConfig):
    name = "kbpo.clock"

    def ready(self) -> None:
        connection_created.connect(set_session_limits, dispatch_uid="patience")


def set_session_limits(connection: Any, **_: Any) -> None:
    """Set the limits that the database URL asks for in a newly opened session."""
    asked = connection.settings_dict["OPTIONS"].get("options", "")
    values = dict(re.findall(r"(?:-c\s*|--)(\w+)=(\S+)", asked))
    limits = [(name, values[name]) for name in LIMITS if name in values]
    if limits:
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT {', '.join(['set_config(%s, %s, false)'] * len(limits))}",
                [part for limit in limits for part in limit],
            )
