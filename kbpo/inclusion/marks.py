"""What readers of whole documents marked, without anybody having been asked.

People mark what is true, so a mark must not make a target known more often than a question would
have: each has a random number, by which it counts as often as questions got an answer.
"""

from __future__ import annotations

import numpy as np

from kbpo.corpus.fetch import fetch
from kbpo.instances.merge import IN_PLACE
from kbpo.instances.models import Label
from kbpo.pool.random_numbers import numbers
from kbpo.tracks.models import Track
from scoring.arrays import Floats
from scoring.documents import NEVER, NO_MARK
from scoring.pool import Pool


def marks_of(track: Track, pool: Pool, closed: set[int]) -> Floats:
    """Return (t,) a random number where only readers judged a target; `NEVER` where a question
    about it had been given up before; else `NO_MARK`. In `closed` documents, where what is not
    marked is false, a mark says no more than its absence.
    """
    mark = np.full(pool.target_id.size, NO_MARK)
    marked = fetch(
        f"SELECT target_id, bool_or(NOT {Label.IS_MARK} AND value <> '{{}}'::jsonb),"
        f" bool_or(NOT {Label.IS_MARK} AND value = '{{}}'::jsonb)"
        f" FROM instances_label l WHERE target_id BETWEEN %s AND %s AND {IN_PLACE}"
        f" GROUP BY target_id HAVING bool_or({Label.IS_MARK} AND value <> '{{}}'::jsonb)",
        pool.ends,
    )
    if not marked:
        return mark
    inside = np.zeros(pool.target_id.size, dtype=np.bool_)
    inside[pool.target[np.isin(pool.document, list(closed))]] = True
    open_ones = set(pool.target_id[~inside].tolist())
    only_marked = [row for row in marked if not row[1] and row[0] in open_ones]
    alone = np.array(sorted(row[0] for row in only_marked), dtype=np.int64)
    if alone.size:
        mark[np.searchsorted(pool.target_id, alone)] = numbers(track, "mark", alone)
    mark[np.isin(pool.target_id, [row[0] for row in only_marked if row[2]])] = NEVER
    return mark
