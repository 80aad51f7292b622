"""Cuts a track's data into slices; `scoring.slices` scores each.

Built-in groups are cut under the track's guaranteed distribution, and each criterion has its own
number, the guaranteed one first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from kbpo.evaluation.models import Slice
from kbpo.evaluation.slices.rule import BadRule, Rule, Table, read
from kbpo.tracks.base import Group, Trait
from kbpo.tracks.models import Track
from kbpo.tracks.recall import recall_criteria
from kbpo.tracks.registry import kind_of
from scoring.arrays import Bools, Floats
from scoring.data import Data
from scoring.pool import Pool
from scoring.slices import OWN, TABLE, Cut, Keep, SliceScore, score_cuts


def slice_scores(track: Track, data: Data, keep: Keep = lambda *_: None) -> Iterator[SliceScore]:
    """Precision of every system in every slice that it has predictions in, the guaranteed criterion
    first; for a predicate its recall too.
    """
    return score_cuts(data, cuts(track, data), ordered(track), has_recall(track), keep)


def ordered(track: Track) -> list[str]:
    """The criteria of a track, the guaranteed one first."""
    other_criteria = [
        criterion_name
        for criterion_name in kind_of(track).measures.criterion_names()
        if criterion_name != track.criterion
    ]
    return [track.criterion, *other_criteria]


def has_recall(track: Track) -> bool:
    """Whether slices that are a stratum have recall."""
    return track.criterion in recall_criteria(track)


def cuts(track: Track, data: Data) -> Iterator[Cut]:
    """The slices by which the track's kind always cuts a pool, then those that admins defined."""
    pool, kind = data.pool, kind_of(track)
    traits = kind.traits(pool.instance, pool.systems)
    weighed = track.distribution if track.distribution in pool.p else next(iter(pool.p))
    of_strata = {group.trait for group in kind.groups.values() if group.strata}
    for name, group in kind.groups.items():
        yield from _of_group(name, group, pool, traits[group.trait], weighed)
    for row in Slice.objects.filter(track=track).order_by("pk"):
        try:
            rule = rule_of(row)
        except BadRule:  # the schema or the distributions have changed since; the desk says so
            continue
        inside = matching(rule, traits, pool.instance.size)
        table = rule.weight if isinstance(rule.weight, Table) else None
        weight = weights_of(table, traits) if table else None
        weighed = rule.weight if isinstance(rule.weight, str) else TABLE
        trait, alone = (rule.only if weighed in pool.p else None) or ("", "")
        stratum = None
        if trait in of_strata:
            of_it = traits[trait].where(traits[trait].names == alone)
            stratum = next(iter(pool.stratum[of_it].tolist()), None)
        yield Cut(
            OWN,
            row.name,
            inside,
            weighed,
            confidence=rule.confidence,
            stratum=stratum,
            weight=weight,
        )


def _of_group(name: str, group: Group, pool: Pool, trait: Trait, weighed: str) -> Iterator[Cut]:
    """One slice for each value of a group's trait; what has none is in no slice."""
    if group.strata:
        codes, first_rows = np.unique(pool.stratum, return_index=True)
        for code, value in zip(
            codes.tolist(), trait.names[trait.code[first_rows]].tolist(), strict=True
        ):
            yield Cut(name, value, pool.stratum == code, weighed, stratum=code)
        return
    for value in group.values or filter(None, np.unique(trait.names).tolist()):
        yield Cut(name, value, trait.where(trait.names == value), weighed)


def rule_of(row: Slice) -> Rule:
    """The rule of a slice, checked against its track as it is now. Raises BadRule."""
    return read_for(row.track, row.rule)


def read_for(track: Track, raw: object) -> Rule:
    """The rule that a JSON object stands for on a track. Raises BadRule."""
    return read(raw, traits=kind_of(track).cut_by(), weights=track.distributions)


def matching(rule: Rule, traits: Mapping[str, Trait], n: int) -> Bools:
    """(n,) whether each instance is what a rule asks for; its confidences are each system's own."""
    inside = np.ones(n, dtype=np.bool_)

    for trait, names in rule.names:
        inside &= traits[trait].where(np.isin(traits[trait].names, names))
    if rule.same_sentence is not None:
        place = traits["sentence"]
        inside &= place.where((place.names == "same") == rule.same_sentence)
    if rule.document:
        document = traits["document"]
        inside &= document.where(np.char.startswith(document.names, rule.document))
    if rule.date:
        date = traits["date"]
        inside &= date.where((date.names >= rule.date[0]) & (date.names <= rule.date[1]))
    return inside


def weights_of(table: Table, traits: Mapping[str, Trait]) -> Floats:
    """(u,) the weight of each instance by a table."""
    trait = traits[table.trait]
    weight_of = np.full(trait.names.size, table.other)
    for name, weight in table.weight:
        weight_of[trait.names == name] = weight
    return np.asarray(weight_of[trait.code])
