"""Reads scores as arrays: a row for each instance, a column for each scorer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbpo.corpus.sql import fetch_rows
from kbpo.scores.models import Scorer, ScorerQuerySet
from kbpo.tracks.models import Track


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of some instances as a matrix, one column for each scorer."""

    scorers: list[int]
    """Primary keys of the scorers, in column order"""
    value: NDArray[np.float64]
    """(u, k); NaN without a score"""


def scorers_of_track(track: Track) -> ScorerQuerySet:
    """Return the metrics and judges of a track's corpus, in the order of creation."""
    return Scorer.objects.filter(corpus=track.corpus_id).order_by("pk")


def read_scores(
    track: Track, instances: NDArray[np.int64], scorers: Sequence[int] | None = None
) -> Scores:
    """Return the scores of instances (ascending) by these scorers of a track, or by all that are in
    use.
    """
    chosen = scorers_of_track(track)
    chosen = chosen.in_use() if scorers is None else chosen.filter(pk__in=scorers)
    wanted = list(chosen.values_list("pk", flat=True))
    rows = fetch_rows(
        "SELECT scorer_id, instance_id, value FROM scores_score WHERE scorer_id = ANY(%s)"
        " AND instance_id = ANY(%s) AND value IS NOT NULL",
        [wanted, instances.tolist()] if wanted else [[], []],
    )
    scoring = {scorer for scorer, _, _ in rows}
    kept = (
        wanted
        if scorers is not None
        else [scorer_id for scorer_id in wanted if scorer_id in scoring]
    )
    value = np.full((instances.size, len(kept)), np.nan)
    if rows:
        column = {scorer: place for place, scorer in enumerate(kept)}
        places = np.searchsorted(instances, np.array([row[1] for row in rows], dtype=np.int64))
        columns = np.array([column[row[0]] for row in rows], dtype=np.int64)
        value[places, columns] = [row[2] for row in rows]
    return Scores(kept, value)


def instances_by_input(submission: int) -> dict[str, int]:
    """Return input id -> the instance that a submission predicts for it; empty if predictions are
    not about inputs.
    """
    rows = fetch_rows(
        "SELECT t.content->>'input', i.id FROM submissions_prediction p"
        " JOIN instances_instance i ON i.id = p.instance_id"
        " JOIN instances_target t ON t.id = i.target_id"
        " WHERE p.submission_id = %s AND t.content->>'input' IS NOT NULL ORDER BY p.line, p.id",
        [submission],
    )
    return dict(rows)
