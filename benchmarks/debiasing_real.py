"""Measures how many human judgments metrics save on real sets of judged texts, and the coverage of
intervals.

usage: python benchmarks/debiasing_real.py [REPEATS [SET … PART …]]
       (default: 2000, all sets, all parts)

The parts are worth, attainable, judges, sampled (saved and covered), equal and ranking; worth alone
takes a minute, and writes a row for each system and metric.

Looks for the sets in ../shared/data/nlg. Of each criterion are printed

1. worth: γ, ρ and data efficiency of each metric, as predicted, and as measured by REPEATS samples
   of 100 independent draws of each system's outputs (50 where it has so few), one rating each;
2. saved: 1 − mean square error of the corrected mean over that of people alone, where each output
   is asked with probability ½, as the service does. Best metric of the set, best metric of each
   system (both by themselves, and known only afterwards), and the model of all metrics and all
   systems' ratings; the width of its intervals against people alone;
   The scales of the model are searched for in each tenth sample, and kept for the next nine;
   attainable: the same of the best metric and of the best linear combination of all, fitted to the
   means of **all** ratings of all outputs, which nobody has; and of a guess that is these means;
3. covered: how often 80 % intervals hold in the same samples, as the board prints them; each: the
   same of every system, and with its own σ_a² in the place of that of all; and the variance that is
   printed in terms of the mean square error;
4. judges: the same of people alone where five or ten people with levels of their own rate
   everything;
5. equal: the mean square error of the model's means, and of power-tuned PPI with the one metric of
   a set that goes best with all ratings so far (by the leave-one-out error), over that of plain
   means, from the same 20, 40 and 60 ratings of each system;
6. ranking: judgments until all pairs of systems are decided at 95 %, together, inputs in random
   order.

Truth is the mean of all ratings. Sets with aggregated ratings (frank, novikova2017) have no noise
to tell: their numbers stand for single ratings of people who agree.
"""

import csv
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import judged_texts, tables
from estimators.components import data_efficiency, metric_worth
from estimators.control_variates import control_variate_mean
from estimators.design import Design
from estimators.horvitz_thompson import centred_difference_estimate
from estimators.multiple import simultaneous_intervals
from estimators.rating_model import fit_ratings
from estimators.ratings import (
    add_judge_effect,
    anticipated_rating_variance,
    estimate_with_rating_noise,
    expected_rating_error,
    judge_effect,
)

SEED = 31
SEARCHED = 10
LEVEL, FAMILY = 0.8, 0.95
FOLDS, HALF = 5, 0.5  # as in the service
ORDERS, STEPS = 20, 10
EQUAL = (20, 40, 60)  # ratings of each system
JUDGES, LEVELS = (5, 10), 0.1  # standard deviation of what judges differ by on average


def draw_ratings(judged, rng):
    """Return (m, n) rows drawn independently for each system, and a rating of each."""
    rows = []
    for system in range(len(judged.systems)):
        own = judged.of(system)
        rows.append(rng.choice(own, 100 if own.size >= 90 else 50))
    sizes = {len(part) for part in rows}
    n = min(sizes)
    rows = np.array([part[:n] for part in rows])
    return rows, judged.draw(rows, rng)


def true_means(judged):
    """Return the mean rating of every system over all of its outputs."""
    return np.array([judged.mean[judged.of(s)].mean() for s in range(len(judged.systems))])


def metric_worth_rows(judged, repeats, rng):
    """Return a table row for each system and metric."""
    z, truth = judged.standardised(), true_means(judged)
    plain, single = np.zeros(truth.size), np.zeros((truth.size, z.shape[1]))
    for _ in range(repeats):
        rows, y = draw_ratings(judged, rng)
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
            table.append(
                [
                    judged.name,
                    judged.criterion,
                    system,
                    metric,
                    gamma,
                    found.rho,
                    found.r,
                    predicted,
                    float(measured[s, k]),
                ]
            )
    return table


def fit_model(judged, rating, fold, start=None, *, search=True):
    return fit_ratings(
        judged.features,
        rating,
        fold,
        system=judged.system,
        input=judged.input,
        text=judged.words,
        start=start,
        search=search,
    )


def draw_sample(judged, rng):
    """Return rows that are drawn with probability ½ each, and a rating of each."""
    rows = np.flatnonzero(rng.random(judged.system.size) < HALF)
    return rows, judged.draw(rows, rng)


def system_weights(judged):
    """Return weights (N, m): each system's outputs have equal weight."""
    p = np.zeros((judged.system.size, len(judged.systems)))
    p[np.arange(p.shape[0]), judged.system] = 1.0
    return p / p.sum(axis=0)


