"""Boards of texts by the service's own estimators on arrays: runs that repeat judged texts, and
pairs that one of two systems nearly always wins.

usage: python benchmarks/rated_texts.py [REPEATS [PART …]]     (default: 300, repeated and pairs;
       15 min)

repeated  A first run has a text for each of 100 inputs, right or wrong by the toss of a coin, and
          is judged in stages until ±5. Then its team takes for each input

          kept      the text that was judged right, else one of its own;
          replaced  one of its own for what was judged wrong, else the text that it had;
          better    the better judged of that text and one of a second run that was judged alike.

          People agree, or one person each (of a fifth of the texts two) says of four in five texts
          what they are. Printed are, in points, the mean errors of the first run, of the later one,
          what was said of repeated texts being taken for true, and of both and their difference
          against people who are asked anew; their standard errors, and how often intervals of 80 %
          hold. Stages, chances and estimates are those of a track without metrics: of eleven such
          journeys played through the database and drawn alike here, every value and interval was
          the same to twelve digits.

pairs     Two systems meet once on each input, all pairs are judged, and people never say that
          neither is better. Of each pair a share of them prefers the first system's text, which is
          Beta(2s, 2(1 − s)) over pairs. How often the 80 % interval of its win rate holds what all
          people say of these pairs, and what they would say of pairs for other inputs.
"""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

import django
import numpy as np
from scipy import sparse
from scipy.special import ndtri

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbpo.settings")
django.setup()  # the model of ratings is the service's own; no database is asked

from benchmarks import tables  # noqa: E402
from estimators.design import Design  # noqa: E402
from estimators.estimate import Estimate  # noqa: E402
from estimators.intervals import t_over_z  # noqa: E402
from estimators.poisson import next_goal, planned_variance, water_fill  # noqa: E402
from estimators.ratings import judgment_variance  # noqa: E402
from kbpo.evaluation.compare.difference import error_at  # noqa: E402
from kbpo.evaluation.compare.ranks import covariance_of  # noqa: E402
from kbpo.sampling.designs.base import CLOSE  # noqa: E402
from kbpo.sampling.designs.poisson import FIRST, STAGES  # noqa: E402
from kbpo.sampling.designs.state import LEAST_LEFT  # noqa: E402
from kbpo.sampling.guess import _error_of_half, guess_ratings  # noqa: E402
from kbpo.tracks.content.ratings import NOBODY  # noqa: E402
from kbpo.tracks.generation.words import word_weights  # noqa: E402
from scoring.combine import Chances, since  # noqa: E402
from scoring.data import Data, Noise  # noqa: E402
from scoring.default import Centred  # noqa: E402
from scoring.inclusion import Disclosed, Inclusion  # noqa: E402
from scoring.pool import Pool  # noqa: E402
from scoring.rated import with_noise  # noqa: E402

SEED, LEVEL = 15, 0.8
Z = float(ndtri(0.5 + LEVEL / 2))
INPUTS, HALF_WIDTH, RIGHT = 100, 0.05, 0.8
KIND, CRITERION = "instance", "good"
JOURNEYS = (
    ("kept", True), ("replaced", True), ("better", True), ("kept", False),
)  # fmt: skip
SHARES, SIZES = (0.5, 0.8, 0.9, 0.95, 0.98), (20, 50, 200)


def pool_of(u: np.ndarray, p: np.ndarray, names: np.ndarray, **more: object) -> Pool:
    """Return a pool of n texts, each a target, that m systems wrote with weights p (n, m)."""
    n, m = p.shape
    nothing, table = np.zeros(n, dtype=np.int64), sparse.csr_array(p)
    return Pool(
        systems=list(range(m)),
        teams=list(range(m)),
        instance=names,
        target=np.arange(n),
        target_id=names,
        u=u,
        document=nothing,
        stratum=nothing,
        types=nothing,
        subject=nothing,
        object=nothing,
        p={KIND: table},
        confidence=table.copy(),
        **more,
    )


def asked(threshold: np.ndarray, u: np.ndarray) -> Inclusion:
    """Return that what lies below its threshold has been asked and answered."""
    none = np.zeros(u.size)
    drawn, nowhere = u < threshold, np.full(u.size, -1)
    return Inclusion(
        Chances(threshold, none, none, none), drawn, drawn, nowhere, 0.0, 0, threshold, 1.0
    )


