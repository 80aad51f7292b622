"""Our rule for what to ask about a new run: thresholds like water, raised until the realised
variance will do.
"""

from dataclasses import dataclass, replace

import numpy as np

from benchmarks.arrivals import LEVEL, TARGET, Arrival, Path, World
from estimators import horvitz_thompson, model, poisson
from estimators.features import Claims, Features

FIRST, FOLDS = 4.0, 5


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
        self.here.append(i)
        self.rows = np.flatnonzero(self.world.member[:, self.here].any(axis=1))
        self.found = claims(self.world, self.rows, self.here).features()

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


def claims(world: World, rows: np.ndarray, here: list[int]) -> Claims:
    """Return what the model is told of some rows and runs."""
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


def ours(world: World, rng: np.random.Generator, *, with_g: bool, scale: float = 1.0) -> Path:
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
        pi = poisson.water_fill(
            p, board.pi[names], doubt(board, p, g, target), target_variance=goal, target=target
        )
        board.pi[names] = pi
        stages += 1
        estimate, g = measure(board, own, p, pi, target, with_g)
        variance, anticipated = (
            (estimate.variance, estimate.anticipated) if estimate.n else (np.inf, np.inf)
        )
        realised = max(variance, anticipated)
        if realised <= wanted or (pi == 1).all():
            break
        planned = poisson.planned_variance(p, pi, doubt(board, p, g, target), target=target)
        goal = poisson.next_goal(
            planned, variance, anticipated, target_variance=wanted, stage=stages
        )
    low, high = estimate.confidence_interval(LEVEL, method="wilson")
    asked, truth = int(board.asked.sum()), world.precision[i]
    exact = exact_variance(p, pi, world.true[own], np.zeros(own.size) if g is None else g, target)
    return Arrival(
        asked, asked, asked, estimate.value - truth, realised, low <= truth <= high, stages, exact
    )


def exact_variance(
    p: np.ndarray, pi: np.ndarray, true: np.ndarray, g: np.ndarray, target: np.ndarray
) -> float:
    """Return the design variance of the centred difference (Hájek's with g = 0), to first order, by
    the truth.
    """
    error = true - g
    terms = np.bincount(target, weights=p * (error - p @ error))
    chance = np.ones(terms.size)
    chance[target] = pi
    return float(np.sum((1 / chance - 1) * terms**2))


def doubt(
    board: Board, p: np.ndarray, g: np.ndarray | None, target: np.ndarray
) -> np.ndarray | float:
    """Return the squared error that is expected of g; without a model that of a coin."""
    return 0.25 if g is None else model.expected_error(p, g, target, correlation=board.rho)


def measure(
    board: Board, own: np.ndarray, p: np.ndarray, pi: np.ndarray, target: np.ndarray, with_g: bool
):
    """Return run's estimate, with the anticipated variance, from what is asked now, and g of its
    rows.
    """
    world = board.world
    asked = board.asked[world.target[own]]
    sample = (p[asked], pi[asked], world.true[own][asked])
    if not with_g:
        if not asked.any():
            return horvitz_thompson.centred(*sample, np.zeros(0), 0.0), None
        return horvitz_thompson.hajek(
            *sample, target=target[asked], n_targets=target.max() + 1
        ), None
    labelled = board.learn()
    g = board.fitted.g[np.searchsorted(board.rows, own)]
    estimate = horvitz_thompson.centred(
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
