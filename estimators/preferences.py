"""Pairwise preferences: win rates and Bradley-Terry strengths of systems, ties allowed, with
intervals.

A judgment says which of two systems' outputs for one input is better, or that neither is. Judgments
of one input (or by one judge) are correlated, so intervals treat clusters as the sampling units:
the influence of an estimate is summed per cluster before it is squared.

References: Bradley and Terry (1952); Davidson (1970), *On extending the Bradley-Terry model to
accommodate ties*; Ford (1957) for when strengths exist.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, logit, ndtri

from estimators import checks
from estimators.checks import FloatArray, IntArray
from estimators.intervals import ConfidenceInterval, t_to_normal_quantile_ratio
from estimators.multiple import Comparison, RankIntervals, rank_intervals, simultaneous_intervals
from estimators.sums import sum_by_code

STEPS, TOLERANCE = 200, 1e-10
WITHOUT_END = 15.0
"""Strengths and log ν beyond this have no finite estimate: e¹⁵ to one"""


@dataclass(frozen=True, eq=False)
class Preferences:
    """Scores of systems from pairwise judgments, with their joint covariance.

    Attributes
    ----------
    value : (m,) array
        Win rates in [0, 1], or strengths that sum to 0; NaN where nothing is known of a system.
    covariance : (m, m) array
        Of the values; NaN with fewer than two clusters.
    n : (m,) integer array
        Judgments that each system is part of.
    n_clusters : int
        Inputs (or judges) behind them.
    tie : float
        Davidson's ν (strengths), or the share of ties (win rates).
    is_rate : bool
        True for win rates.

    Examples
    --------
    >>> found = win_rates([0, 0, 1], [1, 1, 0], [1.0, 0.5, 0.0], n_systems=2)
    >>> found.value.round(3).tolist()
    [0.833, 0.167]
    """

    value: FloatArray
    covariance: FloatArray
    n: IntArray
    n_clusters: int
    tie: float
    is_rate: bool

    def confidence_interval(self, confidence_level: float = 0.8) -> ConfidenceInterval:
        """Return the interval of each system by itself, with clusters − 1 degrees of freedom.

        Rates are taken on the scale of their logits, so that no interval leaves [0, 1]; with a rate
        of 0 or 1 half a win or loss is added for its width.

        Raises
        ------
        ValueError
            A level that is not inside (0, 1).
        """
        z = ndtri(0.5 + checks.check_confidence_level(confidence_level) / 2)
        z = z * t_to_normal_quantile_ratio(max(self.n_clusters - 1, 0), confidence_level)
        with np.errstate(invalid="ignore"):
            error = np.sqrt(np.diag(self.covariance))
        if not self.is_rate:
            return ConfidenceInterval(self.value - z * error, self.value + z * error)
        half = 0.5 / np.maximum(self.n + 1.0, 1.0)
        centre = np.clip(self.value, half, 1 - half)
        extreme = (self.value <= 0) | (self.value >= 1)
        spread = centre * (1 - centre)
        error = np.where(extreme, np.sqrt(spread / np.maximum(self.n, 1)), error)
        width = np.where(np.isfinite(error), z * error / spread, np.inf)
        low = np.where(self.value <= 0, 0.0, expit(logit(centre) - width))
        high = np.where(self.value >= 1, 1.0, expit(logit(centre) + width))
        unknown = np.isnan(self.value)
        return ConfidenceInterval(np.where(unknown, np.nan, low), np.where(unknown, np.nan, high))

    def compare(
        self, *, rng: np.random.Generator, confidence_level: float = 0.8
    ) -> tuple[Comparison, RankIntervals]:
        """Return all pairwise differences with simultaneous intervals, and the ranks they allow."""
        comparison = simultaneous_intervals(
            self.value,
            self.covariance,
            rng=rng,
            confidence_level=confidence_level,
            degrees_of_freedom=max(self.n_clusters - 1, 1),
        )
        return comparison, rank_intervals(comparison)


@dataclass(frozen=True, eq=False)
class _Judgments:
    left: IntArray
    right: IntArray
    outcome: FloatArray
    cluster: IntArray
    m: int

    @property
    def n_clusters(self) -> int:
        return int(self.cluster.max(initial=-1)) + 1

    def counts(self) -> IntArray:
        both = np.concatenate([self.left, self.right])
        return np.bincount(both, minlength=self.m).astype(np.int64)


def _check_judgments(
    left: ArrayLike,
    right: ArrayLike,
    outcome: ArrayLike,
    cluster: ArrayLike | None,
    n_systems: int | None,
) -> _Judgments:
    result = np.asarray(outcome, dtype=np.float64)
    wrong = ~np.isin(result, (0.0, 0.5, 1.0)) & ~np.isnan(result)
    if result.ndim != 1 or wrong.any():
        raise ValueError(f"outcome must hold 1, 0.5, 0 or NaN; got {result[wrong][:1]}")
    left_system = checks.check_codes("left", left, result.size)
    right_system = checks.check_codes("right", right, result.size)
    groups = (
        np.arange(result.size)
        if cluster is None
        else checks.check_codes("cluster", cluster, result.size)
    )
    for row in np.flatnonzero(left_system == right_system):
        raise ValueError(
            f"left and right must differ; row {row} has system {left_system[row]} twice"
        )
    least = int(max(left_system.max(initial=-1), right_system.max(initial=-1))) + 1
    m = least if n_systems is None else n_systems
    if m < least:
        raise ValueError(f"n_systems must be at least {least}, the highest code + 1; got {m!r}")
    judged = ~np.isnan(result)
    code = np.unique(groups[judged], return_inverse=True)[1].astype(np.int64)
    return _Judgments(left_system[judged], right_system[judged], result[judged], code, m)


def win_rates(
    left: ArrayLike,
    right: ArrayLike,
    outcome: ArrayLike,
    *,
    cluster: ArrayLike | None = None,
    n_systems: int | None = None,
) -> Preferences:
    """Return the share of judgments that each system wins, a tie counting half.

    The rate of a system is the mean over its opponents of the mean outcome against each, so that
    one opponent who was met often does not weigh more: it is the chance to win against an opponent
    drawn at random among those met. Where every pair was judged equally often it is the plain
    share. The variance takes out the mean of each pair: where each was judged c times it shows
    (c − 1)/c of what there is.

    Parameters
    ----------
    left, right : (n,) integer array
        The two systems of each judgment, 0 … m − 1.
    outcome : (n,) array
        1: left is better, 0: right is, 0.5: a tie; NaN is left out.
    cluster : (n,) integer array, optional
        Input (or judge) of each judgment; every judgment by itself if left out.
    n_systems : int, optional
        m, where the last systems have no judgment.

    Returns
    -------
    Preferences
        NaN for a system that was never judged.

    Raises
    ------
    ValueError
        If shapes disagree, an outcome is none of these, or a system meets itself.

    Examples
    --------
    >>> rates = win_rates([0, 0, 1, 0], [1, 1, 2, 2], [1, 0.5, 1, 1])
    >>> rates.value.tolist()
    [0.875, 0.625, 0.0]
    """
    judged = _check_judgments(left, right, outcome, cluster, n_systems)
    m, n = judged.m, judged.outcome.size
    met, won = np.zeros((m, m)), np.zeros((m, m))
    for system, other, points in (
        (judged.left, judged.right, judged.outcome),
        (judged.right, judged.left, 1 - judged.outcome),
    ):
        np.add.at(met, (system, other), 1.0)
        np.add.at(won, (system, other), points)
    opponents = (met > 0).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(met > 0, won / met, 0.0)
        value = mean.sum(axis=1) / opponents
        share = np.where(met > 0, 1 / met, 0.0) / opponents[:, None]
    terms = np.zeros((n, m))
    rows = np.arange(n)
    for system, other, points in (
        (judged.left, judged.right, judged.outcome),
        (judged.right, judged.left, 1 - judged.outcome),
    ):
        terms[rows, system] = share[system, other] * (points - mean[system, other])
    ties = float((judged.outcome == 0.5).mean()) if n else float("nan")
    covariance = _cluster_products(terms, judged)
    return Preferences(value, covariance, judged.counts(), judged.n_clusters, ties, True)


def _cluster_products(terms: FloatArray, judgments: _Judgments) -> FloatArray:
    """Return the covariance of sums over clusters, Σ_c t_c t_cᵀ times n/(n − 1) for n clusters."""
    k = judgments.n_clusters
    if k < 2:
        return np.full((terms.shape[1], terms.shape[1]), np.nan)
    sums = sum_by_code(terms, judgments.cluster, k)
    covariance: FloatArray = sums.T @ sums * (k / (k - 1))
    return covariance


def bradley_terry(
    left: ArrayLike,
    right: ArrayLike,
    outcome: ArrayLike,
    *,
    cluster: ArrayLike | None = None,
    n_systems: int | None = None,
    penalty: float = 0.0,
) -> Preferences:
    """Return the strengths of a Bradley-Terry model with ties (Davidson 1970),
    by maximum likelihood.

    With strengths θ and s = (θ_i + θ_k)/2 the chances of i, a tie and k go like
    ``exp(θ_i) : ν exp(s) : exp(θ_k)``; without any tie ν = 0, the plain model. The strengths sum to
    0. The covariance is the sandwich ``H⁻¹ M H⁻¹``, ``M = Σ_c u_c u_cᵀ`` over clusters: right also
    where judgments of one input go together. Few clusters may agree by luck, and M be next to
    nothing: so no direction is surer than with independent judgments, where M would be H (the
    eigenvalues of ``H^{-1/2} M H^{-1/2}`` are at least 1).

    Parameters
    ----------
    left, right, outcome, cluster, n_systems
        As for :func:`win_rates`.
    penalty : float
        ½ penalty Σ θ² is added to what is minimised, ≥ 0. With 0 the strengths exist only if no
        group of systems won (or lost) all judgments against the rest.

    Returns
    -------
    Preferences
        ``tie`` is ν.

    Raises
    ------
    ValueError
        As :func:`win_rates`; and without a penalty where the strengths do not exist: it names the
        systems that only win.

    Examples
    --------
    >>> import numpy as np
    >>> strengths = bradley_terry([0, 0, 0, 1], [1, 1, 1, 0], [1, 1, 0, 0])
    >>> print(round(float(np.exp(strengths.value[0] - strengths.value[1])), 6))
    3.0
    """
    judged = _check_judgments(left, right, outcome, cluster, n_systems)
    if not penalty >= 0:
        raise ValueError(f"penalty must be at least 0; got {penalty!r}")
    if penalty == 0:
        _check_estimates_exist(judged)
    if judged.outcome.size and (judged.outcome == 0.5).all():
        raise ValueError("strengths do not exist: all judgments are ties")
    has_ties = bool((judged.outcome == 0.5).any())
    theta = _fit_strengths(judged, penalty, has_ties)
    if penalty == 0 and np.abs(theta).max(initial=0.0) > WITHOUT_END:
        raise ValueError(
            "strengths do not exist without a penalty: somebody won or tied, and never lost"
        )
    score, information = _scores_and_information(judged, theta, has_ties)
    hessian = information + _prior_information(judged.m, penalty, has_ties)
    covariance = _sandwich_covariance(
        hessian + _level_constraint(judged.m, has_ties), _cluster_products(score, judged)
    )
    value, covariance = _centre_strengths(theta[: judged.m], covariance[: judged.m, : judged.m])
    tie = float(np.exp(theta[-1])) if has_ties else 0.0
    return Preferences(value, covariance, judged.counts(), judged.n_clusters, tie, False)


def _sandwich_covariance(hessian: FloatArray, meat: FloatArray) -> FloatArray:
    """Return the sandwich covariance H⁻¹ M H⁻¹, with the inverse Hessian H⁻¹ as a lower bound."""
    if np.isnan(meat).any():
        return meat
    root = np.linalg.inv(np.linalg.cholesky(hessian))  # root.T @ root is H⁻¹
    size, direction = np.linalg.eigh(root @ meat @ root.T)
    half = root.T @ direction
    covariance: FloatArray = (half * np.maximum(size, 1.0)) @ half.T
    return covariance


def _centre_strengths(value: FloatArray, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    shift = np.eye(value.size) - 1 / max(value.size, 1)
    joint = shift @ covariance @ shift
    return shift @ value, (joint + joint.T) / 2


def _check_estimates_exist(judgments: _Judgments) -> None:
    """Raise ValueError unless, for every group of systems, a member lost to or tied with a system
    outside of the group.
    """
    lost = np.zeros((judgments.m, judgments.m), dtype=np.bool_)
    wins, ties = judgments.outcome == 1, judgments.outcome == 0.5
    for rows, loser, other in (
        (wins | ties, judgments.right, judgments.left),
        (~wins, judgments.left, judgments.right),
    ):
        lost[loser[rows], other[rows]] = True
    parts, group = connected_components(lost, directed=True, connection="strong")
    if parts <= 1:
        return
    unbeaten = [g for g in range(parts) if not lost[np.ix_(group == g, group != g)].any()]
    names = ", ".join(str(i) for i in np.flatnonzero(group == unbeaten[0]))
    raise ValueError(
        f"strengths do not exist without a penalty: nobody else beat or tied with system(s) {names}"
    )


def _outcome_probabilities(
    judgments: _Judgments, theta: FloatArray, has_ties: bool
) -> tuple[FloatArray, FloatArray]:
    """Return (n, 3) the probabilities of left, tie and right, and (n, 3) which of them happened;
    both are inputs of the derivatives.
    """
    half = (theta[judgments.left] - theta[judgments.right]) / 2
    tie = np.full(half.size, theta[-1] if has_ties else -np.inf)
    weights = np.column_stack([half, tie, -half])
    weights -= weights.max(axis=1, keepdims=True)
    chances = np.exp(weights)
    chances /= chances.sum(axis=1, keepdims=True)
    happened = np.column_stack(
        [judgments.outcome == 1, judgments.outcome == 0.5, judgments.outcome == 0]
    ).astype(np.float64)
    return chances, happened


def _scores_and_information(
    judgments: _Judgments, theta: FloatArray, has_ties: bool
) -> tuple[FloatArray, FloatArray]:
    """Return each judgment's score (n, d) and the information (d, d)."""
    chances, happened = _outcome_probabilities(judgments, theta, has_ties)
    n, m, rows = judgments.outcome.size, judgments.m, np.arange(judgments.outcome.size)
    lead = np.array([0.5, 0.0, -0.5])  # sign of θ_left − θ_right for each outcome
    score = np.zeros((n, theta.size))
    pull = (happened - chances) @ lead
    score[rows, judgments.left] = pull
    score[rows, judgments.right] = -pull
    information = np.zeros((theta.size, theta.size))
    mean = chances @ lead
    spread = chances @ lead**2 - mean**2
    pairs = (judgments.left, judgments.right)
    for i, side in enumerate(pairs):
        for j, other in enumerate(pairs):
            np.add.at(information, (side, other), spread if i == j else -spread)
    if has_ties:
        score[:, -1] = happened[:, 1] - chances[:, 1]
        both = -mean * chances[:, 1]
        across = np.zeros(m)
        np.add.at(across, judgments.left, both)
        np.add.at(across, judgments.right, -both)
        information[:m, -1] = information[-1, :m] = across
        information[-1, -1] = (chances[:, 1] * (1 - chances[:, 1])).sum()
    return score, information


