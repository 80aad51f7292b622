"""What metrics save of human judgments, on real sets of judged texts, and whether intervals hold.

usage: python benchmarks/debiasing_real.py [REPEATS [SET …]]        (default: 2000, all four sets)

Looks for the sets in ../shared/data/nlg. Of each criterion are printed

1. worth: γ, ρ and data efficiency of each metric, as predicted, and as measured by REPEATS samples of
   100 independent draws of each system's outputs (50 where it has so few), one rating each;
2. saved: 1 − variance of the corrected mean over that of the plain one. Best metric of the set, best
   metric of each system (both known only afterwards), several metrics by the system's own ratings,
   and the model of all systems' ratings; the widest interval of any system against people alone;
3. covered: 80 % intervals under the service's design, each output asked with probability ½;
4. judges: the same where five or ten people with levels of their own rate everything;
5. ranking: judgments until all pairs of systems are decided at 95 %, together, inputs in random order.

The model is fitted in REPEATS / 4 samples for 2, in REPEATS for 3. Truth is the mean of all ratings.
Sets with aggregated ratings (frank, novikova2017) have no noise to tell: their numbers stand for single
ratings of people who agree.
"""

import csv
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import judged_texts, tables
from estimators.components import data_efficiency, metric_worth, variance_components
from estimators.control_variates import regression_mean
from estimators.design import Design
from estimators.horvitz_thompson import centred
from estimators.multiple import simultaneous_intervals
from estimators.rating_model import fit_ratings
from estimators.ratings import judge_effect, with_judges, with_rating_noise

LEVEL, FAMILY = 0.8, 0.95
FOLDS, HALF = 5, 0.5  # as in the service
ORDERS, STEPS = 20, 10
JUDGES, LEVELS = (5, 10), 0.1  # standard deviation of what judges differ by on average


def draws_of(judged, rng):
    """Return (m, n) rows drawn independently of each system, with a rating each."""
    rows = []
    for system in range(len(judged.systems)):
        own = judged.of(system)
        rows.append(rng.choice(own, 100 if own.size >= 90 else 50))
    sizes = {len(part) for part in rows}
    n = min(sizes)
    rows = np.array([part[:n] for part in rows])
    return rows, judged.draw(rows, rng)


def truth_of(judged):
    """Return the mean rating of every system over all of its outputs."""
    return np.array([judged.mean[judged.of(s)].mean() for s in range(len(judged.systems))])


def worth(judged, repeats, rng):
    """Return a row a system and metric, and the (m, k) variance left by each metric."""
    z, truth = judged.standardised(), truth_of(judged)
    plain, single = np.zeros(truth.size), np.zeros((truth.size, z.shape[1]))
    for _ in range(repeats):
        rows, y = draws_of(judged, rng)
        mean = y.mean(axis=1)
        slope = np.einsum("mn,mnk->mk", y - mean[:, None], z[rows]) / y.shape[1]
        plain += (mean - truth) ** 2
        single += (mean[:, None] - slope * z[rows].mean(axis=1) - truth[:, None]) ** 2
    measured = plain[:, None] / single
    table = []
    for s, system in enumerate(judged.systems):
        rows = judged.of(s)
        item = np.repeat(rows, judged.ratings.shape[1])
        for k, metric in enumerate(judged.metrics):
            found = metric_worth(judged.ratings[rows].ravel(), item, judged.features[rows, k])
            gamma = found.components.gamma
            bounded = abs(found.rho) <= 1 and gamma >= 0
            predicted = data_efficiency(found.rho, gamma) if bounded else found.data_efficiency
            table.append([judged.name, judged.criterion, system, metric, gamma, found.rho,
                          found.r, predicted, float(measured[s, k])])  # fmt: skip
    return table, 1 / measured


def model_of(judged, rating, fold, start=None):
    return fit_ratings(
        judged.features, rating, fold, system=judged.system, input=judged.input,
        text=judged.words, start=start,
    )  # fmt: skip


