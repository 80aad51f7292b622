"""Cuts a track's data into slices and scores each: new questions to labels that exist, without a
new judgment.

Precision in a slice S weighs its predictions by p_i(x) / Σ_S p_i, and is estimated as the whole is
(Chaganty 2018, section 6.1.2): the labels keep the probabilities with which they came in, so that
every cut is as unbiased as the whole, only less sure. Built-in groups are cut under the track's
guaranteed distribution, and each criterion has its own number, the guaranteed one first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from estimators.design import Design
from estimators.estimate import Estimate
from estimators.sample_size import for_half_width
from kbpo.evaluation.models import Slice
from kbpo.evaluation.slices.rule import CONFIDENCE, BadRule, Rule, Table, read
from kbpo.tracks.base import Group
from kbpo.tracks.models import Track
from kbpo.tracks.recall import recall_criteria
from kbpo.tracks.registry import kind_of
from scoring.arrays import Bools, Floats, Ids, Matrix
from scoring.data import Data, Swept
from scoring.default import Centred
from scoring.documents import Facts
from scoring.floors import Floors
from scoring.pool import Pool
from scoring.rated import with_noise
from scoring.score import DEFAULT, Score, rows

OWN = "own"
"""The group of slices that admins defined"""
TABLE = "table"
"""What a slice is weighted by that an admin gave numbers"""
ENOUGH = 0.10
"""Half-width of the 80 % interval from which a slice says something."""


@dataclass(frozen=True)
class Cut:
    """One slice of a pool."""

    group: str
    name: str
    inside: Bools
    """(u,)"""
    kind: str
    """What weighs it: a distribution, CONFIDENCE or TABLE"""
    confidence: tuple[float, float] | None = None
    weight: Floats | None = None
    """(u,) of each instance, where a table weighs it"""
    stratum: int | None = None
    """Where the slice is all of one stratum, it may have recall too"""

    @property
    def is_stratum(self) -> bool:
        """Whether it is one of those slices that are a stratum each, and not an admin's own."""
        return self.group != OWN and self.stratum is not None

    @property
    def key(self) -> str:
        """What its estimates are stored under."""
        return f"{self.group}:{self.name}"


@dataclass(frozen=True)
class SliceScore:
    """One number of one system in one slice."""

    slice: str
    n_predictions: int
    score: Score


Names: TypeAlias = NDArray[np.str_]
Keep: TypeAlias = Callable[[Cut, Estimate, Design], None]
"""What else is to be done with the precisions of a slice"""


def slice_scores(track: Track, data: Data, keep: Keep = lambda *_: None) -> Iterator[SliceScore]:
    """Precision of every system in every slice that it has predictions in; for a predicate its
    recall too.
    """
    if not data.judged.size:
        return
    others = [one for one in kind_of(track).criterion_names() if one != track.criterion]
    with_recall = track.criterion in recall_criteria(track)
    for cut in cuts(track, data):
        part = restricted(data, cut)
        size = np.asarray(part.pool.member.sum(axis=0)).ravel().astype(np.int64)
        for score in _scores(part, cut, [track.criterion, *others], with_recall, keep):
            if size[score.column]:
                yield SliceScore(cut.key, int(size[score.column]), score)


def cuts(track: Track, data: Data) -> Iterator[Cut]:
    """The slices by which the track's kind always cuts a pool, then those that admins defined."""
    pool, kind = data.pool, kind_of(track)
    traits = kind.traits(pool.instance, pool.systems)
    weighed = track.distribution if track.distribution in pool.p else next(iter(pool.p))
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
        alone = rule.only_predicate if weighed in pool.p else None
        predicate = (
            next(iter(pool.predicate[traits["predicate"] == alone].tolist()), None)
            if alone
            else None
        )
        yield Cut(
            OWN,
            row.name,
            inside,
            weighed,
            confidence=rule.confidence,
            stratum=predicate,
            weight=weight,
        )


