"""Reads everything that a track's scores are computed from: draws, their probabilities, verdicts, annotated documents.

A draw enters only through a batch and so only with its probability; what has no probability never gets here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kbpo.sampling.models import DocumentSample, Sample
from kbpo.sampling.plan import overlaps
from kbpo.sampling.probabilities import Floats, Ids, matrix
from kbpo.submissions.models import Submission
from kbpo.tracks.base import Facts
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Draws:
    """All draws of one distribution, one row a draw (a multiplicity of 3 is three rows)."""

    kind: str
    row: Ids
    """(n,) index into `Data.instance`, the union of all instances drawn."""
    owner: Ids
    """(n,) column of the submission from whose distribution it was drawn."""
    P: Floats
    """(n, m)"""
    overlap: Floats
    """(m, m)"""


@dataclass(frozen=True)
class Data:
    """What a track's estimates are functions of. `systems` are all submissions that were sampled, `shown` those that
    still take part; columns of every (·, m) array are in the order of `systems`."""

    track: Track
    systems: list[int]
    shown: Bools
    instance: Ids
    """(u,) instances drawn, ascending"""
    target: Ids
    """(u,) their targets"""
    f: dict[str, Floats]
    """criterion -> (u, m): 1 right, 0 wrong, NaN missing"""
    member: Bools
    """(u, m): the submission states the instance"""
    draws: dict[str, Draws]
    everything: dict[str, Floats] = field(repr=False)
    """kind -> P (u, m) of all instances drawn, by whichever distribution"""
    facts: Facts | None
    """Scope, facts and annotated documents, for recall; None if the track's kind has no recall"""


def read(track: Track) -> Data:
    """The data of a track as they are now."""
    systems = list(
        Submission.objects.filter(track=track, batches__isnull=False)
        .order_by("pk")
        .distinct()
        .values_list("pk", flat=True)
    )
    taking_part = set(Submission.objects.filter(track=track).confirmed().values_list("pk", flat=True))
    samples = list(
        Sample.objects.filter(batch__submission__track=track, instance__isnull=False)
        .order_by("batch_id", "instance_id")
        .values_list("batch__distribution__kind", "batch__submission_id", "instance_id", "target_id", "multiplicity")
    )
    target_of = {instance: target for _, _, instance, target, _ in samples}
    instance = np.array(sorted(target_of), dtype=np.int64)
    target = np.array([target_of[one] for one in instance.tolist()], dtype=np.int64)
    P = {kind: matrix(track, kind, instance, systems) for kind in track.distributions}
    draws = {kind: _draws(kind, samples, instance, systems, P[kind]) for kind in track.distributions}
    kind = kind_of(track)
    member = P[track.distributions[0]] > 0
    return Data(
        track=track,
        systems=systems,
        shown=np.array([system in taking_part for system in systems], dtype=np.bool_),
        instance=instance,
        target=target,
        f=kind.judge(instance, systems),
        member=member,
        draws=draws,
        everything=P,
        facts=kind.facts(instance, systems, annotated(track)),
    )


def annotated(track: Track) -> list[int]:
    """Documents that were drawn to be annotated whole, and are."""
    rows = DocumentSample.objects.filter(track=track, settled_at__isnull=False).order_by("document_id")
    return list(rows.values_list("document_id", flat=True))


def _draws(
    kind: str, samples: list[tuple[str, int, int, int, int]], instance: Ids, systems: list[int], P: Floats
) -> Draws:
    mine = [row for row in samples if row[0] == kind]
    column = {system: j for j, system in enumerate(systems)}
    times = np.array([row[4] for row in mine], dtype=np.int64)
    row = np.repeat(np.searchsorted(instance, [row[2] for row in mine]).astype(np.int64), times)
    owner = np.repeat(np.array([column[row[1]] for row in mine], dtype=np.int64), times)
    return Draws(kind, row, owner, P[row], overlaps(kind, systems))
