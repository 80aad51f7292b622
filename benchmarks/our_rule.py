"""Our rule for how much to ask about a new run: thresholds are raised by water-filling until the
variance that the model expects is small enough.
"""

from dataclasses import dataclass, replace

import numpy as np

from benchmarks.arrivals import LEVEL, TARGET, Arrival, Path, World
from estimators import horvitz_thompson, model, poisson
from estimators.estimate import Estimate
from estimators.features import Claims, Features

FIRST, FOLDS = 4.0, 5


@dataclass
class Board:
    """The service's state: thresholds and random numbers of all targets, and the current model."""

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
        """Return whether each target was asked about."""
        return self.u < self.pi

    def add_run(self, i: int) -> None:
        """Add a run, and compute the features of the pool with it."""
        self.here.append(i)
        self.rows = np.flatnonzero(self.world.member[:, self.here].any(axis=1))
        self.found = claims_of_rows(self.world, self.rows, self.here).features()

    def learn(self) -> np.ndarray:
        """Refit the model to all labels; return which of the pool's rows are labelled."""
        target = self.world.target[self.rows]
        labelled = self.asked[target]
        label = np.where(labelled, self.world.true[self.rows], np.nan)
        self.fitted = model.fit_ridge_logistic(
            self.found, label, self.fold[target], start=self.fitted
        )
        cells = np.ix_(self.rows[labelled], self.here)
        self.rho = model.error_correlation(
            label[labelled], self.fitted.g[labelled], target[labelled], self.world.member[cells]
        )
        return labelled


def claims_of_rows(world: World, rows: np.ndarray, here: list[int]) -> Claims:
    """Return the inputs of the model for some rows and runs."""
    cells = np.ix_(rows, here)
    return Claims(
        membership=world.member[cells],
        target=world.target[rows],
        team=world.team[here],
        confidence=world.confidence[cells],
        predicate=world.predicate[rows],
        types=world.types[rows],
        subject=world.subject[rows],
        object=world.object[rows],
        scores=None if world.scores is None else world.scores[rows],
    )


@dataclass
class Run:
    """The questions about a run that has arrived: its rows, and its results so far."""

    i: int
    own: np.ndarray
    """Rows of the world"""
    p: np.ndarray
    names: np.ndarray
    """Targets of the world, one for each row"""
    target: np.ndarray
    """The same targets, numbered from 0"""
    goal: float
    g: np.ndarray | None = None
    estimate: Estimate | None = None
    stages: int = 0

    @classmethod
    def of(cls, world: World, i: int, goal: float) -> "Run":
        own = np.flatnonzero(world.member[:, i])
        names = world.target[own]
        target = np.unique(names, return_inverse=True)[1]
        return cls(i, own, world.P[own, i], names, target, goal)


def replay_our_rule(
    world: World,
    rng: np.random.Generator,
    *,
    with_g: bool,
    scale: float = 1.0,
    at_once: int = 1,
    until: str = "anticipated",
) -> Path:
    """Return the arrivals under our rule, planned in groups of `at_once`. `until` names the
    variance that must be small enough: the anticipated one, or the larger of it and the realised
    one.
    """
    m, n = world.P.shape[1], world.n_targets
    order = rng.permutation(m)
    board = Board(world, rng.random(n), rng.integers(0, FOLDS, n), np.zeros(n), [])
    return [
        arrival
        for first in range(0, m, at_once)
        for arrival in simulate_arrivals(
            board, order[first : first + at_once].tolist(), with_g, TARGET * scale, until
        )
    ]


def simulate_arrivals(
    board: Board, group: list[int], with_g: bool, wanted: float, until: str
) -> list[Arrival]:
    """Return the arrivals of runs that wait at the same time: raise, ask and refit until the
    variance of each is small enough.
    """
    world = board.world
    waiting = [Run.of(world, i, FIRST * wanted) for i in group]
    found: dict[int, Arrival] = {}
    if with_g:
        for run in waiting:
            board.add_run(run.i)
        if board.asked.any():
            board.learn()
            for run in waiting:
                run.g = board.fitted.g[np.searchsorted(board.rows, run.own)]
    while waiting:
        raise_thresholds_together(board, waiting)
        for run in waiting:
            run.stages += 1
            run.estimate, run.g = measure_run(board, run, with_g)
        still = []
        for run in waiting:
            estimate, pi = run.estimate, board.pi[run.names]
            variance, anticipated = (
                (estimate.variance, estimate.anticipated) if estimate.n else (np.inf, np.inf)
            )
            reached = anticipated if until == "anticipated" else max(variance, anticipated)
            if reached <= wanted or (pi == 1).all():
                found[run.i] = summarise_arrival(board, run)
                continue
            v = expected_squared_error(board, run)
            planned = poisson.planned_variance(run.p, pi, v, target=run.target)
            run.goal = poisson.next_planned_variance(planned, anticipated, target_variance=wanted)
            if until != "anticipated" and run.stages > 1:  # half of what is missing: part is luck
                run.goal = 0.995 * planned / np.sqrt(np.clip(reached / wanted, 1.0, FIRST))
            still.append(run)
        waiting = still
    asked = int(board.asked.sum())
    return [replace(found[i], paid=asked, instances=asked, targets=asked) for i in group]


