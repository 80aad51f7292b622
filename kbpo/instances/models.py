"""Facts about the world: targets (what people are asked about), instances (elements of the
universe), labels, metrics.

What a system claims lives in `kbpo.submissions`; nothing here knows who claimed what.
"""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from kbpo.corpus.models import Corpus, Document, Predicate


class Target(models.Model):
    """What people are asked about: the unit of chance, of cost and of variance.

    A *pair* is an unordered pair of mentions: (a_begin, a_end) is the smaller span. A *mention*
    uses only a; a
    *document* neither. `key` hashes the content, so that all systems share a row; `u` in [0, 1) is
    a keyed hash of it.
    """

    class Kind(models.TextChoices):
        PAIR = "pair"
        MENTION = "mention"
        DOCUMENT = "document"
        OUTPUT = "output"

    corpus = models.ForeignKey(
        Corpus, on_delete=models.CASCADE, related_name="+", db_constraint=False
    )
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="targets")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    a_begin = models.IntegerField(default=0)
    a_end = models.IntegerField(default=0)
    b_begin = models.IntegerField(default=0)
    b_end = models.IntegerField(default=0)
    key = models.UUIDField(
        unique=True, help_text="MD5 of 'corpus|kind|document|a_begin|a_end|b_begin|b_end'"
    )
    u = models.FloatField(help_text="Keyed hash of key in [0, 1): the target's random number")

    class Meta:
        db_table_comment = "What people are asked about: pair, mention, document, output"
        indexes = [models.Index(fields=["document", "kind"])]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(u__gte=0, u__lt=1), name="target_u_in_unit_interval"
            ),
            models.CheckConstraint(
                condition=models.Q(a_begin__lt=models.F("b_begin"))
                | models.Q(a_begin=models.F("b_begin"), a_end__lte=models.F("b_end"))
                | ~models.Q(kind="pair"),
                name="pair_smaller_span_first",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"


class Instance(models.Model):
    """An element x of the universe: (document, subject span, predicate, object span), unique by
    content.

    PostgreSQL checks the target alone: the document is the target's, predicates live as long as
    their corpus, and two more checks a row took half of the time in which instances are stored.
    """

    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="instances")
    document = models.ForeignKey(
        Document, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    subject_begin = models.IntegerField()
    subject_end = models.IntegerField()
    predicate = models.ForeignKey(
        Predicate, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    object_begin = models.IntegerField()
    object_end = models.IntegerField()

    class Meta:
        db_table_comment = "Relation instances, shared by all systems"
        constraints = [
            models.UniqueConstraint(
                fields=[
                    "document",
                    "subject_begin",
                    "object_begin",
                    "subject_end",
                    "object_end",
                    "predicate",
                ],
                name="instance_once",
            )
        ]

    def __str__(self) -> str:
        return f"instance {self.pk}"

    @property
    def forward(self) -> bool:
        """Whether the subject is the target's first mention (a)."""
        return (self.subject_begin, self.subject_end) <= (self.object_begin, self.object_end)


class Label(models.Model):
    """The aggregated judgment: a value on a target. Append-only; `instances.record` is the only
    writer.

    Value of a pair: ``{"shown": ["per:parents>", …], "holds": […], "votes": {"per:parents>": 3,
    …}}``; ``>`` means that the subject is a (the smaller span), ``<`` that it is b. A predicate
    that was not shown is missing, never false. Value of a mention: ``{"canonical": [begin, end],
    "type": "PER", "link": "Carrie Fisher" | "" , "votes": {...}}``. Value of a document:
    ``{"scope": "sentence", "closed": bool}``; *closed* says that what is not marked is false. A
    target that was given up has an empty value and method "given_up": known to be missing.
    """

    class Source(models.TextChoices):
        EXPERT = "expert"
        IMPORT = "import"
        CROWD = "crowd"
        DOCUMENT = "document"

    PRECEDENCE = ("expert", "import", "crowd", "document")
    OF_DOCUMENTS = ("import", "document")
    """Sources that come from reading a document whole: what they mark is true, of the rest they
    say nothing."""

    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="labels")
    value = models.JSONField()
    source = models.CharField(max_length=8, choices=Source.choices)
    method = models.CharField(max_length=24, help_text="majority, gold, given_up …")
    n = models.PositiveSmallIntegerField(help_text="Number of responses behind it")
    disagreement = models.FloatField(
        default=0.0, help_text="Share of responses that differ from the value, worst part"
    )
    origin = models.CharField(
        max_length=64, help_text="What it came from, e.g. 'question:12'; once per target and origin"
    )
    created_at = models.DateTimeField(
        default=timezone.now, help_text="Visible to teams that state the target from here on"
    )
    public_at = models.DateTimeField(null=True, help_text="Visible to everybody from here on")

    class Meta:
        db_table_comment = "Judgments, append-only"
        constraints = [
            models.UniqueConstraint(fields=["target", "origin"], name="label_once_an_origin")
        ]

    def __str__(self) -> str:
        return f"label {self.pk} ({self.source})"

    @property
    def is_public(self) -> bool:
        """Whether everybody may see it."""
        return self.public_at is not None and self.public_at <= timezone.now()


class MetricScore(models.Model):
    """An automatic metric g(x) of an instance's target: free, versioned, never a judgment."""

    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="scores")
    metric = models.CharField(max_length=40)
    version = models.PositiveIntegerField()
    value = models.FloatField()

    class Meta:
        db_table_comment = "Automatic metrics, one value a target and version"
        constraints = [
            models.UniqueConstraint(
                fields=["metric", "version", "target"], name="score_once_a_version"
            )
        ]

    def __str__(self) -> str:
        return f"{self.metric} v{self.version}"