def _prior_information(m: int, penalty: float, has_ties: bool) -> FloatArray:
    diagonal = np.full(m + has_ties, penalty)
    diagonal[m:] = 0.0
    return np.diag(diagonal)


def _level_constraint(m: int, has_ties: bool) -> FloatArray:
    """Return the constraint that fixes the common level of the strengths, which is not
    identified.
    """
    return np.pad(np.full((m, m), 1.0 / max(m, 1)), (0, int(has_ties)))


def _penalised_loss(
    judgments: _Judgments, theta: FloatArray, penalty: float, has_ties: bool
) -> float:
    chances, happened = _outcome_probabilities(judgments, theta, has_ties)
    with np.errstate(divide="ignore"):
        likelihood = np.where(happened > 0, np.log(chances), 0.0).sum()
    return float(-likelihood + 0.5 * penalty * theta[: judgments.m] @ theta[: judgments.m])


def _fit_strengths(judgments: _Judgments, penalty: float, has_ties: bool) -> FloatArray:
    """Return strengths (and log ν) by Newton's method, with steps halved where they overshoot."""
    theta = np.zeros(judgments.m + has_ties)
    prior, level = (
        _prior_information(judgments.m, penalty, has_ties),
        _level_constraint(judgments.m, has_ties),
    )
    loss = _penalised_loss(judgments, theta, penalty, has_ties)
    for _ in range(STEPS):
        score, information = _scores_and_information(judgments, theta, has_ties)
        gradient = score.sum(axis=0) - prior @ theta
        step = np.linalg.solve(information + prior + level, gradient)
        scale = 1.0
        while True:
            attempt = theta + scale * step
            new = _penalised_loss(judgments, attempt, penalty, has_ties)
            if new <= loss + 1e-13 * abs(loss) or scale < 1e-8:
                break
            scale /= 2
        theta, loss = attempt, new
        if np.abs(step).max(initial=0.0) * scale < TOLERANCE:
            break
    return theta
