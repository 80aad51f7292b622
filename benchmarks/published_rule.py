"""The published rule for how much to ask about a new run: independent draws, as many as the joint
estimator needs.
"""

import numpy as np

from benchmarks.arrivals import TARGET, Arrival, Path, World, Z

CAP = 456


def replay_published_rule(
    world: World, rng: np.random.Generator, *, share: float = 0.25, scale: float = 1.0
) -> Path:
    """Return the arrivals under the published rule, with the term of new draws multiplied by
    `share`.
    """
    m = world.P.shape[1]
    overlap, counts = world.P.T @ world.P, np.zeros(m, dtype=np.int64)
    rows, system = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    path = []
    for i in rng.permutation(m):
        n = draws_needed(world, overlap[i], counts, rows, system, int(i), share, scale)
        rows = np.concatenate([rows, draw_with_replacement(world.P[:, i], n, rng)])
        system = np.concatenate([system, np.full(n, i)])
        counts[i] = n
        value, variance = joint_precision(world, overlap[i] * counts, counts, rows, system, int(i))
        error = value - world.precision[i]
        path.append(
            Arrival(
                rows.size,
                np.unique(rows).size,
                np.unique(world.target[rows]).size,
                error,
                variance,
                abs(error) <= Z * np.sqrt(variance),
            )
        )
    return path


def joint_precision(
    world: World, pull: np.ndarray, counts: np.ndarray, rows: np.ndarray, system: np.ndarray, i: int
) -> tuple[float, float]:
    """Return value and variance of run i alone; :func:`estimators.joint.joint_precision` returns
    those of all runs.
    """
    weight = pull / pull.sum()
    scaled = weight / np.maximum(counts, 1)
    q = world.P[rows] @ weight
    terms = world.P[rows, i] * world.true[rows] / np.where(q > 0, q, 1.0)
    mean, square = (
        np.bincount(system, weights=power, minlength=counts.size) / np.maximum(counts, 1)
        for power in (terms, terms**2)
    )
    return float(scaled[system] @ terms), float(np.sum(weight * scaled * (square - mean**2)))


def draw_with_replacement(p: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return n rows drawn from p, with replacement."""
    cumulative = np.cumsum(p)
    return np.searchsorted(cumulative, rng.random(n) * cumulative[-1], side="right")


def draws_needed(
    world: World,
    overlap: np.ndarray,
    counts: np.ndarray,
    rows: np.ndarray,
    system: np.ndarray,
    i: int,
    share: float,
    scale: float,
) -> int:
    """Return the smallest number of draws of run i that meets the target variance: Σ_{j<i}
    (w_j²/n_j) V_j + share (w_i²/n_i) Σ p (p/q)² ≤ target.
    """
    own = np.flatnonzero(world.member[:, i])
    pull = overlap * counts
    old = pull / pull.sum() if pull.any() else pull.astype(float)
    ratio = (world.P[own] @ old) / world.P[own, i]
    mass, ratio = group_ratios(world.P[own, i], ratio)
    useful = rows[(world.P[rows, i] > 0) & (world.true[rows] > 0)]
    whose = system[(world.P[rows, i] > 0) & (world.true[rows] > 0)]
    old_ratio = (world.P[useful] @ old) / world.P[useful, i]
    n_old = np.maximum(counts, 1)

    def variance(n: int) -> float:
        weight = n * overlap[i] / (n * overlap[i] + pull.sum())
        h = 1 / (weight + (1 - weight) * old_ratio)
        mean, square = (
            np.bincount(whose, weights=power, minlength=counts.size) / n_old for power in (h, h * h)
        )
        before = np.sum(((1 - weight) * old) ** 2 / n_old * np.maximum(square - mean**2, 0))
        reached = 1 / (weight + (1 - weight) * ratio)
        return float(before + weight**2 / n * share * np.sum(mass * reached**2))

    most = round(CAP / scale)
    if pull.any() and ratio.min() > 0:
        mean, square = (
            np.bincount(whose, weights=h, minlength=counts.size) / n_old
            for h in (1 / old_ratio, 1 / old_ratio**2)
        )
        if np.sum(old**2 / n_old * np.maximum(square - mean**2, 0)) <= TARGET * scale:
            return 0
    step = 8  # coarse, then every size of the step before: the variance need not fall everywhere
    coarse = next((n for n in range(step, most, step) if variance(n) <= TARGET * scale), most)
    return next(
        (n for n in range(max(coarse - step, 1), coarse) if variance(n) <= TARGET * scale), coarse
    )


def group_ratios(mass: np.ndarray, ratio: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the total mass of each distinct ratio, and the ratios, rounded to three digits of
    their logarithms.
    """
    rounded, place = np.unique(np.round(np.log(ratio + 1e-12), 3), return_inverse=True)
    return np.bincount(place, weights=mass), np.where(rounded < -20, 0.0, np.exp(rounded))
