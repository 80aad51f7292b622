"""Says what would change on the board if some labels were different, without changing any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from kbpo.evaluation.data import read
from kbpo.instances.record import NewLabel, record
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.recall import recall_criteria
from kbpo.tracks.registry import kind_of
from scoring.score import DEFAULT, Key, default_estimates, rows


@dataclass(frozen=True)
class Change:
    """One number of one system, as it is and as it would be; None where it is undefined."""

    submission: Submission
    quantity: str
    before: float | None
    after: float | None
    low80: float | None
    high80: float | None
    rank_before: int
    rank_after: int


def what_if(track: Track, labels: Sequence[NewLabel]) -> list[Change]:
    """F1 and precision (guaranteed distribution and criterion) and recall of every system, with
    these labels besides.

    The labels are written in a transaction that is rolled back: so the numbers are those that the
    same labels will give, precedence and all, and nobody ever sees them before that.
    """
    before = _numbers(track)
    with transaction.atomic():
        record(labels)
        after = _numbers(track)
        transaction.set_rollback(True)
    submissions = Submission.objects.select_related("team").in_bulk(
        {submission for submission, _ in before}
    )
    ranks = [_ranks(numbers) for numbers in (before, after)]
    return [
        Change(
            submissions[pk],
            quantity,
            value,
            after[pk, quantity][0],
            low,
            high,
            ranks[0][pk, quantity],
            ranks[1][pk, quantity],
        )
        for (pk, quantity), (value, low, high) in before.items()
    ]


Numbers = dict[tuple[int, str], tuple[float | None, float | None, float | None]]
"""(submission, quantity) -> value and the ends of its 80 % interval"""


def _numbers(track: Track) -> Numbers:
    data, kind = read(track), kind_of(track)
    if not data.judged.size:
        return {}
    estimates = default_estimates(data, kind.criterion_names(), recall_criteria(track))
    wanted: list[Key] = [
        (quantity.name, track.criterion, track.distribution if quantity.weighed else kind.unweighed)
        for quantity in kind.compared()
    ]
    return {
        (data.systems[row.column], key[0]): (
            _known(row.value),
            _known(row.low80),
            _known(row.high80),
        )
        for key in wanted
        if key in estimates
        for row in rows(data, estimates[key][0], *key, DEFAULT)
        if data.shown[row.column]
    }


def _known(value: float) -> float | None:
    return None if value != value else value


def _ranks(numbers: Numbers) -> dict[tuple[int, str], int]:
    """The place of each system by each number, from 1; undefined ones last."""
    places = {}
    for quantity in {quantity for _, quantity in numbers}:
        number_of = {pk: number[0] for (pk, name), number in numbers.items() if name == quantity}
        order = sorted(
            number_of, key=lambda pk: (number_of[pk] is None, -(number_of[pk] or 0.0), pk)
        )
        places.update({(pk, quantity): place for place, pk in enumerate(order, start=1)})
    return places
