"""How often a 90 % interval that is looked at after every label is ever wrong, and how wide it is.

usage: python benchmarks/peeking.py [REPEATS]        (default: 1000)

Streams of 500 right or wrong answers. The interval is made anew after every label; a miss is one
that leaves out the true precision at any time from the tenth label on, since before that an
ordinary interval is hardly ever looked at, or at any time from the first label on. The percentile
bootstrap is its limit for many resamples, which for 0/1 labels has a closed form: quantiles of a
binomial with the observed share.

The second table is of the interval that the service shows while people judge: looks at real runs,
whose labels come without replacement, 20 paths for each repeat.
"""

import sys
from pathlib import Path

import numpy as np
from scipy.stats import binom, norm

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import redocred, tables
from estimators.confidence_sequences import betting, empirical_bernstein
from estimators.estimate import Estimate
from estimators.intervals import wilson
from estimators.repeated import SETTLED, critical_value, is_due, pace

LEVEL, N, FIRST = 0.9, 500, 10
LONG, TIMES = 3_000, (1.02, 1.2, 3, 50)
"""A plan that no real run is large enough for, and sizes of made-up runs, in units of it"""
NEARLY_ALL = ((200, 204), (500, 510), (1000, 1020), (10_000, 10_200), (10_000, 10_010))
"""Plans and sizes of made-up runs of which nearly every claim is asked"""
WATCHED, RUNS = 0.8, 3
PRECISIONS = (0.05, 0.5, 0.8, 0.95)


def wald(x):
    """Return mean ± z standard errors after each label."""
    n, mean = np.arange(1, x.size + 1), np.cumsum(x) / np.arange(1, x.size + 1)
    return Estimate(mean, mean * (1 - mean) / n, n, np.zeros((0, n.size))).confidence_interval(
        LEVEL, "wald"
    )


def score(x):
    """Return Wilson's interval after each label."""
    n = np.arange(1, x.size + 1)
    return wilson(np.cumsum(x) / n, n, LEVEL)


def percentile_bootstrap(x):
    """Return the percentile bootstrap's interval after each label; for 0/1 labels its limit has a
    closed form.
    """
    n = np.arange(1, x.size + 1)
    mean = np.cumsum(x) / n
    return binom.ppf((1 - LEVEL) / 2, n, mean) / n, binom.ppf((1 + LEVEL) / 2, n, mean) / n


METHODS = {
    "Wald": wald,
    "Wilson": score,
    "percentile bootstrap": percentile_bootstrap,
    "betting sequence": lambda x: betting(x, confidence_level=LEVEL, grid=500),
    "betting, planned for 500": lambda x: betting(x, confidence_level=LEVEL, grid=500, planned_n=N),
    "empirical Bernstein": lambda x: empirical_bernstein(x, confidence_level=LEVEL),
}


def measure(p, repeats, rng):
    """Return a row for each method: shares of streams ever missed from the tenth and from the first
    label on, and missed at the end; widths at 100 and at 500.
    """
    streams = (rng.random((repeats, N)) < p).astype(float)
    for name, method in METHODS.items():
        ends = np.array([method(x) for x in streams])
        low, high = ends[:, 0], ends[:, 1]
        missed = (low > p + 1e-12) | (high < p - 1e-12)
        width = (high - low).mean(axis=0)
        yield [
            f"p = {p}",
            name,
            float(missed[:, FIRST - 1 :].any(axis=1).mean()),
            float(missed.any(axis=1).mean()),
            float(missed[:, -1].mean()),
            float(width[99]),
            float(width[-1]),
        ]


def watched(n, sizes, right, repeats, rng):
    """Return the share of paths in which the interval that the service shows while it judges is
    ever wrong, and the most that a look from the hundredth label on is wider than one for a single
    look. Labels are drawn without replacement from a run with so many predictions.
    """
    counts, times, quantiles = [], [], []
    for k in range(10, n + 1):
        now = (1 / n - 1 / sizes) / (1 / k - 1 / sizes) if k < n else 1.0
        if is_due(counts, times, k, now, planned=n):
            early, growth = pace([*counts, k], [*times, now], planned=n)
            quantiles.append(
                critical_value(
                    times, quantiles, now, confidence_level=WATCHED, early=early, growth=growth
                )
            )
            counts.append(k)
            times.append(now)
    truth, missed = right / sizes, np.zeros(repeats, dtype=bool)
    found, left, good = np.zeros(repeats), sizes, np.full(repeats, right)
    for before, k, quantile in zip([0, *counts], counts, quantiles, strict=False):
        more = rng.hypergeometric(good.astype(int), (left - good).astype(int), k - before)
        found, good, left = found + more, good - more, left - (k - before)
        effective = np.full(repeats, 1 / (1 / k - 1 / sizes))
        low, high = wilson(found / k, effective, 2 * norm.cdf(quantile) - 1)
        missed |= (low > truth) | (high < truth)
    late = [one for one, k in zip(quantiles, counts, strict=True) if k >= SETTLED]
    return float(missed.mean()), max(late) / norm.ppf(0.5 + WATCHED / 2)


def of_real_runs(repeats, rng):
    """Return a row for each plan: over some real runs how often the watched interval is ever wrong."""
    pool = redocred.read(redocred.names(RUNS))
    for n in (100, 200, 300, 500, 1000):
        told = []
        for column in range(RUNS):
            stated = pool.member[:, column]
            if stated.sum() > 1.1 * n:
                right = int(pool.true[stated].sum())
                told.append(watched(n, int(stated.sum()), right, repeats, rng))
        if told:
            ever = [one[0] for one in told]
            yield [n, len(told), float(np.mean(ever)), max(ever), max(one[1] for one in told)]


def of_made_up_runs(repeats, rng):
    """Return a row for each size of a run of which seven claims in ten are right."""
    for n, sizes in (*NEARLY_ALL, *((LONG, int(LONG * times)) for times in TIMES)):
        ever, width = watched(n, sizes, int(sizes * 0.7), repeats, rng)
        yield [f"{n} of {sizes}", 1, ever, ever, width]


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    rng = np.random.default_rng(21)
    table = [row for p in PRECISIONS for row in measure(p, repeats, rng)]
    print(f"{repeats} streams of {N} labels, nominal miss rate {1 - LEVEL:.1f}\n")
    tables.show(
        "peeking",
        [
            "precision",
            "interval",
            f"ever missed from the {FIRST}th",
            "from the first",
            "missed at end",
            "width 100",
            "width 500",
        ],
        table,
    )
    if redocred.available():
        print(
            f"\nWhat is shown while people judge, nominal miss rate {1 - WATCHED:.1f}; real runs\n"
        )
        tables.show(
            "peeking_real",
            ["planned", "runs", "ever missed", "worst run", "width from the 100th on"],
            [*of_real_runs(20 * repeats, rng), *of_made_up_runs(4 * repeats, rng)],
        )


if __name__ == "__main__":
    main()
