"""Reads the answers of experts on a track, and the probability with which each target was
checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from django.db.models import Min

from kbpo.corpus.fetch import fetch
from kbpo.experts.draw import drawn_rounds
from kbpo.pool.random_numbers import numbers
from kbpo.sampling.models import ExpertCheck, ExpertRound
from kbpo.tracks.models import Track
from scoring.arrays import Bools, Floats, Ids
from scoring.pool import spread


@dataclass(frozen=True)
class Answered:
    """The answers of experts for t targets, and the probabilities with which r rounds drew them."""

    rounds: Ids
    """(r,) their numbers"""
    pi: Floats
    """(r, t) probability with which each target counted when the round was drawn; 0 where it could
    not be drawn"""
    e: Floats
    """(r, t) probability with which the round chose it, and its answer is known"""
    checked: Bools
    """An answer counts"""
    values: dict[int, dict[int, dict[str, Any]]]
    """target id -> what the expert said of it and its mentions; empty: that it cannot be
    answered"""
    settled_by: datetime
    """Systems with a sample that was judged by then can be corrected: when the last round that
    counts was drawn"""


def read_checks(track: Track, target_ids: Ids) -> Answered | None:
    """Return the counted expert checks of some targets; None without any."""
    rounds = [(row, released(row)) for row in drawn_rounds(track)]
    rounds = [(row, share) for row, share in rounds if share > 0]
    if not rounds:
        return None
    e, pi = (np.zeros((len(rounds), target_ids.size)) for _ in range(2))
    for index, (row, share) in enumerate(rounds):
        chances = np.array(_chances(row, target_ids), dtype=np.float64).reshape(-1, 3)
        chances = chances[np.argsort(chances[:, 0])]
        checkable = chances[:, 0].astype(np.int64)
        e[index] = share * spread(checkable, chances[:, 1], target_ids)
        pi[index] = spread(checkable, chances[:, 2], target_ids)
    checked = numbers(track, "expert", target_ids) < e.max(axis=0)
    answered = ExpertCheck.objects.filter(
        track=track,
        kind="check",
        answered_at__isnull=False,
        target__in=target_ids[checked].tolist(),
    )
    values = {
        target: {int(instance): verdict for instance, verdict in (value or {}).items()}
        for target, value in answered.values_list("target_id", "value")
    }
    return Answered(
        rounds=np.array([row.number for row, _ in rounds], dtype=np.int64),
        pi=pi,
        e=e,
        checked=checked & np.isin(target_ids, list(values)),
        values=values,
        settled_by=max(row.drawn_at for row, _ in rounds),
    )


def released(row: ExpertRound) -> float:
    """Return the share of a round's probabilities for which all drawn checks are answered."""
    if row.status == "ended":
        return row.released
    least = row.checks.filter(answered_at__isnull=True).aggregate(least=Min("order"))["least"]
    return 1.0 if least is None else float(least)


def _chances(row: ExpertRound, target_ids: Ids) -> list[tuple[Any, ...]]:
    return fetch(
        "SELECT target_id, probability, inclusion FROM sampling_expertchance"
        " WHERE round_id = %s AND target_id = ANY(%s)",
        [row.pk, target_ids.tolist()],
    )
