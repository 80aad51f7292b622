"""Runs that are made from the answers of somebody else's: how far everybody's numbers are off, how
often an honest run is taken for one, and how often such a run is found.

usage: python benchmarks/leaked_answers.py [REPEATS] [PART …]        (default: 12, all parts)
parts: honest channels power second documents verdicts errors

The real runs on Re-DocRED, weighted by instance. One run is read from: thresholds to a half-width
at 80 %, all that is drawn is judged. Then another run comes:

leak        the first one without what was judged wrong
            (`adds`: a run of another team without that, and with what was judged right of the
            first)
sabotage    the first one without what was judged right
masked      the leak, and as much of what was not judged deleted at random
copy        the first one as it is; ensemble: what two of it and two others state (both honest,
            errors alone)
honest      the other real runs, as they are; unions, intersections and majorities of others' runs,
            with the one that is read from and without; that one cut at a confidence, or to some
            relations

second      of the same team: the first one without what was judged wrong, and what another run
            predicts beside it. Its sample is drawn and judged, and the others are tested against
            it: against all that it predicts, and, as the service does, against what was still to be
            drawn when its team decided on it

verdicts    what was judged of the new run before it came against what was judged since, once it is
            judged to ±5 or ±3, with a few questions anew (`our_rule.CHECK`): of honest runs, with
            both samples drawn anew; of masked ones, also how many questions were asked anew

read        (with `documents`) what is right in documents that were read, and as much elsewhere, of
            which a share is right: by its own answers, asked to ±5, in these documents against
            those in others; honest runs, asked to ±5 and ±2 (560 questions), with readers who miss
            nothing and people elsewhere who are right so often, or who miss so many of what is
            right, or leave questions unanswered; the real ones, and plain ones: few right claims,
            many that are as precise, and such ones whose documents hold one or thirty

sure        a copy that is least sure of what was judged wrong, and surest of some at random; the
            numbers of `channels` are those of a run's other channels (`scoring.channels`: how sure
            it is, what it gives weight, what else it says), of honest runs and of this one

An honest run is the same whoever is drawn: so each sample is drawn anew 100 times, all at once on
arrays, and each time the run has a p-value. `at most` is the upper end of Clopper and Pearson's
95 % interval, as if all were independent. `flagged` is the share with p ≤ 0.001 after Holm over as
many earlier runs as there are. Errors are in points, of a board of three: the run that was read
from, one that has nothing to do with it, and the new one, which is `believed` (judged as
anybody's), or `treated` as one that has seen the answers and kept out of the model; `not found`:
believed, of those boards alone in which the test does not find it.

KBPO_SHARED_DATA names the folder that holds redocred/ if it is not ../shared/data.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import beta

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import redocred, tables
from benchmarks.arrivals import LEVEL, World, Z, worlds
from benchmarks.our_rule import Board, Run, arrive, ask_anew, measure
from estimators import horvitz_thompson, leaks, model, poisson, seen
from scoring.channels import Said

ALPHA, EARLIER, FOLDS = 0.001, 27, 5
N_DOCUMENTS = 500
REDRAWN = 100
ANEW = 10
PLAIN = 8
PERSONS = 10
DOUBTFUL, CHECK_AGAIN, LOOKS = 0.05, 24.0, 6
HALF_WIDTHS = (0.10, 0.05, 0.03)
UNTIL = "anticipated"
USED = (1.0, 0.5, 0.25, 0.1, 0.05)
HONEST = ("copy", "ensemble")
ELSEWHERE = (0.1, 0.4, 0.6)
PRECISIONS = (0.9, 0.95, 1.0)
AMOUNTS = {False: "how much it says", True: "how much more it says that is new"}
"""Whether a team could see judgments -> what the service tests of its runs, by documents"""


def sampled(world: World, i: int, half_width: float, rng: np.random.Generator):
    """Return thresholds and who was drawn, (t,), for a run alone on the board."""
    pi = thresholds(world, world.member[:, i] > 0, half_width)
    return pi, rng.random(pi.size) < pi


def thresholds(world: World, run: np.ndarray, half_width: float) -> np.ndarray:
    """Return thresholds, (t,), for a run (a column of members) alone on the board."""
    own = np.flatnonzero(run)
    pi = np.zeros(world.n_targets)
    names = world.target[own]
    code = np.unique(names, return_inverse=True)[1]
    goal = (half_width / Z) ** 2
    p = np.full(own.size, 1 / own.size)
    pi[names] = poisson.water_fill(p, np.zeros(own.size), 0.25, target_variance=goal, target=code)
    return pi


def tested(
    world: World,
    predicts: np.ndarray,
    run: np.ndarray,
    pi: np.ndarray,
    drawn: np.ndarray,
    open_: np.ndarray | None = None,
) -> float:
    """Return the p-value of a run (a column of members) against the sample of another, or against
    some of its targets.
    """
    chance, is_drawn, is_predicted, stratum, level = _sample(world, predicts, run, pi, drawn, open_)
    sample = chance, is_drawn, is_predicted
    share = leaks.share_test(*sample, stratum=stratum)
    return leaks.either(share, leaks.contrast_test(*sample, level)).p_value


def _sample(
    world: World,
    predicts: np.ndarray,
    run: np.ndarray,
    pi: np.ndarray,
    drawn: np.ndarray,
    open_: np.ndarray | None,
) -> tuple[np.ndarray, ...]:
    """Return of each target that could be drawn: π, whether it was (the last axis of any), whether
    the run predicts it, the stratum and the level.
    """
    predicts, base = predicts > 0, nearest(world, run)
    count = np.bincount(world.target[predicts], minlength=pi.size)
    both = np.bincount(world.target[predicts & run], minlength=pi.size)
    inside = count > 0 if open_ is None else (count > 0) & open_
    near = np.bincount(world.target[predicts & base], minlength=pi.size) > 0
    beside = (world.member > 0).sum(axis=1) - 1
    others = np.bincount(world.target[predicts], weights=beside[predicts], minlength=pi.size)
    level = leaks.levels((others / np.maximum(count, 1))[inside], pi[inside])
    stratum = near[inside].astype(int)
    return pi[inside], drawn[..., inside], (both == count)[inside], stratum, level


def redrawn(
    world: World,
    predicts: np.ndarray,
    run: np.ndarray,
    pi: np.ndarray,
    drawn: np.ndarray,
    open_: np.ndarray | None = None,
) -> np.ndarray:
    """Return what `tested` returns for each of many samples, the rows of `drawn`: the laws of how
    many targets are drawn depend on none of them.
    """
    chance, is_drawn, is_predicted, stratum, level = _sample(world, predicts, run, pi, drawn, open_)
    can = (chance > 0) & (chance < 1)
    shares = [_Part(chance, is_drawn, is_predicted, can & (stratum == one)) for one in (0, 1)]
    levels = [
        _Part(chance, is_drawn, is_predicted, can & (level == one)) for one in np.unique(level[can])
    ]
    found = np.ones(is_drawn.shape[0])
    for at in range(found.size):
        p = [one for part in shares for one in leaks._two_sided(*part.of(at))]
        share = min(1.0, len(p) * min(p)) if p else 1.0
        sizes = int(is_drawn[at].sum()), 0
        law, observed = np.ones(1), 0
        for part, weight in zip(levels, range(1 - len(levels), len(levels), 2), strict=True):
            own_law, count = part.of(at)
            law = np.convolve(law, leaks._times(weight, own_law))
            observed += weight * count if weight > 0 else -weight * (own_law.size - 1 - count)
            if weight < 0:
                sizes = sizes[0], sizes[1] + own_law.size - 1
        contrast = min(leaks._two_sided(law, observed), default=1.0)
        tests = (
            leaks.ShareTest(int(is_drawn[at][can].sum()), 0, 0.0, share),
            leaks.ShareTest(sizes[1], 0, 0.0, contrast, of_unlikely=True),
        )
        found[at] = leaks.either(*tests).p_value
    return found


class _Part:
    """Some targets of a sample, and how many of them many draws hold."""

    def __init__(
        self, chance: np.ndarray, drawn: np.ndarray, predicted: np.ndarray, at: np.ndarray
    ) -> None:
        self.size = drawn[:, at].sum(axis=1)
        self.count = drawn[:, at & predicted].sum(axis=1)
        most = int(self.size.max(initial=0))
        self.of_predicted = leaks.number_law(chance[at & predicted], most)
        self.of_other = leaks.number_law(chance[at & ~predicted], most)
        self.laws: dict[int, np.ndarray] = {}

    def of(self, draw: int) -> tuple[np.ndarray, int]:
        """Return the law of how many are predicted, given how many are drawn; and how many are."""
        size = int(self.size[draw])
        if size not in self.laws:
            both = self.of_predicted[: size + 1] * self.of_other[: size + 1][::-1]
            self.laws[size] = both / both.sum()
        return self.laws[size], int(self.count[draw])


def at_most(hits: int, n: int) -> float:
    """Return the upper end of Clopper and Pearson's 95 % interval of a share."""
    return float(beta.ppf(0.975, hits + 1, n - hits)) if hits < n else 1.0


