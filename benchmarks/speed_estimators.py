"""Time and memory of the published estimators: `estimators/` against the formulas written in plain
Python.

usage: python benchmarks/speed_estimators.py [PREDICTIONS ...]
       (default: 10000 100000 1000000)

For 10, 40 and 100 systems that make so many predictions together, of which popular ones are shared,
and 500 labelled draws of each system:

weights       p(x) of every prediction, `entity_relation`
mixture       Σ_x p_i p_j of all pairs of systems, and the weights w_ij
joint         precision of every system from the draws of all, with its variance
bootstrap     1,000 replicates of all of them
required      how many draws the last system needs when the others are there

The plain side (benchmarks/plain_formulas.py) does part after part (a system, a pair of systems, a
replicate, a size) for a few seconds; the time for the parts that are left is taken to be the same a
part, and marked ~. Seconds are CPU time on one thread. Memory is the peak in MB of what Python and
NumPy allocate during a step (on the plain side during one part of it); in the row `data` it is what
dictionaries and arrays keep. `agreement` is the largest relative difference of the numbers of both
sides.

The second table fits seconds ∝ systems^a · predictions^b.
"""

import os
import random
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import plain_formulas as plain
from benchmarks import tables
from estimators import bootstrap, distributions, joint, sample_size

SYSTEMS, PREDICTIONS = (10, 40, 100), (10_000, 100_000, 1_000_000)
LABELS, REPLICATES, CAP = 500, 1000, 500
GOAL = 0.25 / CAP
BUDGET = 2.0  # seconds of each step of the plain side
Made = TypeVar("Made")
STEPS = ("weights", "mixture", "joint", "bootstrap", "required")


@dataclass(frozen=True)
class Predictions:
    """Instances of each system, and codes (N, 3) of subject, predicate and object of each
    instance.
    """

    of: list[np.ndarray]
    facts: np.ndarray
    true: np.ndarray


@dataclass(frozen=True)
class Spent:
    """What a step took, and what came out: seconds for all of it, whether that is extrapolated, MB,
    numbers.
    """

    seconds: float
    extrapolated: bool
    memory: float
    found: list[np.ndarray]


