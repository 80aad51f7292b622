"""Intervals that are looked at while the variance falls to its planned value."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from estimators.intervals import interim_width_factor


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("span", [2.5, 5.0, 14.0])
def test_paths_leave_them_about_as_rarely_as_the_level_says(span: float, level: float) -> None:
    rng, n_paths, n_steps = np.random.default_rng(4), 20_000, 200
    # B(t)/√t in log t is a stationary autoregression.
    rho = np.exp(-np.log(span) / n_steps / 2)
    x = rng.standard_normal(n_paths)
    largest = np.abs(x)
    for _ in range(n_steps):
        x = rho * x + np.sqrt(1 - rho**2) * rng.standard_normal(n_paths)
        np.maximum(largest, np.abs(x), out=largest)
    limit = interim_width_factor(span, level) * NormalDist().inv_cdf(0.5 + level / 2)
    missed = float((largest > limit).mean())
    assert 0.75 * (1 - level) < missed < 1.02 * (1 - level)


def test_the_factor_grows_with_the_span_and_stays_between_its_ends() -> None:
    factors = [interim_width_factor(span) for span in (1.0, 2.5, 3.0, 5.0, 50.0, 900.0)]
    assert factors == sorted(factors) and factors[0] == factors[1] and factors[-1] == factors[-2]
