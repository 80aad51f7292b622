"""Labelled predictions as input of the precision estimators: checked, weighted, and grouped by
target.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from estimators import checks
from estimators.checks import BoolArray, FloatArray, IntArray, float_or_array
from estimators.design import Design, target_probabilities
from estimators.estimate import Estimate
from estimators.sums import sum_by_code


class Rows(NamedTuple):
    """Labelled rows after checking, always (n, m); ``known`` marks the labels that count."""

    a: FloatArray
    residual: FloatArray
    known: BoolArray
    target: IntArray
    design: Design
    single: bool
    agreed: FloatArray
    """(m,) 1 if all labels of a system are 1, 0 if all are 0, else NaN"""


def check_labelled_rows(
    p: ArrayLike,
    pi: ArrayLike,
    label: ArrayLike,
    g: ArrayLike,
    target: ArrayLike | None,
    n_targets: int | None,
    design: Design | None,
) -> Rows:
    """Return the checked rows; the arguments are those of
    :func:`estimators.horvitz_thompson.difference_estimate`.
    """
    weight, chance = (
        checks.check_non_negative("p", p),
        checks.check_positive_probabilities("pi", pi),
    )
    single = weight.ndim == 1
    n = weight.shape[0]
    if chance.shape != (n,):
        raise ValueError(f"pi must have shape ({n},), one for each row of p; got {chance.shape}")
    weight, f, guess = columns(
        weight, checks.check_labels("label", label), checks.check_probabilities("g", g)
    )
    for name, array in (("label", f), ("g", guess)):
        if array.shape not in ((n, 1), weight.shape, (1, 1)):
            raise ValueError(
                f"{name} must have {n} rows and one column or {weight.shape[1]}; got {array.shape}"
            )
    code = np.arange(n) if target is None else checks.check_codes("target", target, n)
    labelled = ~np.isnan(f) & (weight > 0)
    if design is None:
        design = Design(target_probabilities(chance, code, n_targets=n_targets))
    a = np.where(labelled, weight / chance[:, None], 0.0)
    residual = np.where(labelled, f - guess, 0.0)
    return Rows(
        a,
        residual,
        labelled,
        code,
        design,
        single,
        _unanimous_labels(f, labelled),
    )


def _unanimous_labels(f: FloatArray, labelled: BoolArray) -> FloatArray:
    """Return (m,) 1 if all labels are 1, 0 if all are 0, else NaN."""
    one = np.all(~labelled | (f == 1), axis=0)
    nought = np.all(~labelled | (f == 0), axis=0)
    agreed: FloatArray = np.where(one == nought, np.nan, np.where(one, 1.0, 0.0))
    return agreed


def columns(*arrays: FloatArray) -> list[FloatArray]:
    """Return every array with two dimensions: a number as (1, 1), a column as (n, 1)."""
    return [a.reshape(1, 1) if a.ndim == 0 else a[:, None] if a.ndim == 1 else a for a in arrays]


def broadcast_to_systems(values: ArrayLike, m: int) -> FloatArray:
    """Return one total for each system; a single total is used for all systems."""
    array = checks.check_finite("total_g", values)
    if array.shape not in ((), (m,), (1,)):
        raise ValueError(f"totals must be one number or have shape ({m},); got {array.shape}")
    return np.broadcast_to(array, (m,)).astype(np.float64)


def sum_by_target(rows: Rows, z: FloatArray) -> FloatArray:
    """Return the terms (n, m) summed per target."""
    return sum_by_code(z, rows.target, rows.design.pi.size)


def count_labelled_targets(rows: Rows) -> IntArray:
    """Return the number of labelled targets in each system's support."""
    counts: IntArray = (sum_by_target(rows, rows.known.astype(np.float64)) > 0).sum(axis=0)
    return counts


def estimate_from_terms(
    rows: Rows,
    value: FloatArray,
    z: FloatArray,
    total_g: FloatArray,
    *,
    anticipated: ArrayLike = 0.0,
) -> Estimate:
    """Return the estimate whose terms are z (n, m), which are also its influence; as plain numbers
    if there is one system.
    """
    influence = sum_by_target(rows, z)
    variance = np.where(np.isnan(value), np.nan, rows.design.variance(influence))
    count = count_labelled_targets(rows)
    floor = np.broadcast_to(np.asarray(anticipated, dtype=np.float64), value.shape)
    if not rows.single:
        return Estimate(
            value,
            variance,
            count,
            influence,
            anticipated=floor,
            total_g=total_g,
            agreed=rows.agreed,
        )
    return Estimate(
        float(value[0]),
        float(variance[0]),
        int(count[0]),
        influence[:, 0],
        anticipated=float_or_array(floor[0]),
        total_g=float_or_array(total_g[0]),
        agreed=float_or_array(rows.agreed[0]),
    )
