"""Facts about the world: targets (what people are asked about), instances (elements of the
universe), labels.

Claims of systems are in `kbpo.submissions`; nothing here shows which system claimed what.
"""

from __future__ import annotations

from django.db import models

from kbpo import clock
from kbpo.corpus.models import Corpus, Document, Predicate

ENDS = ("a_begin", "a_end", "b_begin", "b_end")
"""Columns with the begins and ends of the spans of a target in a document"""


class Target(models.Model):
    """The subject of a question: the unit of sampling, of cost and of variance.

    `kind` is the name that the kind of track gives to such targets. `key` hashes the content, so
    that all systems share a row; `u` in [0, 1) is a keyed hash of `key`. A target in a document has
    the document and spans: a *pair* is an unordered pair of mentions, (a_begin, a_end) the smaller
    span; a *mention* uses only a; a *document* neither. A target without a document has its
    `content`, or a row in a table of its kind.
    """

    class Kind(models.TextChoices):
        """The kinds of targets in documents."""

        PAIR = "pair"
        MENTION = "mention"
        DOCUMENT = "document"

    corpus = models.ForeignKey(
        Corpus, on_delete=models.CASCADE, related_name="+", db_constraint=False
    )
    document = models.ForeignKey(
        Document,
        null=True,
        on_delete=models.CASCADE,
        related_name="targets",
        db_constraint=False,
    )
    kind = models.CharField(max_length=16)
    a_begin = models.IntegerField(default=0)
    a_end = models.IntegerField(default=0)
    b_begin = models.IntegerField(default=0)
    b_end = models.IntegerField(default=0)
    key = models.UUIDField(
        unique=True,
        help_text=(
            "MD5 of 'corpus|kind|document|a_begin|a_end|b_begin|b_end', or"
            " SHA-256 of 'corpus|kind|content'"
        ),
    )
    content = models.JSONField(null=True, help_text="What it is, where it lies in no document")
    u = models.FloatField(help_text="Keyed hash of key in [0, 1): the target's random number")
    is_dev = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Of the development part: its judgments are shown, and count for no score",
    )

    class Meta:
        db_table_comment = "What people are asked about, by content"
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

    @property
    def span_offsets(self) -> list[int]:
        """Return the begins and ends of its spans, in the order of `ENDS`."""
        return [getattr(self, end) for end in ENDS]

    @property
    def document_id_or_error(self) -> int:
        """Return the primary key of its document. Raises ValueError if it has none."""
        if self.document_id is None:
            raise ValueError(f"{self} lies in no document")
        return self.document_id

    @property
    def document_or_error(self) -> Document:
        """Return its document. Raises ValueError if it has none."""
        if self.document is None:
            raise ValueError(f"{self} lies in no document")
        return self.document