def noise_of(ratings: list[list[float]], lowers: np.ndarray | None = None) -> Noise:
    """Return what people differ by, of texts with these ratings."""
    count = np.array([len(said) for said in ratings])
    every = [value for said in ratings for value in said]
    variance = judgment_variance(every, np.repeat(np.arange(count.size), count))
    within = np.array([np.var(said) * len(said) if said else 0.0 for said in ratings])
    return Noise(count, variance, NOBODY, lowers, within)


def data_of(pool: Pool, inclusion: Inclusion, f: np.ndarray, noise: Noise, **more: object) -> Data:
    """Return what the service scores of a pool, f (k, m) being known of the rows that were
    asked.
    """
    return Data(
        pool=pool,
        shown=np.ones(len(pool.systems), dtype=np.bool_),
        f={CRITERION: f},
        draws={},
        inclusion=inclusion,
        rho={CRITERION: 0.0},
        base=CRITERION,
        unweighed=KIND,
        facts=None,
        noise={CRITERION: noise},
        **more,
    )


def scored(data: Data) -> tuple[Estimate, Design]:
    """Return the mean of every system, as it is printed, and its design."""
    arranged = Centred(data)
    return with_noise(arranged, KIND, CRITERION, arranged.settled(KIND, CRITERION))


@dataclass
class Track:
    """Texts that runs wrote, people rated, and teams saw judged."""

    text: list[str]
    input: np.ndarray
    rng: np.random.Generator
    share: np.ndarray
    """Of all people, those who say that a text is right"""
    agree: bool
    ratings: dict[int, list[float]] = field(default_factory=dict)
    runs: list[np.ndarray] = field(default_factory=list)
    raised: list[np.ndarray] = field(default_factory=list)
    """The thresholds of each run"""
    saw: dict[int, tuple[np.ndarray, ...]] = field(default_factory=dict)
    """Run -> what its team saw judged, what unjudged, and the thresholds of then"""

    def __post_init__(self) -> None:
        self.u = self.rng.random(len(self.text))
        self.name = np.sort(self.rng.permutation(10**6)[: len(self.text)])  # the folds follow it

    def threshold(self, run: int | None = None) -> np.ndarray:
        """Return the highest thresholds, those that count for one run among them: of what a team
        saw, what was asked for its own run counts for that alone.
        """
        highest = np.zeros(len(self.text))
        for other, raised in enumerate(self.raised):
            if other != run and other in self.saw:
                judged, unjudged, _ = self.saw[other]
                raised = np.where(judged | unjudged, 0.0, raised)
            highest = np.maximum(highest, raised)
        return highest

    def data(self) -> tuple[np.ndarray, Data, Noise]:
        """Return which texts runs wrote, what is known of them, and what people differ by."""
        every = np.unique(np.concatenate(self.runs))
        p = np.column_stack([np.isin(every, run) / run.size for run in self.runs])
        pool = pool_of(
            self.u[every],
            p,
            self.name[every],
            features=np.log1p([[len(self.text[at])] for at in every]),
            input=self.input[every],
            text=word_weights([self.text[at] for at in every]),
        )
        none, nowhere = np.zeros(every.size), np.zeros(every.size, dtype=np.bool_)
        disclosed = {
            run: Disclosed(judged[every], unjudged[every], then[every], none, nowhere, none)
            for run, (judged, unjudged, then) in self.saw.items()
        }
        ratings = [self.ratings.get(at, []) for at in every.tolist()]
        label = np.array([np.mean(said) if said else np.nan for said in ratings])
        judged = np.flatnonzero(~np.isnan(label))
        guess = guess_ratings(pool, label, key="key", disclosed=disclosed)
        noise = noise_of(ratings)
        data = data_of(
            pool,
            asked(self.threshold()[every], pool.u),
            np.repeat(label[judged, None], len(self.runs), axis=1),
            noise.of(judged),
            judged=judged,
            g={CRITERION: guess.g},
            error={CRITERION: guess.error},
            disclosed=disclosed,
            disclosed_drawn=disclosed,
            own={run: asked(self.threshold(run)[every], pool.u) for run in self.saw},
        )
        return every, data, noise

    def judge(
        self, rows: np.ndarray, saw: tuple[np.ndarray, ...] | None = None
    ) -> tuple[Estimate, Design]:
        """Return the board once another run was judged in stages, as it is by thresholds."""
        run, goal = len(self.runs), (HALF_WIDTH / Z) ** 2
        self.runs.append(np.sort(rows))
        self.raised.append(np.zeros(len(self.text)))
        if saw is not None:
            self.saw[run] = saw
        mine, p = self.runs[run], np.full(rows.size, 1 / rows.size)
        judged, unjudged, then = (part[mine] for part in saw or (np.zeros_like(self.u),) * 3)
        judged, unjudged = judged.astype(np.bool_), unjudged.astype(np.bool_)
        every, data, noise = self.data()
        expected = np.inf
        for stage in range(STAGES):
            at = np.searchsorted(every, mine)
            old, error = self.threshold(run)[mine], data.error[CRITERION][at]
            chance = np.where(judged, 1.0, np.where(unjudged, since(old, then), old))
            rated = noise.count[noise.count > 0]
            people = float((1 / rated).mean()) if rated.size else 1.0
            member = data.pool.member.toarray() > 0
            remains = float(p**2 @ noise.variances(member)[at]) * people
            planned = remains + planned_variance(p, chance, error)
            if stage:
                wanted = next_goal(planned, expected, target_variance=goal, most=FIRST)
            else:
                wanted = goal if planned <= goal else FIRST * goal
            left = max(wanted - remains, LEAST_LEFT * wanted)
            pi = water_fill(p, chance, error, target_variance=left)
            base = np.where(unjudged, then, 0.0)
            new = np.where(judged, old, np.maximum(old, base + pi * (1 - base)))
            self.raised[run][mine] = new
            for text in mine[self.u[mine] < new].tolist():
                if text not in self.ratings:
                    self.ratings[text] = self.said(text)
            every, data, noise = self.data()
            estimate, design = scored(data)
            expected = float(np.asarray(estimate.anticipated)[run])
            if expected <= CLOSE * goal or not (new > old).any():
                break
        return estimate, design

    def said(self, text: int) -> list[float]:
        """Return what people say of a text who are asked."""
        if self.agree:
            return [self.share[text]] * 3
        people = 1 + int(self.rng.random() < 0.2)
        return (self.rng.random(people) < self.share[text]).astype(np.float64).tolist()


