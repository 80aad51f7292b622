"""Reads what experts answered about a track's data, as arrays."""

from __future__ import annotations

import numpy as np

from kbpo.evaluation.correction.checkable import imported, votes_of
from kbpo.experts.answers import Answered, read_checks
from kbpo.sampling.models import SampleBatch
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from scoring.arrays import Floats
from scoring.data import Data
from scoring.double_sampling import Checks


def checks_of(track: Track, data: Data) -> Checks | None:
    """What experts answered that counts; None if nothing does."""
    targets = np.unique(data.pool.target[data.judged])
    ids = data.pool.target_id[targets]
    found = read_checks(track, ids)
    if found is None or not found.checked.any():
        return None
    judged = SampleBatch.objects.filter(
        settled_at__lte=found.settled_by, submission__in=data.systems
    )
    return Checks(
        target=targets,
        rounds=found.rounds,
        pi=found.pi,
        e=found.e,
        checked=found.checked,
        by_crowd=votes_of(ids)[0] > 0,
        imported=imported(ids),
        f=_verdicts(track, data, found),
        since=np.isin(data.systems, list(judged.values_list("submission_id", flat=True))),
    )


def _verdicts(track: Track, data: Data, found: Answered) -> dict[str, Floats]:
    """criterion -> (k, m) what experts say of the judged rows."""
    pool, judged = data.pool, data.judged
    at = np.flatnonzero(np.isin(pool.target_id[pool.target[judged]], list(found.values)))
    verdicts = {}
    told = kind_of(track).rejudge(pool.instance[judged[at]], pool.systems, found.values)
    for criterion, some in told.items():
        verdicts[criterion] = np.full((judged.size, len(pool.systems)), np.nan)
        verdicts[criterion][at] = some
    return verdicts