def simulate(m: int, n: int, rng: np.random.Generator) -> Predictions:
    """Return predictions of m systems, n in all; an instance is the more often predicted the more
    popular it is.
    """
    size = n // m
    universe = max(n // 4, 3 * size)
    popularity = np.log(1 + np.arange(universe)[::-1] / universe)
    of = [
        np.sort(np.argpartition(rng.exponential(size=universe) / (popularity + 0.05), size)[:size])
        for _ in range(m)
    ]
    facts = np.column_stack(
        [rng.integers(0, k, universe) for k in (universe // 12 + 1, 40, universe // 12 + 1)]
    )
    return Predictions(of, facts, (rng.random(universe) < 0.6).astype(float))


class Arrays:
    """The side of `estimators/`: sparse P over the instances that anybody predicts."""

    def __init__(self, given: Predictions) -> None:
        self.given, self.m = given, len(given.of)
        self.codes = [given.facts[rows] for rows in given.of]
        self.P = self.matrix(self.weights())

    def weights(self) -> list[np.ndarray]:
        """Return p of every system's predictions."""
        return [
            distributions.weights(
                "entity_relation", subject=c[:, 0], predicate=c[:, 1], object=c[:, 2]
            )
            for c in self.codes
        ]

    def matrix(self, p: list[np.ndarray]) -> sparse.csr_array:
        """Return P (N, m)."""
        ends = np.cumsum([0, *(one.size for one in p)])
        shape = (self.given.true.size, self.m)
        by_system = sparse.csc_array(
            (np.concatenate(p), np.concatenate(self.given.of), ends), shape=shape
        )
        return sparse.csr_array(by_system)

    def drawn(self, draws: list[np.ndarray]) -> None:
        """Take these draws of every system."""
        self.rows, self.system = np.concatenate(draws), np.repeat(np.arange(self.m), LABELS)
        self.label, self.Pd = self.given.true[self.rows], self.P[self.rows].toarray()

    def mixture(self) -> list[np.ndarray]:
        """Return w_ij."""
        self.overlap = distributions.overlap(self.P)
        return list(joint.mixture_weights(self.overlap, np.full(self.m, LABELS)))

    def joint(self) -> list[np.ndarray]:
        """Return value and variance of every system."""
        found = joint.joint_precision(self.Pd, self.system, self.label, self.overlap)
        return list(np.column_stack([found.value, found.variance]))

    def bootstrap(self) -> list[np.ndarray]:
        """Return replicates (one a row)."""
        terms = self.terms()
        return list(
            bootstrap.bootstrap(
                lambda taken: taken @ terms,
                self.rows.size,
                rng=np.random.default_rng(1),
                stratum=self.system,
                n_resamples=REPLICATES,
            ).replicates
        )

    def terms(self) -> np.ndarray:
        """Return what each draw adds to the score of each system."""
        return joint.joint_terms(self.Pd, self.system, self.label, self.overlap)

    def plan(self) -> tuple[np.ndarray, ...]:
        """Return the arguments of the two functions that plan the last system's draws."""
        old = self.system < self.m - 1
        support = self.P[self.given.of[-1]].toarray()
        return support, self.Pd[old], self.system[old], self.label[old], self.overlap

    def required(self) -> list[np.ndarray]:
        """Return how many draws the last system needs."""
        n = sample_size.required_samples(*self.plan(), target_variance=GOAL, bounds=(0, CAP))
        return [np.array([n])]


class Dictionaries:
    """The plain side; each step yields its parts in the order of the other side's numbers."""

    def __init__(self, given: Predictions) -> None:
        keys = [rows.tolist() for rows in given.of]
        whole = [tuple(fact) for fact in given.facts.tolist()]
        self.facts = [{x: whole[x] for x in some} for some in keys]
        self.p = [plain.entity_relation(facts) for facts in self.facts]
        self.true = given.true.astype(int).tolist()

    def take(self, arrays: Arrays, draws: list[np.ndarray]) -> None:
        """Take the same draws, and the overlaps, so that steps can be measured by themselves."""
        self.draws = [some.tolist() for some in draws]
        self.labels = [[self.true[x] for x in some] for some in self.draws]
        self.shared = arrays.overlap.tolist()
        self.n = [LABELS] * len(self.p)
        self.taken: list[list[list[int]]] = []

    def weights(self) -> Iterable[np.ndarray]:
        """Yield p of every system's predictions."""
        for facts in self.facts:
            yield np.array(list(plain.entity_relation(facts).values()))

    def mixture(self) -> Iterable[np.ndarray]:
        """Yield w_ij, row by row."""
        for one in self.p:
            yield np.array(plain.mixture([plain.overlap(one, other) for other in self.p], self.n))

    def joint(self) -> Iterable[np.ndarray]:
        """Yield value and variance of every system."""
        for i in range(len(self.p)):
            terms = plain.importance(i, plain.mixture(self.shared[i], self.n), self.p, self.draws)
            yield np.array(plain.joint(terms, self.labels))

    def bootstrap(self) -> Iterable[np.ndarray]:
        """Yield replicates of the first system; `taken` holds how often each draw was taken."""
        terms = list(plain.importance(0, plain.mixture(self.shared[0], self.n), self.p, self.draws))
        chance = random.Random(1)
        while True:
            times = [plain.resample(len(some), chance) for some in self.draws]
            self.taken.append(times)
            yield np.array([plain.resampled(terms, self.labels, times)])


def clock(function: Callable[[], list[np.ndarray]]) -> Spent:
    """Return what one call took; the least of three where it is quick."""
    best = np.inf
    for _ in range(3):
        started = time.process_time()
        found = function()
        best = min(best, time.process_time() - started)
        if best > 1:
            break
    return Spent(best, False, traced(function)[1].peak, found)


def by_parts(parts: Callable[[], Iterable[np.ndarray]], number: int, factor: int = 1) -> Spent:
    """Return what all parts would take, from those that can be done in time; each stands for
    `factor` like it.
    """
    started, found = time.process_time(), []
    for part in parts():
        found.append(part)
        spent = time.process_time() - started
        if spent > BUDGET or len(found) == number:
            break
    scale = number * factor / len(found)
    return Spent(spent * scale, scale > 1, traced(lambda: next(iter(parts())))[1].peak, found)


class Memory(NamedTuple):
    """MB that are kept, and the most that were held meanwhile."""

    kept: float
    peak: float


def traced(make: Callable[[], Made]) -> tuple[Made, Memory]:
    """Return what is made, and the memory that it took; not timed, as watching every allocation
    takes time.
    """
    tracemalloc.start()
    made = make()
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return made, Memory(kept / 1e6, peak / 1e6)


def plan_plainly(there: Dictionaries, arrays: Arrays, n: int) -> tuple[Spent, float]:
    """Return what the search for n would take the plain side, and how far its planned variances are
    off.
    """
    started = time.process_time()
    newcomer = plain.Newcomer(there.p, there.shared[-1], there.draws[:-1], there.labels[:-1])
    made = time.process_time() - started
    memory = traced(
        lambda: plain.Newcomer(there.p, there.shared[-1], there.draws[:-1], there.labels[:-1])
    )[1].peak
    sizes = [n, max(n - 1, 0), *range(max(n - 1, 0))]  # the search tries 0 … n; the last two decide
    tried = by_parts(lambda: (np.array([newcomer.variance(size)]) for size in sizes), n + 1)
    found = np.concatenate(tried.found)
    ours = sample_size.planned_variance(sizes[: found.size], *arrays.plan())
    if not found[0] <= (1 + 1e-9) * GOAL and n < CAP:
        raise AssertionError(f"the plain side needs more than {n} draws")
    spent = Spent(made + tried.seconds, tried.extrapolated, memory, [np.array([n])])
    return spent, difference(ours, found)


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return the largest relative difference."""
    other = ours != theirs
    return float(np.max(np.abs(ours[other] - theirs[other]) / np.abs(theirs[other]), initial=0.0))


def cell(m: int, n: int) -> list[list[object]]:
    """Return a row for each step."""
    rng = np.random.default_rng([m, n])
    given = simulate(m, n, rng)
    arrays, by_arrays = traced(lambda: Arrays(given))
    draws = [rows[draw(p, rng)] for rows, p in zip(given.of, arrays.weights(), strict=True)]
    arrays.drawn(draws)
    ours = {step: clock(getattr(arrays, step)) for step in STEPS}
    there, by_dictionaries = traced(lambda: Dictionaries(given))
    there.take(arrays, draws)
    rows: list[list[object]] = [
        ["data", m, n, "", "", "", by_dictionaries.kept, by_arrays.kept, ""]
    ]
    for step in STEPS:
        theirs, off = against(step, there, arrays, ours[step])
        rows.append(
            [
                step,
                m,
                n,
                theirs.seconds,
                "~" if theirs.extrapolated else "",
                ours[step].seconds,
                theirs.memory,
                ours[step].memory,
                off,
            ]
        )
    return rows


def against(step: str, there: Dictionaries, arrays: Arrays, ours: Spent) -> tuple[Spent, float]:
    """Return what a step takes the plain side, and how far its numbers are off."""
    if step == "required":
        return plan_plainly(there, arrays, int(ours.found[0][0]))
    if step != "bootstrap":
        theirs = by_parts(getattr(there, step), arrays.m)
        return theirs, difference(
            np.concatenate(ours.found[: len(theirs.found)]), np.concatenate(theirs.found)
        )
    theirs = by_parts(there.bootstrap, REPLICATES, arrays.m)
    times = np.array(
        [np.concatenate(times) for times in there.taken[: len(theirs.found)]], dtype=float
    )
    return theirs, difference(times @ arrays.terms()[:, 0], np.concatenate(theirs.found))


def draw(p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return positions drawn from p, with replacement."""
    cumulative = np.cumsum(p)
    return np.searchsorted(cumulative, rng.random(LABELS) * cumulative[-1], side="right")


def exponents(rows: list[list[object]]) -> list[list[object]]:
    """Return, for each step, the exponents of systems and predictions on both sides, by least
    squares of logarithms.
    """
    table: list[list[object]] = []
    for step in STEPS:
        some = [row for row in rows if row[0] == step]
        x = np.column_stack(
            [np.ones(len(some)), *np.log(np.array([row[1:3] for row in some], dtype=float)).T]
        )
        fits = [
            np.linalg.lstsq(x, np.log([max(row[at], 1e-6) for row in some]), rcond=None)[0]
            for at in (3, 5)
        ]
        table.append([step, *(float(value) for fit in fits for value in fit[1:])])
    return table


def main(predictions: tuple[int, ...]) -> None:
    """Print both tables and write them as CSV."""
    started = time.perf_counter()
    rows = [row for m in SYSTEMS for n in predictions for row in cell(m, n)]
    print(f"{LABELS} labelled draws of each system, {REPLICATES} replicates\n")
    tables.show(
        "speed_estimators",
        [
            "step",
            "systems",
            "predictions",
            "plain s",
            "",
            "ours s",
            "faster",
            "plain MB",
            "ours MB",
            "agreement",
        ],
        [shown(row) for row in rows],
    )
    if len(predictions) > 1:
        print("\nseconds ∝ systems^a · predictions^b\n")
        tables.show(
            "speed_estimators_exponents",
            [
                "step",
                "plain: a",
                "b",
                "ours: a",
                "b",
            ],
            exponents(rows),
        )
    worst = max(float(row[8]) for row in rows if row[0] != "data")
    print(f"numbers agree to {worst:.0e}; {time.perf_counter() - started:.0f} s")
    if worst > 1e-10:
        sys.exit("the two sides do not agree to 1e-10")


def shown(row: list[object]) -> list[object]:
    """Return a row with how much faster ours is, and numbers in few digits."""
    step, m, n, theirs, mark, ours, *memory, off = row
    memory = [f"{value:.3g}" for value in memory]
    if step == "data":
        return [step, m, n, "", "", "", "", *memory, ""]
    return [
        step,
        m,
        n,
        f"{theirs:.3g}",
        mark,
        f"{ours:.3g}",
        f"{theirs / ours:.0f}",
        *memory,
        f"{off:.0e}",
    ]


if __name__ == "__main__":
    main(tuple(int(argument) for argument in sys.argv[1:]) or PREDICTIONS)