def journey(taken: str, agree: bool, rng: np.random.Generator) -> dict[str, float]:
    """Return the errors of one journey, and which intervals hold."""
    text = [f"{name} says {at}" for name in "abc" for at in range(INPUTS)]
    right = (rng.random(len(text)) < 0.5).astype(np.float64)
    share = right if agree else np.where(right > 0, RIGHT, 1 - RIGHT)
    track = Track(text, np.tile(np.arange(INPUTS), 3), rng, share, agree)
    first, second, own = np.arange(len(text)).reshape(3, INPUTS)
    alone, _ = track.judge(first)
    if taken == "better":
        track.judge(second)
    rank = np.full(len(text), 0.5)
    for at, said in track.ratings.items():
        rank[at] = np.mean(said)
    if taken == "kept":
        rows = np.where(rank[first] > 0.5, first, own)
    elif taken == "replaced":
        rows = np.where(rank[first] < 0.5, own, first)
    else:
        toss = rng.random(INPUTS) < 0.5
        better = rank[first] - rank[second]
        rows = np.where((better > 0) | ((better == 0) & toss), first, second)
    instance, known = np.isin(np.arange(len(text)), rows), np.zeros(len(text), dtype=np.bool_)
    known[list(track.ratings)] = True
    there = instance & np.isin(np.arange(len(text)), np.concatenate(track.runs))
    seen = there & known
    estimate, design = track.judge(rows, (seen, there & ~known, track.threshold()))
    run = len(track.runs) - 1
    truth = np.where(seen, rank, share)[rows].mean()  # what was judged is taken as it was judged
    of_first, of_run = (_column(estimate, column) for column in (0, run))
    low, high = of_run.confidence_interval(LEVEL, "wilson")
    first_low, first_high = _column(alone, 0).confidence_interval(LEVEL, "wilson")
    covariance = covariance_of(estimate, design, np.array([0, run]))
    half = Z * t_over_z(of_run.degrees_of_freedom, LEVEL) * error_at(covariance.tolist(), 0, 1)
    anew = float(share[rows].mean())
    off = float(of_run.value - of_first.value) - (anew - share[first].mean())
    return {
        "repeated": 100 * seen.sum() / INPUTS,
        "first": 100 * (float(alone.value[0]) - share[first].mean()),
        "first holds": float(first_low <= share[first].mean() <= first_high),
        "run": 100 * (of_run.value - truth),
        "widths": (of_run.value - truth) / (high - low),
        "holds": float(low <= truth <= high),
        "anew": 100 * (of_run.value - anew),
        "difference": 100 * off,
        "difference holds": float(abs(off) <= half),
    }