def rating_noise(judged, rows=...):
    """Return the variance of a rating that is drawn from the ratings of an output (σ_a²), over all
    outputs or these rows; 0 for aggregated ratings.

    The truth is the mean of those ratings, so the variance of a drawn rating is their own variance,
    and not that over all people who might have been asked, which with three ratings is half as much
    again.
    """
    return float(np.nanvar(judged.ratings[rows], axis=1).mean())


def estimate_from_sample(judged, p, rows, y, g, noise):
    """Return the estimate of a sample drawn with probability ½, and the 80 % interval of
    the board.
    """
    m = p.shape[1]
    pi, ones = np.full(rows.size, HALF), np.ones(rows.size)
    error = expected_rating_error(y, g[rows], judged.system[rows], m)[judged.system]
    floor = anticipated_rating_variance(p, np.full(p.shape[0], HALF), error)
    alone = centred_difference_estimate(p[rows], pi, y, g[rows], g @ p, anticipated=floor)
    estimate = estimate_with_rating_noise(alone, p[rows], pi, ones, noise)
    return estimate, *estimate.confidence_interval(LEVEL, method="wilson")


def means_with_each_metric(judged, z, rows, y):
    """Return (m, k): the mean of every system with each metric by itself, as published."""
    m = len(judged.systems)
    owner = judged.system[rows]
    count = np.maximum(np.bincount(owner, minlength=m), 1)[:, None]
    mean = np.bincount(owner, y, m)[:, None] / count
    moment, sum_z = np.zeros((m, z.shape[1])), np.zeros((m, z.shape[1]))
    np.add.at(moment, owner, (y - mean[owner, 0])[:, None] * z[rows])
    np.add.at(sum_z, owner, z[rows])
    return mean - moment / count * sum_z / count


def saved_and_coverage_rows(judged, repeats, rng):
    """Return a row with the savings and the coverage, and a row of coverage for each system, all
    from the same samples.
    """
    truth, p, noise = true_means(judged), system_weights(judged), rating_noise(judged)
    m, z = truth.size, judged.standardised()
    own = np.array([rating_noise(judged, judged.of(system)) for system in range(m)])
    held, width = np.zeros((3, m)), np.zeros((3, m))
    square, single = np.zeros((3, m)), np.zeros((m, z.shape[1]))
    total, printed = np.zeros(m), np.zeros((3, m))
    n, start = 0.0, None
    for repeat in range(repeats):
        rows, y = draw_sample(judged, rng)
        rating = np.full(judged.system.size, np.nan)
        rating[rows] = y
        fold = rng.integers(0, FOLDS, rating.size)
        start = fit_model(judged, rating, fold, start, search=repeat % SEARCHED == 0)
        level = np.bincount(judged.system[rows], y, m)
        level /= np.maximum(np.bincount(judged.system[rows], minlength=m), 1)
        ways = (
            (level[judged.system], noise),
            (start.g, noise),
            (start.g, own[judged.system[rows]]),
        )
        for k, (g, sigma_a2) in enumerate(ways):
            estimate, low, high = estimate_from_sample(judged, p, rows, y, g, sigma_a2)
            held[k] += (low <= truth) & (truth <= high)
            width[k] += high - low
            square[k] += (estimate.value - truth) ** 2
            printed[k] += estimate.variance
        total += estimate.value - truth
        single += (means_with_each_metric(judged, z, rows, y) - truth[:, None]) ** 2
        n += rows.size / m / repeats
    rate = held / repeats
    bias = total / np.sqrt(repeats * np.maximum(square[1] - total**2 / repeats, 1e-300))
    left = single / square[0][:, None]
    best = int(np.argmin(left.mean(axis=0)))
    best_of_set, best_of_each = 1 - float(left[:, best].mean()), 1 - float(left.min(axis=1).mean())
    model = 1 - float((square[1] / square[0]).mean())
    ratio = model / best_of_set if best_of_set > 0.005 else float("nan")
    widths = width[1] / width[0]
    saved = [
        judged.name,
        judged.criterion,
        m,
        round(n),
        judged.metrics[best],
        best_of_set,
        best_of_each,
        model,
        1 - float((printed[1] / printed[0]).mean()),
        ratio,
        float(widths.mean()),
        float(widths.max()),
    ]
    covered = [
        judged.name,
        judged.criterion,
        repeats,
        *(float(x) for k in (0, 1) for x in (rate[k].mean(), rate[k].min(), rate[k].max())),
        float(np.abs(bias).max()),
    ]
    by_system = [
        [
            judged.name,
            judged.criterion,
            system,
            float(own[s]),
            *map(float, rate[:, s]),
            *map(float, printed[:, s] / square[:, s]),
            float(total[s] / repeats),
        ]
        for s, system in enumerate(judged.systems)
    ]
    return saved, covered, by_system