def raise_thresholds_together(board: Board, waiting: list[Run]) -> None:
    """Raise thresholds as the runs plan them, by one water-filling for all of them."""
    world = board.world
    sizes = np.zeros((len(waiting), world.n_targets))
    alone = np.zeros(len(waiting))
    for at, run in enumerate(waiting):
        v, pi = expected_squared_error(board, run), board.pi[run.names]
        spread = run.p**2 * np.broadcast_to(v, run.p.shape)
        sizes[at] = np.bincount(run.names, weights=spread, minlength=world.n_targets)
        alone[at] = poisson.water_fill_multiplier(
            run.p, pi, v, target_variance=run.goal, target=run.target
        )

    def raised(multipliers: np.ndarray) -> np.ndarray:
        return np.maximum(board.pi, np.minimum(1.0, np.sqrt(multipliers**2 @ sizes)))

    def variances(multipliers: np.ndarray) -> np.ndarray:
        pi = raised(multipliers)
        return sizes @ np.divide(1 - pi, pi, out=np.zeros(pi.size), where=pi > 0)

    if len(waiting) > 1:
        goals = [run.goal for run in waiting]
        alone = poisson.joint_multipliers(variances, goals, alone, sizes.sum(axis=1))
    board.pi = raised(alone)


def summarise_arrival(board: Board, run: Run) -> Arrival:
    """Return the results of a run, with counts of 0 for now."""
    world, estimate = board.world, run.estimate
    low, high = estimate.confidence_interval(LEVEL, method="wilson")
    truth = world.precision[run.i]
    g = np.zeros(run.own.size) if run.g is None else run.g
    pi = board.pi[run.names]
    return Arrival(
        0,
        0,
        0,
        estimate.value - truth,
        max(estimate.variance, estimate.anticipated),
        low <= truth <= high,
        run.stages,
        exact_variance(run.p, pi, world.true[run.own], g, run.target),
    )


def exact_variance(
    p: np.ndarray, pi: np.ndarray, true: np.ndarray, g: np.ndarray, target: np.ndarray
) -> float:
    """Return the true variance of the centred difference estimate over random samples (of Hájek's
    estimate if g = 0), to first order.
    """
    error = true - g
    terms = np.bincount(target, weights=p * (error - p @ error))
    chance = np.ones(terms.size)
    chance[target] = pi
    return float(np.sum((1 / chance - 1) * terms**2))


def expected_squared_error(board: Board, run: Run) -> np.ndarray | float:
    """Return the expected squared error of the model's guess g; without a model that of a fair
    coin.
    """
    if run.g is None:
        return 0.25
    return model.expected_error(run.p, run.g, run.target, correlation=board.rho)


def measure_run(board: Board, run: Run, with_g: bool) -> tuple[Estimate, np.ndarray | None]:
    """Return the run's estimate from the current labels, with the anticipated variance, and the
    expected label g of each of its rows.
    """
    world, target, p = board.world, run.target, run.p
    asked = board.asked[run.names]
    pi = board.pi[run.names]
    sample = (p[asked], pi[asked], world.true[run.own][asked])
    if not with_g:
        if not asked.any():
            return horvitz_thompson.centred_difference_estimate(*sample, np.zeros(0), 0.0), None
        return horvitz_thompson.hajek_estimate(
            *sample, target=target[asked], n_targets=target.max() + 1
        ), None
    labelled = board.learn()
    g = board.fitted.g[np.searchsorted(board.rows, run.own)]
    estimate = horvitz_thompson.centred_difference_estimate(
        *sample, g[asked], p @ g, target=target[asked], n_targets=target.max() + 1
    )
    floor = horvitz_thompson.anticipated_variance(
        p,
        pi,
        g,
        world.true[board.rows][labelled],
        board.fitted.g[labelled],
        target=target,
        correlation=board.rho,
    )
    return replace(estimate, anticipated=floor), g
