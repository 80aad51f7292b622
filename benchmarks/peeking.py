"""How often a 90 % interval that is looked at after every label is ever wrong, and how wide it is.

usage: python benchmarks/peeking.py [REPEATS]        (default: 1000)

Streams of 500 right or wrong answers. The interval is made anew after every label; a miss is one
that leaves out the true precision at any time from the tenth label on, since before that an
ordinary interval is hardly ever looked at, or at any time from the first label on. The percentile
bootstrap is its limit for many resamples, which for 0/1 labels has a closed form: quantiles of a
binomial with the observed share.

The second table is of the interval that the service shows while people judge: looks at made-up and
real runs whose labels come without replacement, and the chance of ever being wrong, exactly. The
third draws: real runs asked by thresholds, as the default design does, with unequal chances and a
model, a tenth as many samples of each.
"""

import sys
from pathlib import Path

import numpy as np
from scipy.special import gammaln
from scipy.stats import binom, norm

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import redocred, tables
from estimators.confidence_sequences import betting, empirical_bernstein
from estimators.estimate import Estimate
from estimators.intervals import half_step, score_interval, wilson
from estimators.poisson import water_fill
from estimators.repeated import SETTLED, critical_value, drawn_in, is_due, pace

LEVEL, N, FIRST = 0.9, 500, 10
PLANS = (
    *((n, n * times) for n in (100, 200, 300, 500, 1000) for times in (2, 10)),
    *((3000, size) for size in (3060, 3600, 9000)),
    *((200, 204), (500, 510), (1000, 1020), (1000, 1005)),
)
"""Judgments that are planned of made-up runs, and their sizes; of the last nearly all is asked"""
SHARES = (
    0.01,
    0.02,
    0.03,
    0.05,
    0.08,
    0.1,
    0.15,
    0.2,
    0.25,
    0.3,
    0.35,
    0.4,
    0.45,
    0.5,
    0.6,
    0.7,
    0.8,
    0.9,
    0.95,
)
"""Precisions of made-up runs"""
WATCHED, RUNS = 0.8, 6
DESIGNS = (("entity_relation", 0.03), ("entity_relation", 0.05), ("instance", 0.03))
"""Distributions and half widths that are ordered"""
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


def watched(n, size):
    """Return the looks at a sample of n without replacement from a run of so many predictions: the
    judgments at each, its quantile, and the part of a judgment that its ends are moved out by.
    """
    counts, times, quantiles, moved = [], [], [], []
    for k in range(10, n + 1):
        now = (1 / n - 1 / size) / (1 / k - 1 / size) if k < n else 1.0
        if is_due(counts, times, k, now):
            early, growth, continuity = pace([*counts, k], [*times, now])
            quantiles.append(
                critical_value(
                    times, quantiles, now, confidence_level=WATCHED, early=early, growth=growth
                )
            )
            counts.append(k)
            times.append(now)
            moved.append(continuity)
    return list(zip(counts, quantiles, moved, strict=True))


def choose(n, k):
    """Return the logarithm of n over k; of what cannot be chosen, minus infinity."""
    possible = (k >= 0) & (k <= n)
    inside = np.where(possible, k, 0)
    found = gammaln(n + 1.0) - gammaln(inside + 1.0) - gammaln(np.maximum(n - inside, 0) + 1.0)
    return np.where(possible, found, -np.inf)


def ever_wrong(size, right, looks):
    """Return the probability that some look is wrong; and how much wider than an interval for one
    look the widest is from the hundredth judgment on, and would be if its ends were not drawn in.
    Nothing is drawn: the number of right ones is followed through all that it can be.
    """
    law, before, wrong, widest, wide = np.ones(1), 0, 0.0, 0.0, 0.0
    for k, quantile, continuity in looks:
        more = np.arange(k - before + 1)[None, :]
        good = right - np.arange(before + 1)[:, None]
        step = choose(good, more) + choose(size - before - good, k - before - more)
        step = np.exp(step - choose(np.array(size - before), np.array(k - before)))
        moved = np.zeros(k + 1)
        for extra in range(k - before + 1):
            moved[extra : extra + before + 1] += law * step[:, extra]
        one_low, one_high = interval(k, size, WATCHED, 0.0)
        low, high = interval(k, size, 2 * norm.cdf(quantile) - 1, continuity)
        if k >= SETTLED:
            wide = max(wide, float(moved @ (high - low) / (moved @ (one_high - one_low))))
        low, high = interval_at_look(k, size, quantile, continuity)
        if k >= SETTLED:
            widest = max(widest, float(moved @ (high - low) / (moved @ (one_high - one_low))))
        out = (low > right / size + 1e-12) | (high < right / size - 1e-12)
        wrong += float(moved[out].sum())
        law, before = np.where(out, 0.0, moved), k
    return wrong, widest, wide


