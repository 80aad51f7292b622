"""Box 2, the query distribution: p_i of every submission, the batches, and the draws."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from django.db import models

from kbpo import clock
from kbpo.accounts.models import User
from kbpo.corpus.models import Document, Upload
from kbpo.instances.models import Instance, Target
from kbpo.queue import Moving
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track


class SamplingDistribution(models.Model):
    """The sum of the weights of a submission's predictions under one distribution. It normalises
    the probabilities p_i(x) = weight(x) / total; the weight's SQL comes from the track.
    """

    submission = models.ForeignKey(
        Submission, on_delete=models.CASCADE, related_name="distributions"
    )
    kind = models.CharField(max_length=24)
    total = models.FloatField(help_text="Σ weight over X_i")
    n = models.IntegerField(help_text="|X_i|")
    overlaps = models.JSONField(
        default=dict,
        help_text="Design iid: submission (this or an earlier one) -> Σ_x p_i(x) p_j(x)",
    )
    made_at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table_comment = "Normalisers of p_i, one a submission and kind"
        constraints = [
            models.UniqueConstraint(fields=["submission", "kind"], name="distribution_once"),
            models.CheckConstraint(
                condition=models.Q(total__gt=0, n__gt=0), name="distribution_not_empty"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.submission_id}"


class SampleBatches(models.QuerySet["SampleBatch"]):
    """Querysets of batches of draws."""

    def test_part(self) -> SampleBatches:
        """Return the batches of the test part, which are used for scores and stages."""
        return self.exclude(design=SampleBatch.DEVELOPMENT)


class SampleBatch(models.Model):
    """One draw for one submission: design, seed and size, which determine the draw."""

    DEVELOPMENT = "dev"
    """The design of judgments in the development part, which enter no score"""

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="batches")
    distribution = models.ForeignKey(
        SamplingDistribution, on_delete=models.CASCADE, related_name="batches"
    )
    design = models.CharField(
        max_length=8, choices=[*Track.Design.choices, (DEVELOPMENT, "development part")]
    )
    stage = models.PositiveSmallIntegerField(default=1)
    seed = models.BigIntegerField(help_text="Seed of numpy's PCG64 (design iid)")
    size = models.IntegerField(help_text="Draws (iid) or expected new questions (poisson)")
    settings = models.JSONField(
        default=dict,
        help_text="λ, target and planned variance, model version, reason: as they were",
    )
    drawn_at = models.DateTimeField(default=clock.now)
    settled_at = models.DateTimeField(
        null=True, help_text="When everything drawn was judged, or known to be unanswerable"
    )
    answered_below = models.FloatField(
        null=True,
        help_text=(
            "Of a run that went while it was judged (design poisson): the smallest u/π without an"
            " answer then. Its thresholds count times this"
        ),
    )

    objects = SampleBatches.as_manager()

    class Meta:
        db_table_comment = "Batches of draws"
        constraints = [
            models.UniqueConstraint(
                fields=["submission", "distribution", "design", "stage"], name="batch_once_a_stage"
            )
        ]

    def __str__(self) -> str:
        return f"batch {self.pk}"


class Sample(models.Model):
    """One draw of a batch: a target, with multiplicity and with its probability at the time.

    Design iid: `instance` was drawn `multiplicity` times, each with p_i(x) = `probability`. Design
    poisson: the target was drawn because u < π; `probability` is that π and `instance` is empty.
    """

    batch = models.ForeignKey(SampleBatch, on_delete=models.CASCADE, related_name="samples")
    target = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="samples")
    instance = models.ForeignKey(
        Instance, null=True, on_delete=models.PROTECT, related_name="samples"
    )
    multiplicity = models.PositiveIntegerField(default=1)
    probability = models.FloatField()
    pays = models.BooleanField(
        default=True,
        db_default=True,
        help_text="Of submissions that need the same question, the one that pays if it is asked",
    )

    class Meta:
        db_table_comment = "What was drawn, with its probability at the time"
        constraints = [
            models.UniqueConstraint(
                fields=["batch", "target", "instance"], name="sample_once", nulls_distinct=False
            ),
            models.CheckConstraint(
                condition=models.Q(probability__gt=0, probability__lte=1),
                name="sample_has_probability",
            ),
        ]

    def __str__(self) -> str:
        return f"sample {self.pk}"


class Further(Moving):
    """The prices of narrower intervals of a scored submission, recomputed after every order."""

    DEADLINES: ClassVar = {
        "wanted": (
            timedelta(hours=6),
            "failed",
            "What more would cost was not reckoned within six hours.",
        ),
    }

    submission = models.OneToOneField(Submission, on_delete=models.CASCADE, related_name="further")
    order = models.PositiveSmallIntegerField(
        help_text="Which order of its submission it prepares, from 1"
    )
    plan = models.JSONField(
        default=dict, help_text="Options by half-width, as in a submission's plan"
    )
    made_at = models.DateTimeField(null=True)

    class Meta:
        db_table_comment = "Plans for more judgments of scored submissions"

    def __str__(self) -> str:
        return f"order {self.order} of {self.submission_id}"


class Threshold(models.Model):
    """Design poisson: one increase of a target's inclusion probability. π of a target is the
    largest.
    """

    batch = models.ForeignKey(
        SampleBatch, on_delete=models.CASCADE, related_name="thresholds", db_index=False
    )
    target = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="thresholds")
    pi = models.FloatField()

    class Meta:
        db_table_comment = "Raises of inclusion probabilities, append-only"
        constraints = [
            models.UniqueConstraint(fields=["batch", "target"], name="threshold_once"),
            models.CheckConstraint(
                condition=models.Q(pi__gt=0, pi__lte=1), name="threshold_is_probability"
            ),
        ]

    def __str__(self) -> str:
        return f"π of {self.target_id}"


class DocumentBatch(models.Model):
    """One draw of documents to be read in full: design, stage, seed and size, which determine the
    draw.

    Design two_stage: the first stage is uniform, the second proportional to mentions of the
    entities that people found in the first; `settings` has the sizes of both stages and the inputs
    of the second.
    """

    class Design(models.TextChoices):
        UNIFORM = "uniform"
        TWO_STAGE = "two_stage", "two stages"

    track = models.ForeignKey(Track, on_delete=models.CASCADE, related_name="document_batches")
    design = models.CharField(max_length=12, choices=Design.choices, default=Design.UNIFORM)
    stage = models.PositiveSmallIntegerField(default=1)
    size = models.PositiveIntegerField()
    seed = models.BigIntegerField(help_text="Seed of numpy's PCG64")
    settings = models.JSONField(
        default=dict, help_text="Documents of both stages, uniform share, entities: as it was"
    )
    user = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    drawn_at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table_comment = "Draws of documents to be annotated whole"
        constraints = [
            models.UniqueConstraint(
                fields=["track"], condition=models.Q(stage=2), name="second_stage_of_documents_once"
            ),
            models.CheckConstraint(
                condition=models.Q(stage__in=[1, 2]), name="document_batch_has_stage"
            ),
        ]

    def __str__(self) -> str:
        return f"documents {self.pk}, stage {self.stage}"


class AnnotationUpload(Upload):
    """Annotations of whole documents that an admin uploaded, with the selection of their
    documents.
    """

    FILES = (("file", "file_name"), ("mentions", "mentions_name"))
    UNMARKED = "documents in which nothing is marked"
    LACKING = "mentions of relations that the file of mentions lacks"
    FIRST_LACKING = "first line of a relation with such a mention"

    class Which(models.TextChoices):
        DRAWN = "drawn", "the documents that were drawn and are not annotated"
        SAMPLE = "sample", "documents that are drawn now, uniformly"
        ALL = "all", "every document of the corpus"

    track = models.ForeignKey(Track, on_delete=models.CASCADE, related_name="annotation_uploads")
    file = models.FileField(upload_to="annotations/%Y/%m/", max_length=300)
    file_name = models.CharField(max_length=255)
    mentions = models.FileField(upload_to="annotations/%Y/%m/", max_length=300)
    mentions_name = models.CharField(max_length=255)
    which = models.CharField(max_length=8, choices=Which.choices)
    size = models.PositiveIntegerField(null=True, help_text="How many documents are drawn now")
    seed = models.BigIntegerField(help_text="Of that draw: a trial draws what is loaded later")
    closed = models.BooleanField(
        default=False, help_text="What is not marked is false, not only missing"
    )
    is_public = models.BooleanField(
        default=False, help_text="It was published elsewhere: everybody may see it"
    )

    class Meta:
        db_table_comment = "Annotations that admins uploaded, and what became of them"

    def __str__(self) -> str:
        return f"Annotations of {self.track.name}"

    @property
    def unmarked(self) -> int:
        """Return the number of documents without marks in the files; they count as
        annotated, too.
        """
        return int(self.found.get(self.UNMARKED, 0))

    @property
    def lacking(self) -> int:
        """Return the number of mentions in relations of the upload that its file of mentions lacks.
        Their entities are unknown.
        """
        return int(self.found.get(self.LACKING, 0))

    @property
    def step(self) -> str:
        return "annotate"


class DocumentSample(models.Model):
    """A document drawn to be read in full, always with its inclusion probability.

    In the second stage the probability is conditional on the first. Documents are assigned in the
    order of `position`, so that the annotated ones are a sample of the batch at any moment. A
    document without a batch was imported with its annotation.
    """

    track = models.ForeignKey(Track, on_delete=models.CASCADE, related_name="document_samples")
    document = models.ForeignKey(Document, on_delete=models.PROTECT, related_name="+")
    batch = models.ForeignKey(
        DocumentBatch, null=True, on_delete=models.PROTECT, related_name="samples"
    )
    position = models.PositiveIntegerField(
        default=0, help_text="Place in the random order of its batch"
    )
    design = models.CharField(max_length=12, default="uniform")
    stage = models.PositiveSmallIntegerField(default=1)
    probability = models.FloatField()
    seed = models.BigIntegerField(null=True)
    drawn_at = models.DateTimeField(default=clock.now)
    settled_at = models.DateTimeField(null=True, help_text="When its annotation was complete")

    class Meta:
        db_table_comment = "Documents drawn to be annotated whole"
        constraints = [
            models.UniqueConstraint(fields=["track", "document"], name="document_drawn_once"),
            models.CheckConstraint(
                condition=models.Q(probability__gt=0, probability__lte=1),
                name="document_has_probability",
            ),
        ]

    def __str__(self) -> str:
        return f"document sample {self.pk}"


class ExpertRound(Moving):
    """A draw of judgments for experts: ordered by an admin, then open, then ended.

    A step of the clock draws it, since no request can read all data of a track. Each target has its
    own probability (`ExpertChance`). At most one round of a track is open, and at most one is
    pending or could not be drawn (failed).
    """

    DEADLINES: ClassVar = {
        "asked": (timedelta(hours=6), "failed", "It waited six hours. Ask again; it cost nothing.")
    }

    track = models.ForeignKey(Track, on_delete=models.CASCADE, related_name="expert_rounds")
    number = models.PositiveSmallIntegerField(
        null=True, help_text="Counts from 1 within the track, once it is drawn"
    )
    budget = models.PositiveIntegerField(
        help_text="Expected number of judgments that were not checked before"
    )
    why = models.TextField(blank=True, help_text="What the checks are for, for the audit log")
    drawn_at = models.DateTimeField(default=clock.now)
    drawn_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    released = models.FloatField(
        default=1.0, help_text="Once ended: a check counts if its number < released x chance"
    )

    class Meta:
        db_table_comment = "Draws of judgments for experts, with their chances"
        constraints = [
            models.UniqueConstraint(fields=["track", "number"], name="expert_round_number_once"),
            models.UniqueConstraint(
                fields=["track"],
                condition=models.Q(status="open"),
                name="expert_round_open_once",
            ),
            models.UniqueConstraint(
                fields=["track"],
                condition=models.Q(number__isnull=True),
                name="expert_round_undrawn_once",
            ),
            models.CheckConstraint(
                condition=models.Q(released__gte=0, released__lte=1),
                name="expert_round_released_is_share",
            ),
        ]

    def __str__(self) -> str:
        return f"expert round {self.number or 'to be drawn'}"


class ExpertChance(models.Model):
    """The probability that a round draws a judged target, and the inclusion probability of the
    target itself.

    Stored for every target that could have been drawn, so that the draw can be reproduced and its
    probabilities can be used.
    """

    round = models.ForeignKey(
        ExpertRound, on_delete=models.CASCADE, related_name="chances", db_index=False
    )
    target = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="+", db_index=False)
    probability = models.FloatField(
        help_text="It is checked iff its keyed random number lies below"
    )
    inclusion = models.FloatField(
        help_text="Its inclusion probability then; 0: it counted for single systems alone"
    )

    class Meta:
        db_table_comment = "Probabilities of expert checks, append-only"
        constraints = [
            models.UniqueConstraint(fields=["round", "target"], name="expert_chance_once"),
            models.CheckConstraint(
                condition=models.Q(
                    probability__gt=0, probability__lte=1, inclusion__gte=0, inclusion__lte=1
                ),
                name="expert_chance_is_probability",
            ),
        ]

    def __str__(self) -> str:
        return f"chance of {self.target_id}"


class ExpertCheck(models.Model):
    """A judgment that an expert repeats blind, and the answer, which is not a label (see
    docs/uses_of_judgments.md).

    Kinds: *check* (drawn to correct scores), *dispute* (a researcher thinks that it is wrong).
    """

    class Kind(models.TextChoices):
        CHECK = "check", "drawn to correct scores"
        DISPUTE = "dispute", "disputed"

    class Status(models.TextChoices):
        OPEN = "open"
        ANSWERED = "answered"
        DROPPED = "dropped"

    track = models.ForeignKey(Track, on_delete=models.CASCADE, related_name="expert_checks")
    kind = models.CharField(max_length=12, choices=Kind.choices, default=Kind.CHECK)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.OPEN)
    round = models.ForeignKey(
        ExpertRound,
        null=True,
        on_delete=models.CASCADE,
        related_name="checks",
        help_text="The draw with its chance; none where it was picked",
    )
    target = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="+")
    order = models.FloatField(
        help_text="Random place in the queue; of checks their random number / chance"
    )
    interface = models.CharField(max_length=32)
    payload = models.JSONField(
        help_text="All that the page needs; neither claims nor what the crowd said"
    )
    shown = models.JSONField(default=list)
    note = models.TextField(
        blank=True, help_text="What the researcher says; the expert reads it afterwards"
    )
    raised_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    submission = models.ForeignKey(
        Submission, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    raised_at = models.DateTimeField(default=clock.now)
    holder = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    held_until = models.DateTimeField(
        null=True, help_text="Until then nobody but its holder is asked it"
    )
    draft = models.JSONField(null=True, help_text="Its holder's answer so far")
    raw = models.JSONField(null=True, help_text="The answer as it was sent")
    value = models.JSONField(null=True, help_text="Target -> value; empty: it cannot be answered")
    agrees = models.BooleanField(null=True, help_text="Whether the expert says what the label said")
    remark = models.TextField(blank=True, help_text="What the expert wrote after seeing the votes")
    expert = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    answered_at = models.DateTimeField(null=True)

    class Meta:
        db_table_comment = "Judgments that experts are asked about, blind, with what they said"
        constraints = [
            models.UniqueConstraint(
                fields=["track", "target"],
                condition=models.Q(kind="check"),
                name="expert_check_once",
            ),
            models.UniqueConstraint(
                fields=["track", "target", "submission"],
                condition=models.Q(status="open", kind="dispute"),
                name="expert_dispute_open_once",
            ),
            models.CheckConstraint(
                condition=models.Q(answered_at__isnull=True) | models.Q(value__isnull=False),
                name="expert_check_answered_has_value",
            ),
            models.CheckConstraint(
                condition=~models.Q(status="answered")
                | models.Q(raw__isnull=False, answered_at__isnull=False),
                name="expert_check_answered_has_answer",
            ),
            models.CheckConstraint(
                condition=models.Q(kind="check", round__isnull=False)
                | models.Q(kind="dispute", round__isnull=True),
                name="expert_check_drawn_has_round",
            ),
        ]
        indexes = [models.Index(fields=["status", "order"], name="expert_check_queue")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.target_id}"
