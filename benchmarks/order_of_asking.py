"""How far live scores are off while questions are still open: first come, first asked, against the order of u/π.

usage: python -m benchmarks.order_of_asking [REPEATS]        (default: 300)

The 28 real runs arrive in random order and raise thresholds to ±3 % at 80 % each; then a quarter, half and three
quarters of all questions have been answered. The live score is Hájek's, with π times the answered share (first come) or
times the released share u/π. Bias is the mean over repeats in which a run has a label at all.
"""

import sys

import numpy as np

from benchmarks import stated, tables
from estimators.horvitz_thompson import hajek
from estimators.poisson import asking_order, water_fill

TARGET = (0.03 / 1.2816) ** 2
SHARES = (0.25, 0.5, 0.75, 1.0)
REDRAWS = 6  # fresh uniform numbers for each order of arrival: raising thresholds is the slow part


def raised(pool, p, order):
    """Return the thresholds of all targets after each arrival, (runs, targets)."""
    pi, history = np.zeros(pool.n_targets), []
    for system in order:
        rows = np.flatnonzero(p[:, system])
        target = pool.target[rows]
        new = water_fill(p[rows, system], pi[target], 0.25, target_variance=TARGET, target=target)
        pi[target] = new
        history.append(pi.copy())
    return np.array(history)


def live(pool, p, answered, pi):
    """Return Hájek's score of every run from the targets that were answered."""
    rows = np.flatnonzero(answered[pool.target])
    return hajek(p[rows], pi[pool.target[rows]], pool.true[rows]).value


def scores(pool, p, history, rng):
    """Return (orders, shares, runs) live scores from one draw of the uniform numbers."""
    u, pi = rng.random(pool.n_targets), history[-1]
    by_ratio = asking_order(u, pi)
    arrival = (u < history).argmax(axis=0)[by_ratio]
    first_come = by_ratio[np.lexsort((by_ratio, arrival))]
    found = np.empty((2, len(SHARES), p.shape[1]))
    for k, share in enumerate(SHARES):
        n = round(share * by_ratio.size)
        released = (u / np.maximum(pi, 1e-12))[by_ratio[n - 1]] if share < 1 else 1.0
        for way, (order, factor) in enumerate(((first_come, share), (by_ratio, released))):
            answered = np.zeros(pool.n_targets, dtype=bool)
            answered[order[:n]] = True
            found[way, k] = live(pool, p, answered, np.clip(pi * factor, 1e-12, 1))
    return found


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    rng = np.random.default_rng(24)
    pool = stated.load()
    p = pool.membership / pool.membership.sum(axis=0)
    found = []
    while len(found) < repeats:
        history = raised(pool, p, rng.permutation(p.shape[1]))
        found += [scores(pool, p, history, rng) for _ in range(min(REDRAWS, repeats - len(found)))]
    error = np.array(found) - pool.true @ p
    bias, spread = np.nanmean(error, axis=0), np.sqrt(np.nanmean(error**2, axis=0))
    table = [
        [f"{share:.0%} answered", way, float(np.abs(bias[w, k]).mean()), float(np.abs(bias[w, k]).max()),
         float(spread[w, k].mean()), float(np.isnan(error[:, w, k]).mean())]
        for k, share in enumerate(SHARES) for w, way in enumerate(("first come", "u/π"))
    ]  # fmt: skip
    print(f"{len(pool.systems)} runs, {repeats} repeats\n")
    tables.show("order_of_asking", ["moment", "order", "mean |bias|", "worst |bias|", "rmse", "no label"], table)


if __name__ == "__main__":
    main()