def _of_group(name: str, group: Group, pool: Pool, trait: Names, weighed: str) -> Iterator[Cut]:
    """One slice for each value of a group's trait."""
    if group.strata:
        codes, first = np.unique(pool.predicate, return_index=True)
        for code, value in zip(codes.tolist(), trait[first].tolist(), strict=True):
            yield Cut(name, value, pool.predicate == code, weighed, stratum=code)
        return
    for value in group.values or np.unique(trait).tolist():
        yield Cut(name, value, trait == value, weighed)


def rule_of(row: Slice) -> Rule:
    """The rule of a slice, checked against its track as it is now. Raises BadRule."""
    return read_for(row.track, row.rule)


def read_for(track: Track, raw: object) -> Rule:
    """The rule that a JSON object stands for on a track. Raises BadRule."""
    schema = track.corpus.schema
    return read(
        raw,
        predicates=[one["name"] for one in schema.get("predicates", ())],
        types=[one["name"] for one in schema.get("entity_types", ())],
        weights=track.distributions,
    )


def matching(rule: Rule, traits: Mapping[str, Names], n: int) -> Bools:
    """(n,) whether each instance is what a rule asks for; its confidences are each system's own."""
    inside = np.ones(n, dtype=np.bool_)
    for trait in ("predicate", "subject_type", "object_type", "frequency"):
        if names := getattr(rule, trait):
            inside &= np.isin(traits[trait], names)
    if rule.same_sentence is not None:
        inside &= (traits["sentence"] == "same") == rule.same_sentence
    if rule.document:
        inside &= np.char.startswith(traits["document"], rule.document)
    if rule.date:
        inside &= (traits["date"] >= rule.date[0]) & (traits["date"] <= rule.date[1])
    return inside


def weights_of(table: Table, traits: Mapping[str, Names]) -> Floats:
    """(u,) the weight of each instance by a table."""
    weight_of = np.full(traits[table.trait].size, table.other)
    for name, weight in table.weight:
        weight_of[traits[table.trait] == name] = weight
    return weight_of


def restricted(data: Data, cut: Cut) -> Data:
    """The data of a slice alone: its instances, their labels and facts, and its distribution, which
    sums to 1 again.
    """
    pool, inside = data.pool, np.flatnonzero(cut.inside)
    p = _within(_weighed(pool, cut)[inside], pool.confidence[inside], cut.confidence)
    place = np.full(pool.instance.size, -1, dtype=np.int64)
    place[inside] = np.arange(inside.size)
    kept = np.flatnonzero(place[data.judged] >= 0)
    return replace(
        data,
        pool=replace(
            pool,
            instance=pool.instance[inside],
            target=pool.target[inside],
            document=pool.document[inside],
            predicate=pool.predicate[inside],
            types=pool.types[inside],
            subject=pool.subject[inside],
            object=pool.object[inside],
            p={cut.kind: p},
            confidence=pool.confidence[inside],
            features=pool.features[inside] if pool.features.size else pool.features,
        ),
        judged=place[data.judged[kept]],
        f={criterion: verdicts[kept] for criterion, verdicts in data.f.items()},
        g={criterion: guesses[inside] for criterion, guesses in data.g.items()},
        error={criterion: errors[inside] for criterion, errors in data.error.items()},
        unaided={},
        noise={name: one.of(kept) for name, one in data.noise.items()},
        draws={},
        swept=_cut_swept(data.swept, place),
        facts=_facts(data.facts, inside, cut.stratum) if data.facts else None,
    )


def _cut_swept(swept: Swept | None, place: Ids) -> Swept | None:
    """The same of a slice; `place` has the new row of each instance, -1 for one that is not in
    it.
    """
    if swept is None:
        return None
    kept = place[swept.row] >= 0
    return Swept(place[swept.row[kept]], swept.true[kept])


def _weighed(pool: Pool, cut: Cut) -> Matrix:
    """What each system's predictions weigh, before they are made to sum to 1."""
    if cut.kind == CONFIDENCE:
        return sparse.csr_array(pool.member.multiply(pool.confidence))
    if cut.weight is not None:
        return sparse.csr_array(pool.member.multiply(cut.weight[:, None]))
    return pool.p[cut.kind]