def saved(judged, left_by_single, repeats, rng):
    """Return a row a method: what it saves on average, and the widest interval it makes."""
    truth, m = truth_of(judged), len(judged.systems)
    errors = {name: [] for name in ("people", "several", "model")}
    spreads = {name: [] for name in errors}
    start = None
    n_rows = judged.system.size
    for _ in range(repeats):
        fold = rng.integers(0, FOLDS, n_rows)
        rows, y = draws_of(judged, rng)
        count = np.bincount(rows.ravel(), minlength=n_rows)
        total = np.bincount(rows.ravel(), y.ravel(), n_rows)
        rating = np.where(count > 0, total / np.maximum(count, 1), np.nan)
        start = model_of(judged, rating, fold, start)
        left = y - start.g[rows]
        offset = np.array([start.g[judged.of(s)].mean() for s in range(m)])
        several = [
            regression_mean(
                y[s], judged.features[rows[s]], judged.features[judged.of(s)], fold=fold[rows[s]]
            )
            for s in range(m)
        ]
        n = y.shape[1]
        for name, value, variance in (
            ("people", y.mean(axis=1), y.var(axis=1, ddof=1) / n),
            ("several", [e.value for e in several], [e.variance for e in several]),
            ("model", left.mean(axis=1) + offset, left.var(axis=1, ddof=1) / n),
        ):
            errors[name].append(np.square(value - truth))
            spreads[name].append(variance)
    people = np.mean(errors["people"], axis=0)
    best = int(np.argmin(left_by_single.mean(axis=0)))
    single = left_by_single[:, best]
    row = [judged.name, judged.criterion, m, rows.shape[1], judged.metrics[best]]
    hindsight = 1 - left_by_single.min(axis=1)
    shares = [float((1 - single).mean()), float(hindsight.mean())]
    for name in ("several", "model"):
        shares.append(float((1 - np.mean(errors[name], axis=0) / people).mean()))
    printed = {
        name: np.mean(spreads[name], axis=0) / np.mean(spreads["people"], axis=0)
        for name in ("several", "model")
    }
    widest = [float(np.sqrt(printed[name].max())) for name in printed]
    ratio = shares[3] / shares[0] if shares[0] > 0.005 else float("nan")
    return [*row, *shares, float((1 - printed["model"]).mean()), ratio, *widest]


def sample_of(judged, rng):
    """Return rows that are asked with probability ½ each, and a rating of each."""
    rows = np.flatnonzero(rng.random(judged.system.size) < HALF)
    return rows, judged.draw(rows, rng)


def weights_of(judged):
    """Return (N, m): each system's outputs count alike."""
    p = np.zeros((judged.system.size, len(judged.systems)))
    p[np.arange(p.shape[0]), judged.system] = 1.0
    return p / p.sum(axis=0)


def noise_of(judged):
    """Return σ_a² of single ratings; 0 where a set has only aggregated ones."""
    if not judged.is_single:
        return 0.0
    item = np.repeat(np.arange(judged.system.size), judged.ratings.shape[1])
    found = variance_components(judged.ratings.ravel(), item, group=judged.system[item])
    return found.sigma_a2


def covered(judged, repeats, rng):
    """Return a row: how often 80 % intervals of people alone and of ours hold the truth, their width."""
    truth, p, noise = truth_of(judged), weights_of(judged), noise_of(judged)
    held, width = np.zeros((2, truth.size)), np.zeros((2, truth.size))
    moved = []
    start = None
    for _ in range(repeats):
        rows, y = sample_of(judged, rng)
        rating = np.full(judged.system.size, np.nan)
        rating[rows] = y
        start = model_of(judged, rating, rng.integers(0, FOLDS, rating.size), start)
        pi, ones = np.full(rows.size, HALF), np.ones(rows.size)
        for k, g in enumerate((np.full(rating.size, 0.5), start.g)):
            alone = centred(p[rows], pi, y, g[rows], g @ p)
            estimate = with_rating_noise(alone, p[rows], pi, ones, noise)
            low, high = estimate.confidence_interval(LEVEL, method="t")
            held[k] += (low <= truth) & (truth <= high)
            width[k] += high - low
            if k:
                moved.append(estimate.value - truth)
    rate = held / repeats
    bias = np.mean(moved, axis=0) / (np.std(moved, axis=0) / np.sqrt(repeats))
    return [judged.name, judged.criterion, repeats, float(rate[0].mean()), float(rate[1].mean()),
            float(rate[1].min()), float(rate[1].max()),
            float((width[1] / width[0]).mean()), float((width[1] / width[0]).max()),
            float(np.abs(bias).max())]  # fmt: skip


