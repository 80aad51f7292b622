"""Box 1, the input source: corpora, their documents, sentences and mentions, and the predicates of
their schema.
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from functools import cached_property
from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchQuery, SearchVector
from django.db import models
from django.db.models import QuerySet
from django.db.models.functions import Left
from django.utils.text import slugify

from formats.relation import relation_names
from kbpo import clock
from kbpo.queue import Moving

SEARCHED = 250_000
"""Number of characters of a text that can be searched, since PostgreSQL limits the size of an index
entry
"""
WORDS = SearchVector("title", Left("text", SEARCHED), config="simple")
"""The words of a document, unstemmed"""


def new_key() -> str:
    """Return a fresh secret for keyed hashes (32 bytes, hexadecimal)."""
    return secrets.token_hex(32)


class Corpus(models.Model):
    """A set of documents with one schema. `hash_key` is the secret key of the random numbers of its
    targets.
    """

    name = models.CharField(max_length=120, unique=True)
    slug = models.SlugField(max_length=120, unique=True)
    schema = models.JSONField(help_text="Entity types and predicates, as in the schema file")
    description = models.TextField(blank=True, help_text="What the texts are and where from")
    licence = models.CharField(
        max_length=200, blank=True, help_text="Under which the texts may be used"
    )
    may_be_downloaded = models.BooleanField(
        default=True, help_text="Whether everybody may download the documents"
    )
    digest = models.CharField(
        max_length=64, blank=True, help_text="SHA-256 of the file that was loaded"
    )
    n_documents = models.PositiveIntegerField(default=0)
    opened_at = models.DateTimeField(
        null=True, help_text="When the last track on it was closed: all judgments are public since"
    )
    n_dev = models.PositiveIntegerField(
        default=0, help_text="Documents of the development part among them"
    )
    hash_key = models.CharField(max_length=64, default=new_key)
    loaded_at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table_comment = "Corpora: a set of documents with one schema"
        verbose_name_plural = "corpora"

    def __str__(self) -> str:
        return self.name

    @cached_property
    def has_mentions(self) -> bool:
        """Return whether its texts came with mentions."""
        return Mention.objects.filter(document__corpus=self.pk).exists()

    def relation_names(self) -> dict[str, str]:
        """Return the display name of each predicate."""
        return relation_names(self.schema.get("predicates", ()))

    @property
    def n_test(self) -> int:
        """Return the number of documents in the test part."""
        return self.n_documents - self.n_dev


class Upload(Moving):
    """Files uploaded by an admin's browser. Statuses: received, tried, wanted, loaded; or
    failed.
    """

    DEADLINES: ClassVar = {
        "received": (
            timedelta(hours=6),
            "failed",
            "It waited six hours to be tried. Send it again.",
        ),
        "wanted": (
            timedelta(hours=6),
            "failed",
            "It was not loaded within six hours. Send it again.",
        ),
    }
    FILES: ClassVar[tuple[tuple[str, str], ...]]
    """Its file fields, each with the field that has the file's original name"""
    found = models.JSONField(default=dict, help_text="What a trial counted")
    made_at = models.DateTimeField(default=clock.now)

    class Meta:
        abstract = True

    @cached_property
    def notes(self) -> list[str]:
        """Return notes on ignored parts of the files, until `reason` contains them."""
        return []

    @property
    def file_names(self) -> list[str]:
        """Return the original names of the files."""
        return [name for _, field in self.FILES if (name := getattr(self, field))]

    @property
    def step(self) -> str:
        """Return the step of the pipeline that tries and loads the upload."""
        raise NotImplementedError