def _column(estimate: Estimate, column: int) -> Estimate:
    """Return the estimate of one system."""
    shape = np.shape(estimate.value)
    names = ("value", "variance", "n", "anticipated", "total_g", "half_step", "agreed")
    own = {name: np.broadcast_to(getattr(estimate, name), shape)[column] for name in names}
    degrees = np.broadcast_to(estimate.degrees_of_freedom, shape)[column]
    return Estimate(
        influence=np.asarray(estimate.influence)[:, column], degrees_of_freedom=degrees, **own
    )


def win_rate(n: int, share: float, people: str, rng: np.random.Generator) -> tuple[float, ...]:
    """Return the width of the first system's interval, and whether it holds what people say of
    these pairs, and of others.
    """
    prefer = rng.beta(2 * share, 2 * (1 - share), n)
    second = rng.random(n) < 0.5  # which of the two is shown first, and which rating lowers whom
    count = np.full(n, 3) if people == "three" else 1 + (rng.random(n) < 0.2) * (people == "1.2")
    chance = np.where(second, 1 - prefer, prefer)
    ratings = [
        (rng.random(k) < c).astype(np.float64).tolist() for k, c in zip(count, chance, strict=True)
    ]
    mean = np.array([np.mean(said) for said in ratings])
    wrote_first = np.column_stack([~second, second])
    f = np.where(wrote_first, mean[:, None], 1 - mean[:, None])
    pool = pool_of(np.full(n, 0.5), np.full((n, 2), 1 / n), np.arange(n), input=np.arange(n))
    error = _error_of_half(0.5 + np.abs(mean - 0.5), pool.member)
    noise = noise_of(ratings, ~wrote_first)
    every, half = np.arange(n), np.full(n, 0.5)
    data = data_of(
        pool, asked(np.ones(n), pool.u), f, noise,
        judged=every, g={CRITERION: half}, error={CRITERION: error},
    )  # fmt: skip
    low, high = _column(scored(data)[0], 0).confidence_interval(LEVEL, "wilson")
    return high - low, float(low <= prefer.mean() <= high), float(low <= share <= high)


def repeated(repeats: int) -> None:
    """Print the table of runs that repeat judged texts."""
    rows: list[list[object]] = []
    for place, (taken, agree) in enumerate(JOURNEYS):
        rng = np.random.default_rng([SEED, place])
        journeys = [journey(taken, agree, rng) for _ in range(repeats)]
        row: list[object] = [taken, "agree" if agree else "one each"]
        for name in journeys[0]:
            values = np.array([one[name] for one in journeys])
            row.append(float(values.mean()))
            if name in ("first", "run", "widths", "difference", "anew"):
                row.append(float(values.std() / np.sqrt(repeats)))
        rows.append(row)
    head = ["taken", "people", "repeated", "first", "±", "holds", "run", "±", "widths", "±",
            "holds", "anew", "±", "difference", "±", "holds"]  # fmt: skip
    tables.show("rated_texts_repeated", head, rows)


def pairs(repeats: int) -> None:
    """Print the table of pairs that one system nearly always wins."""
    rows: list[list[object]] = []
    for people in ("one", "1.2", "three"):
        for n in SIZES:
            for share in SHARES:
                rng = np.random.default_rng([SEED, n, round(100 * share)])
                of = np.array([win_rate(n, share, people, rng) for _ in range(repeats)])
                width, these, others = of.mean(axis=0)
                rows.append([people, n, share, float(100 * width), float(these), float(others)])
    tables.show("rated_texts_pairs", ["people", "pairs", "wins", "width", "these", "others"], rows)


def main(repeats: int, parts: list[str]) -> None:
    """Print the tables and write them as CSV."""
    for part in parts or ["repeated", "pairs"]:
        {"repeated": repeated, "pairs": pairs}[part](repeats)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300, sys.argv[2:])
