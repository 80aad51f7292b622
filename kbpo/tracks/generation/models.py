"""What systems that write are run on."""

from __future__ import annotations

from django.db import models

from kbpo.corpus.models import Corpus


class Input(models.Model):
    """One input of a corpus: an article to be summed up, a question to be answered."""

    corpus = models.ForeignKey(Corpus, on_delete=models.CASCADE, related_name="inputs")
    key = models.CharField(max_length=200, help_text="The id in the file of inputs")
    source = models.TextField(blank=True)
    question = models.TextField(blank=True)
    passages = models.JSONField(default=list)
    references = models.JSONField(default=list)

    class Meta:
        db_table_comment = "Inputs of systems that write"
        constraints = [
            models.UniqueConstraint(fields=["corpus", "key"], name="input_once_a_corpus")
        ]

    def __str__(self) -> str:
        return self.key
