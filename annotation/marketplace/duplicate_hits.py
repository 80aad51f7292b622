"""A HIT of ours that is on a platform twice: its token was forgotten, and a list was short when we
looked for its mark.

The second one is taken down at once. Who was quicker has worked for us all the same: their answers
count like those to the first, and are paid.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from annotation.marketplace.import_answer import import_answer
from annotation.models import HIT
from annotation.platforms.base import Platform, Seen
from annotation.workers.worker import handle_of
from kbpo import clock

log = logging.getLogger(__name__)
DECIDED = ("approved", "rejected")


@dataclass(frozen=True)
class Rows:
    """The platform's rows with one token of ours."""

    own: Seen | None = None
    twins: Sequence[Seen] = ()


def by_mark(hits: Iterable[HIT], seen: Iterable[Seen]) -> dict[str, Rows]:
    """Return the rows for each token of ours; our HIT is the one that we know by its id, else the
    oldest.
    """
    ours = {hit.token: hit.external_id for hit in hits}
    seens: dict[str, dict[str, Seen]] = defaultdict(dict)
    for row in seen:
        if row.token in ours:
            seens[row.token][row.external_id] = row
    return {
        token: _kept_and_surplus(seen_by_id, ours[token]) for token, seen_by_id in seens.items()
    }


def _kept_and_surplus(seen_by_id: dict[str, Seen], ours: str) -> Rows:
    own = seen_by_id.get(ours) if ours else min(seen_by_id.values(), key=lambda row: row.created_at)
    return Rows(own, [row for row in seen_by_id.values() if row is not own])


def tend_duplicate(platform: Platform, hit: HIT, seen: Seen) -> int:
    """Return what moved: the second HIT of ours is taken down, its answers are taken in, and at its
    end it is deleted.
    """
    twin = HIT(external_id=seen.external_id, platform=hit.platform, endpoint=hit.endpoint)
    if seen.status in ("open", "busy") and seen.expires_at > clock.now():
        log.error("HIT %s is there twice; %s is taken down", hit.external_id, seen.external_id)
        platform.expire(twin)
    answers = list(platform.collect(twin))
    moved = sum(import_answer(hit, answer) for answer in answers if not _has_answered(hit, answer))
    if seen.status == "done" and all(answer["status"] in DECIDED for answer in answers):
        platform.dispose(twin)
    return moved


def _has_answered(hit: HIT, answer: dict[str, Any]) -> bool:
    """Return whether the first HIT has an answer of the same worker: two cannot both count. The
    platform pays the second by itself when its time has come.
    """
    same_worker = hit.assignments.filter(
        worker__handle=handle_of(hit.platform, answer["worker_id"])
    )
    return (
        same_worker.exclude(status__in=["leased", "returned"])
        .exclude(external_id=answer["external_id"])
        .exists()
    )
