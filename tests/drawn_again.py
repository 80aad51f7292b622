"""A second stage of documents, drawn once more."""

from __future__ import annotations

from unittest.mock import patch

from django.db import transaction

from kbpo import clock
from kbpo.sampling.documents.second_stage import draw_second_stage
from kbpo.sampling.models import DocumentBatch


def drawn_again(batch: DocumentBatch) -> list[tuple[int, float]]:
    """The documents that its seed gives at its time, in their order, each with its probability; of
    what is drawn nothing stays.
    """
    with transaction.atomic(), patch.object(clock, "now", lambda: batch.drawn_at):
        batch.samples.all().delete()
        DocumentBatch.objects.filter(pk=batch.pk).delete()
        again = draw_second_stage(batch.track, seed=batch.seed)
        assert again is not None
        rows = again.samples.order_by("position").values_list("document_id", "probability")
        drawn = list(rows)
        transaction.set_rollback(True)
    return drawn
