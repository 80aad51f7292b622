"""How many questions until every system of a growing board is known to ± 3 points: the published rule against ours.

usage: python benchmarks/labels_needed.py [ORDERS]        (default: 100)

The 28 real runs arrive in random orders; each is asked about until its precision has the variance that ± 3 points at
80 % allow (a normal interval), with all labels of those before it reused. A question is about a *target*, a pair of
mentions.

published    independent draws, joint estimator, sizes by Chaganty 2018, A.1.4, at most 456 a run. With `bound` as
             printed, the term of the new draws is w² Σ p (p/q)² / n; without, it is a quarter of that, as the variance
             of a proportion is: the kinder reading. Counted in draws, in distinct instances and in distinct targets.
ours         thresholds raised by water-filling, first to four times the variance, then as far as the realised
             max(V, A) asks; the centred difference with g, or Hájek without.

`error` is the root mean square error at arrival over its target; coverage that of the 80 % intervals at arrival
(Wald for the published rule, the board's for ours). Stopping on the realised variance may bias: `bias` is the mean
error in units of the target, with its standard error over orders. In `matched`, the published rule's target variance is
scaled so that its realised error is that of ours.

KBPO_SHARED_DATA names the folder that holds redocred/ if it is not ../shared/data.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.stats import norm

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import redocred, tables
from estimators import horvitz_thompson, model, poisson
from estimators.features import Features, features

KINDS = ("instance", "entity_relation")
LEVEL, HALF_WIDTH = 0.8, 0.03
TARGET = (HALF_WIDTH / norm.ppf(0.5 + LEVEL / 2)) ** 2
CAP = 456
FIRST, FOLDS = 4.0, 5
SHOWN = (1, 3, 9, 18, 28)
SEED = 31
Z = norm.ppf(0.5 + LEVEL / 2)


@dataclass(frozen=True)
class World:
    """Every prediction that some run makes, one row each; the arrays are those of :class:`redocred.Pool`."""

    P: np.ndarray
    member: np.ndarray
    true: np.ndarray
    target: np.ndarray
    team: np.ndarray
    confidence: np.ndarray
    predicate: np.ndarray
    subject: np.ndarray
    object: np.ndarray

    @property
    def precision(self) -> np.ndarray:
        """The true precision of every run."""
        return self.true @ self.P

    @property
    def n_targets(self) -> int:
        """Targets of the pool."""
        return int(self.target.max()) + 1


@dataclass(frozen=True)
class Arrival:
    """What is known when a run's interval is narrow enough."""

    paid: int
    instances: int
    targets: int
    error: float
    variance: float
    covered: bool
    stages: int = 1


Path_ = list[Arrival]


def worlds() -> dict[str, World]:
    """Return the runs under each distribution."""
    pool = redocred.read(redocred.names())
    stated = slice(0, pool.n_stated)
    subject, object_ = entities(pool.keys[stated])
    one = World(
        P=pool.p["instance"][stated],
        member=pool.member[stated],
        true=pool.true[stated],
        target=np.unique(pool.target[stated], return_inverse=True)[1],
        team=np.unique(pool.teams, return_inverse=True)[1],
        confidence=pool.confidence[stated],
        predicate=pool.predicate[stated],
        subject=subject,
        object=object_,
    )
    return {kind: replace(one, P=pool.p[kind][stated]) for kind in KINDS}


