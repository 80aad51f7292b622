"""Where less is better the least stands first, on the board and in the ranks."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

from estimators.design import Design
from estimators.estimate import Estimate
from kbpo.evaluation.leaderboard import Row, _Order
from kbpo.submissions.models import Submission
from kbpo.tracks.kbp.track import KbpTrack
from kbpo.tracks.measures import Criterion
from kbpo.tracks.texts.track import TextTrack, rating_measures
from scoring.compare import Order, compare_boards
from scoring.data import Data
from scoring.report import Figure


class Edited(TextTrack):
    """What people changed in a text: less is better."""

    kind: ClassVar[str] = "edited"
    measures: ClassVar = rating_measures(
        Criterion("edit", "Edits", higher_is_better=False, single="mean"),
        Criterion("fluency", "Fluency", single="mean"),
    )


class Systems:
    """The part of a track's data that ranks are made of."""

    systems: ClassVar[list[int]] = [7, 8]


@pytest.mark.parametrize(("criterion", "best"), [("edit", [1, 2]), ("fluency", [2, 1])])
def test_ranks_follow_the_direction_of_the_criterion(criterion: str, best: list[int]) -> None:
    influence = np.diag([0.001, 0.001])
    estimate = Estimate(np.array([0.1, 0.9]), np.full(2, 1e-6), np.full(2, 100), influence)
    key = ("mean", criterion, "instance")
    data: Data = Systems()  # type: ignore[assignment]
    order = Order(["mean"], Edited.measures.higher_is_better)
    stored = compare_boards(order, data, {key: (estimate, Design(np.full(2, 0.5)))}, {7, 8})
    assert stored[key].best == best
    assert stored[key].systems == [7, 8]


def test_the_board_puts_the_better_end_first_and_what_is_unknown_last() -> None:
    def row(pk: int, value: float | None) -> Row:
        figure = Figure(value, n_labels=100)
        return Row(Submission(pk=pk, name=str(pk)), "mean", {"mean": figure})

    rows = [row(1, 0.9), row(2, None), row(3, 0.1)]
    kind: Any = Edited
    for criterion, order in (("edit", [3, 1, 2]), ("fluency", [1, 3, 2])):
        by = _Order(kind, "mean", criterion)
        assert [one.submission.pk for one in sorted(rows, key=by.key)] == order


def test_relations_are_ranked_by_f1_and_where_there_is_none_by_precision() -> None:
    keys = [("precision", "correct", "instance"), ("f1", "correct", "instance")]
    keys += [("recall", "correct", "instance"), ("precision", "linking", "instance")]
    order = Order(["f1", "precision"], KbpTrack.measures.higher_is_better)
    assert order.ranking_keys(keys) == {keys[1], keys[3]}
