"""The model g of ratings: predicts the rating of an output from metrics, its input and similar
texts.

One ridge regression for all systems of a track, which is Gaussian process regression with the
kernel

    a metrics · metrics′ + b (metrics · metrics′ if the system is the same)
    + c (1 if the input is the same) + d (similarity of the texts if the input is the same) + noise

about a mean of each system, with metrics, each by its value and by its rank within the system,
weighted by what they say of ratings alone. So a rating also tells of the other systems' outputs for
its input: some inputs are hard for all, and summaries that say the same are as good as each other.
The weights, the four scales (by maximum likelihood) and how far the guess is trusted for each
system are told anew for each fold without that fold's ratings: no rating has a say in what is
guessed of its output.

The level of a system, the same constant in all its guesses, is the mean of all its ratings. With a
level a fold, each would be too low where the ratings left out are high, which widens every
interval; a common one cancels in centred estimates, exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.linalg import cho_solve, cholesky, solve_triangular

from estimators import checks
from estimators.checks import FloatArray, IntArray
from estimators.features import Matrix
from estimators.sums import sum_by_code

SCALES = np.array([1e-8, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0])  # candidate shares of the noise
FIRST = (4, 2, 3, 3)  # start of the search: indices in SCALES
COMPONENTS = 5  # directions of the metrics in which systems may differ
FREE = 1e4  # prior variance of a system's mean: uninformative
FEWEST = 10  # ratings, with fewer the guess is a mean
LENT = 5.0  # prior weight, in ratings, of all systems in the fit of each
COMMON = 50.0  # prior weight, in ratings, of all systems in the shrinkage of each
SURE = 2.0  # standard errors by which guesses must help before they are used
LEAST = 0.1  # weight of the least informative metric over that of the most informative one
WARY = 4.0  # penalty on correlation of an input's ratings without evidence
FLAT = 1e-12


@dataclass(frozen=True, eq=False)
class RatingModel:
    """A fitted model of ratings: its cross-fitted guesses and its scales.

    Attributes
    ----------
    g : (n,) array
        Cross-fitted guess of the mean rating of every output, within the range that was asked for.
    scales : (k, 4) array
        A fold's scales of metrics, metrics of the system, input and text; shares of the noise.
    trust : (k, m) array
        λ of each fold and system, in [0, 1]: 0 where the guess is not worth anything.

    Examples
    --------
    >>> import numpy as np
    >>> model = RatingModel(g=np.array([0.7, 0.2]), scales=np.ones((5, 4)), trust=np.ones((5, 1)))
    >>> model.g.tolist()
    [0.7, 0.2]
    """

    g: FloatArray
    scales: FloatArray
    trust: FloatArray


def fit_ratings(
    features: ArrayLike,
    rating: ArrayLike,
    fold: ArrayLike,
    *,
    system: ArrayLike,
    input: ArrayLike,
    text: Matrix | None = None,
    low: float = 0.0,
    high: float = 1.0,
    start: RatingModel | None = None,
    search: bool = True,
) -> RatingModel:
    """Return the cross-fitted guess of every output's mean rating.

    Parameters
    ----------
    features : (n, k) array
        Metrics (and length, …) of **all** outputs; NaN is missing and counts as the system's mean.
        They are standardised within each system, so any unit will do; the model is told each metric
        and its ranks, since many a judge is nearly always sure, and says more by its order.
    rating : (n,) array
        Mean rating of an output, NaN where nobody judged it.
    fold : (n,) integer array
        Fold of each row's target, from 0: :func:`estimators.crossfit.keyed_folds`.
    system, input : (n,) integer array
        Whose output it is, and what it was made for.
    text : (n, v) array or scipy.sparse, optional
        Weights of words in each output, at least 0; rows of 0 where there is no text. The
        similarity of two texts is the cosine of their rows.
    low, high : float
        The range of ratings; guesses are kept within.
    start : RatingModel, optional
        An earlier fit with the same folds: its scales are where the search begins.
    search : bool
        False: the scales of ``start`` as they are, which takes a third of the time.

    Returns
    -------
    RatingModel
        With fewer than ten ratings outside a fold, its rows get the system's level; without any
        rating at all, all rows get the middle of the range.

    Raises
    ------
    ValueError
        If shapes disagree, or a rating, fold or feature is out of range.

    Examples
    --------
    A metric that says much; half of the outputs have been rated.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> metric = rng.uniform(0, 1, 200)
    >>> rating = np.where(np.arange(200) % 2 == 0, metric, np.nan)
    >>> rows = np.arange(200)
    >>> one_system = np.zeros(200, dtype=int)
    >>> model = fit_ratings(metric[:, None], rating, rows % 5, system=one_system, input=rows)
    >>> bool(np.abs(model.g - metric).max() < 0.05)
    True
    """
    y = np.asarray(rating, dtype=np.float64)
    n = y.size
    if not low < high:
        raise ValueError(f"low must be below high; got {low!r} and {high!r}")
    if y.ndim != 1 or np.any((y < low) | (y > high)):
        raise ValueError(f"rating must lie in [{low}, {high}] or be NaN, in one dimension")
    metrics = np.asarray(features, dtype=np.float64)
    if metrics.ndim != 2 or metrics.shape[0] != n or np.isinf(metrics).any():
        raise ValueError(f"features must be ({n}, k), finite or NaN; got shape {metrics.shape}")
    folds = checks.check_codes("fold", fold, n)
    owner, source = checks.dense_codes("system", system, n), checks.dense_codes("input", input, n)
    scores = np.hstack(
        [
            _standardise_within_system(metric, owner)
            for metric in (metrics, _ranks_within_system(metrics, owner))
        ]
    )
    outputs = _Outputs.from_arrays(scores, owner, source, _normalised_rows(text, n))
    n_folds, m = int(folds.max(initial=-1)) + 1, int(owner.max(initial=-1)) + 1
    places = [_start_places(start, k, n_folds) for k in range(n_folds)]
    trust = np.zeros((n_folds, m))
    rated = np.flatnonzero(~np.isnan(y))
    g = np.full(n, (low + high) / 2)
    if rated.size:
        g = _rating_levels(y[rated], owner[rated], m)[0][owner]
    scales = np.tile(SCALES[list(FIRST)], (n_folds, 1))
    for k in range(n_folds):
        learn = np.flatnonzero(~np.isnan(y) & (folds != k))
        here = np.flatnonzero(folds == k)
        if learn.size and here.size:
            # Not from the end of another fold's search, which used the ratings of this one.
            fit = _fit_model(outputs, y, learn, places[k], search)
            scales[k] = SCALES[list(fit.places)]
            trust[k] = fit.trust
            g[here] += fit.guess(here)
    return RatingModel(np.clip(g, low, high), scales, trust)


def _start_places(start: RatingModel | None, k: int, n_folds: int) -> tuple[int, ...]:
    if start is None or start.scales.shape != (n_folds, len(FIRST)):
        return FIRST
    return tuple(int(np.argmin(np.abs(SCALES - scale))) for scale in start.scales[k])


def _normalised_rows(text: Matrix | None, n: int) -> sparse.csr_array | None:
    if text is None:
        return None
    words = sparse.csr_array(text, dtype=np.float64)
    if words.shape[0] != n:
        raise ValueError(f"text must have {n} rows; got shape {words.shape}")
    checks.check_non_negative("text", words.data)
    length = np.sqrt(np.asarray(words.power(2).sum(axis=1)).ravel())
    inverse = np.divide(1.0, length, out=np.zeros(n), where=length > 0)
    return sparse.csr_array(words.multiply(inverse[:, None]))


class _Outputs(NamedTuple):
    """All outputs, with the data that need no people."""

    metrics: FloatArray
    """(n, k), standardised within systems and divided by √k"""
    directions: FloatArray
    """(n, c), the metrics' first principal components, divided by √c"""
    system: IntArray
    input: IntArray
    text: sparse.csr_array | None

    @classmethod
    def from_arrays(
        cls, standard: FloatArray, system: IntArray, source: IntArray, text: sparse.csr_array | None
    ) -> _Outputs:
        k = max(standard.shape[1], 1)
        values, vectors = np.linalg.eigh(standard.T @ standard / max(len(standard), 1))
        leading = np.flatnonzero(values > 1e-6)[::-1][:COMPONENTS]
        directions = standard @ (vectors[:, leading] / np.sqrt(values[leading]))
        share = np.sqrt(max(leading.size, 1))
        return cls(standard / np.sqrt(k), directions / share, system, source, text)

    def weight_by_correlation(self, y: FloatArray, rows: IntArray) -> _Outputs:
        """Return the outputs with each metric weighted by its own correlation with the ratings.

        The correlation is computed within systems, pooled, and corrected for chance: ``w² = max(r²
        − 1/n, 0)``, mean 1. The penalty then affects uninformative metrics more than informative
        ones.
        """
        k, m, owner = self.metrics.shape[1], self.n_systems, self.system[rows]
        count = np.maximum(np.bincount(owner, minlength=m), 1)
        mean, size = _rating_levels(y, owner, m)
        scaled = (y - mean[owner]) / size[owner]
        scaled = scaled - (sum_by_code(scaled, owner, m) / count)[owner]
        metrics = self.metrics[rows]
        metrics = metrics - (sum_by_code(metrics, owner, m) / count[:, None])[owner]
        power = (metrics**2).sum(axis=0) * float(scaled @ scaled)
        square = np.divide((metrics.T @ scaled) ** 2, power, out=np.zeros(k), where=power > 0)
        weight = np.sqrt(np.maximum(square - 1 / rows.size, 0.0))
        weight = np.maximum(weight, LEAST * weight.max(initial=0.0))
        if not weight.any():
            return self
        weight *= np.sqrt(k) / np.linalg.norm(weight)
        standard = self.metrics * (np.sqrt(k) * weight)
        return _Outputs.from_arrays(standard, self.system, self.input, self.text)

    @property
    def n_systems(self) -> int:
        return int(self.system.max(initial=-1)) + 1

    def design(self, rows: IntArray) -> FloatArray:
        """Return the columns of the regression: metrics, metrics of the system, system."""
        m, c = self.n_systems, self.directions.shape[1]
        own = np.zeros((rows.size, m, c))
        own[np.arange(rows.size), self.system[rows]] = self.directions[rows]
        mean = np.zeros((rows.size, m))
        mean[np.arange(rows.size), self.system[rows]] = 1.0
        return np.hstack([self.metrics[rows], own.reshape(rows.size, m * c), mean])

    def linear_predictor(self, rows: IntArray, beta: FloatArray) -> FloatArray:
        """Return ``design(rows) @ beta`` without building that matrix."""
        k, c, m = self.metrics.shape[1], self.directions.shape[1], self.n_systems
        owner = self.system[rows]
        own = beta[k : k + m * c].reshape(m, c)[owner]
        total: FloatArray = self.metrics[rows] @ beta[:k]
        total += (self.directions[rows] * own).sum(axis=1) + beta[k + m * c :][owner]
        return total

    def similarity(self, groups: IntArray) -> FloatArray:
        """Return the similarities (b, s, s) of the texts within b groups of s rows each."""
        b, s = groups.shape
        if self.text is None:
            return np.zeros((b, s, s))
        left, right = np.triu_indices(s)
        left_row, right_row = groups[:, left].ravel(), groups[:, right].ravel()
        product = np.asarray(self.text[left_row].multiply(self.text[right_row]).sum(axis=1))
        likeness = np.empty((b, s, s))
        likeness[:, left, right] = likeness[:, right, left] = product.reshape(b, left.size)
        return likeness


