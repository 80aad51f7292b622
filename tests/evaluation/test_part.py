"""Which two systems of a board are told apart soonest, and what that takes."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from kbpo.evaluation.compare import Parting, soonest
from kbpo.evaluation.leaderboard import board
from kbpo.evaluation.models import Evaluation
from kbpo.sampling.models import SamplingDistribution
from kbpo.submissions.models import Submission
from scoring.report import Comparison
from tests.conftest import Toy
from tests.reports import keep, update
from tests.web.scored import make_board

pytestmark = pytest.mark.django_db
CRITICAL = 2.0


def ranked(toy: Toy, *, variance: float, size: int, values: tuple[float, ...]) -> Evaluation:
    """A board that ranks by precision: three systems with 80 judgments each."""
    evaluation = make_board(toy, len(values))
    runs = list(Submission.objects.order_by("pk"))
    for run, value in zip(runs, values, strict=True):
        update(evaluation, {"submission": run.pk}, value=value)
        SamplingDistribution.objects.create(
            submission=run, kind=toy.track.distribution, total=1.0, n=size
        )
    error = (2 * variance) ** 0.5
    places = range(len(values))
    compared = Comparison(
        systems=[run.pk for run in runs],
        covariance=[[variance * (i == k) for k in places] for i in places],
        best=[1] * len(values),
        worst=[len(values)] * len(values),
        groups=[[run.pk for run in runs]],
        level=0.95,
        critical=CRITICAL,
        different=[[abs(one - other) > CRITICAL * error for other in values] for one in values],
    )
    keep(evaluation, comparisons={("precision", "correct", toy.track.distribution): compared})
    return evaluation


def found(toy: Toy) -> Parting | None:
    return soonest(board(toy.track, distribution=toy.track.distribution, criterion="correct"))


def told() -> Any:
    """Return the next pair as the API has it."""
    return Client().get("/api/tracks/toy/board/?criterion=correct").json()["next"]


def test_the_pair_that_needs_fewest_judgments_is_named_with_their_number_and_price(
    toy: Toy,
) -> None:
    """√(2 · 0.002) · 2 is 12.6 points: of a gap of 10 that asks for 1.6 times as many judgments."""
    ranked(toy, variance=0.002, size=1000, values=(0.5, 0.52, 0.6))
    parting = found(toy)
    assert parting is not None
    names = [row.submission.name for row in (parting.better, parting.worse)]
    assert names == ["run 2", "run 0"]
    assert parting.judgments == 96  # 160 more, times 0.6
    price = toy.track.prices.get(interface="relation").per_answer
    assert parting.at_most == 96 * toy.track.workers_per_question * price > Decimal(0)
    page = Client().get("/tracks/toy/").content.decode()
    assert "to part Team 2 run 2 from" in page and "about 96 judgments" in page
    better, worse = (row.submission.pk for row in (parting.better, parting.worse))
    cost = str(parting.at_most)
    assert told() == {"better": better, "worse": worse, "judgments": 96, "at_most": cost}


def test_nothing_is_next_where_all_are_told_apart_or_nobody_is_asked(toy: Toy) -> None:
    evaluation = ranked(toy, variance=0.000001, size=1000, values=(0.5, 0.52, 0.6))
    assert found(toy) is None and told() is None
    [(key, stored)] = evaluation.report.comparisons.items()
    keep(evaluation, comparisons={key: replace(stored, different=[[False] * 3] * 3)})
    assert found(toy) is not None
    toy.track.status = "closed"
    toy.track.save()
    assert found(toy) is None
    toy.track.status = "open"
    toy.track.save()
    SamplingDistribution.objects.all().delete()
    assert found(toy) is None, "of none a sample was drawn"
