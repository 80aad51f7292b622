"""Makes the interval that may be watched: of a submission's guaranteed number, while answers come
in.

A final interval holds at the end of a stage. Looked at after every answer it would miss sooner or
later, so a page that refreshes itself shows a confidence sequence instead (Waudby-Smith and Ramdas
2024), which holds at all times at once. What it is a sequence of depends on the design:

**poisson.** A target is asked iff u < π, in the order of t = u/π. So the next answer at time t is
that of target τ with probability q ∝ π/(1 − tπ) among those still unseen, whatever the answers
were, and

    x = Σ_seen p f + Σ_unseen p c + p(τ) (f(τ) − c) / q(τ)

has the precision as its mean given all that came before: importance sampling without replacement
(Shekhar et al. 2023), around a guess c, the mean of the answers so far. It is bounded by the design
alone: by max p/π times Σ π. Targets that are asked for certain (π = 1) are no chance: those
answered are known, the others may be anything from wrong to right. Exact for the first stage of a
submission whose targets nobody was asked about before. Labels that existed, and stages whose
thresholds learnt from earlier answers, are taken as if the probabilities that hold now had held
from the start: the interval then has its level at each look, but each look orders the targets anew,
so that *at all looks at once* is an approximation (a good one: betting is careful).

**iid.** The answers to the submission's own draws, in the order of u, which is independent of them:
bounded by 0 and 1, with the precision as their mean. Targets that are likely to be drawn twice are
set aside like certain ones; for the rest a repeat is rare, and ignored. Answers to the draws of
others, which narrow the final interval, are not used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from estimators.confidence_sequences import betting
from kbpo.evaluation.data import Data
from kbpo.evaluation.default import Centred
from kbpo.evaluation.models import Look
from kbpo.instances.models import Label
from kbpo.sampling.probabilities import Floats, Ids
from kbpo.submissions.models import Submission

CERTAIN = 0.999
OFTEN = 0.5
"""Expected draws of a target from which it is set aside (design iid)."""
SLACK = 1.25
"""How far Σ π/(1 − tπ) over the unseen may rise above its mean before a term is left out."""
BIN = 0.002
"""Width, on the log scale, of the bins of π that sums over all targets are taken in."""


@dataclass(frozen=True)
class Known:
    """What is no chance: Σ p f of answered targets that are set aside, and Σ p of the unanswered
    ones.
    """

    right: float
    open: float


@dataclass(frozen=True)
class Terms:
    """A stream of bounded terms with one mean, whose share of the whole is `weight`."""

    x: Floats
    bounds: tuple[float, float]
    weight: float
    planned_n: int

    def interval(self, known: Known, level: float) -> tuple[float, float]:
        """The interval of the whole after the last term."""
        low, high = 0.0, 1.0
        if self.x.size and self.weight > 0:
            ends = betting(
                self.x, confidence_level=level, planned_n=max(1, self.planned_n), bounds=self.bounds
            )
            low, high = max(0.0, float(ends.low[-1])), min(1.0, float(ends.high[-1]))
        return known.right + self.weight * low, known.right + known.open + self.weight * high


def take_look(submission: Submission, data: Data, value: float) -> Look | None:
    """The look at a submission whose guaranteed number is estimated as `value` now, stored; None
    before an answer.
    """
    column = data.systems.index(submission.pk)
    track = submission.track
    if track.design == "iid":
        known, terms = of_draws(data, column, track.distribution, track.criterion)
    else:
        known, terms = of_targets(data, column, track.distribution, track.criterion)
    n, before = _counted(submission, data, column)
    if not n:
        return None
    ends = {level: terms.interval(known, level / 100) for level in (80, 95)}
    last = submission.looks.order_by("-n").first()
    if last is not None:  # what was once shut out stays out
        narrower = {80: (last.low80, last.high80), 95: (last.low95, last.high95)}
        ends = {level: _both(ends[level], narrower[level]) for level in ends}
    figures = {
        f"{end}{level}": ends[level][at] for level in ends for at, end in enumerate(("low", "high"))
    }
    figures["value"] = min(max(value, figures["low80"]), figures["high80"])
    return Look.objects.update_or_create(
        submission=submission, n=n, defaults=figures | {"n_before": before}
    )[0]


def _both(now: tuple[float, float], before: tuple[float, float]) -> tuple[float, float]:
    """What two intervals share; the earlier one if that is nothing, which is as rare as a miss."""
    low, high = max(now[0], before[0]), min(now[1], before[1])
    return (low, high) if low <= high else before


def _counted(submission: Submission, data: Data, column: int) -> tuple[int, int]:
    """The submission's targets whose judgments count now, and how many of them were judged before
    it was sampled.
    """
    pool, at = data.pool, data.judged
    mine = np.asarray(pool.member[at][:, [column]].toarray()).ravel() > 0
    counts = (
        mine
        & data.own.get(column, data.inclusion).counts[pool.target[at]]
        & ~np.isnan(data.f[submission.track.criterion][:, column])
    )
    targets = np.unique(pool.target_id[pool.target[at[counts]]]).tolist()
    old = Label.objects.filter(target__in=targets, created_at__lt=submission.sampled_at).exclude(
        method="given_up"
    )
    return len(targets), old.values("target").distinct().count()


def of_targets(data: Data, column: int, kind: str, criterion: str) -> tuple[Known, Terms]:
    """The stream of a submission's targets (design poisson)."""
    code, p, f = _by_target(data, column, kind, criterion)
    chance, seen = data.own.get(column, data.inclusion), data.seen.get(column)
    pi, u = chance.asked[code], data.pool.u[code]
    certain = chance.threshold[code] >= CERTAIN
    answered = (u < pi) & chance.counts[code]
    if (
        seen is not None
    ):  # judgments that the team knew of are no chance, and what it knew to be unjudged had less
        exact, base = seen.exact[code], np.where(seen.unjudged[code], seen.threshold[code], 0.0)
        certain, answered = certain | exact, answered | exact
        pi, u = np.maximum((pi - base) / (1 - base), 0.0), (u - base) / (1 - base)
    return stream(p, pi, u, np.where(answered, f, np.nan), certain=certain)