def entities(keys: list[tuple[str, ...]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes of subject and object of each prediction, one code an entity of a document."""
    table = redocred.rows(redocred.DATA / "mentions.tsv.gz")
    entity = {(row[0], row[1], row[2]): (row[0], row[4]) for row in table}
    code: dict[tuple[str, str], int] = {}
    subject, object_ = (
        np.array([code.setdefault(entity[key[0], key[at], key[at + 1]], len(code)) for key in keys]) for at in (1, 4)
    )
    return subject, object_


def published(world: World, rng: np.random.Generator, *, share: float = 0.25, scale: float = 1.0) -> Path_:
    """Return the arrivals under the published rule, the new draws' term multiplied by `share`."""
    m = world.P.shape[1]
    overlap, counts = world.P.T @ world.P, np.zeros(m, dtype=np.int64)
    rows, system = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    path = []
    for i in rng.permutation(m):
        n = needed(world, overlap[i], counts, rows, system, int(i), share, scale)
        rows = np.concatenate([rows, draw(world.P[:, i], n, rng)])
        system = np.concatenate([system, np.full(n, i)])
        counts[i] = n
        value, variance = joint_precision(world, overlap[i] * counts, counts, rows, system, int(i))
        error = value - world.precision[i]
        path.append(Arrival(rows.size, np.unique(rows).size, np.unique(world.target[rows]).size, error, variance,
                            abs(error) <= Z * np.sqrt(variance)))  # fmt: skip
    return path


def joint_precision(
    world: World, pull: np.ndarray, counts: np.ndarray, rows: np.ndarray, system: np.ndarray, i: int
) -> tuple[float, float]:
    """Return value and variance of run i alone; :func:`estimators.joint.joint_precision` gives those of all runs."""
    weight = pull / pull.sum()
    scaled = weight / np.maximum(counts, 1)
    q = world.P[rows] @ weight
    terms = world.P[rows, i] * world.true[rows] / np.where(q > 0, q, 1.0)
    mean, square = (np.bincount(system, weights=power, minlength=counts.size) / np.maximum(counts, 1)
                    for power in (terms, terms**2))  # fmt: skip
    return float(scaled[system] @ terms), float(np.sum(weight * scaled * (square - mean**2)))


def draw(p: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return n rows drawn from p, with replacement."""
    cumulative = np.cumsum(p)
    return np.searchsorted(cumulative, rng.random(n) * cumulative[-1], side="right")


def needed(
    world: World, overlap: np.ndarray, counts: np.ndarray, rows: np.ndarray, system: np.ndarray, i: int,
    share: float, scale: float,
) -> int:  # fmt: skip
    """Return the fewest draws of run i with Σ_{j<i} (w_j²/n_j) V_j + share (w_i²/n_i) Σ p (p/q)² ≤ target."""
    own = np.flatnonzero(world.member[:, i])
    pull = overlap * counts
    old = pull / pull.sum() if pull.any() else pull.astype(float)
    ratio = (world.P[own] @ old) / world.P[own, i]
    mass, ratio = grouped(world.P[own, i], ratio)
    useful = rows[(world.P[rows, i] > 0) & (world.true[rows] > 0)]
    whose = system[(world.P[rows, i] > 0) & (world.true[rows] > 0)]
    old_ratio = (world.P[useful] @ old) / world.P[useful, i]
    n_old = np.maximum(counts, 1)

    def variance(n: int) -> float:
        weight = n * overlap[i] / (n * overlap[i] + pull.sum())
        h = 1 / (weight + (1 - weight) * old_ratio)
        mean, square = (np.bincount(whose, weights=power, minlength=counts.size) / n_old for power in (h, h * h))
        before = np.sum(((1 - weight) * old) ** 2 / n_old * np.maximum(square - mean**2, 0))
        reached = 1 / (weight + (1 - weight) * ratio)
        return float(before + weight**2 / n * share * np.sum(mass * reached**2))

    most = round(CAP / scale)
    if pull.any() and ratio.min() > 0:
        mean, square = (np.bincount(whose, weights=h, minlength=counts.size) / n_old
                        for h in (1 / old_ratio, 1 / old_ratio**2))  # fmt: skip
        if np.sum(old**2 / n_old * np.maximum(square - mean**2, 0)) <= TARGET * scale:
            return 0
    step = 8  # coarse, then every size of the step before: the variance need not fall everywhere
    coarse = next((n for n in range(step, most, step) if variance(n) <= TARGET * scale), most)
    return next((n for n in range(max(coarse - step, 1), coarse) if variance(n) <= TARGET * scale), coarse)


def grouped(mass: np.ndarray, ratio: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ratios to three digits of their logarithms, and the mass that has each."""
    rounded, place = np.unique(np.round(np.log(ratio + 1e-12), 3), return_inverse=True)
    return np.bincount(place, weights=mass), np.where(rounded < -20, 0.0, np.exp(rounded))


@dataclass
class Board:
    """The service's side: thresholds and uniforms of all targets, and the model so far."""

    world: World
    u: np.ndarray
    fold: np.ndarray
    pi: np.ndarray
    here: list[int]
    fitted: model.Model | None = None
    rows: np.ndarray | None = None
    found: Features | None = None
    rho: float = 1.0

    @property
    def asked(self) -> np.ndarray:
        """Whether each target is asked."""
        return self.u < self.pi

    def welcome(self, i: int) -> None:
        """Add a run, and make the features of the pool with it."""
        w = self.world
        self.here.append(i)
        self.rows = np.flatnonzero(w.member[:, self.here].any(axis=1))
        cells = np.ix_(self.rows, self.here)
        self.found = features(
            w.member[cells], target=w.target[self.rows], team=w.team[self.here], confidence=w.confidence[cells],
            predicate=w.predicate[self.rows], subject=w.subject[self.rows], object=w.object[self.rows],
        )  # fmt: skip

    def learn(self) -> np.ndarray:
        """Refit the model to all labels; return which of the pool's rows are labelled."""
        target = self.world.target[self.rows]
        labelled = self.asked[target]
        label = np.where(labelled, self.world.true[self.rows], np.nan)
        self.fitted = model.fit(self.found, label, self.fold[target], start=self.fitted)
        cells = np.ix_(self.rows[labelled], self.here)
        self.rho = model.correlation(
            label[labelled], self.fitted.g[labelled], target[labelled], self.world.member[cells]
        )
        return labelled


def ours(world: World, rng: np.random.Generator, *, with_g: bool, scale: float = 1.0) -> Path_:
    """Return the arrivals under our rule."""
    m, n = world.P.shape[1], world.n_targets
    order = rng.permutation(m)
    board = Board(world, rng.random(n), rng.integers(0, FOLDS, n), np.zeros(n), [])
    return [arrive(board, int(i), with_g, TARGET * scale) for i in order]


def arrive(board: Board, i: int, with_g: bool, wanted: float) -> Arrival:
    """Return run i's arrival: raise, ask, refit, until the realised variance will do."""
    world = board.world
    own = np.flatnonzero(world.member[:, i])
    p, names = world.P[own, i], world.target[own]
    target = np.unique(names, return_inverse=True)[1]
    g = None
    if with_g:
        board.welcome(i)
        if board.asked.any():
            board.learn()
            g = board.fitted.g[np.searchsorted(board.rows, own)]
    goal, stages = FIRST * wanted, 0
    while True:
        v = 0.25 if g is None else model.expected_error(p, g, target, correlation=board.rho)
        pi = poisson.water_fill(p, board.pi[names], v, target_variance=goal, target=target)
        board.pi[names] = pi
        stages += 1
        estimate, g = measure(board, own, p, pi, target, with_g)
        realised = max(estimate.variance, estimate.anticipated) if estimate.n else np.inf
        if realised <= wanted or (pi == 1).all():
            break
        if goal > wanted:
            goal = wanted
        else:
            v = 0.25 if g is None else model.expected_error(p, g, target, correlation=board.rho)
            goal = 0.995 * poisson.planned_variance(p, pi, v, target=target) * wanted / min(realised, 4 * wanted)
    low, high = estimate.confidence_interval(LEVEL, method="wilson")
    asked, truth = int(board.asked.sum()), world.precision[i]
    return Arrival(asked, asked, asked, estimate.value - truth, realised, low <= truth <= high, stages)


def measure(board: Board, own: np.ndarray, p: np.ndarray, pi: np.ndarray, target: np.ndarray, with_g: bool):
    """Return run's estimate, with the anticipated variance, from what is asked now, and g of its rows."""
    world = board.world
    asked = board.asked[world.target[own]]
    sample = (p[asked], pi[asked], world.true[own][asked])
    if not with_g:
        if not asked.any():
            return horvitz_thompson.centred(*sample, np.zeros(0), 0.0), None
        return horvitz_thompson.hajek(*sample, target=target[asked], n_targets=target.max() + 1), None
    labelled = board.learn()
    g = board.fitted.g[np.searchsorted(board.rows, own)]
    estimate = horvitz_thompson.centred(*sample, g[asked], p @ g, target=target[asked], n_targets=target.max() + 1)
    floor = horvitz_thompson.anticipated_variance(
        p, pi, g, world.true[board.rows][labelled], board.fitted.g[labelled], target=target,
        correlation=board.rho,
    )  # fmt: skip
    return replace(estimate, anticipated=floor), g


@dataclass(frozen=True)
class Summary:
    """Arrays (orders, runs) over the paths of one rule; errors in units of the target's."""

    paid: np.ndarray
    instances: np.ndarray
    targets: np.ndarray
    error: np.ndarray
    covered: np.ndarray
    stages: np.ndarray

    @property
    def loss(self) -> float:
        """The root mean square error at arrival over its target."""
        return float(np.sqrt(np.mean(self.error**2)))

    def at(self, name: str, k: int) -> float:
        """Return the mean cumulative count after k arrivals."""
        return float(getattr(self, name)[:, k - 1].mean())


def summarise(paths: list[Path_]) -> Summary:
    """Return the summary of some paths."""
    names = ("paid", "instances", "targets", "error", "covered", "stages")
    columns = [np.array([[getattr(one, name) for one in path] for path in paths], dtype=float) for name in names]
    columns[3] /= np.sqrt(TARGET)
    return Summary(*columns)


def walk(rule: Callable[[np.random.Generator], Path_], orders: int) -> Summary:
    """Return the summary of a rule over random orders, the same orders for every rule."""
    return summarise([rule(np.random.default_rng([SEED, order])) for order in range(orders)])


def matched(world: World, orders: int, wanted: float, first: Summary) -> tuple[float, Summary]:
    """Return the scale of the target variance, and the summary, of the published rule with the wanted error."""
    scale, found = 1.0, first
    for _ in range(4):
        if abs(found.loss / wanted - 1) <= 0.02:
            break
        scale *= (wanted / found.loss) ** 2
        found = walk(lambda rng, s=scale: published(world, rng, scale=s), orders)
    return scale, found


def rules(world: World) -> dict[str, Callable[[np.random.Generator], Path_]]:
    """Return the rules that are compared."""
    return {
        "published, bound": lambda rng: published(world, rng, share=1.0),
        "published": lambda rng: published(world, rng),
        "ours without g": lambda rng: ours(world, rng, with_g=False),
        "ours": lambda rng: ours(world, rng, with_g=True),
    }


def report(found: dict[str, dict[str, Summary]], scales: dict[str, float]) -> None:
    """Print the tables and write them as CSV: by rule, and by rule and number of runs."""
    orders = len(next(iter(found.values()))["ours"].paid)
    print(f"Questions until ± {100 * HALF_WIDTH:.0f} points at {LEVEL:.0%}, cumulative; {orders} random orders\n")
    tables.show("labels_needed", [
        "distribution", "rule", "runs", "draws", "distinct", "targets", "draws / ours", "targets / ours",
    ], [row for kind, some in found.items() for row in counts(kind, some)])  # fmt: skip
    print()
    tables.show("labels_needed_error", [
        "distribution", "rule", "error", "coverage", "bias", "± s.e.", "stages",
    ], [[kind, name, *quality(one)] for kind, some in found.items() for name, one in some.items()])  # fmt: skip
    tables.write("labels_needed_curve", [
        "distribution", "rule", "runs", "draws", "distinct", "targets", "error", "coverage", "bias",
    ], [row for kind, some in found.items() for row in curve(kind, some)])  # fmt: skip
    for kind, scale in scales.items():
        print(f"{kind}: `matched` is the published rule with {scale:.2f} × the target variance")


def counts(kind: str, some: dict[str, Summary]) -> list[list[object]]:
    """Return a row for each rule and number of arrivals shown."""
    return [
        [kind, name, k, *(round(one.at(unit, k)) for unit in ("paid", "instances", "targets")),
         one.at("paid", k) / some["ours"].at("targets", k), one.at("targets", k) / some["ours"].at("targets", k)]
        for name, one in some.items() for k in SHOWN
    ]  # fmt: skip


def quality(one: Summary) -> list[object]:
    """Return error, coverage, bias with its standard error over orders, and the mean number of stages."""
    each = one.error.mean(axis=1)
    return [one.loss, float(one.covered.mean()), float(each.mean()), float(each.std(ddof=1) / np.sqrt(each.size)),
            float(one.stages.mean())]  # fmt: skip


def curve(kind: str, some: dict[str, Summary]) -> list[list[object]]:
    """Return a row for each rule and arrival."""
    return [
        [kind, name, k + 1, *(one.at(unit, k + 1) for unit in ("paid", "instances", "targets")),
         float(np.sqrt(np.mean(one.error[:, k] ** 2))), float(one.covered[:, k].mean()), float(one.error[:, k].mean())]
        for name, one in some.items() for k in range(one.paid.shape[1])
    ]  # fmt: skip


def main(orders: int) -> None:
    """Replay all rules and report."""
    if not redocred.available():
        return
    started = time.perf_counter()
    found, scales = {}, {}
    for kind, world in worlds().items():
        found[kind] = {name: walk(rule, orders) for name, rule in rules(world).items()}
        scales[kind], found[kind]["matched"] = matched(
            world, orders, found[kind]["ours"].loss, found[kind]["published"]
        )
    report(found, scales)
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
