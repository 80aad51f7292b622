"""Reads how a pool's targets were sampled: the only place where the designs are put together."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from kbpo.inclusion.draws import Draws
from kbpo.inclusion.thresholds import Thresholds
from kbpo.tracks.models import Track
from scoring.inclusion import Inclusion, any_of
from scoring.pool import Pool


def read_inclusion(track: Track, pool: Pool, waiting: Collection[int] = ()) -> Inclusion:
    """Return how the targets of a pool were sampled, as everything stands now.

    Parameters
    ----------
    track : Track
        The track whose batches count.
    pool : Pool
        What its sampled submissions predict.
    waiting : collection of int
        Targets that were drawn for a submission that takes part, and have no answer yet. A plan
        leaves them out: it counts as if all that was asked were answered.
    """
    lacks_answer = np.isin(pool.target_id, list(waiting))
    thresholds = Thresholds(track, pool, lacks_answer)
    draws = Draws(track, pool, lacks_answer)
    return Inclusion(
        asked=any_of(thresholds.chance(), draws.chance()),
        drawn=(thresholds.realised() | draws.realised()) & ~lacks_answer,
        threshold=thresholds.highest,
        released=min(thresholds.released, draws.released),
    )