def nearest(world: World, run: np.ndarray) -> np.ndarray:
    """Return the members of the real run that a run is most like."""
    both = world.member.T @ run.astype(float)
    likeness = both / np.maximum(world.member.sum(axis=0) + run.sum() - both, 1)
    return world.member[:, int(likeness.argmax())] > 0


def honest_runs(world: World, i: int, rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    """Yield runs that were made without looking at any answer."""
    member = world.member > 0
    others = [k for k in range(member.shape[1]) if k != i]
    for k in others:
        yield "real runs of others", member[:, k]
    for with_it in (False, True):
        some = list(rng.choice(others, 3 - with_it, replace=False)) + [i] * with_it
        votes = member[:, some].sum(axis=1)
        of = "with the one read from" if with_it else "without"
        yield f"ensembles {of}", votes >= 1
        yield f"ensembles {of}", votes >= 2
        yield f"ensembles {of}", votes >= 3
    mine = member[:, i]
    yield (
        "cut at a confidence",
        mine & (world.confidence[:, i] >= np.median(world.confidence[mine, i])),
    )
    kept = rng.random(world.predicate.max() + 1) < 0.5
    yield "cut to some relations", mine & kept[world.predicate]
    yield "cut at random", mine & (rng.random(mine.size) < 0.7)


def false_alarms(world: World, repeats: int, rng: np.random.Generator) -> list[list[object]]:
    """Return how often an honest run is flagged, by what it is made of."""
    found: dict[str, list[float]] = {}
    for _ in range(repeats):
        i = int(rng.integers(world.member.shape[1]))
        pi, _ = sampled(world, i, float(rng.choice(HALF_WIDTHS)), rng)
        drawn = rng.random((REDRAWN, pi.size)) < pi
        for name, run in honest_runs(world, i, rng):
            found.setdefault(name, []).extend(redrawn(world, world.member[:, i], run, pi, drawn))
    return by_making(found)


def by_making(p_values: dict[str, list[float]]) -> list[list[object]]:
    """Return a row of the table of false alarms for each way to make a run, and for all."""
    p_values["all"] = [p for some in p_values.values() for p in some]
    return [
        [
            name,
            len(p),
            *(float(np.mean(np.array(p) <= level)) for level in (0.1, 0.01)),
            *alarms(np.array(p)),
        ]
        for name, p in p_values.items()
    ]


def alarms(p: np.ndarray) -> list[object]:
    """Return how many have p ≤ 0.001 before Holm, the share that this may be at most, and how many
    are flagged.
    """
    hits = int((p <= ALPHA).sum())
    return [hits, f"{at_most(hits, p.size):.4%}", int((EARLIER * p <= ALPHA).sum())]


def made_from(world: World, i: int, drawn: np.ndarray, used: float, how: str, rng) -> np.ndarray:
    """Return a run that is made from a share of the answers to run i's sample; of the honest ones,
    which use none, a copy or what two of it and two others predict.
    """
    if how in ("copy", "sure"):
        return world.member[:, i] > 0
    if how == "ensemble":
        others = rng.choice(np.delete(np.arange(world.member.shape[1]), i), 2, replace=False)
        return (world.member[:, [i, *others]] > 0).sum(axis=1) >= 2
    mine, judged = world.member[:, i] > 0, drawn[world.target]
    true = world.true == 1
    told = judged & mine & (rng.random(mine.size) < used)
    if how == "sabotage":
        return mine & ~(told & true)
    if how == "adds":
        other = world.member[:, int(rng.choice(np.flatnonzero(world.team != world.team[i])))] > 0
        return (other & ~(told & ~true)) | (told & true)
    kept = mine & ~(told & ~true)
    if how == "masked":
        share = (told & ~true).sum() / max((judged & mine).sum(), 1)
        return kept & (judged | (rng.random(mine.size) >= share))
    return kept


def power(world: World, repeats: int, rng: np.random.Generator) -> list[list[object]]:
    """Return how often a run that is made from answers is flagged."""
    table: list[list[object]] = []
    for how in ("leak", "sabotage", "adds", "masked"):
        for half_width in HALF_WIDTHS:
            size, hits = [], {used: [] for used in USED}
            for _ in range(repeats):
                i = int(rng.integers(world.member.shape[1]))
                pi, drawn = sampled(world, i, half_width, rng)
                size.append(int(drawn.sum()))
                for used in USED:
                    run = made_from(world, i, drawn, used, how, rng)
                    p = tested(world, world.member[:, i], run, pi, drawn)
                    hits[used].append(EARLIER * p <= ALPHA)
            table.append(
                [how, half_width, float(np.mean(size)), *(float(np.mean(hits[u])) for u in USED)]
            )
    return table


def after_a_second_run(world: World, repeats: int, rng: np.random.Generator) -> list[list[object]]:
    """Return how often runs are flagged against a second run of the team that was read from."""
    found: dict[str, list[np.ndarray]] = {"honest": [], "leak of what it asked": []}
    for _ in range(repeats):
        i, k = (int(one) for one in rng.choice(world.member.shape[1], 2, replace=False))
        half_width, u = float(rng.choice(HALF_WIDTHS)), rng.random(world.n_targets)
        first = thresholds(world, world.member[:, i] > 0, half_width)
        second = made_from(world, i, u < first, 1.0, "leak", rng) | (world.member[:, k] > 0)
        second &= ~((u < first)[world.target] & (world.true == 0))
        known = np.bincount(world.target[world.member[:, i] > 0], minlength=u.size) > 0
        now = np.maximum(first, thresholds(world, second, half_width))
        before = np.where(known, first, 0.0)
        chance = (now - before) / np.where(before < 1, 1 - before, 1.0)

        others = np.where(known, first, now)  # what it asked of what its team knew is no sample

        def p_values(
            run: np.ndarray,
            u: np.ndarray,
            before=before,
            chance=chance,
            now=now,
            second=second,
            others=others,
        ) -> np.ndarray:
            return np.stack(
                [
                    redrawn(world, second, run, others, u < others),
                    redrawn(world, second, run, chance, u < now, before <= u[0]),
                ]
            )

        # What was drawn when its team decided made the run; what was to come is drawn anew.
        later = before + (1 - before) * rng.random((REDRAWN, u.size))
        again = np.where(u < before, u, later)
        for _, run in honest_runs(world, k, rng):
            found["honest"].append(p_values(run, again))
        asked = ((before <= u) & (u < now))[world.target]
        leak = second & ~(asked & (world.true == 0))
        found["leak of what it asked"].append(p_values(leak, u[None]))
    return [
        [name, way, p.size, *(float(np.mean(p <= level)) for level in (0.1, 0.01)), *alarms(p)]
        for name, some in found.items()
        for way, p in zip(
            ("all that it predicts", "what was to come"), np.concatenate(some, axis=1), strict=True
        )
    ]


def through_documents(
    world: World, document: np.ndarray, repeats: int, rng: np.random.Generator
) -> list[list[object]]:
    """Return how often a run is flagged that uses documents read whole."""
    table: list[list[object]] = []
    of_target = documents_of(world, document)
    for how in ("leak", "sabotage", "adds"):
        for size in (20, 100):
            hits: dict[float, list[bool]] = {used: [] for used in USED}
            for _ in range(repeats):
                i = int(rng.integers(world.member.shape[1]))
                read = np.isin(of_target, rng.choice(N_DOCUMENTS, size, replace=False))
                for used in USED:
                    run = made_from(world, i, read, used, how, rng)
                    p = tested_by_documents(world, i, run, of_target, read)
                    hits[used].append(EARLIER * p <= ALPHA)
            table.append([how, size, *(float(np.mean(hits[u])) for u in USED)])
    return table


def false_alarms_by_documents(
    world: World, document: np.ndarray, repeats: int, rng: np.random.Generator
) -> list[list[object]]:
    """Return how often an honest run is flagged of having read documents, by how many are read: by
    what it lacks there, and by how much it says there.
    """
    table: list[list[object]] = []
    of_target = documents_of(world, document)
    for size in (20, 100):
        found: dict[str, list[float]] = {}
        for _ in range(repeats):
            i = int(rng.integers(world.member.shape[1]))
            chosen = rng.choice(N_DOCUMENTS, size, replace=False)
            read = np.isin(of_target, chosen)
            for _, run in honest_runs(world, i, rng):
                p = tested_by_documents(world, i, run, of_target, read)
                found.setdefault("what it lacks", []).append(p)
                for may_look, how in AMOUNTS.items():
                    p = tested_by_amount(world, [i], run, document, chosen, may_look)
                    found.setdefault(how, []).append(p)
        for how, some in found.items():
            p = np.array(some)
            low = (float(np.mean(p <= level)) for level in (0.1, 0.01))
            table.append([f"{size}, by {how}", p.size, *low, *alarms(p)])
    return table


def tested_by_amount(
    world: World,
    earlier: list[int],
    run: np.ndarray,
    document: np.ndarray,
    chosen: np.ndarray,
    may_look: bool,
) -> float:
    """Return the p-value of how much a run says in documents that were read, and of how much of it
    no earlier run says; of a team that could see judgments, whether it says more there that is new.
    """
    beside = (world.member[:, earlier] > 0).any(axis=1)
    names, row = np.unique(document[run | beside], return_inverse=True)
    said = (
        np.bincount(row, weights=some[run | beside], minlength=names.size)
        for some in (run, run & ~beside)
    )
    drawn = np.isin(names, chosen)
    return leaks.amounts_test(*said, drawn, may_look=may_look).p_value


def power_by_amount(
    world: World, document: np.ndarray, repeats: int, rng: np.random.Generator
) -> list[list[object]]:
    """Return how often a run is flagged that adds to an honest one a share of what is true in the
    documents that were read.
    """
    table: list[list[object]] = []
    for size in (20, 100):
        hits: dict[tuple[bool, float], list[bool]] = {}
        for _ in range(repeats):
            i, base = (int(k) for k in rng.choice(world.member.shape[1], 2, replace=False))
            chosen = rng.choice(N_DOCUMENTS, size, replace=False)
            true = (world.true == 1) & np.isin(document, chosen)
            for used in USED:
                run = (world.member[:, base] > 0) | (true & (rng.random(true.size) < used))
                for may_look in AMOUNTS:
                    p = tested_by_amount(world, [i], run, document, chosen, may_look)
                    hits.setdefault((may_look, used), []).append(EARLIER * p <= ALPHA)
        for may_look, how in AMOUNTS.items():
            table.append([how, size, *(float(np.mean(hits[may_look, u])) for u in USED)])
    return table


class People(NamedTuple):
    """How people judge single questions."""

    finds: float
    """The share that they find right of what is right"""
    denies: float
    """The share that they find wrong of what is wrong"""
    differ: float = 0.0
    """How far at most each of `PERSONS` is off from that share of what is right, either way"""
    unanswered: tuple[float, float] = (0.0, 0.0)
    """Shares that they leave unanswered of what is wrong, and of what is right"""


PEOPLE = {
    "are always right": People(1.0, 1.0),
    "are right 95 %": People(0.95, 0.95),
    "are right 85 %": People(0.85, 0.85),
    "are right 80 %": People(0.8, 0.8),
    "miss 15 %": People(0.85, 1.0),
    "miss 25 %": People(0.75, 1.0),
    "miss 10 to 40 % each": People(0.75, 1.0, differ=0.15),
    "miss 25 %, leave more": People(0.75, 1.0, unanswered=(0.05, 0.15)),
}


def right_where_read(
    world: World,
    run: np.ndarray,
    pi: np.ndarray,
    document: np.ndarray,
    chosen: np.ndarray,
    people: People,
    rng: np.random.Generator,
) -> float:
    """Return the p-value of how often a run that is asked by thresholds, (t,), is right in
    documents that were read, where readers miss nothing, and other people judge as they do.
    """
    u = rng.random(world.n_targets)
    own = np.flatnonzero(run & (u < pi)[world.target])
    at, first = np.unique(world.target[own], return_index=True)
    of = document[own[first]]
    true = np.bincount(world.target[own], weights=world.true[own], minlength=u.size)[at] > 0
    read = np.isin(of, chosen)
    off = rng.uniform(-people.differ, people.differ, PERSONS)[rng.integers(PERSONS, size=at.size)]
    chance = np.where(true, people.finds + off, people.denies)
    is_alike = read | (rng.random(at.size) < chance)
    verdict = np.where(is_alike, true, ~true)
    known = read | (rng.random(at.size) >= np.array(people.unanswered)[true.astype(int)])
    return leaks.verdict_test(
        of[known], read[known], verdict[known], (u[at] / pi[at])[known]
    ).p_value


def plain_runs(
    world: World, document: np.ndarray, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield runs, (n,), that were made without looking, and are right in almost all that they say:
    of few claims, of many, and of such in documents of very unequal sizes.
    """
    right = np.bincount(world.target, weights=world.true, minlength=world.n_targets) > 0
    of, shuffled = documents_of(world, document), rng.permutation(world.n_targets)
    long = rng.random(N_DOCUMENTS) < 0.1
    one_each = np.zeros(of.size, dtype=bool)
    one_each[shuffled[np.unique(of[shuffled], return_index=True)[1]]] = True
    everywhere = np.ones(of.size, dtype=bool)
    for among, size in ((everywhere, 80), (everywhere, 3000), (long[of] | one_each, 3000)):
        true, false = (shuffled[(among & some)[shuffled]] for some in (right, ~right))
        said = true[:size]
        wrong = round(said.size * (1 / rng.choice(PRECISIONS) - 1))
        yield np.isin(world.target, [*said, *false[:wrong]])


def false_alarms_where_read(
    world: World, document: np.ndarray, repeats: int, rng: np.random.Generator
) -> list[list[object]]:
    """Return how often an honest run seems to be right the oftener where documents were read, by
    how other people judge.
    """
    found: dict[str, list[float]] = {}
    for _ in range(repeats):
        i = int(rng.integers(world.member.shape[1]))
        made = [("real", run) for _, run in honest_runs(world, i, rng)]
        for _ in range(PLAIN):
            made += [("plain", run) for run in plain_runs(world, document, rng)]
        for kind, run in made:
            if not run.any():
                continue
            for half_width in (0.05, 0.02):
                pi = thresholds(world, run, half_width)
                for size in (20, 100):
                    chosen = rng.choice(N_DOCUMENTS, size, replace=False)
                    for name, people in PEOPLE.items():
                        p = right_where_read(world, run, pi, document, chosen, people, rng)
                        found.setdefault(f"{kind} runs, people {name}", []).append(p)
    return by_making(found)


def power_where_read(
    world: World, document: np.ndarray, repeats: int, rng: np.random.Generator
) -> list[list[object]]:
    """Return how often a run is flagged that says what is right in documents that were read, and in
    others as much as a real run, of which a share is right; by its first look.
    """
    table: list[list[object]] = []
    for size in (20, 100):
        hits: dict[float, list[bool]] = {share: [] for share in ELSEWHERE}
        for _ in range(repeats):
            like = world.member[:, int(rng.integers(world.member.shape[1]))] > 0
            chosen = rng.choice(N_DOCUMENTS, size, replace=False)
            for share in ELSEWHERE:
                run = right_there(world, like, document, chosen, share, rng)
                pi = thresholds(world, run, 0.05)
                p = right_where_read(
                    world, run, pi, document, chosen, PEOPLE["are right 95 %"], rng
                )
                hits[share].append(2 * EARLIER * p <= ALPHA)
        table.append([size, *(float(np.mean(hits[share])) for share in ELSEWHERE)])
    return table


def right_there(
    world: World,
    like: np.ndarray,
    document: np.ndarray,
    chosen: np.ndarray,
    share: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return a run that says as much in each document as another: what is right in those that were
    read, and elsewhere with a probability.
    """
    amount = np.bincount(document[like], minlength=int(document.max()) + 1)
    wanted = np.isin(document, chosen) | (rng.random(document.size) < share)
    fits = np.where(wanted, world.true == 1, world.true == 0)
    order = np.lexsort([rng.random(document.size), ~fits, document])
    begin = np.searchsorted(document[order], document[order])
    run = np.zeros(document.size, dtype=bool)
    run[order] = np.arange(document.size) - begin < amount[document[order]]
    return run & fits


def documents_of(world: World, document: np.ndarray) -> np.ndarray:
    """Return the document of each target, (t,), from that of each instance, (n,)."""
    of_target = np.zeros(world.n_targets, dtype=np.int64)
    of_target[world.target] = document
    return of_target


def tested_by_documents(
    world: World, i: int, run: np.ndarray, of_target: np.ndarray, read: np.ndarray
) -> float:
    """Return the p-value of a run against the documents in which run i predicts something."""
    predicts, base = world.member[:, i] > 0, nearest(world, run)
    count, both, near = (
        np.bincount(world.target[some], minlength=of_target.size)
        for some in (predicts, predicts & run, predicts & base)
    )
    inside = count > 0
    return leaks.document_test(
        of_target[inside], read[inside], (both == count)[inside], stratum=near[inside] > 0
    ).p_value


def channels_of(
    world: World, i: int, run: np.ndarray, sure: np.ndarray, weight: dict[str, np.ndarray]
) -> list[leaks.Channel]:
    """Return the channels of a run beside run i, which says how sure it is, (n,), and whose claims
    weigh that much, by whether the run that it is most like predicts what i does.
    """
    predicts = world.member[:, i] > 0
    said = Said(
        target=world.target,
        n_targets=world.n_targets,
        subject=world.subject,
        object=world.object,
        relation=world.predicate,
        predicted=run,
        confidence=np.where(run, np.nan_to_num(sure), 0.0),
        weight=weight,
    )
    theirs = {kind: predicts / max(predicts.sum(), 1) for kind in weight}
    inside = np.bincount(world.target[predicts], minlength=world.n_targets) > 0
    base = nearest(world, run) & predicts
    near = np.bincount(world.target[base], minlength=world.n_targets) > 0
    return [
        leaks.Channel(name, among & inside & (near == one), value)
        for name, among, value in said.beside(predicts, theirs, np.zeros(run.size, dtype=bool))
        for one in (False, True)
    ]


def tested_else(channels: list[leaks.Channel], pi: np.ndarray, drawn: np.ndarray) -> float:
    """Return the p-value of what a run says besides against a sample, (t,)."""
    can = (pi > 0) & (pi < 1)
    counts = [(can & drawn, can * pi), (can & ~drawn, can * (1 - pi))]
    splits, number = leaks.clearest_splits(channels, counts)
    tests = [
        leaks.share_test(pi[split.among], drawn[split.among], split.above[split.among]).p_value
        for split in splits
    ]
    return min(1.0, number * min(tests, default=1.0))


def sureness(
    world: World, i: int, drawn: np.ndarray, used: float, rng: np.random.Generator
) -> np.ndarray:
    """Return the confidences, (n,), of a copy of run i into which a share of the answers is
    written.
    """
    mine = world.member[:, i] > 0
    told = drawn[world.target] & mine & (world.true == 0) & (rng.random(mine.size) < used)
    return np.where(told, 0.05, np.where(rng.random(mine.size) < 0.03, 0.97, 0.95))


def false_alarms_of_channels(
    worlds_: dict[str, World], repeats: int, rng: np.random.Generator
) -> list[list[object]]:
    """Return how often an honest run is flagged by what it says besides what it predicts."""
    world, weighed = worlds_["instance"], worlds_["entity_relation"]
    m, found = world.member.shape[1], dict[str, list[float]]()
    for _ in range(repeats):
        i = int(rng.integers(m))
        pi, _ = sampled(world, i, float(rng.choice(HALF_WIDTHS)), rng)
        drawn = rng.random((REDRAWN // 4, pi.size)) < pi
        others = [k for k in range(m) if k != i]
        for k in others:
            channels = channels_of(
                world,
                i,
                world.member[:, k] > 0,
                world.confidence[:, k],
                {"entity_relation": weighed.P[:, k]},
            )
            p = [tested_else(channels, pi, one) for one in drawn]
            found.setdefault("real runs of others", []).extend(p)
        for with_it in (False, True):
            some = [*rng.choice(others, 3 - with_it, replace=False), *([i] * with_it)]
            votes = (world.member[:, some] > 0).sum(axis=1)
            mean = np.nan_to_num(world.confidence[:, some]).sum(axis=1) / np.maximum(votes, 1)
            for least in (1, 2):
                channels = channels_of(world, i, votes >= least, mean, {})
                name = f"ensembles {'with the one read from' if with_it else 'without'}"
                found.setdefault(name, []).extend(tested_else(channels, pi, one) for one in drawn)
        anew = np.clip(0.3 + 0.4 * world.true + 0.3 * rng.random(world.true.size), 0, 1)
        channels = channels_of(world, i, world.member[:, i] > 0, anew, {})
        found.setdefault("a copy that is surer of what holds", []).extend(
            tested_else(channels, pi, one) for one in drawn
        )
    return by_making(found)


def power_of_channels(world: World, repeats: int, rng: np.random.Generator) -> list[list[object]]:
    """Return how often a copy is flagged into whose confidences answers are written."""
    table: list[list[object]] = []
    for half_width in HALF_WIDTHS:
        size, hits = [], {used: [] for used in USED}
        for _ in range(repeats):
            i = int(rng.integers(world.member.shape[1]))
            pi, drawn = sampled(world, i, half_width, rng)
            size.append(int(drawn.sum()))
            for used in USED:
                sure = sureness(world, i, drawn, used, rng)
                channels = channels_of(world, i, world.member[:, i] > 0, sure, {})
                hits[used].append(2 * EARLIER * tested_else(channels, pi, drawn) <= ALPHA)
        row = [half_width, float(np.mean(size)), *(float(np.mean(hits[u])) for u in USED)]
        table.append(["sure", *row])
    return table


def with_run(world: World, run: np.ndarray, sure: np.ndarray | None = None) -> World:
    """Return the board with one more run, of a team of its own, that is so sure of its claims."""
    p = run / max(run.sum(), 1)
    told = run.astype(float) if sure is None else np.where(run, sure, np.nan)
    return replace(
        world,
        P=np.column_stack([world.P, p]),
        member=np.column_stack([world.member, run.astype(world.member.dtype)]),
        confidence=np.column_stack([world.confidence, told]),
        team=np.append(world.team, world.team.max() + 1),
    )


def goal_of(half_width: float) -> float:
    return (half_width / Z) ** 2


def error(board: Board, i: int) -> tuple[float, bool]:
    """Return how far the printed precision of a run is off, and whether its interval holds."""
    world = board.world
    found, _ = measure(board, Run.of(world, i, 0.0), True)
    low, high = found.confidence_interval(LEVEL, method="wilson")
    truth = float(world.P[:, i] @ world.true)
    return float(found.value) - truth, bool(low <= truth <= high)


def treated(board: Board, i: int, half_width: float) -> tuple[float, bool]:
    """Return the same of a run that is scored as one that saw all that was judged of it."""
    world, before = board.world, board.pi.copy()
    own = np.flatnonzero(world.member[:, i])
    names = world.target[own]
    p, exact = world.P[own, i], board.asked[names]
    rest = np.flatnonzero(~exact)
    code = np.unique(names[rest], return_inverse=True)[1]
    g = board.fitted.g[np.searchsorted(board.rows, own)]
    chance = np.ones(own.size)
    chance[rest] = poisson.water_fill(
        p[rest],
        np.zeros(rest.size),
        model.expected_error(p[rest], g[rest], code, correlation=board.rho),
        target_variance=goal_of(half_width),
        target=code,
    )
    own_pi = before.copy()
    own_pi[names[rest]] = seen.threshold(chance[rest], before[names[rest]])
    known = exact | (board.u[names] < own_pi[names])
    target = np.unique(names[known], return_inverse=True)[1]
    found = horvitz_thompson.centred(
        p[known],
        chance[known],
        world.true[own][known],
        g[known],
        float(p @ g),
        target=target,
        certainty=exact[known],
    )
    fresh = known & ~exact
    if fresh.any():
        expected = horvitz_thompson.anticipated_variance(
            p[rest],
            np.maximum(chance[rest], 1e-12),
            g[rest],
            world.true[own][fresh],
            g[fresh],
            target=code,
            correlation=board.rho,
        )
        found = replace(found, anticipated=expected)
    low, high = found.confidence_interval(LEVEL, method="wilson")
    truth = float(p @ world.true[own])
    return float(found.value) - truth, bool(low <= truth <= high)


def board_of_three(
    world: World, how: str, half_width: float, used: float, rng: np.random.Generator
) -> tuple[dict[str, list[tuple[float, bool]]], bool]:
    """Return the errors of (read from, uninvolved, new) with the new one believed and, if it is
    dishonest, treated; and whether the test finds it.
    """
    i, other = (int(one) for one in rng.choice(world.member.shape[1], 2, replace=False))
    n = world.n_targets
    board = Board(world, rng.random(n), rng.integers(0, FOLDS, n), np.zeros(n), [])
    for one in (i, other):
        arrive(board, [one], True, goal_of(half_width), UNTIL)
    run = made_from(world, i, board.asked, used, how, rng)
    if not run.any():  # of a small run that was all judged nothing is left: nobody uploads that
        return board_of_three(world, how, half_width, used, rng)
    p = tested(world, world.member[:, i], run, board.pi, board.asked)
    sure = sureness(world, i, board.asked, used, rng) if how == "sure" else None
    if sure is not None:
        p = 2 * min(p, tested_else(channels_of(world, i, run, sure, {}), board.pi, board.asked))
    full = with_run(world, run, sure)
    new = full.member.shape[1] - 1
    found = {}
    if how not in HONEST:
        fair = Board(full, board.u, board.fold, board.pi.copy(), [])
        for one in (i, other):
            fair.welcome(one)
        fair.learn()
        found["treated"] = [error(fair, i), error(fair, other), treated(fair, new, half_width)]
    fooled = Board(full, board.u, board.fold, board.pi.copy(), [])
    for one in (i, other):
        fooled.welcome(one)
    arrive(fooled, [new], True, goal_of(half_width), UNTIL)
    found["believed"] = [error(fooled, one) for one in (i, other, new)]
    return found, bool(EARLIER * p <= ALPHA)


def errors(world: World, repeats: int, rng: np.random.Generator) -> list[list[object]]:
    """Return mean error, mean absolute error and coverage of everybody."""
    table: list[list[object]] = []
    dishonest = (
        ("leak", 1.0),
        ("sabotage", 1.0),
        ("masked", 1.0),
        ("masked", 0.5),
        ("sure", 1.0),
        ("sure", 0.1),
    )
    for how, used in (*dishonest, *((how, 0.0) for how in HONEST)):
        played = [board_of_three(world, how, 0.05, used, rng) for _ in range(repeats)]
        missed = [one["believed"] for one, is_found in played if not is_found]
        ways = {way: [one[way] for one, _ in played] for way in played[0][0]}
        for way, some in (ways | {"not found": missed}).items():
            of = np.array(some).reshape(-1, 3, 2)
            if not of.size:
                continue
            for at, who in enumerate(("read from", "uninvolved", "new")):
                off, held = 100 * of[:, at, 0], of[:, at, 1]
                whom = [f"{how}, {used:.0%} used", way, len(of), who]
                table.append(
                    [*whom, off.mean(), np.abs(off).mean(), np.abs(off).max(), held.mean()]
                )
    return table


def by_verdicts(board: Board, before: np.ndarray, new: int) -> tuple[float, int]:
    """Return the p-value of what was judged of a run before it came against what was judged since,
    and how much was judged since of what could have been judged before.
    """
    own = np.flatnonzero(board.world.member[:, new])
    names, row = np.unique(board.world.target[own], return_inverse=True)
    share = np.bincount(row, weights=board.world.true[own]) / np.bincount(row)
    u, pi_then, pi_now = board.u[names], before[names], board.pi[names]
    known = (pi_then > 0) & (u < pi_now)
    chance, was_before = pi_then[known] / pi_now[known], u[known] < pi_then[known]
    right = share[known] > share[known].mean() if known.any() else known[known]
    test = leaks.share_test(chance, was_before, right)
    return test.p_value, int((~was_before).sum())


def false_alarms_of_verdicts(
    world: World, repeats: int, rng: np.random.Generator
) -> list[list[object]]:
    """Return how often honest runs look as if they were made from answers, by how they were
    made: thresholds for each by itself, a few questions anew, and both samples drawn anew.
    """
    p_values: dict[str, list[float]] = {}
    for _ in range(repeats):
        i = int(rng.integers(world.member.shape[1]))
        pi = thresholds(world, world.member[:, i] > 0, float(rng.choice(HALF_WIDTHS)))
        for made, run in honest_runs(world, i, rng):
            if not run.any():
                continue
            full, n = with_run(world, run), world.n_targets
            new = full.member.shape[1] - 1
            board = Board(full, np.zeros(n), np.zeros(n, dtype=int), pi.copy(), [])
            board.pi = np.maximum(pi, thresholds(world, run, 0.05 if rng.random() < 0.5 else 0.1))
            ask_anew(board, Run.of(full, new, 0.0), pi)
            for _ in range(ANEW):
                board.u = rng.random(n)
                p_values.setdefault(made, []).append(2 * by_verdicts(board, pi, new)[0])
    return by_making(p_values)


def power_of_verdicts(world: World, repeats: int, rng: np.random.Generator) -> list[list[object]]:
    """Return how often a run that hides what was deleted is found by draws, and of the others by
    verdicts; how far the precision of those that neither finds is off; and what is asked anew.
    """
    table: list[list[object]] = []
    for how, used in (("masked", 1.0), ("masked", 0.5), ("leak", 0.1), *((h, 0.0) for h in HONEST)):
        played = [_judged_since(world, how, used, rng) for _ in range(repeats)]
        of = np.array(played, dtype=float)
        missed = of[:, 0] == 0
        left = of[missed & (of[:, 1] == 0), 2]
        late = of[missed, 1].mean() if missed.any() else np.nan
        off = 100 * left.mean() if left.size else np.nan
        whom = [f"{how}, {used:.0%} used", repeats, of[:, 0].mean(), int(missed.sum()), late]
        table.append([*whom, left.size, off, of[:, 3].mean(), of[:, 4].mean()])
    return table


def _judged_since(
    world: World, how: str, used: float, rng: np.random.Generator
) -> tuple[bool, bool, float, int, int]:
    """Return of one board of three whether the new run is found by draws, and by verdicts; its
    error, believed; how many of its answers are new of what could have been known; how many
    questions it asked.
    """
    i, other = (int(one) for one in rng.choice(world.member.shape[1], 2, replace=False))
    n = world.n_targets
    board = Board(world, rng.random(n), rng.integers(0, FOLDS, n), np.zeros(n), [])
    for one in (i, other):
        arrive(board, [one], True, goal_of(0.05), UNTIL)
    run = made_from(world, i, board.asked, used, how, rng)
    if not run.any():
        return _judged_since(world, how, used, rng)
    p = tested(world, world.member[:, i], run, board.pi, board.asked)
    full = with_run(world, run)
    new = full.member.shape[1] - 1
    fooled = Board(full, board.u, board.fold, board.pi.copy(), [])
    for one in (i, other):
        fooled.welcome(one)
    arrive(fooled, [new], True, goal_of(0.05), UNTIL)
    since, fresh = by_verdicts(fooled, board.pi, new)
    look = 1
    while ALPHA / EARLIER < 2**look * since < DOUBTFUL and look < LOOKS:
        fooled.learn()
        latest = Run.of(full, new, 0.0)
        latest.g = fooled.fitted.g[np.searchsorted(fooled.rows, latest.own)]
        before = fooled.pi.copy()
        ask_anew(fooled, latest, before, CHECK_AGAIN, board.pi)
        if not (fooled.pi > before).any():
            break
        look += 1
        since, fresh = by_verdicts(fooled, board.pi, new)
    asked = int(fooled.asked.sum() - board.asked.sum())
    found = EARLIER * p <= ALPHA, 2**look * EARLIER * since <= ALPHA
    return *found, error(fooled, new)[0], fresh, asked


def main(repeats: int, parts: set[str]) -> None:
    """Print the tables and write them as CSV."""
    if not redocred.available():
        return
    started, world = time.perf_counter(), worlds()["instance"]
    many = ["p ≤ 0.1", "p ≤ 0.01", "p ≤ 0.001", "at most", "flagged"]
    if "honest" in parts:
        print(f"Honest runs against {20 * repeats} runs' samples, each drawn {REDRAWN} times")
        table = false_alarms(world, 20 * repeats, np.random.default_rng([12, 0]))
        tables.show("leaked_answers_honest", ["made of", "pairs", *many], table)
    if "channels" in parts:
        print(f"\nWhat honest runs say besides against {20 * repeats} runs' samples, drawn anew")
        rng = np.random.default_rng([12, 6])
        table = false_alarms_of_channels(worlds(), 20 * repeats, rng)
        tables.show("leaked_answers_channels", ["made of", "pairs", *many], table)
        print("\nFlagged by confidences, by half-width of the sample and share of answers used")
        head = ["made by", "half-width", "judged", *(f"{used:.0%} used" for used in USED)]
        table = power_of_channels(world, 4 * repeats, np.random.default_rng([12, 7]))
        tables.show("leaked_answers_channels_power", head, table)
    if "power" in parts:
        print("\nFlagged, by half-width of the sample that was read and share of answers used")
        head = ["made by", "half-width", "judged", *(f"{used:.0%} used" for used in USED)]
        table = power(world, 4 * repeats, np.random.default_rng([12, 1]))
        tables.show("leaked_answers_power", head, table)
    if "second" in parts:
        print("\nAgainst second runs, by what of them is tested; flagged: Holm over 27")
        table = after_a_second_run(world, 4 * repeats, np.random.default_rng([12, 2]))
        tables.show("leaked_answers_second_run", ["run", "tested against", "pairs", *many], table)
    if "documents" in parts:
        print("\nFlagged, by documents read whole")
        pool = redocred.read(redocred.names())
        assert pool.n_documents == N_DOCUMENTS
        document = pool.document[: pool.n_predicted]
        head = ["made by", "documents", *(f"{used:.0%} used" for used in USED)]
        table = through_documents(world, document, 4 * repeats, np.random.default_rng([12, 3]))
        tables.show("leaked_answers_documents", head, table)
        print(
            "\nFlagged, by how much is said in documents read whole, by share of what is true there"
        )
        table = power_by_amount(world, document, 4 * repeats, np.random.default_rng([12, 10]))
        tables.show("leaked_answers_amount", ["tested", *head[1:]], table)
        print(f"\nHonest runs against {20 * repeats} choices of documents that were read whole")
        rng = np.random.default_rng([12, 5])
        table = false_alarms_by_documents(world, document, 20 * repeats, rng)
        tables.show("leaked_answers_honest_documents", ["documents", "pairs", *many], table)
    if "documents" in parts:
        print("\nHonest runs, right in documents that were read against right in others")
        rng = np.random.default_rng([12, 13])
        table = false_alarms_where_read(world, document, 2 * repeats, rng)
        tables.show("leaked_answers_honest_read", ["made of", "pairs", *many], table)
        print("\nFlagged, right where documents were read, by how much is right in others")
        rng = np.random.default_rng([12, 14])
        table = power_where_read(world, document, 4 * repeats, rng)
        head = ["documents", *(f"{share:.0%} right" for share in ELSEWHERE)]
        tables.show("leaked_answers_read", head, table)
    if "verdicts" in parts:
        print("\nHonest runs, judged before against judged since, both drawn anew")
        table = false_alarms_of_verdicts(world, 20 * repeats, np.random.default_rng([12, 8]))
        tables.show("leaked_answers_honest_verdicts", ["made of", "pairs", *many], table)
        print("\nFound by draws, and of the others by what was judged since; ±5 at 80 %")
        head = ["made by", "boards", "by draws", "not", "of these by verdicts", "by neither"]
        table = power_of_verdicts(world, 2 * repeats, np.random.default_rng([12, 9]))
        tables.show("leaked_answers_verdicts", [*head, "points off", "new answers", "asked"], table)
    if "errors" in parts:
        print("\nErrors in points, ±5 at 80 %, instance")
        head = ["made by", "new run is", "boards", "whose", "mean", "mean |error|", "worst"]
        table = errors(world, repeats, np.random.default_rng([12, 4]))
        tables.show("leaked_answers_errors", [*head, "80 % holds"], table)
    print(f"{repeats} repeats, {time.perf_counter() - started:.0f} s")


PARTS = ("honest", "channels", "power", "second", "documents", "verdicts", "errors")

if __name__ == "__main__":
    repeats_wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    main(repeats_wanted, set(sys.argv[2:]) or set(PARTS))