def attainable_savings(judged):
    """Return a row with the savings by guesses that are fitted to all ratings, at inclusion
    probability ½.
    """
    z, f, m = judged.standardised(), judged.mean, len(judged.systems)
    known = (~np.isnan(judged.ratings)).sum(axis=1)
    noise = np.where(known > 1, np.nanvar(judged.ratings, axis=1), 0.0)
    apart = (
        f
        - np.bincount(judged.system, f, m)[judged.system]
        / np.bincount(judged.system)[judged.system]
    )

    def savings_of_guess(guess):
        # Sampled by halves, one rating each: Σ (f − g)² + 2 Σ σ_a², g centred within systems.
        left = (apart - guess) ** 2
        shares = [
            1
            - (left[rows].sum() + 2 * noise[rows].sum())
            / ((apart[rows] ** 2).sum() + 2 * noise[rows].sum())
            for rows in map(judged.of, range(m))
        ]
        return float(np.mean(shares))

    slopes = (apart @ z) / np.maximum((z**2).sum(axis=0), 1e-12)
    singles = [savings_of_guess(slope * z[:, k]) for k, slope in enumerate(slopes)]
    every = savings_of_guess(z @ np.linalg.lstsq(z, apart, rcond=None)[0])
    single = max(singles)
    return [
        judged.name,
        judged.criterion,
        judged.metrics[int(np.argmax(singles))],
        single,
        every,
        every / single,
        savings_of_guess(apart),
    ]


def judge_coverage_rows(judged, repeats, rng):
    """Return a row for each number of judges: coverage without and with the judges' term."""
    truth, p, noise = true_means(judged), system_weights(judged), rating_noise(judged)
    total = noise + LEVELS**2
    for n_judges in JUDGES:
        held, told = np.zeros((2, truth.size)), 0.0
        for _ in range(repeats):
            rows, y = draw_sample(judged, rng)
            pi, ones = np.full(rows.size, HALF), np.ones(rows.size)
            levels = rng.normal(0, LEVELS, n_judges)
            judge = rng.permutation(rows.size) % n_judges
            # Ratings may leave [0, 1] now; half of them, moved, do not.
            label = np.clip(0.25 + (y + levels[judge]) / 2, 0, 1)
            alone = centred_difference_estimate(
                p[rows], pi, label, np.full(rows.size, 0.5), np.full(truth.size, 0.5)
            )
            estimate = estimate_with_rating_noise(alone, p[rows], pi, ones, total / 4)
            mean = np.array([label[judged.system[rows] == s].mean() for s in range(truth.size)])
            effect = judge_effect(label - mean[judged.system[rows]], judge, rows)
            crossed = add_judge_effect(estimate, p[rows], pi, judge, np.arange(rows.size), effect)
            told += float(np.mean(crossed.telling)) / repeats
            for k, result in enumerate((estimate, crossed.estimate)):
                low, high = result.confidence_interval(LEVEL, method="t")
                exact = 0.25 + truth / 2
                held[k] += (low <= exact) & (exact <= high)
        rate = held / repeats
        yield [
            judged.name,
            judged.criterion,
            n_judges,
            float(rate[0].mean()),
            float(rate[1].mean()),
            float(rate[1].min()),
            float(rate[1].max()),
            told,
        ]


def power_tuned_means(judged, z, rows_of, ratings_of):
    """Return (m,) the means by power-tuned PPI with the metric of least leave-one-out error."""
    values, error = np.zeros((len(rows_of), z.shape[1])), np.zeros(z.shape[1])
    for s, (rows, y) in enumerate(zip(rows_of, ratings_of, strict=True)):
        for k in range(z.shape[1]):
            found = control_variate_mean(y, z[rows, k], z[judged.of(s), k], power_tune=True)
            values[s, k] = found.value
            error[k] += found.variance
    return values[:, np.argmin(error)]


