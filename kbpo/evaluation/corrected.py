"""Precision from the crowd's judgments, corrected by what an expert says of a random part of them.

The crowd's verdicts c stay as they are, and the expert's f* stand beside them, drawn with recorded probability e: the
sum of (f* − c) over the checked, weighted by 1/e, is what the crowd's errors cost (`estimators.noise`). What an expert
says is no label: it would take the place of the crowd's, and nobody could measure the errors any more. What counts only
because a sweep asked about its document has no part in this: checks are drawn of what was drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from estimators.design import Design
from estimators.estimate import Estimate
from estimators.horvitz_thompson import hajek
from estimators.noise import corrected
from estimators.seen import on_common_design
from estimators.sums import by_code
from kbpo.evaluation.centred import Centred
from kbpo.evaluation.data import Bools, Data
from kbpo.evaluation.score import Key, Score, rows
from kbpo.instances.models import Label
from kbpo.sampling.check import Frame
from kbpo.sampling.checked import Checks, read_checks
from kbpo.sampling.models import SampleBatch
from kbpo.sampling.probabilities import Floats, Ids
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of

METHOD = "expert"
LEAST = 10
"""Checked judgments of a system below which its number is not corrected: the correction would be mostly chance."""


def corrected_scores(track: Track, data: Data, estimates: dict[Key, tuple[Estimate, Design]]) -> Iterator[Score]:
    """The corrected precision of every system that can be corrected, of default estimates of the same data."""
    found = Corrected.of(track, data)
    if found is None:
        return
    for (quantity, criterion, kind), (estimate, _) in estimates.items():
        if quantity == "precision":
            if found.data is not data:
                estimate = found.arranged.precision(kind, criterion)
            better, checked = found.precision(kind, criterion, estimate)
            for score in rows(data, better, quantity, criterion, kind, METHOD):
                if not math.isnan(score.value):
                    yield replace(score, n_checked=int(checked[score.column]))


def confusion(track: Track, data: Data) -> dict[str, Any]:
    """What the crowd says against what experts say, by criterion; empty if nobody has checked anything."""
    found = Corrected.of(track, data)
    if found is None:
        return {}
    return {criterion: found.confusion(criterion) for criterion in kind_of(track).criteria}


def frame_of(track: Track, data: Data) -> Frame:
    """What an expert could check now: targets that were drawn and count, and whose label is the crowd's."""
    data = data.drawn_alone()
    if not data.judged.size:
        nothing = np.zeros(0)
        return Frame(np.zeros(0, dtype=np.int64), np.zeros((0, 1)), nothing, nothing, nothing)
    arranged = Centred(data, track.criterion)
    codes, row_target = arranged.targets
    ids = data.pool.target_id[codes]
    counts = arranged.counts
    weight = data.pool.p[track.distribution][arranged.row].toarray()
    a = weight * (counts / arranged.row_pi)[:, None]
    for column in data.seen:
        used, pi = arranged.own(column)
        a[:, column] = weight[:, column] * used / pi
    verdicts = data.f[track.criterion][arranged.at]
    a = by_code(np.where(np.isnan(verdicts), 0.0, a * data.shown), row_target, codes.size)
    n, disagreement = _votes(ids)
    able = (n > 0) & (a.sum(axis=1) > 0)
    doubt = _doubt(arranged, data, verdicts, n, disagreement)
    checks = read_checks(track, ids, data.inclusion.asked[codes])
    return Frame(
        target_id=ids[able],
        a=a[able],
        doubt=doubt[able],
        inclusion=np.where(data.inclusion.drawn, data.inclusion.asked, 0.0)[codes][able],
        checked=checks.alone[able] if checks else np.zeros(int(able.sum())),
    )


def _votes(ids: Ids) -> tuple[Ids, Floats]:
    """How many people answered about each target, and their disagreement; 0 where somebody better knows the answer."""
    n, disagreement = np.zeros(ids.size, dtype=np.int64), np.zeros(ids.size)
    labels = Label.objects.filter(target__in=ids.tolist()).exclude(value={}).order_by("created_at", "pk")
    known: set[int] = set()
    for target, source, size, share in labels.values_list("target_id", "source", "n", "disagreement"):
        at = int(np.searchsorted(ids, target))
        if source == Label.Source.CROWD:
            n[at], disagreement[at] = max(size, 1), share
        elif source in (Label.Source.EXPERT, Label.Source.IMPORT):
            known.add(at)
    n[list(known)] = 0
    return n, disagreement