def judges(judged, repeats, rng):
    """Return a row a number of judges: coverage without and with the judges' term."""
    truth, p, noise = truth_of(judged), weights_of(judged), noise_of(judged)
    total = noise + LEVELS**2
    for n_judges in JUDGES:
        held, told = np.zeros((2, truth.size)), 0.0
        for _ in range(repeats):
            rows, y = sample_of(judged, rng)
            pi, ones = np.full(rows.size, HALF), np.ones(rows.size)
            levels = rng.normal(0, LEVELS, n_judges)
            judge = rng.permutation(rows.size) % n_judges
            # Ratings may leave [0, 1] now; half of them, moved, do not.
            label = np.clip(0.25 + (y + levels[judge]) / 2, 0, 1)
            alone = centred(p[rows], pi, label, np.full(rows.size, 0.5), np.full(truth.size, 0.5))
            estimate = with_rating_noise(alone, p[rows], pi, ones, total / 4)
            mean = np.array([label[judged.system[rows] == s].mean() for s in range(truth.size)])
            effect = judge_effect(label - mean[judged.system[rows]], judge, rows)
            crossed = with_judges(estimate, p[rows], pi, judge, np.arange(rows.size), effect)
            told += float(np.mean(crossed.telling)) / repeats
            for k, result in enumerate((estimate, crossed.estimate)):
                low, high = result.confidence_interval(LEVEL, method="t")
                exact = 0.25 + truth / 2
                held[k] += (low <= exact) & (exact <= high)
        rate = held / repeats
        yield [judged.name, judged.criterion, n_judges, float(rate[0].mean()),
               float(rate[1].mean()), float(rate[1].min()), float(rate[1].max()),
               told]  # fmt: skip


def decided(judged, rated, y, g, noise, rng):
    """Return which pairs of systems are decided, and in the right order, from inputs rated for all."""
    p, m = weights_of(judged), len(judged.systems)
    share = np.unique(judged.input[rated]).size / (judged.input.max() + 1)
    pi, known = np.full(rated.size, share), judged.input[rated]
    estimate = centred(
        p[rated], pi, y, g[rated], g @ p, target=known, n_targets=judged.input.max() + 1
    )
    chance = np.full(judged.input.max() + 1, share)
    covariance = Design(chance).covariance(estimate.influence)
    covariance = covariance + np.diag(noise * (p[rated] ** 2).sum(axis=0) / share)
    n = max(np.unique(known).size - 1, 1)
    board = simultaneous_intervals(
        estimate.value, covariance, rng=rng, confidence_level=FAMILY, repeats=2000,
        degrees_of_freedom=n,
    )  # fmt: skip
    upper = np.triu_indices(m, 1)
    truth = truth_of(judged)
    right = np.sign(board.difference) == np.sign(truth[:, None] - truth[None, :])
    return board.different[upper], right[upper]


