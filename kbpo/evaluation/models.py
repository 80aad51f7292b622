"""Box 4, estimation: scoring runs and their numbers, each with its intervals."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from django.db import models
from django.db.models import Case, F, Q, TextField, Value, When, Window
from django.db.models.functions import Cast, Lag, Lead, TruncDate
from django.utils.functional import cached_property

from kbpo import clock
from kbpo.queue import Moving
from kbpo.submissions.models import Submission
from kbpo.tracks import stamps
from kbpo.tracks.models import Track
from scoring.report import HEADLINE, LEAVES_OUT, Details, Figure, Report, pack_report, unpack_report


class EvaluationQuerySet(models.QuerySet["Evaluation"]):
    def with_full_report(self) -> EvaluationQuerySet:
        """Return the evaluations whose full report is stored."""
        return self.filter(is_reduced=False)

    def with_report(self) -> EvaluationQuerySet:
        """Return the evaluations with their reports loaded."""
        return self.defer(None).defer("packed_details")

    def listed(self) -> EvaluationQuerySet:
        """Return the public evaluations of a track: those that changed which runs are on the board
        (`is_other`), and the last of each day. None of them reveals that a private run was scored.
        """
        day = TruncDate("made_at", tzinfo=UTC)
        return (
            self.with_full_report()
            .annotate(
                runs=Cast("standing", TextField()),
                before=Window(Lag("runs", default=Value("[]")), order_by="number"),
                day=day,
                next_day=Window(Lead(day), order_by="number"),
                is_other=Case(When(runs=F("before"), then=False), default=True),
            )
            .filter(Q(is_other=True) | Q(next_day__isnull=True) | ~Q(next_day=F("day")))
        )


_Manager = models.Manager.from_queryset(EvaluationQuerySet)


class EvaluationManager(_Manager):  # type: ignore[type-arg]
    def get_queryset(self) -> EvaluationQuerySet:
        """Return evaluations whose reports are loaded on first access."""
        found = EvaluationQuerySet(self.model, using=self._db)
        return found.defer("packed", "packed_details")


class Evaluation(models.Model):
    """A scoring run of a track with its report. Evaluations keep their numbers. Those that ended a
    stage or that a release prints, and the last of each day (UTC), keep the whole report; the
    others keep only what the board prints.
    """

    track = models.ForeignKey(Track, on_delete=models.CASCADE, related_name="evaluations")
    number = models.PositiveIntegerField(help_text="Counts from 1 within the track")
    stage_end = models.BooleanField(
        default=False, help_text="A submission's judging was complete: kept for ever"
    )
    made_at = models.DateTimeField(default=clock.now)
    seconds = models.FloatField(default=0.0)
    standing = models.JSONField(
        default=list, help_text="Numbers of the submissions on the board, ascending"
    )
    is_reduced = models.BooleanField(
        default=False,
        help_text="A later one of its day replaced it: its report is what the board prints",
    )
    packed = models.BinaryField(default=bytes, help_text="scoring.report.Report, packed")
    packed_details = models.BinaryField(
        default=bytes, help_text="scoring.report.Details, packed; of a reduced one empty"
    )
    objects = EvaluationManager()

    class Meta:
        db_table_comment = "Scoring runs with their reports"
        constraints = [
            models.UniqueConstraint(fields=["track", "number"], name="evaluation_number_once")
        ]

    def __str__(self) -> str:
        return f"Evaluation {self.number}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save the row, and mark the pages of the track as changed."""
        super().save(*args, **kwargs)
        stamps.mark_changed(self.track_id)

    @cached_property
    def report(self) -> Report:
        """Return the report that the board prints."""
        return unpack_report(Report, self.packed)

    @cached_property
    def details(self) -> Details:
        """Return the part of the report that is shown only on the page of a run and in the
        comparison of two runs.
        """
        return unpack_report(Details, self.packed_details)

    def set_report(self, report: Report, details: Details | None = None) -> None:
        """Set the report, and its details if given, without saving the row."""
        self.report, self.packed = report, pack_report(report)
        if details is not None:
            self.details, self.packed_details = details, pack_report(details)

    @property
    def is_listed(self) -> bool:
        """Return whether the evaluation is public."""
        listed = self.track.evaluations.listed()
        return Evaluation.objects.filter(pk=self.pk, pk__in=listed.values("pk")).exists()


class Headline(models.Model):
    """The headline figures of a submission in one evaluation, copied from the report for histories,
    lists and mails.
    """

    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="headlines")
    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="headlines")
    quantity = models.CharField(max_length=16, help_text="The headline of the track, or the mean")
    value = models.FloatField()
    low80 = models.FloatField(null=True)
    high80 = models.FloatField(null=True)
    low95 = models.FloatField(null=True)
    high95 = models.FloatField(null=True)
    n_labels = models.IntegerField()
    kind = models.CharField(max_length=12, help_text="final, provisional")

    class Meta:
        db_table_comment = "Guaranteed numbers of each evaluation"
        constraints = [
            models.UniqueConstraint(
                fields=["evaluation", "submission", "quantity"], name="headline_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.quantity} of {self.submission_id}"

    @property
    def figure(self) -> Figure:
        """Return the stored columns as a figure."""
        return Figure(**{name: getattr(self, name) for name in HEADLINE})


LEAST = 10
"""Number of judgments below which there is no interim interval"""


class InterimIntervalQuerySet(models.QuerySet["InterimInterval"]):
    def excluding_some_values(self) -> InterimIntervalQuerySet:
        """Return the intervals that exclude some values; only these are shown."""
        return self.exclude(low80__lt=LEAVES_OUT, high80__gt=1 - LEAVES_OUT)


class InterimInterval(models.Model):
    """The guaranteed number of a submission with an interim interval, as its page showed them at
    one moment of judging.
    """

    submission = models.ForeignKey(
        Submission, on_delete=models.CASCADE, related_name="interim_intervals"
    )
    order = models.PositiveSmallIntegerField(
        default=0, help_text="The order of judgments that was judged then"
    )
    n = models.IntegerField(help_text="Judgments of this submission that counted then")
    value = models.FloatField()
    low80 = models.FloatField()
    high80 = models.FloatField()
    low95 = models.FloatField()
    high95 = models.FloatField()
    variance = models.FloatField(help_text="What the intervals rest on")
    made_at = models.DateTimeField(default=clock.now)

    objects = InterimIntervalQuerySet.as_manager()

    class Meta:
        db_table = "evaluation_look"
        db_table_comment = "Live intervals as they were shown, one whenever judgments had come"
        constraints = [
            models.UniqueConstraint(
                fields=["submission", "order", "n"], name="look_once_a_number_of_judgments"
            )
        ]

    def __str__(self) -> str:
        return f"interim interval of {self.submission_id} after {self.n}"


class Rescoring(Moving):
    """The scoring state of a track. The track is scored again when `state` differs from the state
    of its data.
    """

    GIVEN_UP = "watching"  # never given up: the next label is a new chance

    track = models.OneToOneField(Track, on_delete=models.CASCADE, related_name="rescoring")
    state = models.JSONField(default=dict, help_text="What the last evaluation saw, as counts")

    class Meta:
        db_table_comment = "Watches over the freshness of scores, one a track"

    def __str__(self) -> str:
        return f"rescoring of {self.track_id}"
