"""A run that was given up and is tried again has the money that was given back meanwhile."""

from __future__ import annotations

from decimal import Decimal

import pytest

from annotation.budget.check_books import check_books
from annotation.budget.give_back import release_unneeded_money
from kbpo.money.models import Budget
from kbpo.money.spend import OverBudget, balance
from kbpo.sampling import draw
from kbpo.sampling.confirm import confirm_plan
from kbpo.submissions.models import Submission
from kbpo.web.research.submissions import resume_failed
from tests.conftest import Toy
from tests.test.evaluation.replay import Replay

pytestmark = pytest.mark.django_db
N = 100


def given_up(toy: Toy, *, drawn: bool) -> tuple[Replay, Submission, Decimal]:
    """A run that was given up before or after its sample was drawn, and what was given back."""
    world = Replay.of(toy, N, 0.5)
    row = world.upload("Patterns", range(N))
    world.costs = Decimal(row.plan["options"][row.plan["chosen"]]["each"])
    row = confirm_plan(row, toy.users["Rosa"])
    if drawn:
        draw.tick()
        row.refresh_from_db()
    had = balance(purpose=row.purpose).open
    assert had > 0
    row.move("failed", "It took too long. Press Retry.")
    assert release_unneeded_money(row) and balance(purpose=row.purpose).open == 0
    return world, row, had


@pytest.mark.parametrize("drawn", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_a_run_that_is_tried_again_has_its_money_back_and_reaches_its_interval(
    toy: Toy, drawn: bool
) -> None:
    """It was scored without a judgment, since nothing was left to pay for any."""
    world, row, had = given_up(toy, drawn=drawn)
    assert resume_failed(row, toy.users["Rosa"]) and not resume_failed(row, toy.users["Rosa"])
    row.refresh_from_db()
    assert row.status == ("judging" if drawn else "confirmed")
    assert balance(purpose=row.purpose).open == had
    world.until_scored(row)
    assert row.stage_reason == "target" and world.number(row).n_labels > 30
    release_unneeded_money(row)
    money = balance(purpose=row.purpose)
    assert money.open == 0 < money.spent <= had
    assert check_books() == []


def test_it_stays_given_up_where_the_money_is_not_there_any_more(toy: Toy) -> None:
    _, row, had = given_up(toy, drawn=False)
    Budget.objects.update_or_create(
        track=toy.track, scope="track", defaults={"cap": had - Decimal("0.01")}
    )
    with pytest.raises(OverBudget, match="is left under the track's budget"):
        resume_failed(row, toy.users["Rosa"])
    row.refresh_from_db()
    assert row.status == "failed" and balance(purpose=row.purpose).open == 0


def test_what_was_not_given_back_is_not_set_aside_twice(toy: Toy) -> None:
    world = Replay.of(toy, N, 0.5)
    row = confirm_plan(world.upload("Patterns", range(N)), toy.users["Rosa"])
    before = balance(purpose=row.purpose)
    row.move("failed", "It took too long. Press Retry.")
    assert resume_failed(row, toy.users["Rosa"]) and balance(purpose=row.purpose) == before