def ranking(judged, rng):
    """Return rows: pairs decided at each number of judgments, by people alone and with ours."""
    n_inputs = int(judged.input.max()) + 1
    steps = np.unique(np.linspace(max(8, n_inputs // STEPS), n_inputs, STEPS).astype(int))
    m, noise = len(judged.systems), noise_of(judged)
    shares, wrong = np.zeros((2, steps.size)), np.zeros(2)
    until = np.full((2, ORDERS), np.nan)
    asked = np.zeros(steps.size)
    for order in range(ORDERS):
        place = rng.permutation(n_inputs)
        ratings = judged.draw(np.arange(judged.system.size), rng)
        fold = rng.integers(0, FOLDS, n_inputs)[judged.input]
        start = None
        for at, n in enumerate(steps):
            rated = np.flatnonzero(place[judged.input] < n)
            rating = np.full(judged.system.size, np.nan)
            rating[rated] = ratings[rated]
            start = model_of(judged, rating, fold, start)
            asked[at] += rated.size / ORDERS
            for k, g in enumerate((np.full(rating.size, 0.5), start.g)):
                apart, right = decided(judged, rated, ratings[rated], g, noise, rng)
                shares[k, at] += apart.mean() / ORDERS
                wrong[k] += bool((apart & ~right).any())
                if apart.all() and np.isnan(until[k, order]):
                    until[k, order] = rated.size
    for at in range(steps.size):
        yield [judged.name, judged.criterion, m, round(asked[at]), *shares[:, at].tolist()]
    for k, who in enumerate(("people", "ours")):
        reached = np.isfinite(until[k])
        median = float(np.median(until[k][reached])) if reached.any() else float("nan")
        print(f"  {judged.name} {judged.criterion}, {who}: all pairs decided in"
              f" {int(reached.sum())} of {ORDERS} orders, median {median:,.0f} judgments;"
              f" {wrong[k] / ORDERS / steps.size:.3f} of looks name a pair in the wrong order")  # fmt: skip


def needed(rows):
    """Return rows: judgments that decide as many pairs as people alone do with all of them, by half and all."""
    curves = {}
    for name, criterion, _, n, people, ours in rows:
        curves.setdefault((name, criterion), []).append((n, people, ours))
    for (name, criterion), curve in curves.items():
        n, people, ours = np.array(curve, dtype=np.float64).T
        for goal in (people[-2] / 2, people[-2]):
            if goal <= 0:
                continue
            counts = [_first(n, share, goal) for share in (people, ours)]
            yield [name, criterion, float(goal), *counts, counts[0] / counts[1]]


def _first(n, share, goal):
    """Return the number of judgments at which a share is reached, between two steps in proportion."""
    at = int(np.argmax(share >= goal)) if (share >= goal).any() else len(n) - 1
    if at == 0 or share[at] == share[at - 1]:
        return float(n[at])
    part = (goal - share[at - 1]) / (share[at] - share[at - 1])
    return float(n[at - 1] + min(part, 1.0) * (n[at] - n[at - 1]))


HEADERS = {
    "worth": ["set", "criterion", "system", "metric", "gamma", "rho", "r", "predicted", "measured"],
    "saved": ["set", "criterion", "systems", "n", "best metric", "best of the set",
              "best of each system", "several", "model", "model, printed", "model/best",
              "widest several", "widest model"],
    "covered": ["set", "criterion", "repeats", "people", "model", "least", "most", "width",
                "widest", "largest bias in s.e."],
    "judges": ["set", "criterion", "judges", "without", "with", "least", "most", "told"],
    "ranking": ["set", "criterion", "systems", "judgments", "decided by people", "decided by ours"],
    "needed": ["set", "criterion", "share of pairs", "people", "ours", "people/ours"],
}  # fmt: skip


def medians(rows):
    """Return the median over systems of each metric, the five best of a criterion."""
    groups = {}
    for name, criterion, _, metric, *numbers in rows:
        groups.setdefault((name, criterion), {}).setdefault(metric, []).append(numbers)
    for (name, criterion), by_metric in groups.items():
        table = {
            metric: np.nanmedian(np.array(n, float), axis=0) for metric, n in by_metric.items()
        }
        for metric in sorted(table, key=lambda one: -table[one][-1])[:5]:
            yield [name, criterion, metric, *map(float, table[metric])]


def main() -> None:
    if not judged_texts.available():
        return
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    chosen = sys.argv[2:] or list(judged_texts.SETS)
    parts = {name: [] for name in HEADERS}
    for name in chosen:
        for criterion in judged_texts.SETS[name]:
            rng = np.random.default_rng(31)
            judged = judged_texts.read(name, criterion)
            rows, left = worth(judged, repeats, rng)
            parts["worth"] += rows
            parts["saved"].append(saved(judged, left, max(repeats // 4, 20), rng))
            parts["covered"].append(covered(judged, repeats, rng))
            parts["judges"] += judges(judged, repeats, rng)
            parts["ranking"] += ranking(judged, rng)
            print(f"  {name} {criterion} done", flush=True)
    parts["needed"] = list(needed(parts["ranking"]))
    suffix = "_".join(["", *sys.argv[2:]])
    tables.write(f"debiasing_worth{suffix}", HEADERS["worth"], parts.pop("worth"))
    worth_rows = judged_texts.ROOT / "benchmarks" / "out" / f"debiasing_worth{suffix}.csv"
    print(f"\nworth of every system and metric: {worth_rows}; medians over systems, best five:\n")
    header = ["set", "criterion", *HEADERS["worth"][3:]]
    read_again = list(_read(worth_rows))
    tables.show(f"debiasing_medians{suffix}", header, list(medians(read_again)))
    for part, table in parts.items():
        print(f"\n{part}\n")
        tables.show(f"debiasing_{part}{suffix}", HEADERS[part], table)


def _read(path):
    with path.open(encoding="utf-8") as file:
        yield from list(csv.reader(file))[1:]


if __name__ == "__main__":
    main()
