"""What reading whole documents and following them up did to a pool's targets: which were annotated,
asked, or labelled before.

People mark what is true, so that a mark must not make a target known more often than a question
would have: each has a random number, by which it counts as often as questions beside it got an
answer (`scoring.default`).
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from kbpo.corpus.fetch import fetch
from kbpo.inclusion.documents import inside
from kbpo.inclusion.follow_ups import FollowUps
from kbpo.instances.merge import IN_PLACE
from kbpo.instances.models import Label
from kbpo.pool.random_numbers import numbers
from kbpo.sampling.models import FollowUpTarget
from kbpo.tracks.models import Track
from scoring.arrays import Bools, Floats
from scoring.documents import NEVER, NO_MARK, InDocuments
from scoring.pool import Pool


def in_documents(track: Track, pool: Pool, in_scope: Bools, follow_ups: FollowUps) -> InDocuments:
    """Return what reading and following up did to each target of a pool; follow-ups ask about what
    is `in_scope` (t,).
    """
    marked, mark = _marks(track, pool)
    asked = FollowUpTarget.objects.filter(
        follow_up__track=track, follow_up__settled_at__isnull=False
    )
    covered = follow_ups.covered & in_scope
    was_asked = _among(pool, asked.values_list("target_id", flat=True))
    return InDocuments(marked, mark, covered, covered & was_asked)


def _marks(track: Track, pool: Pool) -> tuple[Bools, Floats]:
    marked_targets = fetch(
        f"SELECT target_id, bool_or(NOT {Label.IS_MARK} AND value <> '{{}}'::jsonb),"
        f" bool_or(NOT {Label.IS_MARK} AND value = '{{}}'::jsonb)"
        f" FROM instances_label l WHERE target_id BETWEEN %s AND %s AND {IN_PLACE}"
        f" GROUP BY target_id HAVING bool_or({Label.IS_MARK} AND value <> '{{}}'::jsonb)",
        pool.ends,
    )
    if marked_targets:  # what lies in which document is asked of few pools
        open_ones = set(pool.target_id[_not_closed(pool)].tolist())
        marked_targets = [row for row in marked_targets if row[0] in open_ones]
    alone = np.array(
        sorted(target for target, judged, _ in marked_targets if not judged), dtype=np.int64
    )
    mark = np.full(pool.target_id.size, NO_MARK)
    if alone.size:
        mark[np.searchsorted(pool.target_id, alone)] = numbers(track, "mark", alone)
    mark[
        _among(
            pool, [target for target, judged, in_vain in marked_targets if in_vain and not judged]
        )
    ] = NEVER
    return _among(pool, [row[0] for row in marked_targets]), mark


def _not_closed(pool: Pool) -> Bools:
    """(t,) whether a target lies in no document where what is not marked is false: there no mark
    says more.
    """
    documents = np.unique(pool.document).tolist()
    closed_labels = Label.objects.filter(
        target__kind="document", target__document__in=documents, value__closed=True
    )
    return ~inside(pool, set(closed_labels.values_list("target__document", flat=True)))


def _among(pool: Pool, targets: Collection[int]) -> Bools:
    return np.isin(pool.target_id, list(targets))
