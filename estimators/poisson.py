"""Selection of targets to ask about: keyed random numbers, thresholds raised by water-filling, and
the order of questions.

People are asked about a target iff its random number lies below its threshold (Poisson sampling).
Thresholds only ever rise, so every system reuses all that was asked for the others. Reference:
Särndal, Swensson and Wretman (1992), section 3.5; the allocation is Neyman's (1934), started from
the thresholds that are there already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import blake2b

import numpy as np
from numpy.typing import ArrayLike

from estimators import checks
from estimators.checks import BoolArray, FloatArray, IntArray
from estimators.sums import sum_by_code

PRECISION = 1e-12  # relative tolerance of λ
PROGRESS = 0.995  # every stage plans for at most this share of the plan before
TOGETHER_ROUNDS = 300  # iterations for the multipliers of several systems
CLOSE = 1e-4  # relative distance to the goals that counts as converged
LEFT_OVER = 1e-3  # share of the first λ below which it is 0, if other systems meet the goal


def keyed_uniforms(keys: Iterable[str | bytes | int], *, key: bytes) -> FloatArray:
    """Return a number in [0, 1) for each of ``keys``, which never changes and is unpredictable
    without the secret key.

    The first 53 bits of a keyed BLAKE2b hash.

    Parameters
    ----------
    keys : iterable of str, bytes or int
        Names of the targets.
    key : bytes
        The secret, 1 to 64 bytes; whoever holds it knows what will be asked.

    Returns
    -------
    (n,) array
        Multiples of 2⁻⁵³ in [0, 1).

    Raises
    ------
    ValueError
        If the key is empty or longer than 64 bytes.

    Examples
    --------
    >>> u = keyed_uniforms(["a", "b"], key=b"secret")
    >>> bool((0 <= u).all() and (u < 1).all() and u[0] == keyed_uniforms(["a"], key=b"secret")[0])
    True
    """
    if not 1 <= len(key) <= 64:
        raise ValueError(f"key must have 1 to 64 bytes; got {len(key)}")
    start = blake2b(key=key, digest_size=8)
    return (
        np.fromiter(
            (_hash_to_53_bits(start.copy(), name) for name in keys), dtype=np.uint64
        ).astype(np.float64)
        * 2.0**-53
    )


def _hash_to_53_bits(state: blake2b, name: str | bytes | int) -> int:
    state.update(name if isinstance(name, bytes) else str(name).encode())
    return int.from_bytes(state.digest(), "big") >> 11


def water_fill(
    p: ArrayLike,
    pi_old: ArrayLike,
    v: ArrayLike,
    *,
    target_variance: float,
    target: ArrayLike | None = None,
) -> FloatArray:
    """Return the thresholds that meet a planned variance with the fewest expected new questions.

    ``π(τ) = max(π_old(τ), min(1, λ s_τ))``, ``s_τ² = Σ_{x∈τ} p(x)² v(x)``, with the least λ ≥ 0 for
    which
    ``Σ_τ s_τ² (1/π − 1) ≤ target_variance``, by bisection.

    Parameters
    ----------
    p : (n,) array
        Weights of the new system's predictions.
    pi_old : (n,) array
        Thresholds of their targets so far, in [0, 1]; 0: never considered.
    v : float or (n,) array
        Expected squared error of the model: max(g (1 − g), 0.06), or ¼ without one.
    target_variance : float
        The variance to reach, > 0.
    target : (n,) integer array, optional
        Target codes; left out, every row is its own target.

    Returns
    -------
    (n,) array
        π of each row's target, nowhere below ``pi_old``; equal to it if the variance is met
        already.

    Raises
    ------
    ValueError
        If a weight, threshold or variance is out of range, or rows of one target disagree about its
        threshold.

    Examples
    --------
    >>> import numpy as np
    >>> water_fill(np.full(4, 0.25), np.zeros(4), 0.25, target_variance=0.0625).round(6).tolist()
    [0.5, 0.5, 0.5, 0.5]
    >>> water_fill(np.full(4, 0.25), np.full(4, 0.7), 0.25, target_variance=0.0625).tolist()
    [0.7, 0.7, 0.7, 0.7]
    """
    if not target_variance > 0:
        raise ValueError(f"target_variance must be positive; got {target_variance!r}")
    old, size, code = _target_pi_and_size(p, pi_old, v, target)
    if _planned_target_variance(size, old) <= target_variance:
        return old[code]
    return _raised_thresholds(old, size, _solve_multiplier(old, size, target_variance))[code]


def water_fill_multiplier(
    p: ArrayLike,
    pi_old: ArrayLike,
    v: ArrayLike,
    *,
    target_variance: float,
    target: ArrayLike | None = None,
) -> float:
    """Return the multiplier λ of :func:`water_fill`, 0 if the variance is met already; errors as
    there.

    Parameters
    ----------
    p, pi_old, v, target_variance, target
        As for :func:`water_fill`.

    Returns
    -------
    float
        λ, at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> round(water_fill_multiplier(np.full(4, 0.25), np.zeros(4), 0.25, target_variance=0.0625), 6)
    4.0
    """
    if not target_variance > 0:
        raise ValueError(f"target_variance must be positive; got {target_variance!r}")
    old, size, _ = _target_pi_and_size(p, pi_old, v, target)
    return (
        0.0
        if _planned_target_variance(size, old) <= target_variance
        else _solve_multiplier(old, size, target_variance)
    )


def planned_variance(
    p: ArrayLike, pi: ArrayLike, v: ArrayLike, *, target: ArrayLike | None = None
) -> float:
    """Return the planned variance under thresholds π, ``Σ_τ s_τ² (1/π − 1)``; infinite if a target
    with weight has π = 0.

    Parameters
    ----------
    p, pi, v, target
        As for :func:`water_fill`.

    Returns
    -------
    float
        0 where every target is certain to be asked.

    Examples
    --------
    >>> import numpy as np
    >>> planned_variance(np.full(4, 0.25), np.full(4, 0.5), 0.25)
    0.0625
    """
    chance, size, _ = _target_pi_and_size(p, pi, v, target)
    return _planned_target_variance(size, chance)


def next_planned_variance(
    planned: float, anticipated: float, *, target_variance: float, most: float = 4.0
) -> float:
    """Return the planned variance to which the next stage should raise thresholds, after earlier
    stages did not suffice.

    ``planned · target/anticipated``: as much less than what is planned so far as the model's
    variance is too large. Always below what is planned so far, so that the stages come to an end.
    What judgments realised has no part in it: of few of them it is mostly chance, and who asks
    until it is small enough stops where it happens to be too small.

    Parameters
    ----------
    planned : float
        :func:`planned_variance` of the thresholds so far, by the model as it is now.
    anticipated : float
        :func:`estimators.horvitz_thompson.anticipated_variance`; infinite where there is none.
    target_variance : float
        What that is to reach, > 0.
    most : float
        It counts for no more than this multiple of the target.

    Returns
    -------
    float
        The ``target_variance`` of the next :func:`water_fill`; above 0, below ``planned``.

    Raises
    ------
    ValueError
        If a variance is not positive.

    Examples
    --------
    >>> round(next_planned_variance(0.04, 0.016, target_variance=0.01), 5)
    0.02488
    >>> round(next_planned_variance(0.01, 0.009, target_variance=0.01), 5)
    0.00995
    """
    for name, value in (("planned", planned), ("target_variance", target_variance)):
        if not 0 < value < np.inf:
            raise ValueError(f"{name} must be positive and finite; got {value!r}")
    if not anticipated >= 0:
        raise ValueError(f"anticipated must be 0 or more; got {anticipated!r}")
    above = float(np.clip(anticipated / target_variance, 1.0, most))
    return PROGRESS * planned / above


def joint_multipliers(
    variances: Callable[[FloatArray], FloatArray],
    goals: ArrayLike,
    single_multipliers: ArrayLike,
    sizes: ArrayLike,
) -> FloatArray:
    """Return the multipliers λ of systems that raise thresholds at the same time, to ``π =
    max(π_old, min(1, √Σ_i λ_i² s_i²))``, so that each reaches its own planned variance.

    Among all thresholds that do, these need the fewest expected new questions (by the
    Karush-Kuhn-Tucker conditions: the price of a target is divided by its reduction of each
    variance). Where a target serves several, each needs less of its own than by itself. A system
    that others carry below its goal ends with λ near 0.

    Parameters
    ----------
    variances : function of (k,) array
        The planned variances, one a system, of the thresholds that these λ make; they fall in each.
    goals : (k,) array
        What they are to come to, > 0.
    single_multipliers : (k,) array
        λ of each by itself, see :func:`multiplier`: where it begins.
    sizes : (k,) array
        Σ s² of each system.

    Returns
    -------
    (k,) array
        λ, at least 0.

    Examples
    --------
    Two systems that predict the same four things: half the square of λ each, and the thresholds of
    one.

    >>> import numpy as np
    >>> s = np.full(4, 0.125)
    >>> def planned(both):
    ...     pi = np.minimum(1, np.sqrt(both @ both) * s)
    ...     return np.full(2, np.sum(s**2 * (1 / pi - 1)))
    >>> both = joint_multipliers(planned, [0.0625] * 2, [4.0] * 2, [0.0625] * 2)
    >>> (both**2).round(3).tolist()
    [8.0, 8.0]
    """
    wanted, size = (
        checks.check_non_negative("goals", goals),
        checks.check_non_negative("sizes", sizes),
    )
    by_itself = checks.check_non_negative("alone", single_multipliers)
    multipliers = by_itself
    for _ in range(TOGETHER_ROUNDS):
        now = variances(multipliers)
        with np.errstate(over="ignore"):  # a goal of almost 0: far away
            off = now / wanted - 1
        if not np.any((off > CLOSE) | ((off < -CLOSE) & (multipliers > LEFT_OVER * by_itself))):
            break
        multipliers = np.where(multipliers > 0, multipliers * (now + size) / (wanted + size), 0.0)
    return multipliers


def _planned_target_variance(size: FloatArray, pi: FloatArray) -> float:
    """Return the planned variance ``Σ s² (1/π − 1)`` over the targets with s > 0."""
    matters = size > 0
    with np.errstate(divide="ignore", over="ignore"):
        return float(np.sum(size[matters] ** 2 * (1 / pi[matters] - 1)))


def _target_pi_and_size(
    p: ArrayLike, pi: ArrayLike, v: ArrayLike, target: ArrayLike | None
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return the threshold π and the size s = √Σ p² v of every target, and the target of
    each row.
    """
    weight, chance = checks.check_non_negative("p", p), checks.check_probabilities("pi", pi)
    spread = np.broadcast_to(checks.check_non_negative("v", v), weight.shape)
    if weight.ndim != 1 or chance.shape != weight.shape:
        raise ValueError(
            f"p and pi must have the same one-dimensional shape; got {weight.shape} and"
            f" {chance.shape}"
        )
    if target is None:
        return chance, weight * np.sqrt(spread), np.arange(weight.size)
    code = checks.dense_codes("target", target, weight.size)
    n_targets = int(code.max(initial=-1)) + 1
    each = np.ones(n_targets)
    each[code] = chance
    if not np.allclose(each[code], chance, rtol=1e-9, atol=0):
        odd = np.asarray(target)[each[code] != chance][0]
        raise ValueError(f"pi must be one number a target; target {odd} has several")
    return each, np.sqrt(sum_by_code(weight**2 * spread, code, n_targets)), code


