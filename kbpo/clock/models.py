"""When the service ran: its last heartbeat, and the times in which its clock did not tick."""

from __future__ import annotations

from django.db import models


class Heartbeat(models.Model):
    """The one row that says when the clock ticked last."""

    at = models.DateTimeField()

    class Meta:
        db_table_comment = "When the clock of the service ticked last: one row"

    def __str__(self) -> str:
        return f"heartbeat at {self.at}"


class Pause(models.Model):
    """A time in which the clock did not tick: the service was off, or the time jumped ahead."""

    begin = models.DateTimeField()
    end = models.DateTimeField(db_index=True)

    class Meta:
        db_table_comment = "Times that no deadline counts: the service was off, or the time jumped"

    def __str__(self) -> str:
        return f"pause from {self.begin} to {self.end}"