def _ranks_within_system(raw: FloatArray, system: IntArray) -> FloatArray:
    """Return the rank of each value among those of its system; equal values share a rank; NaN if
    missing.
    """
    ranks = np.full_like(raw, np.nan)
    for rows in np.split(np.argsort(system, kind="stable"), np.cumsum(np.bincount(system))[:-1]):
        for column in range(raw.shape[1]):
            given = rows[~np.isnan(raw[rows, column])]
            _, place, n = np.unique(raw[given, column], return_inverse=True, return_counts=True)
            ranks[given, column] = (np.cumsum(n) - (n - 1) / 2)[place]
    return ranks


def _standardise_within_system(raw: FloatArray, system: IntArray) -> FloatArray:
    """Return the metrics with mean 0 and variance 1 within each system,
    0 where missing or constant.
    """
    m = int(system.max(initial=-1)) + 1
    raw = checks.scale_to_avoid_overflow(raw)
    scored = ~np.isnan(raw)
    # Above the least value: an offset of the metric must not make its variance look like rounding.
    lowest = np.where(scored.any(axis=0), np.fmin.reduce(raw, axis=0, initial=np.inf), 0.0)
    filled = np.where(scored, raw - lowest, 0.0)
    count = np.maximum(sum_by_code(scored.astype(np.float64), system, m), 1.0)
    mean = sum_by_code(filled, system, m) / count
    square = sum_by_code(filled**2, system, m) / count
    deviation = np.where(scored, filled - mean[system], 0.0)
    variance = sum_by_code(deviation**2, system, m) / count
    size = np.sqrt(np.where(variance > FLAT * square, variance, np.inf))
    standard: FloatArray = deviation / size[system]
    return standard


