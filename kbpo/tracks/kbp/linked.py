"""What two runs predict both, and link to different names."""

from __future__ import annotations

import numpy as np

from kbpo.corpus.fetch import fetch_arrays
from scoring.arrays import Ids

SAID = (
    "(p.subject_canonical_begin, p.subject_canonical_end, p.object_canonical_begin,"
    " p.object_canonical_end, p.subject_link, p.object_link, p.subject_type, p.object_type)"
)


def linked_otherwise(first: int, second: int) -> Ids:
    """Return the instances that two submissions predict, and of whose ends they say otherwise what
    names, titles or types they have.
    """
    rows = fetch_arrays(
        {"found": "p.instance_id"},
        "FROM submissions_prediction p JOIN submissions_prediction q"
        " ON q.instance_id = p.instance_id AND q.submission_id = %s"
        f" WHERE p.submission_id = %s AND {SAID} IS DISTINCT FROM {SAID.replace('p.', 'q.')}",
        [second, first],
    )
    return np.sort(rows["found"])