class CorpusUpload(Upload):
    """A corpus that an admin uploaded: documents with their schema, or inputs of systems that write
    texts.
    """

    class What(models.TextChoices):
        DOCUMENTS = "documents", "documents, in which systems find relations"
        INPUTS = "inputs", "inputs, for which systems write texts"

    FILES = (
        ("file", "file_name"),
        ("schema_file", "schema_name"),
        ("mentions", "mentions_name"),
    )

    what = models.CharField(max_length=9, choices=What.choices, default=What.DOCUMENTS)
    name = models.CharField(max_length=120)
    file = models.FileField(upload_to="corpora/%Y/%m/", max_length=300)
    file_name = models.CharField(max_length=255, help_text="As it was called where it came from")
    schema = models.CharField(max_length=80, blank=True, help_text="A schema that ships with us")
    schema_file = models.FileField(upload_to="corpora/%Y/%m/", max_length=300, blank=True)
    schema_name = models.CharField(max_length=255, blank=True)
    mentions = models.FileField(upload_to="corpora/%Y/%m/", max_length=300, blank=True)
    mentions_name = models.CharField(max_length=255, blank=True)
    dev_share = models.FloatField(
        null=True, help_text="Share that becomes the development part; empty: the default"
    )
    corpus = models.ForeignKey(Corpus, null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        db_table_comment = "Corpora that admins uploaded, and what became of them"

    def __str__(self) -> str:
        return self.name

    @property
    def step(self) -> str:
        return "load" if self.what == self.What.DOCUMENTS else "load_inputs"


class Predicate(models.Model):
    """One predicate of a corpus's schema, so that instances can refer to it by a small integer."""

    id = models.AutoField(primary_key=True)
    corpus = models.ForeignKey(Corpus, on_delete=models.CASCADE, related_name="predicates")
    name = models.CharField(max_length=120)
    position = models.PositiveSmallIntegerField(
        help_text="Order in the schema: frequent ones first"
    )

    class Meta:
        db_table_comment = "Predicates of a corpus's schema"
        constraints = [
            models.UniqueConstraint(fields=["corpus", "name"], name="predicate_once_a_corpus")
        ]

    def __str__(self) -> str:
        return self.name


class Part(models.TextChoices):
    """The two parts of a corpus. Judgments in the development part are public and never enter a
    score; judgments in the test part enter scores and are hidden.
    """

    DEV = "dev", "development"
    TEST = "test"


class DocumentQuerySet(models.QuerySet["Document"]):
    def with_words(self, words: str) -> DocumentQuerySet:
        """Return the documents that contain all of these words; words "in quotes" must be
        consecutive, and words after a minus sign must be absent.
        """
        return self._filter_by_words(words, "websearch")

    def with_all_of(self, name: str) -> DocumentQuerySet:
        """Return documents that contain all words of a name, with any punctuation between them."""
        return self._filter_by_words(name, "plain")

    def _filter_by_words(self, words: str, how: str) -> DocumentQuerySet:
        query = SearchQuery(words.replace("\0", ""), config="simple", search_type=how)
        return self.alias(words=WORDS).filter(words=query)


class Document(models.Model):
    """One document: text with token and sentence offsets (characters, half-open)."""

    corpus = models.ForeignKey(Corpus, on_delete=models.CASCADE, related_name="documents")
    key = models.CharField(max_length=200, help_text="The id in the corpus file")
    title = models.TextField(blank=True)
    date = models.CharField(max_length=40, blank=True)
    part = models.CharField(max_length=4, choices=Part.choices, default=Part.TEST)
    text = models.TextField()
    token_begin = ArrayField(models.IntegerField())
    token_end = ArrayField(models.IntegerField())
    sentence_begin = ArrayField(models.IntegerField())
    sentence_end = ArrayField(models.IntegerField())

    objects = DocumentQuerySet.as_manager()

    class Meta:
        db_table_comment = "Documents with token and sentence offsets"
        indexes = [GinIndex(WORDS, name="document_words")]
        constraints = [
            models.UniqueConstraint(fields=["corpus", "key"], name="document_once_a_corpus")
        ]

    def __str__(self) -> str:
        return self.key

    @cached_property
    def sentences(self) -> list[tuple[int, int]]:
        """Return the spans of the sentences, half-open."""
        return list(zip(self.sentence_begin, self.sentence_end, strict=True))

    def sentence_index_at(self, offset: int) -> int:
        """Return the index of the sentence that contains a character, or of the nearest one before
        it.
        """
        from bisect import bisect_right

        return max(0, bisect_right(self.sentence_begin, offset) - 1)

    def gloss(self, begin: int, end: int) -> str:
        """Return the text of a span."""
        return self.text[begin:end]


class Mention(models.Model):
    """A typed span that came with the corpus. It is never a judgment; judged mentions are Labels on
    mention targets.
    """

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="mentions")
    begin = models.IntegerField()
    end = models.IntegerField()
    type = models.CharField(max_length=40)
    canonical_begin = models.IntegerField(null=True)
    canonical_end = models.IntegerField(null=True)
    link = models.TextField(blank=True)
    entity = models.IntegerField(
        null=True, help_text="Number of its entity in the document, from 0, where the file has one"
    )

    class Meta:
        db_table_comment = "Mentions that came with the corpus"
        constraints = [
            models.UniqueConstraint(
                fields=["document", "begin", "end"], name="mention_once_a_document"
            )
        ]

    def __str__(self) -> str:
        return f"{self.document_id}:{self.begin}-{self.end}"

    @property
    def canonical_span(self) -> tuple[int, int]:
        """Return the span of its canonical mention, which all mentions of one entity share; without
        a canonical mention, its own span.
        """
        if self.canonical_begin is None or self.canonical_end is None:
            return self.begin, self.end
        return self.canonical_begin, self.canonical_end


def unique_slug(name: str, rows: QuerySet[Any], fallback: str) -> str:
    """Return a slug from the letters a to z and the digits of a name, at most 120 characters. If
    there are none, return `fallback` with the first free number. Empty for an empty name.
    """
    if slug := slugify(name)[:120].strip("-"):
        return slug
    if not any(letter.isalnum() for letter in name):
        return ""
    free, number = fallback, 1
    while rows.filter(slug=free).exists():
        number += 1
        free = f"{fallback}-{number}"
    return free