def _by_target(data: Data, column: int, kind: str, criterion: str) -> tuple[Ids, Floats, Floats]:
    """Of the submission's targets: code, Σ p, and the share of p that is right (NaN unless all of
    it is judged).
    """
    pool = data.pool
    p = np.asarray(pool.p[kind][:, [column]].toarray()).ravel()
    f = _verdicts(data, column, criterion)
    mine = np.flatnonzero(p > 0)
    code, at = np.unique(pool.target[mine], return_inverse=True)
    weight: Floats = np.bincount(at, weights=p[mine], minlength=code.size).astype(np.float64)
    right = np.bincount(at, weights=(p * f)[mine], minlength=code.size)
    return code, weight, right / weight


def _verdicts(data: Data, column: int, criterion: str) -> Floats:
    """(u,) f of each instance of the pool for a system, NaN where nothing that counts says it."""
    arranged, found = Centred(data, criterion), np.full(data.pool.instance.size, np.nan)
    found[arranged.row] = arranged.said_of(column)
    return found


def stream(
    p: Floats, pi: Floats, u: Floats, f: Floats, *, certain: NDArray[np.bool_]
) -> tuple[Known, Terms]:
    """What is known and the terms of the rest, of N targets: weights that sum to 1, inclusion
    probabilities now, random numbers, and f in [0, 1] where it is answered (u < π), else NaN.
    """
    aside = certain | (pi <= 0)
    open_ones = aside & np.isnan(f)
    known = Known(float((p * f)[aside & ~open_ones].sum()), float(p[open_ones].sum()))
    # An answer that never comes (given up) has u < π and no f: its target leaves the population.
    rest = ~aside & ~((u < pi) & np.isnan(f))
    lost = 1.0 - float(p[aside].sum())
    if not rest.any():
        return known, Terms(np.zeros(0), (0.0, 1.0), lost, 1)
    weight = p[rest] / p[rest].sum()
    x, bound = _terms(weight, pi[rest], u[rest], f[rest])
    return known, Terms(x, (-bound, 1 + bound), lost, int(np.ceil(pi[rest].sum())))


def _terms(p: Floats, pi: Floats, u: Floats, f: Floats) -> tuple[Floats, float]:
    """The terms in the order of answering, and the most that p/q can be."""
    steepest, total = float((p / pi).max()), float(pi.sum())
    bound = SLACK * steepest * total
    answered = np.flatnonzero(~np.isnan(f))
    order = answered[np.argsort(u[answered] / pi[answered], kind="stable")]
    time, p, pi_of, f = u[order] / pi[order], p[order], pi[order], f[order]
    unseen = _hazard(pi, time) - _seen_hazard(pi_of, time)
    usable = steepest * unseen <= bound
    before = np.cumsum(p) - p
    right = np.cumsum(p * f) - p * f
    centre = (np.cumsum(f * p / pi_of) - f * p / pi_of + 0.5 * steepest) / (
        np.cumsum(p / pi_of) - p / pi_of + steepest
    )
    q = pi_of / (1 - time * pi_of) / unseen
    x = right + (1 - before) * centre + p * (f - centre) / q
    return x[usable], bound


def _hazard(pi: Floats, time: Floats) -> Floats:
    """Σ π/(1 − tπ) over all targets at each time."""
    _, place = np.unique(np.round(np.log(pi) / BIN), return_inverse=True)
    total = np.bincount(place, weights=pi)
    typical = total / np.bincount(place)
    return np.array([float((total / (1 - t * typical)).sum()) for t in time.tolist()])


def _seen_hazard(pi: Floats, time: Floats) -> Floats:
    """Σ π/(1 − tπ) over those answered before each time."""
    return np.array(
        [float((pi[:at] / (1 - t * pi[:at])).sum()) for at, t in enumerate(time.tolist())]
    )


def of_draws(data: Data, column: int, kind: str, criterion: str) -> tuple[Known, Terms]:
    """The stream of a submission's own draws (design iid)."""
    code, p, f = _by_target(data, column, kind, criterion)
    draws, pool = data.draws.get(kind), data.pool
    row = draws.row[draws.owner == column] if draws is not None else np.zeros(0, dtype=np.int64)
    place = np.searchsorted(code, pool.target[row])
    often = row.size * p >= OFTEN
    counts = data.own.get(column, data.inclusion).counts[code]
    aside = np.where(counts, f, np.nan)[often]
    known = Known(float(np.nansum(p[often] * aside)), float(p[often][np.isnan(aside)].sum()))
    verdict = _verdicts(data, column, criterion)
    mine = ~often[place]
    row, place = row[mine], place[mine]
    u, waits = pool.u[code[place]], ~counts[place]
    until = float(u[waits].min()) if waits.any() else 1.0
    use = (u < until) & ~np.isnan(verdict[row])
    order = np.argsort(u[use], kind="stable")
    return known, Terms(verdict[row[use]][order], (0.0, 1.0), float(p[~often].sum()), int(row.size))
