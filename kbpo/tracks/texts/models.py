"""Inputs of systems that write texts, their outputs on tracks that compare two, and
declared forms.
"""

from __future__ import annotations

from django.db import models

from kbpo import clock
from kbpo.corpus.models import Corpus, Part
from kbpo.submissions.models import Submission


class Input(models.Model):
    """One input of a corpus, such as an article to summarise or a question to answer."""

    corpus = models.ForeignKey(Corpus, on_delete=models.CASCADE, related_name="inputs")
    key = models.CharField(max_length=200, help_text="The id in the file of inputs")
    source = models.TextField(blank=True)
    question = models.TextField(blank=True)
    passages = models.JSONField(default=list)
    references = models.JSONField(default=list)
    prompt = models.TextField(blank=True, help_text="Which instruction the systems were given")
    split = models.TextField(blank=True, help_text="Which part of a data set it is from")
    part = models.CharField(max_length=4, choices=Part.choices, default=Part.TEST)

    class Meta:
        db_table_comment = "Inputs of systems that write"
        constraints = [
            models.UniqueConstraint(fields=["corpus", "key"], name="input_once_a_corpus")
        ]

    def __str__(self) -> str:
        return self.key


class DeclaredForm(models.Model):
    """A form that an admin declared in YAML. It never changes, because annotators answered its
    exact wording.
    """

    name = models.CharField(max_length=19, unique=True)
    title = models.CharField(max_length=120)
    text = models.TextField(help_text="The YAML, as it was read (formats/forms.py)")
    made_at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table_comment = "Declared forms: interfaces without code"

    def __str__(self) -> str:
        return self.title


class Written(models.Model):
    """A system's output for an input, on tracks that compare two outputs. It is paired when another
    system arrives.
    """

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="written")
    key = models.CharField(max_length=200, help_text="The input's id")
    text = models.TextField()
    line = models.PositiveIntegerField()

    class Meta:
        db_table_comment = "Outputs of systems that are compared two by two"
        constraints = [
            models.UniqueConstraint(fields=["submission", "key"], name="written_once_an_input")
        ]

    def __str__(self) -> str:
        return self.key
