"""What live scores say while questions are still open, by the order in which they are asked.

usage: python benchmarks/order_of_asking.py [REPEATS]        (default: 300)

Thresholds for all 28 real runs are set by water-filling to ± 3 points at 80 %, run after run in the
order of their names. Each repeat draws the targets, and looks at the scores (Hájek's) when a share
of the questions is answered:

first come      in the order in which runs brought them in, as a queue would; scored as if all were
                answered
sure first      the most confident statements first, as a page sorted by confidence would have it;
                likewise
u/π             in the order of uniform number over threshold; the probability of what is answered
                is π × the share released, so that the answers of any moment are a sample

`bias` is the largest of a run's mean errors, and the mean of their sizes; `error` the root mean
square error.

KBPO_SHARED_DATA names the folder that holds redocred/ if it is not ../shared/data.
"""

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import redocred, tables
from benchmarks.arrivals import LEVEL, TARGET, World, worlds
from estimators import horvitz_thompson, poisson

SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)
WAYS = ("first come", "sure first", "u/π")


@dataclass(frozen=True)
class Queue:
    """Thresholds of all targets, the place of the run that brought each in, and the greatest
    confidence in each.
    """

    pi: np.ndarray
    arrival: np.ndarray
    confidence: np.ndarray


def queue(world: World) -> Queue:
    """Return the queue that all runs make; π is 0 for a target that nobody has weight on."""
    pi, arrival = np.zeros(world.n_targets), np.full(world.n_targets, -1)
    for i in range(world.P.shape[1]):
        own = np.flatnonzero(world.member[:, i])
        names = world.target[own]
        pi[names] = poisson.water_fill(
            world.P[own, i],
            pi[names],
            0.25,
            target_variance=TARGET,
            target=np.unique(names, return_inverse=True)[1],
        )
        arrival[names[arrival[names] < 0]] = i
    confidence = np.zeros(world.n_targets)
    np.maximum.at(
        confidence, world.target, np.nanmax(np.where(world.member, world.confidence, -1), axis=1)
    )
    return Queue(pi, arrival, confidence)


def answered(way: str, share: float, line: Queue, u: np.ndarray, rng: np.random.Generator):
    """Return which targets are answered by now, and the probability that each is taken to have come
    in with.
    """
    asked = np.flatnonzero(poisson.select(u, line.pi))
    n = max(round(share * asked.size), 1)
    jitter = rng.random(asked.size)
    if way == "u/π":
        first = asked[poisson.asking_order(u[asked], line.pi[asked])]
        released = 1.0 if n == asked.size else u[first[n]] / line.pi[first[n]]
        return first[:n], line.pi * released
    key = line.arrival[asked] if way == "first come" else -line.confidence[asked]
    return asked[np.lexsort((jitter, key))][:n], line.pi


def score(world: World, weights: sparse.csr_array, rows: np.ndarray, pi: np.ndarray):
    """Return Hájek's values and whether their 80 % intervals hold the truth, of runs with an
    answer.
    """
    target = np.unique(world.target[rows], return_inverse=True)[1]
    found = horvitz_thompson.hajek(
        weights[rows].toarray(), pi[world.target[rows]], world.true[rows], target=target
    )
    low, high = found.confidence_interval(LEVEL, method="wilson")
    truth = world.precision
    return found.value, np.where(np.isnan(found.value), np.nan, (low <= truth) & (truth <= high))


def measure(world: World, repeats: int, rng: np.random.Generator) -> list[list[object]]:
    """Return a row for each way and share."""
    line, weights = queue(world), sparse.csr_array(world.P)
    cases = [(way, share) for way in WAYS for share in SHARES]
    values: dict = {case: [] for case in cases}
    hits: dict = {case: [] for case in cases}
    for _ in range(repeats):
        u = rng.random(world.n_targets)
        for way, share in cases:
            some, pi = answered(way, share, line, u, rng)
            chosen = np.zeros(world.n_targets, dtype=bool)
            chosen[some] = True
            value, hit = score(world, weights, np.flatnonzero(chosen[world.target]), pi)
            values[way, share].append(value)
            hits[way, share].append(hit)
    return [
        [
            *case,
            *figures(np.array(values[case]), np.array(hits[case], dtype=float), world.precision),
        ]
        for case in cases
    ]


def figures(values: np.ndarray, hits: np.ndarray, truth: np.ndarray) -> list[float]:
    """Return runs with a score, largest and mean size of bias, the largest's standard error, error,
    coverage.

    Runs that have a score in fewer than half of the repeats are left out.
    """
    scored = np.isnan(values).mean(axis=0) <= 0.5
    values, hits, truth = values[:, scored], hits[:, scored], truth[scored]
    bias = np.nanmean(values - truth, axis=0)
    worst = int(np.abs(bias).argmax())
    spread = np.nanstd(values[:, worst], ddof=1) / np.sqrt(len(values))
    return [
        int(scored.sum()),
        float(np.abs(bias).max()),
        float(spread),
        float(np.abs(bias).mean()),
        float(np.sqrt(np.nanmean((values - truth) ** 2))),
        float(np.nanmean(hits)),
    ]


def main(repeats: int) -> None:
    """Print the table and write it as CSV."""
    if not redocred.available():
        return
    started = time.perf_counter()
    rng = np.random.default_rng(7)
    table = [
        [kind, *row] for kind, world in worlds().items() for row in measure(world, repeats, rng)
    ]
    print(f"Live precision by the order of asking; {repeats} repeats\n")
    tables.show(
        "order_of_asking",
        [
            "distribution",
            "order",
            "answered",
            "runs",
            "largest bias",
            "± s.e.",
            "mean |bias|",
            "error",
            "80 %",
        ],
        table,
    )
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