class _Blocks(NamedTuple):
    """The rated rows of inputs with equally many rated outputs: positions (b, s) and similarities
    (b, s, s).
    """

    place: IntArray
    similarity: FloatArray


def _input_blocks(outputs: _Outputs, rows: IntArray) -> list[_Blocks]:
    order = np.argsort(outputs.input[rows], kind="stable")
    cuts = np.flatnonzero(np.diff(outputs.input[rows][order])) + 1
    by_size: dict[int, list[IntArray]] = {}
    for group in np.split(order, cuts):
        by_size.setdefault(group.size, []).append(group)
    blocks = []
    for groups in by_size.values():
        place = np.stack(groups)
        blocks.append(_Blocks(place, outputs.similarity(rows[place])))
    return blocks


class _Solved(NamedTuple):
    """The regression at given scales: coefficients, C⁻¹ y, log |C|, and intermediate results."""

    beta: FloatArray
    alpha: FloatArray
    log_determinant: float
    lower: FloatArray
    weighted: FloatArray
    diagonal: FloatArray

    def precision(self) -> FloatArray:
        """Return the diagonal of C⁻¹, the inverse of the ratings' covariance matrix."""
        half = solve_triangular(self.lower, self.weighted.T, lower=True)
        precision: FloatArray = self.diagonal - (half**2).sum(axis=0)
        return precision


