"""How much less variance each estimator of precision has than the simple one, on the same
independent draws.

usage: python benchmarks/estimators_efficiency.py [REPEATS]        (default: 300)

Each repeat draws n instances of every run, with replacement. `efficiency` is the variance of the
simple estimator, π (1 − π)/n, over the mean squared error: the mean over runs, and the least of a
run. `worse` is the greatest number of standard errors by which a run's mean squared error is above
that variance: among 28 runs 2 to 3 is chance. `bias` is the mean error over runs with its standard
error, in points; then the coverage of nominal 80 % and 95 % intervals (Wald for joint; Wilson for
simple; the board's for the others).

The model is told of the runs what the service's is told of its submissions. A useless g has the
features of another row, taken at random: it must do no harm. A model learns from at most 1,000
labels, to be done in time; all labels enter the estimates.

KBPO_SHARED_DATA names the folder that holds redocred/ if it is not ../shared/data.
"""

import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import redocred, tables
from benchmarks.arrivals import World, worlds
from benchmarks.our_rule import claims
from estimators import distributions, horvitz_thompson, joint, model
from estimators.estimate import Estimate
from estimators.features import Features

RUNS, DRAWS = (10, 28), (150, 500)
LEVELS = (0.8, 0.95)
FOLDS, LEARNT = 5, 1000
NOTHING = np.zeros(0)
ESTIMATORS = (
    "simple",
    "joint",
    "Hájek",
    "difference",
    "centred",
    "difference, useless g",
    "centred, useless g",
)


@dataclass(frozen=True)
class Setting:
    """Some runs, with what does not change from repeat to repeat; ``expanded`` holds p/π."""

    world: World
    weights: sparse.csr_array
    expanded: sparse.csr_array
    pi: np.ndarray
    target_pi: np.ndarray
    overlap: np.ndarray
    cumulative: np.ndarray
    features: Features
    shuffled: Features
    n: int


@dataclass(frozen=True)
class Sample:
    """Rows drawn, n of each run after the other, and all rows whose target is labelled."""

    draws: np.ndarray
    rows: np.ndarray


def setting(world: World, m: int, n: int, rng: np.random.Generator) -> Setting:
    """Return m of the runs, evenly spread, with n draws each."""
    chosen = np.linspace(0, world.P.shape[1] - 1, m).round().astype(int)
    rows = np.flatnonzero(world.member[:, chosen].any(axis=1))
    cells = np.ix_(rows, chosen)
    found = claims(world, rows, chosen.tolist()).features()
    part = replace(
        world,
        P=world.P[cells],
        member=world.member[cells],
        true=world.true[rows],
        team=world.team[chosen],
        confidence=world.confidence[cells],
        predicate=world.predicate[rows],
        types=world.types[rows],
        subject=world.subject[rows],
        object=world.object[rows],
        target=np.unique(world.target[rows], return_inverse=True)[1],
    )
    pi = horvitz_thompson.inclusion_iid(part.P, np.full(m, n), target=part.target)
    shuffled = replace(found, matrix=sparse.csr_array(found.matrix[rng.permutation(rows.size)]))
    weights = sparse.csr_array(part.P)
    by_target = np.ones(part.n_targets)
    by_target[part.target] = pi
    return Setting(
        part,
        weights,
        sparse.csr_array(weights.multiply(1 / pi[:, None])),
        pi,
        by_target,
        distributions.overlap(part.P),
        np.cumsum(part.P, axis=0),
        found,
        shuffled,
        n,
    )


def estimates(here: Setting, rng: np.random.Generator) -> tuple[dict[str, Estimate], Sample]:
    """Return every estimator's Estimate from one sample (without influences), and the sample."""
    world, m = here.world, here.world.P.shape[1]
    draws = np.concatenate(
        [
            np.searchsorted(column, rng.random(here.n) * column[-1], side="right")
            for column in here.cumulative.T
        ]
    )
    hit = np.zeros(world.n_targets, dtype=bool)
    hit[world.target[draws]] = True
    sample = Sample(draws, np.flatnonzero(hit[world.target]))
    own = world.true[draws].reshape(m, here.n).mean(axis=1)
    found = {
        "simple": Estimate(own, own * (1 - own) / (here.n - 1), np.full(m, here.n), NOTHING),
        "joint": joint_precision(here, draws),
        "Hájek": weighted(here, sample, np.zeros(world.true.size), centre=True),
    }
    fold = rng.integers(0, FOLDS, world.n_targets)[world.target]
    for name, known in (("", here.features), (", useless g", here.shuffled)):
        g, rho = learnt(world, known, sample.rows, fold, rng)
        floor = horvitz_thompson.anticipated_variance(
            here.weights,
            here.pi,
            g,
            world.true[sample.rows],
            g[sample.rows],
            target=world.target,
            correlation=rho,
        )
        for function, centre in (("difference", False), ("centred", True)):
            found[function + name] = replace(
                weighted(here, sample, g, centre=centre), anticipated=floor
            )
    return found, sample


def joint_precision(here: Setting, draws: np.ndarray) -> Estimate:
    """Return what :func:`estimators.joint.joint_precision` returns, for as many draws of every
    run.
    """
    m = here.world.P.shape[1]
    W = joint.mixture_weights(here.overlap, np.full(m, here.n))
    P = here.world.P[draws]
    terms = (
        np.repeat(W.T / here.n, here.n, axis=0)
        * P
        * here.world.true[draws][:, None]
        / (P @ W.T + 1e-300)
    )
    by_run = terms.reshape(m, here.n, m)
    return Estimate(
        terms.sum(axis=0),
        here.n * by_run.var(axis=1, ddof=1).sum(axis=0),
        np.full(m, here.n),
        NOTHING,
    )


