"""Reads what experts have answered on a track, and how likely each target was to be checked.

A round r could check the targets that were judged then, u < π_r, and chose those with v < e_r. Of a
target that counts now, u < π, the chance of having been checked is therefore the area of the union
of the rectangles (π_r, e_r), divided by π: a judgment that came later is corrected by those that
could be checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from django.db.models import Min

from kbpo.corpus.fetch import fetch
from kbpo.inclusion.thresholds import spread
from kbpo.pool.random_numbers import numbers
from kbpo.sampling.models import ExpertCheck, ExpertRound
from kbpo.tracks.models import Track
from scoring.arrays import Bools, Floats, Ids


@dataclass(frozen=True)
class Checks:
    """For some targets, shape (t,): what experts have answered, and the chances that they were
    asked.
    """

    checked: Bools
    """An answer counts"""
    chance: Floats
    """Probability of `checked` for a target that counts for everybody now; 0 where there is none"""
    framed: Bools
    """Some round that counts could have drawn it"""
    alone: Floats
    """Probability of `checked`, given the rounds that could have drawn it"""
    values: dict[int, dict[int, dict[str, Any]]]
    """target id -> what the expert said of it and its mentions; empty: that it cannot be
    answered"""
    settled_by: datetime | None
    """Systems with a sample that was judged by then can be corrected: when the last round that
    counts was drawn"""


def read_checks(track: Track, target_ids: Ids, inclusion: Floats) -> Checks | None:
    """What counts of a track's expert checks, for targets with these inclusion probabilities; None
    if nothing does.
    """
    rounds = [
        (row, released(row)) for row in ExpertRound.objects.filter(track=track).order_by("number")
    ]
    rounds = [(row, share) for row, share in rounds if share > 0]
    if not rounds:
        return None
    e, pi = (np.zeros((len(rounds), target_ids.size)) for _ in range(2))
    for at, (row, share) in enumerate(rounds):
        found = np.array(_chances(row, target_ids), dtype=np.float64).reshape(-1, 3)
        checkable = found[:, 0].astype(np.int64)
        e[at] = share * spread(checkable, found[:, 1], target_ids)
        pi[at] = spread(checkable, found[:, 2], target_ids)
    alone = e.max(axis=0)
    checked = numbers(track, "expert", target_ids) < alone
    answered = ExpertCheck.objects.filter(
        track=track, answered_at__isnull=False, target__in=target_ids[checked].tolist()
    )
    values = {
        target: {int(one): said for one, said in (value or {}).items()}
        for target, value in answered.values_list("target_id", "value")
    }
    return Checks(
        checked=checked & np.isin(target_ids, list(values)),
        chance=chance_of_check(pi, e, inclusion),
        framed=np.asarray((e > 0).any(axis=0)),
        alone=alone,
        values=values,
        settled_by=max(row.drawn_at for row, _ in rounds),
    )


def released(row: ExpertRound) -> float:
    """The share of a round's chances for which everything that was drawn is answered."""
    if row.ended_at is not None:
        return row.released
    least = row.checks.filter(answered_at__isnull=True).aggregate(least=Min("order"))["least"]
    return 1.0 if least is None else float(least)


def chance_of_check(pi: Floats, e: Floats, inclusion: Floats) -> Floats:
    """P(u < π_r and v < e_r for some round r | u < π), for rounds × targets."""
    order = np.argsort(pi, axis=0)
    widths = np.take_along_axis(np.minimum(pi, inclusion), order, axis=0)
    heights = np.take_along_axis(e, order, axis=0)
    tallest = np.maximum.accumulate(heights[::-1], axis=0)[
        ::-1
    ]  # of the rounds with at least this π
    area = (np.diff(widths, axis=0, prepend=0.0) * tallest).sum(axis=0)
    chance: Floats = np.divide(area, inclusion, out=np.zeros(area.shape), where=inclusion > 0)
    return chance


def _chances(row: ExpertRound, target_ids: Ids) -> list[tuple[Any, ...]]:
    return fetch(
        "SELECT target_id, probability, inclusion FROM sampling_expertchance"
        " WHERE round_id = %s AND target_id = ANY(%s)",
        [row.pk, target_ids.tolist()],
    )