def equal_allocation_rows(judged, repeats, rng):
    """Return a row for 20, 40 and 60 ratings of each system."""
    truth, p, z = true_means(judged), system_weights(judged), judged.standardised()
    for n in EQUAL:
        square, start = np.zeros(3), None
        for repeat in range(repeats):
            owns = map(judged.of, range(truth.size))
            rows_of = [np.sort(rng.choice(own, min(n, own.size), replace=False)) for own in owns]
            ratings_of = [judged.draw(rows, rng) for rows in rows_of]
            rows, y = np.concatenate(rows_of), np.concatenate(ratings_of)
            rating = np.full(judged.system.size, np.nan)
            rating[rows] = y
            fold = rng.integers(0, FOLDS, rating.size)
            start = fit_model(judged, rating, fold, start, search=repeat % SEARCHED == 0)
            size = np.bincount(judged.system)
            pi = np.repeat([own.size for own in rows_of] / size, [own.size for own in rows_of])
            ours = centred_difference_estimate(p[rows], pi, y, start.g[rows], start.g @ p).value
            plain = np.array([ratings.mean() for ratings in ratings_of])
            for k, value in enumerate(
                (plain, ours, power_tuned_means(judged, z, rows_of, ratings_of))
            ):
                square[k] += ((value - truth) ** 2).sum()
        ratio = square / square[0]
        yield [judged.name, judged.criterion, n, *ratio[1:].tolist(), float(ratio[1] / ratio[2])]


def decided_pairs(judged, rated, y, g, noise, rng):
    """Return which pairs of systems are decided, and in the right order,
    from inputs rated for all.
    """
    p, m = system_weights(judged), len(judged.systems)
    share = np.unique(judged.input[rated]).size / (judged.input.max() + 1)
    pi, known = np.full(rated.size, share), judged.input[rated]
    estimate = centred_difference_estimate(
        p[rated], pi, y, g[rated], g @ p, target=known, n_targets=judged.input.max() + 1
    )
    chance = np.full(judged.input.max() + 1, share)
    covariance = Design(chance).covariance(estimate.influence)
    covariance = covariance + np.diag(noise * (p[rated] ** 2).sum(axis=0) / share)
    n = max(np.unique(known).size - 1, 1)
    board = simultaneous_intervals(
        estimate.value,
        covariance,
        rng=rng,
        confidence_level=FAMILY,
        repeats=2000,
        degrees_of_freedom=n,
    )
    upper = np.triu_indices(m, 1)
    truth = true_means(judged)
    right = np.sign(board.difference) == np.sign(truth[:, None] - truth[None, :])
    return board.different[upper], right[upper]