def _raised_thresholds(old: FloatArray, size: FloatArray, multiplier: float) -> FloatArray:
    return np.maximum(old, np.minimum(1.0, multiplier * size))


def _solve_multiplier(old: FloatArray, size: FloatArray, target_variance: float) -> float:
    """Return the least multiplier λ that meets the target variance; the planned variance falls as λ
    grows.
    """
    matters = size > 0
    old, size = old[matters], size[matters]
    low, high = 0.0, float(size.sum() / (target_variance + np.sum(size**2)))
    while _planned_target_variance(size, _raised_thresholds(old, size, high)) > target_variance:
        low, high = high, 2 * high
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        if _planned_target_variance(size, _raised_thresholds(old, size, middle)) > target_variance:
            low = middle
        else:
            high = middle
    return high


def is_selected(u: ArrayLike, pi: ArrayLike) -> BoolArray:
    """Return which targets are selected: those whose random number u is below the threshold π.

    Parameters
    ----------
    u : (n,) array
        Uniform numbers in [0, 1).
    pi : (n,) array
        Thresholds; at 1 a target is always asked, at 0 never.

    Returns
    -------
    (n,) boolean array
        True where the target is asked.

    Examples
    --------
    >>> import numpy as np
    >>> is_selected(np.array([0.0, 0.5, 0.99]), np.array([0.0, 0.6, 1.0])).tolist()
    [False, True, True]
    """
    chance = checks.check_probabilities("pi", pi)
    asked: BoolArray = _u_over_pi(u, chance) < chance
    return asked


def asking_order(u: ArrayLike, pi: ArrayLike) -> IntArray:
    """Return the rows to ask about in their order: by random number over threshold, u/π.

    Stopping after any of them leaves a sample too, with probability π × the share released: the
    share is the last u/π that was asked. First come, first asked would bias scores while questions
    are open.

    Parameters
    ----------
    u, pi : (n,) array
        As for :func:`is_selected`.

    Returns
    -------
    (k,) integer array
        Indices of the selected rows, the first to ask first; equal ratios in the order of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> asking_order(np.array([0.3, 0.1, 0.9]), np.array([0.4, 0.2, 0.5])).tolist()
    [1, 0]
    """
    chance = checks.check_probabilities("pi", pi)
    asked = np.flatnonzero(is_selected(u, chance))
    return asked[np.argsort(_u_over_pi(u, chance)[asked] / chance[asked], kind="stable")]


def _u_over_pi(u: ArrayLike, pi: FloatArray) -> FloatArray:
    uniform = checks.check_probabilities("u", u)
    if uniform.shape != pi.shape:
        raise ValueError(f"u and pi must have the same shape; got {uniform.shape} and {pi.shape}")
    if np.any(uniform >= 1):
        raise ValueError("u must be below 1; got 1.0")
    return uniform