class Instance(models.Model):
    """An element x of the universe: a possible prediction, unique by content.

    A relation is (document, subject span, predicate, object span); several may have one target. A
    target without such parts has one instance with empty columns.

    There are no foreign-key constraints: targets come from the statement that stores instances, and
    documents and predicates live as long as their corpus, which a track protects. A lookup and a
    lock for each row took longer than storing it.
    """

    target = models.ForeignKey(
        Target, on_delete=models.CASCADE, related_name="instances", db_constraint=False
    )
    document = models.ForeignKey(
        Document,
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    subject_begin = models.IntegerField(null=True)
    subject_end = models.IntegerField(null=True)
    predicate = models.ForeignKey(
        Predicate,
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    object_begin = models.IntegerField(null=True)
    object_end = models.IntegerField(null=True)

    class Meta:
        db_table_comment = "What systems can say, shared by all of them"
        constraints = [
            models.UniqueConstraint(
                fields=["target"],
                condition=models.Q(predicate__isnull=True),
                name="instance_once_a_content",
            ),
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
            ),
        ]

    def __str__(self) -> str:
        return f"instance {self.pk}"

    @property
    def forward(self) -> bool:
        """Return whether the subject is the target's first mention (a)."""
        subject, object_ = (
            (self.subject_begin, self.subject_end),
            (self.object_begin, self.object_end),
        )
        return subject <= object_


STAGED = "majority_of_stages"
"""Method of a label whose third answer was requested only because the first two differed"""


class Label(models.Model):
    """The aggregated judgment: a value on a target. Append-only; `instances.record` is the only
    writer.

    Value of a pair: ``{"shown": ["per:parents>", …], "holds": […], "votes": {"per:parents>": 3,
    …}}``; ``>`` means that the subject is a (the smaller span), ``<`` that it is b. A predicate
    that was not shown is absent, never false. Value of a mention: ``{"canonical": [begin, end],
    "type": "PER", "link": "Carrie Fisher" | "" , "votes": {...}, "offered": [[0, 4], …]}``, the
    names that people saw. Instead of "canonical" it may have "elsewhere" (none of them) or
    "undecided" (no majority), with the representative of its "cluster" if readers of the document
    are undecided; labels from readers have the votes by title as "titled". Value of a document:
    ``{"scope": "sentence", "closed": bool}``; *closed* means that unmarked relations are false.
    Single ratings, which accumulate: ``{"ratings": {"fluency": [1.0, 0.5]}, "people": {"fluency":
    ["3fa…", "91c…"]}}``, each in [0, 1], and the keyed hash of the rater; erasing a person renames
    the hash, otherwise a value never changes. A target without an answer has an empty value and
    method "nonresponse": known to be missing.
    """

    class Source(models.TextChoices):
        EXPERT = "expert"
        IMPORT = "import"
        CROWD = "crowd"
        DOCUMENT = "document"

    PRECEDENCE = ("expert", "import", "crowd", "document")
    OF_DOCUMENTS = ("import", "document")
    """Sources from reading a whole document: their marks are true, and they imply nothing about the
    rest."""
    IS_MARK = "(source IN ('import', 'document') AND NOT jsonb_exists(value, 'ratings'))"
    """SQL: whether a label is a mark from reading a whole document. Imported ratings are judgments,
    also if they are low."""

    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="labels")
    value = models.JSONField()
    source = models.CharField(max_length=8, choices=Source.choices)
    method = models.CharField(max_length=24, help_text="majority, gold, nonresponse …")
    n = models.PositiveSmallIntegerField(help_text="Number of responses behind it")
    disagreement = models.FloatField(
        default=0.0, help_text="Share of responses that differ from the value, worst part"
    )
    question = models.PositiveBigIntegerField(
        null=True, help_text="The number of the question that it came from; none: something else"
    )
    again = models.PositiveSmallIntegerField(
        null=True,
        help_text=(
            "How often its question had been aggregated before: it stands in the place of all that"
            " this had said of the target; none: it was said first"
        ),
    )
    origin = models.CharField(
        max_length=64, help_text="What it came from, for people; once a target"
    )
    created_at = models.DateTimeField(
        default=clock.now, help_text="Visible to teams that predict the target from here on"
    )
    public_at = models.DateTimeField(null=True, help_text="Visible to everybody from here on")

    class Meta:
        db_table_comment = "Judgments, append-only"
        constraints = [
            models.UniqueConstraint(fields=["target", "origin"], name="label_once_an_origin"),
            models.CheckConstraint(
                condition=models.Q(again=None) | models.Q(question__isnull=False),
                name="label_again_of_a_question",
            ),
        ]
        indexes = [
            models.Index(
                fields=["question"],
                condition=models.Q(question__isnull=False),
                name="label_by_question",
            )
        ]

    def __str__(self) -> str:
        return f"label {self.pk} ({self.source})"

    @property
    def is_public(self) -> bool:
        """Return whether the label is public."""
        return self.public_at is not None and self.public_at <= clock.now()
