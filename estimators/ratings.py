"""Human ratings as labels: annotator noise, and judges who rate many outputs.

A mean of ratings is estimated by the same difference estimators as a share of right relations
(:mod:`estimators.horvitz_thompson`), with the mean rating ȳ of an output as its label. However, a
rating is not the truth: other people would have rated differently. With probabilities π and c
judgments an output, the unbiased variance of ``Σ p g + Σ_S (p/π)(ȳ − g)`` is

    V = Σ_S (1 − π)/π² p² (ȳ − g)²  +  Σ_S p² σ_a²/(c π)

and what follows here adds the second sum, as rows of influence of their own. Judges who rate many
outputs make their ratings go together: a third term, beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from estimators import checks
from estimators.checks import BoolArray, FloatArray, IntArray, Numbers, float_or_array
from estimators.design import Design, target_probabilities
from estimators.estimate import Estimate
from estimators.sums import sum_by_code

HALF = 0.5  # π of the rows that stand for judges' noise: (1 − ½)(√2 z)² = z²
WIDEST = 0.25  # the largest variance of ratings between 0 and 1
LENT = 5.0  # prior weight, in ratings, of all systems in each
SUPPOSED = 6.0  # degrees of freedom for which σ_a² of all systems counts in that of each
EVENNESS = 10.0  # squared coefficient of variation from which T counts as one whole pair
FEWEST_PAIRS = 20  # second opinions drawn at random, below which σ_a² is not separable
TELLING = 1.1  # a width that grows by more than a tenth is printed


def rating_design(
    pi: ArrayLike,
    *,
    target: ArrayLike | None = None,
    n_targets: int | None = None,
    design: Design | None = None,
) -> Design:
    """Return the sampling design for the terms of :func:`estimate_with_rating_noise`: t targets,
    then the rating noise of each.

    Parameters
    ----------
    pi : (n,) array
        Inclusion probability of each row's target, in (0, 1].
    target : (n,) integer array, optional
        Target codes; left out, every row is its own target.
    n_targets : int, optional
        t; the highest code + 1 if left out.
    design : Design, optional
        Of the t targets, in the place of ``pi``: where ratings came in with clusters.

    Returns
    -------
    Design
        2t rows.

    Raises
    ------
    ValueError
        If a probability leaves (0, 1], or two rows of a target disagree.

    Examples
    --------
    >>> import numpy as np
    >>> rating_design(np.array([0.2, 1.0])).variance(np.array([0.0, 3.0, 1.0, 1.0]))
    1.0
    """
    if design is None:
        chance = checks.check_positive_probabilities("pi", pi)
        code = np.arange(chance.size) if target is None else target
        design = Design(target_probabilities(chance, code, n_targets=n_targets))
    noise = np.full(design.pi.size, HALF)
    both = np.concatenate([design.pi, noise])
    if design.cluster is None or design.beta is None:
        return Design(both)
    cluster = np.concatenate([design.cluster, np.full(noise.size, -1, dtype=np.int64)])
    return Design(both, cluster=cluster, beta=design.beta, n_clusters=design.n_clusters)


def estimate_with_rating_noise(
    estimate: Estimate,
    p: ArrayLike,
    pi: ArrayLike,
    count: ArrayLike,
    sigma_a2: ArrayLike,
    *,
    sign: ArrayLike = 1.0,
    freedom: float = np.inf,
    target: ArrayLike | None = None,
    design: Design | None = None,
) -> Estimate:
    """Return an estimate from mean ratings whose variance includes the disagreement of annotators,
    ``Σ_S p² σ_a²/(c π)``.

    With the variance of single outputs' judgments (or an unbiased estimate of it) the sum is
    exactly unbiased for ``Σ p² σ_a²/c`` over all outputs: the noise that remains where π → 1, and
    the part that the first sum of V does not contain where π < 1.

    Parameters
    ----------
    estimate : Estimate
        From mean ratings, by an estimator of :mod:`estimators.horvitz_thompson`;
        one row of influence a target.
    p : (n,) or (n, m) array
        Weight of each rated output under each system, as for that estimate.
    pi : (n,) array
        Inclusion probability of the row's target, in (0, 1].
    count : (n,) array
        c, judgments of each row's target; 0 where there are none, which adds nothing.
    sigma_a2 : float, (n,) or (n, m) array
        Variance of single judgments about one output: one number (:func:`judgment_variance`), one a
        row, or one a row and system; at least 0.
    sign : (n,) or (n, m) array, optional
        −1 where what is good for one is bad for another, and a rating v is 1 − v for the system: it
        wrote the second text of a pair. 1 elsewhere, and if left out. Covariances need it.
    freedom : float
        Degrees of freedom of ``sigma_a2``: the number of second opinions that it was learnt from.
    target : (n,) integer array, optional
        Target codes, as for the estimate.
    design : Design, optional
        Of the t targets, where the estimate had one.

    Returns
    -------
    Estimate
        The same value; the influence has 2t rows, see :func:`rating_design`. Degrees of freedom
        n − 1, for intervals of few ratings, and at most ``freedom``.

    Raises
    ------
    ValueError
        If shapes disagree or a number is out of range; the message names it.

    Examples
    --------
    >>> import numpy as np
    >>> from estimators.horvitz_thompson import difference_estimate
    >>> quarter, sure = np.full(4, 0.25), np.ones(4)  # every output has been judged, by one person
    >>> alone = difference_estimate(quarter, sure, np.array([1.0, 0.5, 0.5, 0.0]), np.full(4, 0.5),
    ...     0.5)
    >>> print(alone.variance,
    ...     estimate_with_rating_noise(alone, quarter, sure, np.ones(4), 0.25).variance)
    0.0 0.0625
    """
    weight, chance = (
        checks.check_non_negative("p", p),
        checks.check_positive_probabilities("pi", pi),
    )
    n, single = weight.shape[0], weight.ndim == 1
    m = 1 if single else weight.shape[1]
    judged = checks.check_non_negative("count", count)
    noise = checks.check_non_negative("sigma_a2", sigma_a2)
    for name, array in (("pi", chance), ("count", judged)):
        if array.shape != (n,):
            raise ValueError(f"{name} must have shape ({n},); got {array.shape}")
    if noise.shape not in ((), (n,), (n, m)):
        raise ValueError(
            f"sigma_a2 must be one number or have shape ({n},) or ({n}, {m}); got {noise.shape}"
        )
    direction = np.asarray(sign, dtype=np.float64)
    if direction.shape not in ((), weight.shape) or not np.isin(direction, (-1.0, 1.0)).all():
        raise ValueError(f"sign must be 1 or -1, of shape {weight.shape}; got {direction.shape}")
    code = np.arange(n) if target is None else checks.check_codes("target", target, n)
    n_targets = np.shape(estimate.influence)[0]
    whole = rating_design(chance, target=code, n_targets=n_targets, design=design)
    if whole.pi.size != 2 * n_targets:
        raise ValueError(
            f"design must have {n_targets} rows, one a target; got {whole.pi.size // 2}"
        )
    asked = (chance * judged)[:, None]
    of_systems = np.broadcast_to(noise[:, None] if noise.ndim == 1 else noise, (n, m))
    spread = np.divide(of_systems, asked, out=np.zeros((n, m)), where=asked > 0)
    moved = (direction * weight).reshape(n, m)
    terms = sum_by_code(moved * np.sqrt(spread), code, n_targets)
    of_targets = np.reshape(estimate.influence, (n_targets, m))
    influence = np.concatenate([of_targets, terms / np.sqrt(1 - HALF)])
    degrees = np.minimum(np.maximum(np.asarray(estimate.n) - 1, 0), freedom)
    noise_left = (terms**2).sum(axis=0)
    variance = np.asarray(estimate.variance) + noise_left
    # Annotator noise remains, however certain the model is of the mean.
    anticipated = np.asarray(estimate.anticipated) + noise_left
    if not single:
        return replace(
            estimate,
            variance=variance,
            anticipated=anticipated,
            influence=influence,
            degrees_of_freedom=np.minimum(estimate.degrees_of_freedom, degrees),
        )
    return replace(
        estimate,
        variance=float(variance[0]),
        anticipated=float(anticipated[0]),
        influence=influence[:, 0],
        degrees_of_freedom=float(np.minimum(estimate.degrees_of_freedom, degrees)),
    )


def judgment_variance(rating: ArrayLike, item: ArrayLike) -> float:
    """Return the variance of single ratings of one output (σ_a²), estimated from second ratings of
    randomly drawn outputs.

    Pooled within outputs, ``W = Σ_i Σ_k (y_ik − ȳ_i)²`` with ``d = Σ_i (c_i − 1)`` degrees of
    freedom. Ratings of 0 and 1 give ``(W + ¼)/(d + ½)``: of k pairs of which x differ (x + ½)/(2 (k
    + ½)). Others give ``(W + w T)/(d + w)``, T the variance of all ratings here, so that people who
    agree on the few outputs that two rated do not make an interval a point. The weight w is 1 where
    most pairs agree and a few differ widely, and less where all differ alike: the squared
    coefficient of variation of the outputs' sums of squares over 10, at most 1.

    Parameters
    ----------
    rating : (n,) array
        Single ratings in [0, 1] of the outputs whose second opinions were drawn at random; NaN is
        left out. Second opinions that exist because systems wrote the same text do not belong here:
        such texts are the easy ones.
    item : (n,) integer array
        Which output each is of.

    Returns
    -------
    float
        In (0, ¼]; NaN with fewer than 20 degrees of freedom (pairs): the noise is not separable
        from what outputs differ by, and :func:`verdict_variance` is an upper bound.

    Raises
    ------
    ValueError
        If shapes disagree or a number is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> pairs = np.repeat(np.arange(20), 2)
    >>> rating = np.ones(40)
    >>> rating[:10:2] = 0.0  # 5 of 20 pairs differ
    >>> round(judgment_variance(rating, pairs), 4), judgment_variance(rating[:30], pairs[:30])
    (0.1341, nan)
    """
    ratings = checks.check_labels("rating", rating)
    code = checks.check_codes("item", item, ratings.size)
    rated = ~np.isnan(ratings)
    ratings, code = ratings[rated], np.unique(code[rated], return_inverse=True)[1]
    count = np.bincount(code)
    freedom = ratings.size - count.size
    if freedom < FEWEST_PAIRS:
        return float("nan")
    centre = sum_by_code(ratings, code, count.size) / count
    squares = sum_by_code((ratings - centre[code]) ** 2, code, count.size)[count > 1]
    within = float(squares.sum())
    if np.isin(ratings, (0.0, 1.0)).all():
        variance = (within + 0.25) / (freedom + 0.5)
    else:
        uneven = float(squares.var(ddof=1) / squares.mean() ** 2) if within > 0 else EVENNESS
        weight = min(uneven / EVENNESS, 1.0)
        variance = (within + weight * float(ratings.var(ddof=1))) / (freedom + weight)
    return min(variance, WIDEST)


def verdict_variance(verdict: ArrayLike, member: ArrayLike) -> FloatArray:
    """Return the variance of the mean ratings of each system's outputs: an upper bound of the
    annotator noise in them, if that cannot be estimated separately.

    ``(Σ (ȳ − mean)² + ¼)/n`` over the n rated outputs of a system, at most ¼: so an interval never
    has width 0 because a few outputs got equal ratings.

    Parameters
    ----------
    verdict : (n, m) array
        Mean rating of each output as each system's, in [0, 1]; NaN where there is none.
    member : (n, m) array
        Which systems wrote each output: anything but 0.

    Returns
    -------
    (m,) array
        ¼ for a system without a rating.

    Raises
    ------
    ValueError
        If shapes disagree or a number is out of range.

    Examples
    --------
    >>> verdict_variance([[1.0], [0.0], [1.0], [0.0], [0.5]], [[1]] * 5).tolist()
    [0.25]
    >>> verdict_variance([[0.5], [0.5]], [[1], [1]]).tolist()
    [0.125]
    """
    values = checks.check_labels("verdict", verdict)
    wrote = np.asarray(member) != 0
    if values.ndim != 2 or wrote.shape != values.shape:
        raise ValueError(f"verdict and member must be (n, m); got {values.shape} and {wrote.shape}")
    used = wrote & ~np.isnan(values)
    n = np.maximum(used.sum(axis=0), 1)
    mean = np.where(used, values, 0.0).sum(axis=0) / n
    squares = np.where(used, (values - mean) ** 2, 0.0).sum(axis=0)
    bound: FloatArray = np.minimum((squares + WIDEST) / n, WIDEST)
    return bound


def rating_variance_of_outputs(
    within: ArrayLike, count: ArrayLike, member: ArrayLike, sigma_a2: float
) -> FloatArray:
    """Return the variance of single ratings (σ_a²) of each output, estimated from the outputs of
    the same systems.

    ``v_i = σ_a² (W_i + 6 w)/(w (d_i + 6))``, at most ¼, with ``W_i = Σ Σ_k (y_k − ȳ)²`` and ``d_i =
    Σ (c − 1)`` over what system i wrote, and w their quotient over all outputs; of an output the
    mean over its systems. σ_a² itself where there is one system, or nobody differs.

    People agree on the texts of one and differ on those of another: of 30 and 100 outputs that were
    all rated, a fifth of them twice, intervals of 80 % held 0.66 of the time for the one and 0.98
    for the other with one variance for all. What few second opinions show is drawn to what all do.

    Parameters
    ----------
    within : (n,) array
        Σ_k (y_k − ȳ)² of each output's ratings, at least 0.
    count : (n,) array
        How many ratings each has.
    member : (n, m) array
        Which systems wrote it: anything but 0.
    sigma_a2 : float
        Of all outputs: :func:`judgment_variance`.

    Returns
    -------
    (n,) array
        σ_a² itself of what nobody wrote.

    Raises
    ------
    ValueError
        If shapes disagree or a number is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> rating_variance_of_outputs([0.4, 0.0], [2, 2], np.eye(2), 0.2).round(2).tolist()
    [0.23, 0.17]
    """
    squares, judged = (
        checks.check_non_negative("within", within),
        checks.check_non_negative("count", count),
    )
    wrote = (np.asarray(member) != 0).astype(np.float64)
    if squares.ndim != 1 or judged.shape != squares.shape or wrote.shape[:1] != squares.shape:
        raise ValueError(
            "within, count and member must have as many rows;"
            f" got {squares.shape}, {judged.shape} and {wrote.shape}"
        )
    pooled = float(checks.check_non_negative("sigma_a2", sigma_a2))
    freedom = np.maximum(judged - 1, 0)
    seen = float(squares.sum()) / max(float(freedom.sum()), 1.0)
    if seen == 0:
        return np.full(squares.size, pooled)
    share = (squares @ wrote / seen + SUPPOSED) / (freedom @ wrote + SUPPOSED)
    of_systems = np.minimum(pooled * share, WIDEST)
    writers = wrote.sum(axis=1)
    mean: FloatArray = np.where(writers > 0, wrote @ of_systems / np.maximum(writers, 1), pooled)
    return mean


def expected_rating_error(
    rating: ArrayLike, g: ArrayLike, system: ArrayLike, n_systems: int | None = None
) -> FloatArray:
    """Return v of each system: the expected squared error of the guess g for a rating of one of its
    outputs.

    ``v_i = (Σ_i (ȳ − g)² + 5 v)/(n_i + 5)``, ``v = (Σ (ȳ − g)² + ¼)/(n + 1)`` over all systems: few
    ratings of one system are shrunk to the mean of all systems, and few ratings in all to the
    largest variance of ratings between 0 and 1, so that no system looks certain because three
    people agreed.

    Parameters
    ----------
    rating, g : (n,) array
        Mean ratings in [0, 1] (NaN is left out) and cross-fitted guesses.
    system : (n,) integer array
        Whose each is.
    n_systems : int, optional
        The highest code + 1 if left out.

    Returns
    -------
    (n_systems,) array

    Raises
    ------
    ValueError
        If shapes disagree or a number is out of range.

    Examples
    --------
    >>> # the second has no rating
    >>> expected_rating_error([1.0, 0.0], [0.5, 0.5], [0, 0], 2).tolist()
    [0.25, 0.25]
    """
    ratings, guess = checks.check_labels("rating", rating), checks.check_probabilities("g", g)
    if ratings.ndim != 1 or guess.shape != ratings.shape:
        raise ValueError(f"rating and g must be (n,); got {ratings.shape} and {guess.shape}")
    owner = checks.check_codes("system", system, ratings.size)
    m = int(owner.max(initial=-1)) + 1 if n_systems is None else n_systems
    rated = np.flatnonzero(~np.isnan(ratings))
    squares = (ratings[rated] - guess[rated]) ** 2
    together = (float(squares.sum()) + WIDEST) / (rated.size + 1)
    count = np.bincount(owner[rated], minlength=m)
    error: FloatArray = (sum_by_code(squares, owner[rated], m) + LENT * together) / (count + LENT)
    return error


def anticipated_rating_variance(
    p_all: ArrayLike | sparse.sparray, pi_all: ArrayLike, error: ArrayLike
) -> FloatArray:
    """Return the expected variance of the difference estimate of ratings, as a lower bound of the
    variance.

    ``A_i = Σ p_i² (1/π − 1) v``: as ``horvitz_thompson.anticipated_variance``, but ratings are not
    right or wrong, so their error v is estimated from the ratings (:func:`expected_rating_error`),
    not by ``g (1 − g)``. The annotator noise at π = 1 is added by
    :func:`estimate_with_rating_noise`.

    Parameters
    ----------
    p_all : (N, m) array, dense or scipy.sparse
        Weights of **all** outputs; one output a target.
    pi_all : (N,) array
        Inclusion probabilities, in [0, 1].
    error : (N,) array
        v of each output, at least 0.

    Returns
    -------
    (m,) array
        Infinite where an output with weight can never be asked about.

    Raises
    ------
    ValueError
        If shapes disagree or a number is out of range.

    Examples
    --------
    >>> anticipated_rating_variance([[0.5], [0.5]], [0.5, 1.0], [0.2, 0.2]).tolist()
    [0.05]
    """
    weights = sparse.csr_array(p_all, dtype=np.float64, copy=True)
    checks.check_non_negative("p_all", weights.data)
    weights.eliminate_zeros()
    chance, v = (
        checks.check_probabilities("pi_all", pi_all),
        checks.check_non_negative("error", error),
    )
    if chance.shape != (weights.shape[0],) or v.shape != chance.shape:
        raise ValueError(
            f"p_all, pi_all and error must agree; got {weights.shape}, {chance.shape}, {v.shape}"
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(v > 0, v * (1 / chance - 1), 0.0)
    total: FloatArray = np.asarray(weights.power(2).multiply(each[:, None]).sum(axis=0)).ravel()
    return total


@dataclass(frozen=True, eq=False)
class JudgeEffect:
    """The differences between the mean levels of judges, over all outputs that they rate.

    Attributes
    ----------
    sigma_j2 : float
        Variance of the judges' own levels, a part of σ_a². May be negative by chance, which says
        that none is seen; NaN where no judge rated two outputs, or only one judge did.
    n_judges, n_judgments : int
        How many there are.
    n_pairs : int
        Pairs of ratings of different outputs by one judge.
    noise : float
        What the rest of single ratings adds to the mean of one judge, in the mean over judges: with
        it σ̂_j² varies by about 2 (σ_j² + noise)²/(judges − 1).

    Examples
    --------
    >>> effect = judge_effect([0.9, 0.7, 0.1, 0.3], judge=[0, 0, 1, 1], item=[0, 1, 2, 3])
    >>> round(effect.sigma_j2, 2), effect.n_judges
    (0.17, 2)
    """

    sigma_j2: float
    n_judges: int
    n_judgments: int
    n_pairs: int
    noise: float = 0.0


def judge_effect(residual: ArrayLike, judge: ArrayLike, item: ArrayLike) -> JudgeEffect:
    """Return the variance between judges, from ratings of different outputs.

    ``σ̂_j² = mean of r r′ over pairs by one judge − mean of r r′ over pairs by two``, both over
    pairs of different outputs; each judge's own mean counts by the number of their judgments, as in
    a one-way analysis of variance, so that a judge who gave half of the judgments does not
    dominate. If outputs are handed to judges at random, it is exactly unbiased for the variance of
    their levels, whatever the outputs are like and however many judgments each has.

    Parameters
    ----------
    residual : (n,) array
        Single ratings less what is expected of the output (its g, or the system's mean): the nearer
        to 0 on average, the less noise. NaN is left out.
    judge, item : (n,) integer array
        Who judged, and which output.

    Returns
    -------
    JudgeEffect

    Raises
    ------
    ValueError
        If shapes disagree or a residual is infinite.

    Examples
    --------
    >>> judge_effect([0.5, -0.5, 0.5, -0.5], judge=[0, 0, 1, 1], item=[0, 1, 2, 3]).sigma_j2
    -0.25
    """
    r = np.asarray(residual, dtype=np.float64)
    if r.ndim != 1 or np.isinf(r).any():
        raise ValueError(f"residual must be finite or NaN, in one dimension; got shape {r.shape}")
    defined = ~np.isnan(r)
    person = np.unique(checks.check_codes("judge", judge, r.size)[defined], return_inverse=True)[1]
    output = np.unique(checks.check_codes("item", item, r.size)[defined], return_inverse=True)[1]
    r = r[defined]
    n_judges, n_items = int(person.max(initial=-1)) + 1, int(output.max(initial=-1)) + 1
    both = np.unique(person * max(n_items, 1) + output, return_inverse=True)[1]
    owner = np.zeros(int(both.max(initial=-1)) + 1, dtype=np.int64)
    owner[both] = person
    of_judge, of_item, of_both = (_sums_by_code(r, code) for code in (person, output, both))
    # Of each judge Σ r r′ over pairs of different outputs, and how many these are, twice.
    own = of_judge[0] ** 2 - sum_by_code(of_both[0] ** 2, owner, n_judges)
    n_own = of_judge[1] ** 2 - sum_by_code(of_both[1] ** 2, owner, n_judges)
    whole, n_pairs = float(r.sum() ** 2), float(r.size**2)
    other = whole - float(of_item[0] @ of_item[0]) - float(own.sum())
    n_other = n_pairs - float(of_item[1] @ of_item[1]) - float(n_own.sum())
    n_same, paired = float(n_own.sum()), n_own > 0
    estimable = n_same > 0 and n_other > 0
    value = float("nan")
    if estimable:
        means = own[paired] / n_own[paired]
        value = float(np.average(means, weights=of_judge[1][paired])) - other / n_other
    remaining = max(float(r.var()) - max(value, 0.0), 0.0) if estimable else 0.0
    noise = remaining * float((1 / np.bincount(person)).mean()) if estimable else 0.0
    return JudgeEffect(value, n_judges, int(r.size), round(n_same / 2), noise)


def _sums_by_code(r: FloatArray, code: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the sum and the number of the values r with each code."""
    n_codes = int(code.max(initial=-1)) + 1
    return sum_by_code(r, code, n_codes), np.bincount(code, minlength=n_codes).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Crossed:
    """An estimate that also treats its judges as a random sample.

    Attributes
    ----------
    estimate : Estimate
        With the judges' term in its variance, and the degrees of freedom that go with it. Its
        influence knows nothing of judges: differences of systems need ``covariance``.
    covariance : (m, m) array
        What judges add to the covariance of the systems.
    effect : JudgeEffect
        Where it comes from.
    telling : bool or (m,) boolean array
        Whether the standard error grows by more than a tenth: then print both.

    Examples
    --------
    >>> import numpy as np
    >>> alone = Estimate(0.5, 0.01, 4, np.zeros(4))
    >>> effect = JudgeEffect(sigma_j2=0.12, n_judges=2, n_judgments=4, n_pairs=2)
    >>> judge, row = [0, 0, 1, 1], [0, 1, 2, 3]
    >>> crossed = add_judge_effect(alone, np.full(4, 0.25), np.ones(4), judge, row, effect)
    >>> round(crossed.estimate.variance, 3), crossed.telling
    (0.04, True)
    """

    estimate: Estimate
    covariance: FloatArray
    effect: JudgeEffect
    telling: bool | BoolArray


def add_judge_effect(
    estimate: Estimate,
    p: ArrayLike,
    pi: ArrayLike,
    judge: ArrayLike,
    row: ArrayLike,
    effect: JudgeEffect,
    *,
    count: ArrayLike | None = None,
) -> Crossed:
    """Return the estimate with item × judge crossed effects in its variance.

    ``V + σ̂_j² (Σ_j A_j² − Σ_k w_k²)``, w = p/(c π) the weight of a judgment and A_j the sum of the
    weights of judge j: the ratings of one judge are correlated; the part of single ratings is in V
    already. Few judges are few degrees of freedom, as far as V rests on them (Satterthwaite's
    rule): with ``d_j = (1 − Σ s²)²/(Σ s² − 2 Σ s³ + (Σ s²)²)``, s = A/Σ A, those of the sum of
    squares between judges (one less than there are judges, if they rate equally many), and the
    noise that is left in a judge's mean,

        V²/d = (V − σ̂_j² Σ A²)²/d_0 + ((σ̂_j² + noise) Σ A²)²/d_j,    d at most d_0

    where d_0 is what the estimate had without them.

    Parameters
    ----------
    estimate : Estimate
        From :func:`estimate_with_rating_noise`.
    p : (n,) or (n, m) array
        Weight of each rated target under each system; one row a target.
    pi : (n,) array
        Inclusion probability of each.
    judge : (k,) integer array
        Who gave each judgment.
    row : (k,) integer array
        Which row of ``p`` each judgment is about.
    effect : JudgeEffect
        From :func:`judge_effect`; a negative or unknown σ_j² adds nothing.
    count : (n,) array, optional
        c, judgments of each row's target, those by people of whom is not known who they are among
        them; those given here if left out.

    Returns
    -------
    Crossed

    Raises
    ------
    ValueError
        If shapes disagree or a number is out of range.

    Examples
    --------
    One judge rated everything: whatever their own level is, it is in every rating.

    >>> import numpy as np
    >>> alone = Estimate(0.5, 0.01, 2, np.zeros(2))
    >>> effect = JudgeEffect(sigma_j2=0.04, n_judges=1, n_judgments=2, n_pairs=1)
    >>> add_judge_effect(alone, np.full(2, 0.5), np.ones(2), [0, 0], [0, 1],
    ...     effect).estimate.variance
    0.03
    """
    weight, chance = (
        checks.check_non_negative("p", p),
        checks.check_positive_probabilities("pi", pi),
    )
    n = weight.shape[0]
    if chance.shape != (n,):
        raise ValueError(f"pi must have shape ({n},); got {chance.shape}")
    row_of_rating = checks.check_codes("row", row, np.size(row))
    people = checks.dense_codes("judge", judge, row_of_rating.size)
    if row_of_rating.max(initial=-1) >= n:
        raise ValueError(f"row must be below {n}; got {row_of_rating.max()}")
    single = weight.ndim == 1
    m = 1 if single else weight.shape[1]
    given = np.bincount(row_of_rating, minlength=n)
    judged = given if count is None else checks.check_non_negative("count", count)
    if judged.shape != (n,) or np.any(judged < given):
        raise ValueError(f"count must have shape ({n},) and be at least the judgments given")
    per_target = np.maximum(judged, 1)
    each = (weight.reshape(n, m) / (chance * per_target)[:, None])[row_of_rating]
    loads = sum_by_code(each, people, int(people.max(initial=-1)) + 1)
    level = max(effect.sigma_j2, 0.0) if np.isfinite(effect.sigma_j2) else 0.0
    covariance: FloatArray = level * (loads.T @ loads - each.T @ each)
    added = np.maximum(np.diag(covariance), 0.0)
    before = np.broadcast_to(np.asarray(estimate.variance, dtype=np.float64), added.shape)
    variance = before + added
    degrees = np.broadcast_to(np.asarray(estimate.degrees_of_freedom, np.float64), added.shape)
    degrees = np.where(
        added > 0, _degrees_of_freedom(variance, degrees, level, effect.noise, loads), degrees
    )
    telling = before + added > TELLING**2 * before
    widened = replace(
        estimate,
        variance=_scalar_if_single(variance, single),
        degrees_of_freedom=_scalar_if_single(degrees, single),
    )
    return Crossed(widened, covariance, effect, bool(telling[0]) if single else telling)


def _degrees_of_freedom(
    variance: FloatArray, without: FloatArray, level: float, noise: float, loads: FloatArray
) -> FloatArray:
    """Return the degrees of freedom of a variance to which judges with these loads contribute."""
    load = (loads**2).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = loads / loads.sum(axis=0)
        second, third = (share**2).sum(axis=0), (share**3).sum(axis=0)
        of_judges = (1 - second) ** 2 / (second - 2 * third + second**2)
        remaining = np.maximum(variance - level * load, 0.0)
        spread = remaining**2 / without + ((level + noise) * load) ** 2 / of_judges
        degrees: FloatArray = np.minimum(variance**2 / spread, without)
    return degrees


def _scalar_if_single(values: FloatArray, single: bool) -> Numbers:
    return float_or_array(values[0]) if single else values
