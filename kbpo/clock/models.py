"""Stores when the service ran: its last heartbeat, and the times in which its clock did not
tick.
"""

from __future__ import annotations

from django.db import models


class Heartbeat(models.Model):
    """The only row of its table: the time of the last tick, and the pauses without ticks."""

    at = models.DateTimeField()
    pauses = models.JSONField(
        default=list,
        help_text="[begin, end] of times that no deadline counts, the last one first: the service"
        " was off, or the time jumped ahead",
    )

    class Meta:
        db_table_comment = "When the clock of the service ticked: one row"

    def __str__(self) -> str:
        return f"heartbeat at {self.at}"