def interval_at_look(k, size, quantile, continuity):
    """Return what is shown of k judgments of a run, for each number of right ones."""
    wide = interval(k, size, 2 * norm.cdf(quantile) - 1, continuity)
    one_look = interval(k, size, WATCHED, 0.0)
    ends = zip(*wide, *one_look, np.arange(k + 1) / k, strict=True)
    return np.array([drawn_in((a, b), share, (c, d), k) for a, b, c, d, share in ends]).T


def interval(k, size, level, continuity):
    """Return the interval of k judgments of a run, for each number of right ones."""
    share, judged = np.arange(k + 1) / k, np.arange(size) < k
    return score_interval(
        share,
        share * (1 - share) * (1 / k - 1 / size),
        k,
        anticipated=(1 / k - 1 / size) * (share * k + 0.5) * (k - share * k + 0.5) / (k + 1) ** 2,
        confidence_level=level,
        half_step=half_step(np.full(size, 1 / size), judged),
        continuity=continuity,
    )


def shown(size, share, looks):
    """Return how much wider what is shown is than an interval for one look at the judgments that
    there are by then: the mean and the largest from the hundredth judgment on to before the last,
    where such a share is right; nothing (NaN) where the hundredth is the last. A look stands until
    the next.
    """
    ratios, at, width = [], -1, np.nan
    for n in range(SETTLED, looks[-1][0]):
        while at + 1 < len(looks) and looks[at + 1][0] <= n:
            at += 1
            k, quantile, continuity = looks[at]
            low, high = interval_at_look(k, size, quantile, continuity)
            width = (high - low)[int(k * share)]
        one_low, one_high = interval(n, size, WATCHED, 0.0)
        ratios.append(width / (one_high - one_low)[int(n * share)])
    return (float(np.mean(ratios)), max(ratios)) if ratios else (np.nan, np.nan)


def of_made_up_runs():
    """Return a row for each plan and size: the mean and the worst of some precisions."""
    for n, size in PLANS:
        looks = watched(n, size)
        told = [ever_wrong(size, round(p * size), looks) for p in SHARES]
        yield [f"{n} of {size}", len(told), *summary(told), *in_print(shown(size, 0.5, looks))]


def of_real_runs(pool):
    """Return a row for each plan: some real runs, sampled with equal chances."""
    for n in (100, 200, 300, 500, 1000):
        told, widths = [], []
        for column in range(pool.member.shape[1]):
            predicted = pool.member[:, column]
            if predicted.sum() > 1.1 * n:
                size, right = int(predicted.sum()), int(pool.true[predicted].sum())
                looks = watched(n, size)
                told.append(ever_wrong(size, right, looks))
                widths.append(shown(size, right / size, looks))
        if told:
            mean, widest = np.mean([one[0] for one in widths]), max(one[1] for one in widths)
            yield [f"{n}, real", len(told), *summary(told), *in_print((float(mean), widest))]


def in_print(widths):
    """Return widths as the table has them, with a dash for one that there is not."""
    return ["–" if np.isnan(width) else width for width in widths]


def summary(told):
    """Return the mean and the largest of the shares wrong, and the largest of the widths."""
    ever = [one[0] for one in told]
    return float(np.mean(ever)), max(ever), max(one[1] for one in told)