def ranking_rows(judged, rng):
    """Return rows: pairs decided at each number of judgments, by people alone and with ours."""
    n_inputs = int(judged.input.max()) + 1
    steps = np.unique(np.linspace(max(8, n_inputs // STEPS), n_inputs, STEPS).astype(int))
    m, noise = len(judged.systems), rating_noise(judged)
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
            start = fit_model(judged, rating, fold, start)
            asked[at] += rated.size / ORDERS
            for k, g in enumerate((np.full(rating.size, 0.5), start.g)):
                apart, right = decided_pairs(judged, rated, ratings[rated], g, noise, rng)
                shares[k, at] += apart.mean() / ORDERS
                wrong[k] += bool((apart & ~right).any())
                if apart.all() and np.isnan(until[k, order]):
                    until[k, order] = rated.size
    for at in range(steps.size):
        yield [judged.name, judged.criterion, m, round(asked[at]), *shares[:, at].tolist()]
    for k, who in enumerate(("people", "ours")):
        reached = np.isfinite(until[k])
        median = float(np.median(until[k][reached])) if reached.any() else float("nan")
        print(
            f"  {judged.name} {judged.criterion}, {who}: all pairs decided in"
            f" {int(reached.sum())} of {ORDERS} orders, median {median:,.0f} judgments;"
            f" {wrong[k] / ORDERS / steps.size:.3f} of looks name a pair in the wrong order"
        )


def judgments_needed_rows(rows):
    """Return rows: the number of judgments that decide as many pairs as people alone do with all of
    theirs, for half of the pairs and all.
    """
    curves = {}
    for name, criterion, _, n, people, ours in rows:
        curves.setdefault((name, criterion), []).append((n, people, ours))
    for (name, criterion), curve in curves.items():
        n, people, ours = np.array(curve, dtype=np.float64).T
        for goal in (people[-2] / 2, people[-2]):
            if goal <= 0:
                continue
            counts = [_first_reaching(n, share, goal) for share in (people, ours)]
            yield [name, criterion, float(goal), *counts, counts[0] / counts[1]]


def _first_reaching(n, share, goal):
    """Return the number of judgments at which a share is reached, interpolated between two
    steps.
    """
    at = int(np.argmax(share >= goal)) if (share >= goal).any() else len(n) - 1
    if at == 0 or share[at] == share[at - 1]:
        return float(n[at])
    part = (goal - share[at - 1]) / (share[at] - share[at - 1])
    return float(n[at - 1] + min(part, 1.0) * (n[at] - n[at - 1]))


HEADERS = {
    "worth": ["set", "criterion", "system", "metric", "gamma", "rho", "r", "predicted", "measured"],
    "saved": [
        "set",
        "criterion",
        "systems",
        "n",
        "best metric",
        "best of the set",
        "best of each system",
        "model",
        "model, printed",
        "model/best",
        "width",
        "widest",
    ],
    "attainable": [
        "set",
        "criterion",
        "metric",
        "best metric",
        "all, linear",
        "all/best",
        "perfect",
    ],
    "covered": [
        "set",
        "criterion",
        "repeats",
        "people",
        "least",
        "most",
        "model",
        "least",
        "most",
        "largest bias in s.e.",
    ],
    "each": [
        "set",
        "criterion",
        "system",
        "sigma_a2",
        "people",
        "model",
        "model, own sigma_a2",
        "people, printed/error",
        "model, printed/error",
        "own, printed/error",
        "bias of the model",
    ],
    "judges": ["set", "criterion", "judges", "without", "with", "least", "most", "told"],
    "equal": ["set", "criterion", "ratings", "model/plain", "ppi/plain", "model/ppi"],
    "ranking": ["set", "criterion", "systems", "judgments", "decided by people", "decided by ours"],
    "needed": ["set", "criterion", "share of pairs", "people", "ours", "people/ours"],
}


def median_rows(rows):
    """Return the median over systems of each metric, for the five best of each criterion."""
    groups = {}
    for name, criterion, _, metric, *numbers in rows:
        groups.setdefault((name, criterion), {}).setdefault(metric, []).append(numbers)
    for (name, criterion), by_metric in groups.items():
        table = {
            metric: np.nanmedian(np.array(n, float), axis=0) for metric, n in by_metric.items()
        }
        for metric in sorted(table, key=lambda one: -table[one][-1])[:5]:
            yield [name, criterion, metric, *map(float, table[metric])]


PARTS = ("worth", "attainable", "judges", "sampled", "equal", "ranking")


def main() -> None:
    if not judged_texts.has_data():
        return
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    chosen = [name for name in sys.argv[2:] if name in judged_texts.SETS] or list(judged_texts.SETS)
    wanted = [name for name in sys.argv[2:] if name in PARTS] or PARTS
    parts = {name: [] for name in HEADERS}
    for name in chosen:
        for criterion in judged_texts.SETS[name]:
            # A generator a part: each can be done again by itself.
            first, second, third, fourth = (np.random.default_rng([SEED, k]) for k in range(4))
            judged = judged_texts.read_set(name, criterion)
            if "worth" in wanted:
                parts["worth"] += metric_worth_rows(judged, repeats, first)
            if "attainable" in wanted:
                parts["attainable"].append(attainable_savings(judged))
            if "judges" in wanted:
                parts["judges"] += judge_coverage_rows(judged, repeats, second)
            if "sampled" in wanted:
                saved, covered, by_system = saved_and_coverage_rows(judged, repeats, third)
                print("saved", *saved, "\ncovered", *covered, flush=True)
                parts["saved"].append(saved)
                parts["covered"].append(covered)
                parts["each"] += by_system
            if "equal" in wanted:
                parts["equal"] += equal_allocation_rows(
                    judged, repeats, np.random.default_rng([SEED, 4])
                )
            if "ranking" in wanted:
                parts["ranking"] += ranking_rows(judged, fourth)
            print(f"  {name} {criterion} done", flush=True)
    parts["needed"] = list(judgments_needed_rows(parts["ranking"]))
    suffix = "_".join(["", *sys.argv[2:]])
    if parts["worth"]:
        tables.write_csv(f"debiasing_worth{suffix}", HEADERS["worth"], parts["worth"])
        path = judged_texts.ROOT / "benchmarks" / "out" / f"debiasing_worth{suffix}.csv"
        print(f"\nworth of every system and metric: {path}; medians over systems, best five:\n")
        header = ["set", "criterion", *HEADERS["worth"][3:]]
        tables.print_and_write(
            f"debiasing_medians{suffix}", header, list(median_rows(_read_csv(path)))
        )
    for part, table in parts.items():
        if table and part != "worth":
            print(f"\n{part}\n")
            tables.print_and_write(f"debiasing_{part}{suffix}", HEADERS[part], table)


def _read_csv(path):
    with path.open(encoding="utf-8") as file:
        yield from list(csv.reader(file))[1:]


if __name__ == "__main__":
    main()
