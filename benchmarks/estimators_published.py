"""Measures the published estimators on 28 real runs with known truth: bias, width, coverage, and
labels paid.

usage: python benchmarks/estimators_published.py [REPEATS] [ORDERS] (default: 500 100)

Bias (Chaganty 2018, section 3.7.1): in each repeat half of the teams are pooled and the others
evaluated, with 150 labels a run and 150 true instances. `pooled` counts what the pooled teams did
not find as wrong, and takes their true instances for all there are; `simple` and `joint` take draws
of every run. Width is that of the 90 % interval value ± z √V; coverage is how often it holds the
truth.

Labels (section 3.7.2): the runs arrive in random orders, and each is drawn from until the planned
variance of its joint precision (appendix A.1.4) is that of 500 labels; never more than 500. What
that is depends on the bound for new draws: under the published one 500 labels of a run alone have
1/500, under the sharp one at most 0.25/500. The published bound with the target 0.25/500 is here
too. √k: 500 times the root of the number of runs. Half-widths (in points) and coverage are those of
the arriving run at 80 %, over all arrivals so far; `met` is the share within 2.92 points.

KBPO_SHARED_DATA names the folder that holds redocred/ if it is not ../shared/data.
"""

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from scipy.stats import norm

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import redocred, tables
from estimators import bootstrap, distributions, joint, mixture, sample_size
from estimators.estimate import Estimate

KINDS = ("instance", "entity_relation")
ESTIMATORS = ("pooled", "simple", "joint")
LABELS, TRUTHS, LEVEL = 150, 150, 0.9
CAP = 500
RULES = {
    "published, 1/500": ("second_moment", 1 / CAP),
    "published, 0.25/500": ("second_moment", 0.25 / CAP),
    "sharp, 0.25/500": ("largest_variance", 0.25 / CAP),
}
ARRIVALS = (1, 3, 9, 18, 28)
# at most: a resample of 28 runs' draws a thousand times takes longer than all else of a repeat
BOOTSTRAPPED = 300


