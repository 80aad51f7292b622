"""A submission's own sample under design poisson: what it would have asked whatever others asked.

A stage raises thresholds to max(π so far, min(1, λ s)), with λ and s as in `estimators.poisson`.
The second of the two is the submission's own; it is kept for every target of it, also where others
had raised the threshold further. A target with u below it was asked, so these targets are a sample
of known probability, of the submission's own making. How large λ is does depend on what others
asked: what they pay for is not asked twice.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

import numpy as np

from kbpo.sampling.models import OwnThresholds, SampleBatch
from kbpo.tracks.models import Track
from scoring.arrays import Floats
from scoring.pool import Pool

FORMAT = "<f8"


def keep(batch: SampleBatch, own: Floats) -> None:
    """Nothing; what the submission would ask by itself in this stage, or did in earlier ones, is
    kept with its batch: one number a target of it, by ascending number.
    """
    earlier = (
        OwnThresholds.objects.filter(batch__submission=batch.submission_id)
        .order_by("-batch_id")
        .first()
    )
    so_far = _read(earlier.pi) if earlier is not None else np.zeros(own.size)
    OwnThresholds.objects.create(batch=batch, pi=np.maximum(so_far, own).astype(FORMAT).tobytes())


def own_thresholds(
    track: Track, pool: Pool, waiting: Mapping[int, Collection[int]]
) -> dict[int, Floats]:
    """Column -> (t,) below which number a target of the pool is in the submission's own sample and
    judged by now (or given up); 0 for what it does not predict. Submissions of which nothing was
    kept have no entry.

    `waiting` are the drawn targets of each with a claim of it that nobody judged. As with all
    thresholds, of an open batch counts what is answered in the order of u/π.
    """
    threshold_rows = OwnThresholds.objects.filter(
        batch__submission__in=pool.systems, batch__submission__track=track
    )
    settled: dict[int, bytes | memoryview] = {}
    last: dict[int, bytes | memoryview] = {}
    for owner, ended, pi in threshold_rows.order_by("batch_id").values_list(
        "batch__submission_id", "batch__settled_at", "pi"
    ):
        last[owner] = pi
        if ended is not None:
            settled[owner] = pi
    threshold_of = {}
    for column, owner in enumerate(pool.systems):
        if owner not in last:
            continue
        predicted = np.unique(pool.target[pool.predicted(column)])
        now = _read(last[owner])
        if now.size != predicted.size:  # kept of another reading of the file: of no use
            continue
        done = _read(settled[owner]) if owner in settled else np.zeros(now.size)
        still = np.isin(pool.target_id[predicted], list(waiting.get(owner, ())))
        threshold_of[column] = np.zeros(pool.target_id.size)
        threshold_of[column][predicted] = _answered(now, done, pool.u[predicted], still)
    return threshold_of


def settled(pool: Pool, until: datetime | None = None) -> dict[int, Floats]:
    """Column -> (t,) below which number a target of the pool is in the submission's own sample by
    batches that have settled by now; only of batches drawn up to a moment, if asked.
    """
    rows = OwnThresholds.objects.filter(
        batch__submission__in=pool.systems, batch__settled_at__isnull=False
    )
    if until is not None:
        rows = rows.filter(batch__drawn_at__lte=until)
    threshold_of = {}
    for owner, pi in rows.order_by("batch_id").values_list("batch__submission_id", "pi"):
        column = pool.systems.index(owner)
        predicted = np.unique(pool.target[pool.predicted(column)])
        if (own := _read(pi)).size == predicted.size:
            threshold_of[column] = np.zeros(pool.target_id.size)
            threshold_of[column][predicted] = own
    return threshold_of


def _answered(
    now: Floats, done: Floats, u: Floats, still: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> Floats:
    """The part of own thresholds below which everything has an answer."""
    open_ones = still & (u < now)
    released = float((u[open_ones] / now[open_ones]).min()) if open_ones.any() else 1.0
    return np.asarray(np.maximum(done, now * released))


def _read(stored: bytes | memoryview) -> Floats:
    return np.frombuffer(stored, dtype=FORMAT).astype(np.float64)
