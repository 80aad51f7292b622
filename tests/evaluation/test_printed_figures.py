"""What is printed is a share."""

from __future__ import annotations

import pytest

from kbpo.evaluation.leaderboard import Figure
from kbpo.evaluation.models import Estimate


@pytest.mark.parametrize(("value", "printed"), [(-1.13, 0.0), (0.4, 0.4), (1.7, 1.0), (None, None)])
def test_a_figure_never_leaves_its_range(value: float | None, printed: float | None) -> None:
    row = Estimate(
        value=value,
        low80=0.0,
        high80=1.0,
        low95=0.0,
        high95=1.0,
        n_labels=15,
        n_missing=0,
        n_documents=2,
    )
    assert Figure.of(row).value == printed