def _doubt(arranged: Centred, data: Data, verdicts: Floats, n: Ids, disagreement: Floats) -> Floats:
    """(t',) q (1 − q) of the most doubtful row: q from the votes and from the model's opinion, taken as independent."""
    row_target = arranged.targets[1]
    said = ((n * (1 - disagreement) + 1) / (n + 2))[row_target]  # half a vote each way, twice: none is certain
    g = np.clip(data.g["relation"][arranged.row], 0.05, 0.95)
    c = np.nan_to_num(verdicts).max(axis=1)
    agrees = np.where(c > 0, g, 1 - g)
    q = said * agrees / (said * agrees + (1 - said) * (1 - agrees))
    doubt = np.zeros(arranged.targets[0].size)
    np.maximum.at(doubt, row_target, q * (1 - q))
    return doubt


@dataclass(frozen=True)
class Corrected:
    """A track's data with what experts said. Rows are those of `arranged`."""

    track: Track
    arranged: Centred
    checks: Checks

    @classmethod
    def of(cls, track: Track, data: Data) -> Corrected | None:
        """None if no expert has answered anything that counts."""
        if not data.judged.size:
            return None
        data = data.drawn_alone()
        arranged = Centred(data)
        codes = arranged.targets[0]
        checks = read_checks(track, data.pool.target_id[codes], data.inclusion.asked[codes])
        return None if checks is None or not checks.checked.any() else cls(track, arranged, checks)

    @property
    def data(self) -> Data:
        return self.arranged.data

    @cached_property
    def rows(self) -> Bools:
        """(n,) whether an expert has checked the row's target."""
        return np.asarray(self.checks.checked[self.arranged.targets[1]])

    @cached_property
    def expert(self) -> dict[str, Floats]:
        """criterion -> (n, m) f*, NaN where not checked or not answered."""
        pool, at = self.data.pool, np.flatnonzero(self.rows)
        found = kind_of(self.track).rejudge(pool.instance[self.arranged.row[at]], pool.systems, self.checks.values)
        verdicts = {}
        for criterion, some in found.items():
            verdicts[criterion] = np.full((self.rows.size, len(pool.systems)), np.nan)
            verdicts[criterion][at] = some
        return verdicts

    def crowd(self, criterion: str) -> Floats:
        """(n, m) c, NaN where missing."""
        return np.asarray(self.data.f[criterion][self.arranged.at])

    @cached_property
    def member(self) -> Bools:
        """(n, m) whether the system states the row."""
        return np.asarray(self.data.pool.member[self.arranged.row].toarray() > 0)

    def answered(self, criterion: str) -> float:
        """The share of what was checked that got an answer: a flag is none."""
        asked = self.member & self.rows[:, None] & ~np.isnan(self.crowd(criterion))
        known = ~np.isnan(self.expert[criterion])[asked]
        return float(known.mean()) if known.any() else 1.0

    def error(self, criterion: str) -> float:
        """How often the expert contradicts the crowd, with half a contradiction added."""
        both = np.abs(self.expert[criterion] - self.crowd(criterion))[self.member]
        both, n = both[~np.isnan(both)], int(self.checks.checked.sum())
        return float(((both.mean() if both.size else 0.0) * n + 0.5) / (n + 1))

    @cached_property
    def since(self) -> Bools:
        """(m,) whether each system's sample was judged, at least a stage of it, before the last round was drawn: then
        everything that it states had a chance."""
        by = SampleBatch.objects.filter(settled_at__lte=self.checks.settled_by, submission__in=self.data.systems)
        return np.isin(self.data.systems, list(by.values_list("submission_id", flat=True)))

    def precision(self, kind: str, criterion: str, estimate: Estimate) -> tuple[Estimate, Ids]:
        """The default estimate of every system, corrected (NaN where that cannot be), and how many targets of each an
        expert has checked."""
        m = len(self.data.systems)
        value, variance, floor = np.full(m, np.nan), np.full(m, np.nan), np.zeros(m)
        checked = np.zeros(m, dtype=np.int64)
        weight = self.data.pool.p[kind][self.arranged.row].toarray()
        for column in range(m):
            terms = self._terms(column, weight[:, column], criterion)
            if terms is None:
                continue
            p, pi, e, scale = terms
            e = np.where(self.rows, e * self.answered(criterion), 1.0)
            crowd, expert = self.crowd(criterion)[:, column], self.expert[criterion][:, column]
            code, known = self.arranged.targets[1], (p > 0) & ~np.isnan(crowd + expert)
            checked[column] = np.unique(code[known]).size
            if checked[column] < LEAST:
                continue
            alone = _column(estimate, column)
            found = corrected(
                alone, self.arranged.under(criterion).design, p, pi, crowd, expert, e, target=code, scale=scale
            )
            value[column], variance[column] = found.value, found.variance
            reach = by_code(np.where(known, p / pi * np.sqrt(1 - e) / e, 0.0)[:, None], code, int(code.max()) + 1)
            floor[column] = float(alone.anticipated) + self.error(criterion) * float((reach**2).sum())
        better = replace(estimate, value=value, variance=variance, anticipated=floor, influence=np.zeros((0, m)))
        return better, checked

    def _terms(self, column: int, weight: Floats, criterion: str) -> tuple[Floats, Floats, Floats, Floats] | None:
        """p, π and e of each row for a system, and what its influence is scaled with; None if it is not covered."""
        arranged, target = self.arranged.under(criterion), self.arranged.targets[1]
        if not self.data.shown[column]:
            return None
        if column not in self.data.seen:
            e = self.checks.chance[target]
            used = arranged.counts & (e > 0)
            if not self.since[column]:
                return None
            return weight * used, arranged.row_pi, np.where(used, e, 1.0), np.ones(arranged.targets[0].size)
        # What counts for it alone was asked in its own way: all of it must have been in a round.
        used, pi = arranged.own(column)
        crowds = _votes(self.data.pool.target_id[arranged.targets[0]])[0][target] > 0
        if np.any(used & crowds & (weight > 0) & ~self.checks.framed[target]):
            return None
        scale = on_common_design(np.ones(arranged.targets[0].size), arranged.by_target(pi), arranged.design.pi)
        e = self.checks.alone[target]
        return weight * used, pi, np.where(e > 0, e, 1.0), scale

    def confusion(self, criterion: str) -> dict[str, Any]:
        """Counts of what was checked by what the crowd and the expert say, and what they estimate for all judgments.

        A relation counts once, as the first system states it.
        """
        first = self.member.argmax(axis=1)
        at = np.arange(first.size)
        crowd, expert = self.crowd(criterion)[at, first], self.expert[criterion][at, first]
        e = self.checks.chance[self.arranged.targets[1]] * self.answered(criterion)
        kept = self.arranged.counts & self.rows & (e > 0) & ~np.isnan(crowd + expert)
        crowd, expert, e = crowd[kept] > 0.5, expert[kept] > 0.5, e[kept]
        code = np.unique(self.arranged.targets[1][kept], return_inverse=True)[1]
        counts = [[int(((crowd == c) & (expert == f)).sum()) for f in (True, False)] for c in (True, False)]
        return {
            "checked": int(np.unique(code).size),
            "counts": counts,
            "agree": _share(crowd == expert, e, code),
            "right_of_right": _share(expert[crowd], e[crowd], code[crowd]),
            "wrong_of_wrong": _share(~expert[~crowd], e[~crowd], code[~crowd]),
        }


def _column(estimate: Estimate, column: int) -> Estimate:
    def one(values: Any) -> float:
        return float(np.broadcast_to(values, np.shape(estimate.value))[column])

    return Estimate(
        value=one(estimate.value), variance=one(estimate.variance), n=int(one(estimate.n)),
        influence=estimate.influence[:, column], anticipated=one(estimate.anticipated), total_g=one(estimate.total_g),
    )  # fmt: skip


def _share(holds: Bools, e: Floats, code: Ids) -> dict[str, float | None]:
    """A share of all judgments, from the checked ones, with its 80 % interval."""
    if not holds.size:
        return {"value": None, "low80": None, "high80": None}
    target = np.unique(code, return_inverse=True)[1]
    found = hajek(np.full(e.size, 1 / (1 / e).sum()), e, holds.astype(np.float64), target=target)
    low, high = found.confidence_interval(0.8, method="wilson")
    return {"value": float(found.value), "low80": float(low), "high80": float(high)}
