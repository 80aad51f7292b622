"""What is printed is a share, and tells something."""

from __future__ import annotations

import pytest

from scoring.report import Figure


@pytest.mark.parametrize(("value", "printed"), [(-1.13, 0.0), (0.4, 0.4), (1.7, 1.0), (None, None)])
def test_a_figure_never_leaves_its_range(value: float | None, printed: float | None) -> None:
    figure = Figure(value, low80=0.0, high80=0.99, low95=0.0, high95=1.0, n_labels=15)
    assert figure.printed.value == printed


@pytest.mark.parametrize(
    ("low", "high", "tells"),
    [(0.0, 1.0, False), (0.0049, 0.9951, False), (0.005, 1.0, True), (0.0, 0.995, True)],
)
def test_a_figure_that_could_be_anything_is_not_told(low: float, high: float, tells: bool) -> None:
    figure = Figure(0.4, low80=low, high80=high, low95=0.0, high95=1.0).printed
    assert (figure.value is not None, not figure.is_withheld, figure.high95 is not None) == (
        tells,
    ) * 3