class _Inverted(NamedTuple):
    """Results that do not depend on the scales of the metrics: the blocks' inverse times x and y,
    its diagonal, both sides of the normal equations without a prior, and the blocks' log
    determinant.
    """

    weighted: FloatArray
    alone: FloatArray
    diagonal: FloatArray
    normal: FloatArray
    moment: FloatArray
    log_determinant: float


class _Problem:
    """The rated rows of a fit: y in units of its system, and results that do not depend on the
    scales.
    """

    def __init__(self, outputs: _Outputs, y: FloatArray, rows: IntArray) -> None:
        m, owner = outputs.n_systems, outputs.system[rows]
        mean, self.size = _rating_levels(y[rows], owner, m)
        self.y = (y[rows] - mean[owner]) / self.size[owner]
        self.x = outputs.design(rows)
        self.parts = (outputs.metrics.shape[1], m * outputs.directions.shape[1], m)
        self.blocks = _input_blocks(outputs, rows)
        self.has_text = outputs.text is not None
        self.last: tuple[tuple[float, float], _Inverted] | None = None

    def invert_blocks(self, common: float, alike: float) -> _Inverted:
        """Invert the inputs' covariance blocks at the scales of input and text.

        The last result is cached, since most steps of a search change only the other two scales.
        """
        if self.last is not None and self.last[0] == (common, alike):
            return self.last[1]
        weighted, alone = np.empty_like(self.x), np.empty_like(self.y)
        diagonal = np.empty_like(self.y)
        determinant = 0.0
        for block in self.blocks:
            size = block.place.shape[1]
            covariance = np.eye(size) + common + alike * block.similarity
            inverse = np.linalg.inv(covariance)
            determinant += float(np.linalg.slogdet(covariance)[1].sum())
            weighted[block.place] = inverse @ self.x[block.place]
            alone[block.place] = np.einsum("bij,bj->bi", inverse, self.y[block.place])
            diagonal[block.place] = np.einsum("bii->bi", inverse)
        inverted = _Inverted(
            weighted, alone, diagonal, self.x.T @ weighted, self.x.T @ alone, determinant
        )
        self.last = (common, alike), inverted
        return inverted

    def solve(self, scales: FloatArray) -> _Solved:
        """Return the regression at these scales, by Woodbury's identity with the inverse of the
        inputs' blocks.
        """
        blocks = self.invert_blocks(float(scales[2]), float(scales[3]))
        prior = np.repeat([scales[0], scales[1], FREE], self.parts)
        normal = blocks.normal.copy()
        normal[np.diag_indices_from(normal)] += 1 / prior
        lower = cholesky(normal, lower=True)
        beta = cho_solve((lower, True), blocks.moment)
        determinant = blocks.log_determinant
        determinant += 2 * float(np.log(np.diag(lower)).sum()) + float(np.log(prior).sum())
        alpha = blocks.alone - blocks.weighted @ beta
        return _Solved(beta, alpha, determinant, lower, blocks.weighted, blocks.diagonal)

    def loss(self, places: tuple[int, ...]) -> float:
        """Return twice the negative log likelihood, the noise's variance profiled out.

        If few inputs have two ratings, shared variance cannot be distinguished from noise; the loss
        then favours little shared variance.
        """
        scales = SCALES[list(places)]
        solved = self.solve(scales)
        n = self.y.size
        mean_square = max(float(self.y @ solved.alpha) / n, 1e-300)
        wary = WARY * float(np.log1p(scales[2] + scales[3]))
        return n * float(np.log(mean_square)) + solved.log_determinant + wary


