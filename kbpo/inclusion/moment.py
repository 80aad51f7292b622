"""Reads what had been judged by a moment in the past."""

from __future__ import annotations

from datetime import datetime

import numpy as np

from kbpo.corpus.fetch import fetch
from kbpo.inclusion.documents import inside
from kbpo.inclusion.route import Moment
from kbpo.instances.models import Label
from kbpo.sampling.models import DocumentSample, Sample, SampleBatch
from kbpo.tracks.models import Track
from scoring.arrays import Bools
from scoring.pool import Pool


def moment_of(pool: Pool, track: Track, when: datetime, then: Bools) -> Moment:
    """Return what had been judged by a moment; `then` (t,) are the targets of the pool that some
    system predicted already.
    """
    judged, marked = _judged(pool, track, when, then)
    return Moment(when, judged, marked, inside(pool, _read_by(track, when)), then)


def _judged(pool: Pool, track: Track, when: datetime, existed: Bools) -> tuple[Bools, Bools]:
    """Whether each target was judged by then (one that was given up has an empty label), and
    whether only the annotation of its document marked it.

    A mark alone is no judgment: people mark what is true, so that judged targets would be the true
    ones. It counts for one where the target was drawn by a batch that is settled, or where all
    targets of the document that there were `then` have a label: there whether it is judged does not
    depend on whether it is true.
    """
    labelled = with_label(pool, "created_at <= %s", when)
    by_itself = with_label(pool, f"NOT {Label.IS_MARK} AND created_at <= %s", when)
    of_target = np.zeros(pool.target_id.size, dtype=np.int64)
    of_target[pool.target] = pool.document
    complete = ~np.isin(of_target, of_target[~labelled & existed])
    settled = SampleBatch.objects.filter(
        submission__track__corpus=track.corpus_id, settled_at__lte=when
    )
    drawn = Sample.objects.filter(batch__in=settled).values_list("target_id", flat=True).distinct()
    marked = labelled & ~by_itself & ~complete
    return labelled & (~marked | np.isin(pool.target_id, list(drawn))), marked


def with_label(pool: Pool, condition: str, *parameters: object) -> Bools:
    """Return (t,) whether each target has a label of which a condition holds, in SQL."""
    labelled = fetch(
        "SELECT DISTINCT target_id FROM instances_label WHERE target_id BETWEEN %s AND %s"
        f" AND {condition}",
        [*pool.ends, *parameters],
    )
    return np.isin(pool.target_id, [row[0] for row in labelled])


def _read_by(track: Track, when: datetime) -> list[int]:
    """The documents that were annotated whole by then, for any track of the corpus."""
    document_samples = DocumentSample.objects.filter(
        track__corpus=track.corpus_id, settled_at__lte=when
    )
    return list(document_samples.values_list("document_id", flat=True).distinct())
