"""Cuts a track's data into slices, which `scoring.slices` scores.

Slices are weighed by the track's guaranteed distribution. Each criterion has its own number.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kbpo.tracks.models import Track
from kbpo.tracks.recall import recall_criteria
from kbpo.tracks.registry import kind_of
from scoring.data import Data
from scoring.slices import Cut, Keep, SliceScore, score_cuts


def slice_scores(track: Track, data: Data, keep: Keep = lambda *_: None) -> Iterator[SliceScore]:
    """Yield the precision of each system in each slice that it has predictions in, the guaranteed
    criterion first; for a stratum the recall as well.
    """
    return score_cuts(data, cuts(track, data), ordered_criteria(track), has_recall(track), keep)


def ordered_criteria(track: Track) -> list[str]:
    """Return the criteria of a track, the guaranteed one first."""
    names = kind_of(track).measures.criterion_names()
    return [track.criterion, *(name for name in names if name != track.criterion)]


def has_recall(track: Track) -> bool:
    """Return whether slices that are a stratum have recall."""
    return track.criterion in recall_criteria(track)


def cuts(track: Track, data: Data) -> Iterator[Cut]:
    """Yield a slice for each value of the groups that the track's kind declares. Instances without
    a value are in no slice of the group.
    """
    pool, kind = data.pool, kind_of(track)
    traits = kind.traits(pool.instance, pool.systems)
    weighed = track.distribution if track.distribution in pool.p else next(iter(pool.p))
    for name, group in kind.groups.items():
        trait = traits[group.trait]
        if group.strata:
            strata, first_rows = np.unique(pool.stratum, return_index=True)
            values = trait.names[trait.code[first_rows]].tolist()
            for stratum, value in zip(strata.tolist(), values, strict=True):
                yield Cut(name, value, pool.stratum == stratum, weighed, stratum=stratum)
        else:
            for value in group.values or filter(None, np.unique(trait.names).tolist()):
                yield Cut(name, value, trait.where(trait.names == value), weighed)
