"""What a run claims of targets that count, and nobody was asked: they were drawn, with replacement,
for others who came before it and claimed something else.

To the others that is nothing that lacks an answer. To the run such draws are no sample of what it
claims: its own are, and later ones, which ask for all that is claimed by then.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from kbpo.inclusion.route import Private
from kbpo.sampling.models import SampleBatch
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from scoring.arrays import Bools
from scoring.pool import Pool


def never_asked(
    track: Track, pool: Pool, counts: Bools, drawn: Mapping[int, Collection[int]]
) -> dict[int, Bools]:
    """Column -> (t,) the targets that count, and of which the system claims something that nobody
    was asked about: draws with replacement, for others, from before it came, held them, and its own
    did not. Thresholds have all of them asked anew.
    """
    if not SampleBatch.objects.filter(submission__track=track, design="iid").exists():
        return {}
    targets_of = {
        system: set(pool.target_id[np.unique(target[counts[target]])].tolist())
        - set(drawn.get(system, ()))
        for column, system in enumerate(pool.systems)
        for target in [pool.target[pool.predicted(column)]]
    }
    unanswered = kind_of(track).unanswered(targets_of)
    return {
        pool.systems.index(system): np.isin(pool.target_id, list(targets))
        for system, targets in unanswered.items()
        if targets
    }


def asked_before(pool: Pool, column: int) -> Private:
    """Earlier submissions -> the targets of which a system claims something that nobody had claimed
    when theirs were sampled: what was asked for them is no sample of it.
    """
    sampled = Submission.objects.filter(pk__in=pool.systems).order_by("sampled_at", "pk")
    order = [pool.systems.index(pk) for pk in sampled.values_list("pk", flat=True)]
    rows, place = pool.predicted(column), order.index(column)
    first = np.full(rows.size, place)
    for at in reversed(range(place)):
        first[np.isin(rows, pool.predicted(order[at]))] = at
    return {
        pool.systems[order[at]]: pool.target_id[np.unique(pool.target[rows[first > at]])]
        for at in range(place)
    }