def weighted(here: Setting, sample: Sample, g: np.ndarray, *, centre: bool) -> Estimate:
    """Return the difference estimate, or the centred one, with sparse weights; with g = 0 centred
    is Hájek's.
    """
    world, rows = here.world, sample.rows
    target, code = np.unique(world.target[rows], return_inverse=True)
    chooser = sparse.csr_array((np.ones(rows.size), (code, np.arange(rows.size))))
    a = here.expanded[rows]
    residual = sparse.csr_array(chooser @ a.multiply((world.true - g)[rows, None]).tocsr())
    weight = sparse.csr_array(chooser @ a)
    above, below = np.asarray(residual.sum(axis=0)), np.asarray(weight.sum(axis=0))
    mu = above / below if centre else np.zeros(below.size)
    left = 1 - here.target_pi[target]
    pairs = ((residual, residual), (residual, weight), (weight, weight))
    squares = [left @ one.multiply(other) for one, other in pairs]
    variance = np.maximum(squares[0] - 2 * mu * squares[1] + mu**2 * squares[2], 0)
    model_says = g @ here.weights
    n = np.diff(weight.tocsc().indptr)
    floor = (
        squares[2] * (smooth := (mu * n + 0.5) / (n + 1)) * (1 - smooth)
        if centre and not g.any()
        else 0.0
    )
    return Estimate(
        model_says + (mu if centre else above),
        variance,
        n,
        NOTHING,
        anticipated=floor,
        total_g=model_says,
    )


def check(here: Setting, rng: np.random.Generator) -> None:
    """Raise AssertionError unless the quick formulas above agree with the package on one sample."""
    found, sample = estimates(here, rng)
    world, m = here.world, here.world.P.shape[1]
    rows, system = sample.rows, np.repeat(np.arange(m), here.n)
    target = np.unique(world.target[rows], return_inverse=True)[1]
    part = (world.P[rows], here.pi[rows], world.true[rows])
    drawn = (world.P[sample.draws], system, world.true[sample.draws])
    half = np.full(world.true.size, 0.5)
    pairs = [
        (found["simple"], joint.simple_precision(world.true[sample.draws], system, m, ddof=1)),
        (found["joint"], joint.joint_precision(*drawn, here.overlap, ddof=1)),
        (found["Hájek"], horvitz_thompson.hajek(*part, target=target)),
        (
            weighted(here, sample, half, centre=False),
            horvitz_thompson.difference(*part, 0.5, half @ world.P, target=target),
        ),
        (
            weighted(here, sample, half, centre=True),
            horvitz_thompson.centred(*part, 0.5, half @ world.P, target=target),
        ),
    ]
    for quick, exact in pairs:
        for name in ("value", "variance", "anticipated", "total_g"):
            np.testing.assert_allclose(
                getattr(quick, name), getattr(exact, name), rtol=1e-8, atol=1e-12, err_msg=name
            )


def learnt(
    world: World, known: Features, rows: np.ndarray, fold: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, float]:
    """Return g from some of the labels, and the correlation of its errors."""
    some = rows if rows.size <= LEARNT else rng.choice(rows, LEARNT, replace=False)
    label = np.full(world.true.size, np.nan)
    label[some] = world.true[some]
    g = model.fit(known, label, fold).g
    return g, model.correlation(world.true[rows], g[rows], world.target[rows], world.member[rows])


def measure(here: Setting, repeats: int, rng: np.random.Generator) -> list[list[object]]:
    """Return a row for each estimator."""
    check(here, rng)
    truth = here.world.precision
    simple = truth * (1 - truth) / here.n
    errors: dict[str, list[np.ndarray]] = {name: [] for name in ESTIMATORS}
    hits: dict[str, list[list[np.ndarray]]] = {name: [] for name in ESTIMATORS}
    for _ in range(repeats):
        for name, estimate in estimates(here, rng)[0].items():
            errors[name].append(estimate.value - truth)
            method = "wald" if name == "joint" else "wilson"
            ends = [estimate.confidence_interval(level, method=method) for level in LEVELS]
            hits[name].append([(low <= truth) & (truth <= high) for low, high in ends])
    return [
        [name, *figures(np.array(errors[name]), simple), *np.mean(hits[name], axis=(0, 2))]
        for name in ESTIMATORS
    ]


def figures(errors: np.ndarray, simple: np.ndarray) -> list[float]:
    """Return mean and least efficiency, the worst run's excess over simple in standard errors, bias
    and its error.
    """
    squares = errors**2
    loss, spread = squares.mean(axis=0), squares.std(axis=0, ddof=1) / np.sqrt(len(errors))
    efficiency = simple / loss
    by_repeat = 100 * errors.mean(axis=1)
    return [
        float(efficiency.mean()),
        float(efficiency.min()),
        float(((loss - simple) / spread).max()),
        float(by_repeat.mean()),
        float(by_repeat.std(ddof=1) / np.sqrt(len(errors))),
    ]


def main(repeats: int) -> None:
    """Print the table and write it as CSV."""
    if not redocred.available():
        return
    started = time.perf_counter()
    rng = np.random.default_rng(2019)
    table = [
        [kind, m, n, *row]
        for kind, world in worlds().items()
        for m in RUNS
        for n in DRAWS
        for row in measure(setting(world, m, n, rng), repeats, rng)
    ]
    print(f"Efficiency over the simple estimator; {repeats} repeats\n")
    tables.show(
        "estimators_efficiency",
        [
            "distribution",
            "runs",
            "draws each",
            "estimator",
            "efficiency",
            "least",
            "worse (s.e.)",
            "bias (points)",
            "± s.e.",
            "80 %",
            "95 %",
        ],
        table,
    )
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