@dataclass(frozen=True)
class Population:
    """The runs under one sampling distribution: probabilities P and membership (N, m), truth (N,),
    the overlaps Σ p_i p_j, and the rows of the gold standard.

    `gold` holds, for every true instance, its row among the N, or −1 where no run predicts it.
    """

    P: np.ndarray
    member: np.ndarray
    true: np.ndarray
    overlap: np.ndarray
    cumulative: np.ndarray
    gold: np.ndarray
    team: np.ndarray

    @property
    def precision(self) -> np.ndarray:
        """Return the true precision of every run."""
        return self.true @ self.P

    @property
    def recall(self) -> np.ndarray:
        """Return the true (instance) recall of every run."""
        return (self.true @ self.member) / self.gold.size

    def draw(self, i: int, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return n instances drawn from run i's distribution, with replacement."""
        column = self.cumulative[:, i]
        return np.searchsorted(column, rng.random(n) * column[-1], side="right")


def load_populations() -> dict[str, Population]:
    """Return the runs under each distribution."""
    pool = redocred.read_systems(redocred.system_names())
    predicted = slice(0, pool.n_predicted)
    true = pool.true[predicted]
    gold = np.concatenate([np.flatnonzero(true), np.full(int(pool.true.sum() - true.sum()), -1)])
    team = np.unique(pool.teams, return_inverse=True)[1]
    found = {}
    for kind in KINDS:
        P = pool.p[kind][predicted]
        overlap = distributions.pairwise_overlap(P)
        found[kind] = Population(
            P, pool.member[predicted], true, overlap, np.cumsum(P, axis=0), gold, team
        )
    return found


def bias_rows(population: Population, repeats: int, rng: np.random.Generator) -> list[list[object]]:
    """Return a row for each quantity and estimator."""
    m = population.P.shape[1]
    errors = {
        key: np.full((repeats, m), np.nan) for key in product(("precision", "recall"), ESTIMATORS)
    }
    widths = {key: np.full((repeats, m), np.nan) for key in errors}
    hits = {key: np.full((repeats, m), np.nan) for key in errors}
    n_teams = population.team.max() + 1
    for repeat in range(repeats):
        pooled = np.isin(population.team, rng.permutation(n_teams)[: n_teams // 2])
        for (quantity, name), estimate in estimates_from_sample(population, pooled, rng).items():
            truth = getattr(population, quantity)
            low, high = estimate.confidence_interval(LEVEL)
            for table, value in (
                (errors, estimate.value - truth),
                (widths, high - low),
                (hits, (low <= truth) & (truth <= high)),
            ):
                table[quantity, name][repeat, ~pooled] = value[~pooled]
    return [
        [
            quantity,
            name,
            *bias_figures(errors[quantity, name]),
            np.nanmean(widths[quantity, name]),
            np.nanmean(hits[quantity, name]),
        ]
        for quantity, name in errors
    ]


def bias_figures(errors: np.ndarray) -> list[float]:
    """Return mean error and its standard error, the largest of a run's biases, and the root mean
    square error.
    """
    by_run = np.nanmean(
        errors[:, ~np.isnan(errors).all(axis=0)], axis=0
    )  # with few repeats some were always pooled
    by_repeat = np.nanmean(errors, axis=1)
    return [
        np.nanmean(errors),
        by_repeat.std(ddof=1) / np.sqrt(by_repeat.size),
        np.abs(by_run).max(),
        np.sqrt(np.nanmean(errors**2)),
    ]


def estimates_from_sample(
    population: Population, pooled: np.ndarray, rng: np.random.Generator
) -> Mapping[tuple[str, str], Estimate]:
    """Return the Estimate of every quantity and estimator from one sample."""
    rows, system = draw_all_runs(population, rng)
    m = pooled.size
    label, P = population.true[rows], population.P[rows]
    in_pool = population.member[:, pooled].any(axis=1)
    truths = rng.choice(population.gold, TRUTHS)
    pool_truths = rng.choice(np.flatnonzero(population.true * in_pool), TRUTHS)
    return {
        ("precision", "pooled"): joint.simple_precision(label * in_pool[rows], system, m),
        ("precision", "simple"): joint.simple_precision(label, system, m),
        ("precision", "joint"): joint.joint_precision(P, system, label, population.overlap),
        ("recall", "pooled"): found_shares(population.member[pool_truths]),
        ("recall", "simple"): found_shares(population.member[truths] & (truths >= 0)[:, None]),
        ("recall", "joint"): joint.joint_recall(
            P, system, label, None, population.member[rows], truths >= 0
        ),
    }


def draw_all_runs(
    population: Population, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return LABELS draws of every run, and the run of each draw."""
    m = population.P.shape[1]
    return np.concatenate([population.draw(i, LABELS, rng) for i in range(m)]), np.repeat(
        np.arange(m), LABELS
    )


def found_shares(found: np.ndarray) -> Estimate:
    """Return the share of the rows that each column predicts, as an Estimate."""
    n, m = found.shape
    return joint.simple_precision(found.T.ravel().astype(float), np.repeat(np.arange(m), n), m)


def bootstrap_widths(
    population: Population, repeats: int, rng: np.random.Generator
) -> list[list[object]]:
    """Return mean widths of normal and of basic bootstrap intervals, and the coverage of the
    latter.
    """
    figures = []
    for _ in range(repeats):
        rows, system = draw_all_runs(population, rng)
        arguments = (population.P[rows], system, population.true[rows], population.overlap)
        terms = joint.joint_terms(*arguments)
        resampled = bootstrap.bootstrap(
            lambda w, t=terms: w @ t, rows.size, rng=rng, stratum=system, n_resamples=1000
        )
        low, high = joint.joint_precision(*arguments).confidence_interval(LEVEL)
        first, last = resampled.confidence_interval(LEVEL)
        hit = (first <= population.precision) & (population.precision <= last)
        figures.append([np.mean(high - low), np.mean(last - first), np.mean(hit)])
    return [["joint precision", repeats, *(float(x) for x in np.mean(figures, axis=0))]]


@dataclass(frozen=True)
class Arrivals:
    """The state after each arrival in one random order of the runs: draws and distinct instances so
    far, the newest run's half-width at 80 %, and whether that interval contains its precision.
    """

    paid: list[int]
    distinct: list[int]
    half_width: list[float]
    hit: list[bool]


def simulate_arrivals(
    population: Population, own_term: str, target: float, rng: np.random.Generator
) -> Arrivals:
    """Return the arrivals of one random order of the runs."""
    order = rng.permutation(population.P.shape[1])
    rows, system = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    path = Arrivals([], [], [], [])
    for k, run in enumerate(order):
        here = order[: k + 1]
        overlap = population.overlap[np.ix_(here, here)]
        n = sample_size.required_samples(
            population.P[np.ix_(population.member[:, run], here)],
            population.P[np.ix_(rows, here)],
            system,
            population.true[rows],
            overlap,
            target_variance=target,
            bounds=(0, CAP),
            own_term=own_term,
        )
        rows = np.concatenate([rows, population.draw(run, n, rng)])
        system = np.concatenate([system, np.full(n, k)])
        path.paid.append(rows.size)
        path.distinct.append(np.unique(rows).size)
        value, variance = joint_precision_of_newcomer(
            population.P[np.ix_(rows, here)], system, population.true[rows], overlap
        )
        path.half_width.append(norm.ppf(0.9) * np.sqrt(variance))
        path.hit.append(abs(value - population.precision[run]) <= path.half_width[-1])
    return path


def joint_precision_of_newcomer(
    P: np.ndarray, system: np.ndarray, label: np.ndarray, overlap: np.ndarray
) -> tuple[float, float]:
    """Return the joint precision of the last system alone, and its variance: `joint_precision`
    without the other systems.
    """
    draws = mixture.check_draws(P, system, label, overlap)
    everything = np.ones(label.size, dtype=bool)
    inverse = draws.inverse_proposal(P.shape[1] - 1, everything, "heuristic")
    terms = inverse * P[:, -1] * label
    return float(terms.sum()), float((draws.centred(terms, inverse > 0) ** 2).sum())


def labels_rows(
    population: Population, orders: int, rng: np.random.Generator
) -> list[list[object]]:
    """Return a row for each rule and number of arrivals."""
    table: list[list[object]] = []
    for name, (own_term, target) in RULES.items():
        paths = [simulate_arrivals(population, own_term, target, rng) for _ in range(orders)]
        paid, distinct, width, hit = (
            np.array([getattr(path, field) for path in paths])
            for field in ("paid", "distinct", "half_width", "hit")
        )
        for k in ARRIVALS:
            met = width[:, :k] <= 1.02 * sample_size.half_width_of_proportion(CAP, 0.8)
            table.append(
                [
                    name,
                    k,
                    round(paid[:, k - 1].mean()),
                    *(round(q) for q in np.quantile(paid[:, k - 1], [0.1, 0.9])),
                    round(distinct[:, k - 1].mean()),
                    CAP * k,
                    round(CAP * np.sqrt(k)),
                    100 * width[:, :k].mean(),
                    met.mean(),
                    hit[:, :k].mean(),
                ]
            )
    return table


def main(repeats: int, orders: int) -> None:
    """Print the three tables and write them as CSV."""
    if not redocred.has_data():
        return
    started = time.perf_counter()
    rng = np.random.default_rng(2018)
    biases, intervals, paths = [], [], []
    for kind, population in load_populations().items():
        biases += [[kind, *row] for row in bias_rows(population, repeats, rng)]
        intervals += [
            [kind, *row] for row in bootstrap_widths(population, min(repeats, BOOTSTRAPPED), rng)
        ]
        paths += [[kind, *row] for row in labels_rows(population, orders, rng)]
    print(
        f"Bias of {LABELS} labels a run and {TRUTHS} truths, half of the teams pooled; {repeats}"
        " repeats\n"
    )
    tables.print_and_write(
        "estimators_published_bias",
        [
            "distribution",
            "quantity",
            "estimator",
            "mean error",
            "± s.e.",
            "largest bias",
            "rms error",
            "width 90 %",
            "coverage",
        ],
        biases,
    )
    print("\nWidths at 90 % of two intervals\n")
    tables.print_and_write(
        "estimators_published_intervals",
        [
            "distribution",
            "estimator",
            "repeats",
            "normal",
            "basic bootstrap",
            "its coverage",
        ],
        intervals,
    )
    print(
        f"\nLabels until the variance of {CAP} labels, cumulative; {orders} random orders of the"
        " runs\n"
    )
    tables.print_and_write(
        "estimators_published_labels",
        [
            "distribution",
            "bound, target",
            "runs",
            "draws",
            "10 %",
            "90 %",
            "distinct",
            "500 each",
            "500 √k",
            "half-width",
            "met",
            "coverage",
        ],
        paths,
    )
    print(f"\n{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:3]]
    main(*given, *(500, 100)[len(given) :])
