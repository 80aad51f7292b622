"""Models of quality control: policy, gold, rejections."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from kbpo import clock
from kbpo.accounts.models import User
from kbpo.tracks.models import Track

SIGNALS = ("majority", "gold", "unread", "too_fast", "short_edit")
"""Kinds of signals that can be counted against a worker"""


def signals_that_exclude() -> list[str]:
    """Return the kinds of signals that exclude automatically by default."""
    return ["majority", "gold", "unread"]


class Policy(models.Model):
    """How the answers of a track are checked and aggregated. A track without a row has the
    defaults.
    """

    class Aggregation(models.TextChoices):
        MAJORITY = "majority", "majority"
        DAWID_SKENE = "dawid_skene", "Dawid and Skene’s model"

    track = models.OneToOneField(Track, on_delete=models.CASCADE, related_name="policy")
    gold_rate = models.FloatField(
        default=0.0, help_text="Share of questions that are gold, for each worker"
    )
    aggregation = models.CharField(
        max_length=16, choices=Aggregation.choices, default=Aggregation.MAJORITY
    )
    fitted_at = models.DateTimeField(null=True)
    revision = models.PositiveIntegerField(
        default=0, help_text="Counts the times that labels were re-aggregated"
    )
    exclude_for = models.JSONField(
        default=signals_that_exclude,
        help_text="Kinds of signals from this track's answers that exclude a worker by themselves",
    )

    timed = models.BooleanField(
        default=True,
        help_text="Whether answers that come too fast are noted: programs need no time",
    )

    class Meta:
        db_table_comment = "How a track's answers are checked and added up"
        constraints = [
            models.CheckConstraint(
                condition=Q(gold_rate__gte=0, gold_rate__lte=0.5), name="gold_rate_at_most_half"
            )
        ]

    def __str__(self) -> str:
        return f"policy of {self.track_id}"


class Gold(models.Model):
    """A question with a known answer. It is published among the others and paid like them, and
    never becomes a label.
    """

    question = models.OneToOneField(
        "annotation.Question", on_delete=models.CASCADE, related_name="gold"
    )
    source = models.ForeignKey(
        "annotation.Question", null=True, on_delete=models.SET_NULL, related_name="gold_made"
    )
    expected = models.JSONField(
        help_text="The right answer, parsed: criterion, target and value of each judgment"
    )
    why = models.TextField(blank=True, help_text="Why it is right")
    made_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    made_at = models.DateTimeField(default=clock.now)
    retired_at = models.DateTimeField(null=True)

    class Meta:
        db_table_comment = "Gold questions: their right answers, never shown to workers"

    def __str__(self) -> str:
        return f"gold {self.pk}"


class Rejection(models.Model):
    """A rejected payment, by an admin and with evidence; it can be undone."""

    assignment = models.ForeignKey(
        "annotation.Assignment", on_delete=models.PROTECT, related_name="rejections"
    )
    who = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    evidence = models.TextField(help_text="What was wrong with the answer; its worker reads it")
    was = models.CharField(max_length=16, help_text="Status of the assignment before")
    made_at = models.DateTimeField(default=clock.now)
    undone_at = models.DateTimeField(null=True)
    undone_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        db_table_comment = "Refusals of pay, with evidence"
        constraints = [
            models.UniqueConstraint(
                fields=["assignment"],
                condition=Q(undone_at__isnull=True),
                name="rejection_once_at_a_time",
            )
        ]

    def __str__(self) -> str:
        return f"rejection of assignment {self.assignment_id}"