def _rating_levels(y: FloatArray, system: IntArray, m: int) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of each system's ratings; with few ratings they are shrunk
    to those of all systems.
    """
    count = np.bincount(system, minlength=m)
    mean = (sum_by_code(y, system, m) + y.mean()) / (count + 1)
    square = sum_by_code((y - mean[system]) ** 2, system, m)
    common = float(square.sum()) / y.size
    return mean, np.sqrt((square + LENT * common) / (count + LENT))


def _search_scales(problem: _Problem, start: tuple[int, ...]) -> tuple[int, ...]:
    """Return the scales of least loss, found by changing one scale at a time."""
    loss_of: dict[tuple[int, ...], float] = {}

    def total_loss(places: tuple[int, ...]) -> float:
        if places not in loss_of:
            loss_of[places] = problem.loss(places)
        return loss_of[places]

    best = start if problem.has_text else (*start[:3], 0)
    for _ in range(len(SCALES)):
        before = best
        for axis in range(len(best) if problem.has_text else 3):
            best = _step_along_axis(total_loss, best, axis)
        if best == before:
            break
    return best


def _step_along_axis(
    loss: Callable[[tuple[int, ...]], float], best: tuple[int, ...], axis: int
) -> tuple[int, ...]:
    for step in (1, -1):
        while 0 <= best[axis] + step < len(SCALES):
            attempt = (*best[:axis], best[axis] + step, *best[axis + 1 :])
            if not loss(attempt) < loss(best) - 1e-9:
                break
            best = attempt
    return best


@dataclass(frozen=True, eq=False)
class _Fit:
    """The model fitted to the ratings of all folds but one."""

    outputs: _Outputs
    rows: IntArray
    places: tuple[int, ...]
    trust: FloatArray
    size: FloatArray
    beta: FloatArray | None
    alpha: FloatArray

    def guess(self, rows: IntArray) -> FloatArray:
        """Return the predicted differences of some rows from the mean of their system."""
        outputs = self.outputs
        owner = outputs.system[rows]
        if self.beta is None:
            return np.zeros(rows.size)
        every, m = np.arange(outputs.system.size), outputs.n_systems
        raw = outputs.linear_predictor(every, self.beta) + self._same_input_contribution()
        centre = sum_by_code(raw, outputs.system, m)
        centre /= np.maximum(np.bincount(outputs.system, minlength=m), 1)
        scaled: FloatArray = self.size[owner] * self.trust[owner] * (raw[rows] - centre[owner])
        return scaled

    def _same_input_contribution(self) -> FloatArray:
        """Return the contribution of the ratings of other outputs for the same inputs."""
        outputs = self.outputs
        n_inputs = int(outputs.input.max(initial=-1)) + 1
        scales = SCALES[list(self.places)]
        rated = outputs.input[self.rows]
        added: FloatArray = scales[2] * sum_by_code(self.alpha, rated, n_inputs)[outputs.input]
        if outputs.text is None or self.places[3] == 0:
            return added
        words = sparse.csr_array(outputs.text[self.rows].multiply(self.alpha[:, None]))
        shape = (n_inputs, rated.size)
        chooser = sparse.csr_array((np.ones(rated.size), (rated, np.arange(rated.size))), shape)
        profile = sparse.csr_array(chooser @ words)[outputs.input]
        added += scales[3] * np.asarray(outputs.text.multiply(profile).sum(axis=1)).ravel()
        return added


def _fit_model(
    outputs: _Outputs, y: FloatArray, rows: IntArray, start: tuple[int, ...], search: bool
) -> _Fit:
    m = outputs.n_systems
    if rows.size < FEWEST or np.ptp(y[rows]) == 0:
        return _Fit(outputs, rows, start, np.zeros(m), np.ones(m), None, np.zeros(rows.size))
    outputs = outputs.weight_by_correlation(y[rows], rows)
    problem = _Problem(outputs, y, rows)
    places = _search_scales(problem, start) if search else start
    solved = problem.solve(SCALES[list(places)])
    without_itself = problem.y - solved.alpha / solved.precision()
    trust = _guess_multipliers(problem.y, without_itself, outputs.system[rows], m)
    return _Fit(outputs, rows, places, trust, problem.size, solved.beta, solved.alpha)


def _guess_multipliers(y: FloatArray, guess: FloatArray, system: IntArray, m: int) -> FloatArray:
    """Return the multiplier λ in [0, 1] of each system's guess that gives the least variance,
    shrunk to that of all systems, and towards 0.

    With few ratings the guess seems to help, or to harm, by chance. So all λ are multiplied by
    ``max(0, 1 − (2 s.e./slope)²)``, the positive-part shrinkage of the slope of all systems: below
    two standard errors λ is 0, and the estimate is the plain mean.
    """
    count = np.maximum(np.bincount(system, minlength=m), 1)
    deviation = guess - (sum_by_code(guess, system, m) / count)[system]
    product = (y - (sum_by_code(y, system, m) / count)[system]) * deviation
    gain, square = sum_by_code(product, system, m), sum_by_code(deviation**2, system, m)
    whole = float(square.sum())
    slope = float(gain.sum()) / whole if whole else 0.0
    if slope <= 0:
        return np.zeros(m)
    error = float(np.linalg.norm(product - slope * deviation**2)) / whole
    beyond_chance = max(0.0, 1 - (SURE * error / slope) ** 2)
    lent = COMMON * whole / y.size
    trust = np.clip((gain + lent * min(1.0, slope)) / (square + lent), 0.0, 1.0)
    return np.asarray(trust * beyond_chance)