class Run:
    """A real run whose claims are asked by thresholds, released in the order of u/π, scored as the
    board does: centred, with a model that is given.
    """

    def __init__(self, pool, column, kind, half_width):
        self.p = pool.p[kind][:, column]
        at = np.flatnonzero(self.p > 0)
        self.p, self.true = self.p[at], pool.true[at]
        self.truth = float(self.p @ self.true)
        others = np.delete(pool.member[at], column, axis=1).sum(axis=1)
        right = np.bincount(others, weights=self.true) + 1
        self.g = (right / (np.bincount(others) + 2))[others]
        self.goal = (half_width / norm.ppf(0.5 + WATCHED / 2)) ** 2
        spread = np.maximum(self.g * (1 - self.g), 0.06)
        self.pi = water_fill(self.p, np.zeros(at.size), spread, target_variance=self.goal)

    def watch(self, rng):
        """Return whether one sample, watched at every tenth answer, is ever wrong; whether it is at
        the end; and the largest width from the hundredth answer on, over that for one look.
        """
        rank = rng.random(self.p.size) / self.pi
        order = np.argsort(rank)[: int((rank < 1).sum())]
        judged, times, quantiles, ever, widest = [], [], [], False, np.nan
        for k in [*range(10, order.size, 10), order.size]:
            released = float(rank[order[k]]) if k < order.size else 1.0
            told, value, variance = self.estimate(order[:k], np.minimum(self.pi * released, 1.0))
            now = min(1.0, self.goal / variance)
            if not is_due(judged, times, k, now):
                continue
            early, growth, continuity = pace([*judged, k], [*times, now])
            quantiles.append(
                critical_value(
                    times, quantiles, now, confidence_level=WATCHED, early=early, growth=growth
                )
            )
            judged.append(k)
            times.append(now)
            ends = told(2 * norm.cdf(min(quantiles[-1], 5.0)) - 1, continuity)
            low, high = drawn_in(ends, value, told(WATCHED, 0.0), k)
            ever |= not low <= self.truth <= high
            if k >= SETTLED:
                one_low, one_high = told(WATCHED, 0.0)
                widest = np.fmax(widest, (high - low) / (one_high - one_low))
            if now == 1:
                break
        low, high = told(WATCHED, 0.0)
        return ever, not low <= self.truth <= high, widest

    def estimate(self, at, pi):
        """Return a function from level and continuity to the interval, the estimate, and the larger
        variance.
        """
        weight = self.p[at] / pi[at]
        residual = self.true[at] - self.g[at]
        mean = float(weight @ residual / weight.sum())
        variance = float((1 - pi[at]) @ np.square(weight * (residual - mean)))
        model = self.g * (1 - self.g)
        doubt = max(1.0, float(residual @ residual / model[at].sum()))
        anticipated = doubt * float(np.square(self.p) * model @ (1 / pi - 1))
        known = np.zeros(self.p.size, dtype=bool)
        known[at] = True
        total = float(self.p @ self.g)
        options = {
            "anticipated": anticipated,
            "total_g": total,
            "half_step": half_step(self.p, known),
        }

        def told(level, continuity):
            return score_interval(
                total + mean,
                variance,
                at.size,
                confidence_level=level,
                continuity=continuity,
                **options,
            )

        return told, total + mean, max(variance, anticipated)


def by_thresholds(pool, repeats, rng):
    """Return a row for each run, distribution and half width of the default design."""
    for kind, half_width in DESIGNS:
        for column in range(pool.member.shape[1]):
            run = Run(pool, column, kind, half_width)
            told = np.array([run.watch(rng) for _ in range(repeats)])
            ever, final = told[:, 0].mean(), told[:, 1].mean()
            yield [
                f"{pool.names[column]}, {kind} ±{100 * half_width:g}",
                round(float(run.pi.sum())),
                float(ever),
                float(np.sqrt(ever * (1 - ever) / repeats)),
                float(final),
                float(np.nanmean(told[:, 2])) if np.isfinite(told[:, 2]).any() else np.nan,
            ]


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
    print(f"\nWhat is shown while people judge, nominal miss rate {1 - WATCHED:.1f}; exactly\n")
    pool = redocred.read(redocred.names(RUNS)) if redocred.available() else None
    tables.show(
        "peeking_watched",
        [
            *("planned", "runs", "ever wrong", "worst run", "width from the 100th on"),
            *("shown, mean", "shown, widest"),
        ],
        [*of_made_up_runs(), *(of_real_runs(pool) if pool else ())],
    )
    if pool:
        samples = max(1, repeats // 10)
        print(f"\nThe same by thresholds, {samples} samples of each real run\n")
        tables.show(
            "peeking_thresholds",
            ["run", "planned", "ever wrong", "± 1 s.e.", "wrong at the end", "width"],
            [*by_thresholds(pool, samples, rng)],
        )


if __name__ == "__main__":
    main()
