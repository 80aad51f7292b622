"""Checks of arguments: every function returns the checked array as float64, or raises ValueError
with the offending value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Numbers = float | FloatArray
LARGE = 1e100
"""Largest absolute value whose squares and sums are certainly finite"""


def _raise_if_bad(name: str, array: NDArray[Any], bad: BoolArray, requirement: str) -> None:
    if not bad.any():
        return
    where = tuple(int(i) for i in np.argwhere(bad)[0])
    place = "" if not where else f" at {where[0] if len(where) == 1 else where}"
    raise ValueError(f"{name} must be {requirement}; got {array[where]!r}{place}")


def check_finite(name: str, values: ArrayLike) -> FloatArray:
    """Return ``values`` as float64; every entry is finite."""
    array = np.asarray(values, dtype=np.float64)
    _raise_if_bad(name, array, ~np.isfinite(array), "finite")
    return array


def check_non_negative(name: str, values: ArrayLike) -> FloatArray:
    """Return ``values`` as float64; every entry is finite and at least 0."""
    array = check_finite(name, values)
    _raise_if_bad(name, array, array < 0, "at least 0")
    return array


def check_probabilities(name: str, values: ArrayLike) -> FloatArray:
    """Return ``values`` as float64; every entry lies in [0, 1]."""
    array = check_finite(name, values)
    _raise_if_bad(name, array, (array < 0) | (array > 1), "in [0, 1]")
    return array


def check_positive_probabilities(name: str, values: ArrayLike) -> FloatArray:
    """Return ``values`` as float64; every entry lies in (0, 1]."""
    array = check_finite(name, values)
    _raise_if_bad(name, array, (array <= 0) | (array > 1), "in (0, 1]")
    return array


def check_labels(name: str, values: ArrayLike) -> FloatArray:
    """Return ``values`` as float64; every entry lies in [0, 1] or is NaN (missing)."""
    array = np.asarray(values, dtype=np.float64)
    _raise_if_bad(name, array, (array < 0) | (array > 1) | np.isinf(array), "in [0, 1] or NaN")
    return array


def scale_to_avoid_overflow(values: FloatArray) -> FloatArray:
    """Return columns (n, k) whose squares do not overflow: if needed, a column is divided by a
    power of two, which does not change standardised values. NaN is missing.
    """
    largest = np.fmax.reduce(np.abs(values), axis=0, initial=0.0)
    shift = np.where(largest > LARGE, np.frexp(largest)[1], 0)
    return np.asarray(np.ldexp(values, -shift))


def check_codes(name: str, values: ArrayLike, n: int, *, lowest: int = 0) -> IntArray:
    """Return ``values`` as n integer codes, none below ``lowest``."""
    array = np.asarray(values)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must hold integer codes; got dtype {array.dtype}")
    if array.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},); got {array.shape}")
    array = array.astype(np.int64)
    _raise_if_bad(name, array, array < lowest, f"at least {lowest}")
    return array


def dense_codes(name: str, values: ArrayLike, n: int) -> IntArray:
    """Return 0 … k − 1 for the k distinct codes among ``values``, in their order, so that memory
    grows with k and not with the largest code.
    """
    checked = check_codes(name, values, n)
    highest = int(checked.max(initial=-1))
    if highest < 2 * n and np.bincount(checked, minlength=highest + 1).all():
        return checked  # they are 0 … k − 1 already, as codes mostly are
    return np.unique(checked, return_inverse=True)[1].astype(np.int64)


def check_confidence_level(confidence_level: float) -> float:
    """Return the confidence level; it lies strictly between 0 and 1."""
    if not 0 < confidence_level < 1:
        raise ValueError(
            f"confidence_level must lie strictly between 0 and 1; got {confidence_level!r}"
        )
    return float(confidence_level)


def float_or_array(values: ArrayLike) -> Numbers:
    """Return a Python float for a single number, a float64 array otherwise."""
    array = np.asarray(values, dtype=np.float64)
    return float(array) if array.ndim == 0 else array
