"""Releases of tracks, from the order to the file that everybody may download."""

from __future__ import annotations

from django.db import models

from kbpo.queue import Moving
from kbpo.tracks.models import Track


class Release(Moving):
    """A release of a track. It never changes; a later release is another row."""

    class Status(models.TextChoices):
        ORDERED = "ordered", "Being made"
        MADE = "made", "Made"
        REFUSED = "refused", "Refused"  # `reason` says why
        FAILED = "failed", "Given up"

    track = models.ForeignKey(Track, on_delete=models.PROTECT, related_name="releases")
    number = models.PositiveIntegerField(help_text="Counts from 1 within the track")
    made_at = models.DateTimeField(null=True)
    file = models.FileField(upload_to="releases/", blank=True, max_length=300)
    size = models.BigIntegerField(default=0)
    digest = models.CharField(max_length=64, blank=True, help_text="SHA-256 of the file")
    has_parquet = models.BooleanField(
        default=False, help_text="Its tables are in its file as Parquet, too"
    )
    rows = models.JSONField(default=dict, help_text="Table -> how many rows it has")

    class Meta:
        db_table_comment = "Releases of tracks: all that a board rests on, as a file"
        constraints = [
            models.UniqueConstraint(fields=["track", "number"], name="release_number_once"),
            models.UniqueConstraint(
                fields=["track"],
                condition=models.Q(status="ordered"),
                name="one_release_at_a_time",
            ),
        ]

    def __str__(self) -> str:
        return f"release {self.number} of {self.track_id}"

    def get_status_display(self) -> str:
        """Return the status in words."""
        return str(self.Status(self.status).label)

    @property
    def file_name(self) -> str:
        """Return the name under which the release is downloaded."""
        return f"{self.track.slug}-release-{self.number}.zip"
