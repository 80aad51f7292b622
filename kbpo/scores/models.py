"""Scores of metrics and judges: each score is a row, and belongs to one version of its scorer."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

from django.db import models

from kbpo import clock
from kbpo.accounts.models import User
from kbpo.corpus.models import Corpus
from kbpo.instances.models import Instance
from kbpo.queue import Moving
from kbpo.submissions.models import Submission


class ScorerQuerySet(models.QuerySet["Scorer"]):
    """Querysets of scorers; `in_use` has the rule for which of them may narrow intervals."""

    def in_use(self) -> ScorerQuerySet:
        """Return the scorers that are switched on and either were registered before the judgments
        or are stated not to be tuned on them: a scorer that repeats judgments would bias scores.
        """
        return self.filter(is_used=True).exclude(came_late=True, not_tuned_at=None)


class Scorer(models.Model):
    """A metric, or a judge: a program that has read the text. Another version or another prompt is
    another scorer.
    """

    class Source(models.TextChoices):
        COMPUTED = "computed", "computed here"
        BROUGHT = "brought", "brought by an admin"

    corpus = models.ForeignKey(Corpus, on_delete=models.CASCADE, related_name="scorers")
    name = models.CharField(max_length=200)
    version = models.CharField(max_length=200, blank=True)
    prompt = models.CharField(max_length=200, blank=True)
    source = models.CharField(max_length=8, choices=Source.choices, default=Source.BROUGHT)
    is_used = models.BooleanField(
        default=True, help_text="Whether the model g may learn from it: an admin's switch"
    )
    came_late = models.BooleanField(
        default=False,
        help_text="Whether there were judgments of the test part when its first scores were stored",
    )
    not_tuned_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    not_tuned_at = models.DateTimeField(
        null=True, help_text="When an admin stated that it was not tuned on these judgments"
    )
    user = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    made_at = models.DateTimeField(default=clock.now)

    objects = ScorerQuerySet.as_manager()

    if TYPE_CHECKING:
        id: int

    class Meta:
        db_table_comment = "Metrics and judges, each in one version and with one prompt"
        constraints = [
            models.UniqueConstraint(
                fields=["corpus", "name", "version", "prompt", "source"],
                name="scorer_once",
            )
        ]

    def __str__(self) -> str:
        return " ".join(part for part in (self.name, self.version, self.prompt) if part)

    @property
    def needs_statement(self) -> bool:
        """Return whether the scorer is unused until an admin states that it was not tuned on
        judgments.
        """
        return self.came_late and self.not_tuned_at is None


class Score(models.Model):
    """The score that a scorer gave one prediction. It is never replaced."""

    scorer = models.ForeignKey(Scorer, on_delete=models.CASCADE, related_name="scores")
    instance = models.ForeignKey(Instance, on_delete=models.CASCADE, related_name="+")
    value = models.FloatField(null=True, help_text="NULL where a metric is not defined")
    made_at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table_comment = "Scores by metrics and judges, never judgments"
        constraints = [
            models.UniqueConstraint(fields=["scorer", "instance"], name="score_once_a_scorer")
        ]

    def __str__(self) -> str:
        return f"{self.scorer_id} of {self.instance_id}"


class Computing(Moving):
    """A submission whose metrics are still to be computed: *wanted* until all of its predictions
    are scored.
    """

    DEADLINES: ClassVar = {
        "wanted": (
            timedelta(days=1),
            "failed",
            "Its metrics were not computed within a day. Its scores do not need them.",
        )
    }

    submission = models.OneToOneField(
        Submission, on_delete=models.CASCADE, related_name="computing"
    )
    versions = models.JSONField(default=list, help_text="Names and versions of what was computed")
    done = models.IntegerField(default=0, help_text="Predictions whose metrics are all known")
    total = models.IntegerField(default=0)

    class Meta:
        db_table_comment = "Progress of computing a submission's metrics"

    def __str__(self) -> str:
        return f"metrics of {self.submission_id}"
