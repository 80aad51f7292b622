"""Reads which two systems of a board are told apart soonest, and what that takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations

from django.db.models import Max

from kbpo.evaluation.compare.difference import error_at
from kbpo.evaluation.leaderboard import Board, Row, ranking
from kbpo.money.models import Price
from kbpo.sampling.models import SamplingDistribution
from kbpo.tracks.registry import kind_of


@dataclass(frozen=True)
class Parting:
    """Two systems that a board cannot tell apart, the better one first."""

    better: Row
    worse: Row
    judgments: int | None
    """About so many more of both together; None where fewer are left"""
    at_most: Decimal | None
    """What these cost; None where there is no price"""


def soonest(shown: Board) -> Parting | None:
    """The two that need the fewest judgments, if all pairs keep their difference and variances fall
    with the number of judgments; None where all are told apart, nobody is asked, or the board ranks
    by what is no mean of verdicts.
    """
    if shown.past or shown.evaluation is None or shown.track.status != "open":
        return None
    needs = sorted(_needs(shown), key=lambda need: need[0])
    if not needs:
        return None
    needed, better, worse = needs[0]
    left = _left(better, worse)
    if left is None:
        return None
    judgments = _rounded(needed) if needed <= left else None
    return Parting(better, worse, judgments, _cost(shown, judgments))


def _needs(shown: Board) -> Iterator[tuple[float, Row, Row]]:
    """Yields how many more judgments each pair that is not told apart needs."""
    assert shown.evaluation is not None
    quantity, stored = ranking(
        shown.evaluation,
        distribution=shown.distribution,
        criterion=shown.criterion,
        population=shown.population,
    )
    kind = kind_of(shown.track)
    if quantity != kind.mean or "different" not in stored:
        return
    sign = 1.0 if kind.higher_is_better(quantity, shown.criterion) else -1.0
    place = {pk: column for column, pk in enumerate(stored["systems"])}
    rows = [(sign * value, row) for row in shown.rows if (value := _open_mean(row, place))]
    for (value, row), (other, beside) in combinations(sorted(rows, key=_first, reverse=True), 2):
        i, k = place[row.submission.pk], place[beside.submission.pk]
        if value == other or stored["different"][i][k]:
            continue
        ratio = stored["critical"] * error_at(stored["covariance"], i, k) / (value - other)
        yield (row.n_labels + beside.n_labels) * max(ratio**2 - 1, 0.0), row, beside


def _first(pair: tuple[float, Row]) -> float:
    return pair[0]


def _open_mean(row: Row, place: dict[int, int]) -> float | None:
    """The mean of a system on which more judgments would tell; None of others and of references."""
    figure = row.figure(row.mean)
    is_open = figure is not None and not figure.exact and row.submission.pk in place
    return figure.value if figure and is_open and not row.submission.is_reference else None


def _left(*rows: Row) -> int | None:
    """How many judgments are left to be made of these; None where no sample was drawn of one."""
    sizes = SamplingDistribution.objects.filter(submission__in=[row.submission for row in rows])
    size_of: dict[int, int] = dict(sizes.values_list("submission").annotate(Max("n")))
    if len(size_of) < len(rows):
        return None
    return sum(size_of[row.submission.pk] - row.n_labels for row in rows)


def _rounded(needed: float) -> int:
    """A number of which nobody knows more than two digits, one at least."""
    whole = max(1, round(needed))
    return int(round(whole, 2 - len(str(whole))))


def _cost(shown: Board, judgments: int | None) -> Decimal | None:
    asking = kind_of(shown.track).asking
    price = Price.objects.filter(track=shown.track, interface=asking[0].interface).first()
    if judgments is None or price is None:
        return None
    return judgments * shown.track.workers_per_question * price.per_answer