def _within(p: Matrix, confidence: Matrix, ends: tuple[float, float] | None) -> Matrix:
    """Probabilities of the predictions with such a confidence, in columns that sum to 1 (or to 0:
    there are none).
    """
    kept = sparse.csr_array(p, copy=True)
    kept.eliminate_zeros()  # what weighs nothing is none of it
    if ends is not None:
        outside = sparse.csr_array(confidence, copy=True)
        outside.data = ((outside.data < ends[0]) | (outside.data > ends[1])).astype(np.float64)
        kept = sparse.csr_array(kept - kept.multiply(outside))
        kept.eliminate_zeros()
    totals = np.asarray(kept.sum(axis=0)).ravel()
    return sparse.csr_array(kept @ sparse.diags_array(1 / np.where(totals > 0, totals, 1.0)))


def _facts(facts: Facts, inside: Ids, predicate: int | None) -> Facts:
    """The facts of some instances; of the true ones those of the predicate (none where the slice is
    not one).
    """
    true = (
        facts.predicate == predicate
        if predicate is not None
        else np.zeros(facts.predicate.size, dtype=np.bool_)
    )
    return replace(
        facts,
        fact=facts.fact[inside],
        in_scope=facts.in_scope[inside],
        pool_weight=facts.pool_weight[inside],
        stated=facts.stated[inside],
        document=facts.document[true],
        predicate=facts.predicate[true],
        found=facts.found[true],
        code=facts.code[true],
        links=facts.links[true],
        inside=facts.inside[inside],
        marked=facts.marked[inside],
    )


def _scores(
    part: Data, cut: Cut, criteria: Sequence[str], with_recall: bool, keep: Keep
) -> Iterator[Score]:
    """The numbers of a slice, under the guaranteed criterion and then under the others. A model's
    guess alone is no number: without a label of its own a system has none.
    """
    guaranteed = criteria[0]
    if not part.judged.size:
        for column in range(len(part.systems)):
            yield _unknown(
                Score(column, part.mean, guaranteed, cut.kind, DEFAULT, 0, 0, 0, 0, 0, 0, 0, 0, 0)
            )
        return
    arranged = Centred(part)
    for criterion in criteria:
        precision = arranged.precision(cut.kind, criterion)
        precision, design = with_noise(arranged, cut.kind, criterion, precision)
        if criterion == guaranteed:
            keep(cut, precision, design)
        for one in rows(part, precision, part.mean, criterion, cut.kind, DEFAULT):
            yield one if one.n_labels else _unknown(one)
    recall = None
    if with_recall and cut.stratum is not None:
        recall = Floors(arranged).recall(guaranteed)
    if recall is not None:
        found = rows(part, recall.recall, "recall", guaranteed, cut.kind, DEFAULT)
        yield from (one for one in found if not math.isnan(one.value))


def _unknown(score: Score) -> Score:
    nan = math.nan
    return replace(score, value=nan, variance=nan, low80=nan, high80=nan, low95=nan, high95=nan)


def would_do(value: float | None, variance: float | None, n_labels: int) -> int:
    """How many judgments more would bring the interval to ±10 %, if they are worth what those so
    far are.

    Reckoned with the middle of what the value may be (half a right and half a wrong judgment
    added), since a few judgments that agree prove little; 42 where nothing is known, as where the
    variance has no bound (a claim of the slice could not have been drawn).
    """
    if value is None or variance is None or not math.isfinite(variance) or not n_labels:
        return for_half_width(ENOUGH, 0.8)
    share = (min(1.0, max(0.0, value)) * n_labels + 0.5) / (n_labels + 1)
    spread = max(variance * n_labels, share * (1 - share))
    needed = for_half_width(ENOUGH, 0.8) * spread / 0.25
    return max(0, math.ceil(needed) - n_labels)
