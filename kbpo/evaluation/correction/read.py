"""Reads what experts answered about a track's data, as arrays."""

from __future__ import annotations

import numpy as np

from kbpo.evaluation.correction import imported, votes_of
from kbpo.experts.answers import Answered, read_checks
from kbpo.sampling.models import SampleBatch
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from scoring.arrays import Floats
from scoring.data import Data
from scoring.double_sampling import Checks


def checks_of(track: Track, data: Data) -> Checks | None:
    """Return the expert checks that correct scores; None if there are none."""
    targets = np.unique(data.pool.target[data.judged])
    ids = data.pool.target_id[targets]
    answered = read_checks(track, ids)
    if answered is None or not answered.checked.any():
        return None
    judged = SampleBatch.objects.of_test().filter(
        settled_at__lte=answered.settled_by, submission__in=data.systems
    )
    return Checks(
        target=targets,
        rounds=answered.rounds,
        pi=answered.pi,
        e=answered.e,
        checked=answered.checked,
        by_crowd=votes_of(ids)[0] > 0,
        imported=imported(ids),
        f=_verdicts(track, data, answered),
        since=np.isin(data.systems, list(judged.values_list("submission_id", flat=True))),
    )


def _verdicts(track: Track, data: Data, answered: Answered) -> dict[str, Floats]:
    """Return, for each criterion, the experts' verdicts on the judged rows, shape (k, m)."""
    pool, judged = data.pool, data.judged
    answered_rows = np.flatnonzero(
        np.isin(pool.target_id[pool.target[judged]], list(answered.values))
    )
    verdicts = {}
    verdict_of_criterion = kind_of(track).judge(
        pool.instance[judged[answered_rows]], pool.systems, answers=answered.values
    )
    for criterion, verdict in verdict_of_criterion.items():
        verdicts[criterion] = np.full((judged.size, len(pool.systems)), np.nan)
        verdicts[criterion][answered_rows] = verdict
    return verdicts
