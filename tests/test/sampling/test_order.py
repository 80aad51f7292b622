"""More is ordered for a scored submission: paid for once, judged on, and its interval narrows."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.db import connections, transaction

from annotation.budget.give_back import release_unneeded_money
from kbpo.money.models import Budget, Ledger
from kbpo.money.spend import OverBudget, balance
from kbpo.sampling import draw, plan
from kbpo.sampling.confirm import CannotOrder, current_order_offer, order_judgments
from kbpo.sampling.models import Further, Sample
from kbpo.sampling.plan import narrower_half_widths
from kbpo.submissions.models import Submission
from tests.conftest import Toy
from tests.test.evaluation.replay import Replay

pytestmark = pytest.mark.django_db
N = 600


def scored(toy: Toy, design: str = "poisson") -> tuple[Replay, Submission]:
    """A submission on the board, with what more would take."""

    def play() -> tuple[Replay, Submission]:
        world = Replay.of(toy, N, 0.5, design=design)
        row = world.judge(world.upload("Patterns", range(N)))
        release_unneeded_money(row)
        plan.tick()
        return world, row

    return Replay.once(toy, f"more may be ordered by {design}", play)


def half_width(world: Replay, row: Submission) -> float:
    printed = world.number(row)
    return (printed.high80 - printed.low80) / 2


def go_on(world: Replay, row: Submission) -> Submission:
    """The submission, judged until it is scored again."""
    for _ in range(14):
        row.refresh_from_db()
        if row.status == "scored":
            return row
        world.stage(row)
    raise AssertionError(f"still {row.status}: {row.reason}")


@pytest.mark.parametrize("design", ["poisson", pytest.param("iid", marks=pytest.mark.soak)])
def test_more_is_ordered_and_the_interval_narrows(toy: Toy, design: str) -> None:
    world, row = scored(toy, design)
    before, asked = half_width(world, row), Sample.objects.filter(batch__submission=row).count()
    offer = current_order_offer(row)
    assert offer is not None and offer.order == 1
    widths = list(offer.plan["options"])
    assert widths and all(float(one) < before for one in widths)
    option = offer.plan["options"]["0.030"]
    assert option["new"] > 0 and option["judged"] > 0 and Decimal(option["at_most"]) > 0
    row = order_judgments(row, toy.users["Rosa"], half_width="0.030", number=1)
    assert (row.status, row.orders, row.plan["chosen"], row.stage_reason) == (
        "confirmed",
        1,
        "0.030",
        "",
    )
    assert balance(purpose=row.purpose).open == Decimal(option["at_most"])
    row = go_on(world, row)
    gained = Sample.objects.filter(batch__submission=row).count() - asked
    assert gained > 0 and half_width(world, row) < 0.8 * before
    assert half_width(world, row) == pytest.approx(0.03, abs=0.006)
    assert row.stage_reason == "target" or design == "iid"
    assert abs(world.number(row).value - world.truth(range(N))) < 0.08
    assert not release_unneeded_money(row) or balance(purpose=row.purpose).open == 0
    plan.tick()
    again = current_order_offer(row)
    assert again is not None and again.order == 2
    assert all(float(one) < half_width(world, row) for one in again.plan["options"])


def test_the_same_order_twice_is_paid_once(toy: Toy) -> None:
    _, row = scored(toy)
    rosa = toy.users["Rosa"]
    first = order_judgments(row, rosa, half_width="0.030", number=1)
    assert order_judgments(row, rosa, half_width="0.030", number=1).orders == first.orders == 1
    assert order_judgments(row, rosa, half_width="0.030").orders == 1
    with pytest.raises(CannotOrder, match="confirmed"):
        order_judgments(row, rosa, half_width="0.025")
    with pytest.raises(CannotOrder, match="confirmed"):
        order_judgments(row, rosa, half_width="0.030", number=2)
    kept = Ledger.objects.filter(
        **row.purpose.filter_condition("purpose"), kind="reserve", key__startswith="order:"
    )
    assert [one.key for one in kept] == [f"order:{row.pk}:1"]


def test_a_small_allowance_is_said_and_nothing_is_reserved(toy: Toy) -> None:
    _, row = scored(toy)
    before = balance(purpose=row.purpose)
    Budget.objects.update_or_create(
        track=toy.track,
        scope="submission",
        defaults={"cap": before.reserved - before.released + Decimal("0.15")},
    )
    with pytest.raises(OverBudget, match=r"\$0\.15 is left"):
        order_judgments(row, toy.users["Rosa"], half_width="0.030", number=1)
    row.refresh_from_db()
    assert row.status == "scored" and row.orders == 0 and balance(purpose=row.purpose) == before


def ordered_for(money: str, toy: Toy) -> tuple[Replay, Submission, Decimal]:
    """A submission with an order that has so much money, and what is set aside for a question."""
    world, row = scored(toy)
    offer = Further.objects.get(submission=row)
    option = offer.plan["options"]["0.030"]
    option["at_most"] = money  # prices rise: others withdrew what they were paying for
    offer.save()
    return (
        world,
        order_judgments(row, toy.users["Rosa"], half_width="0.030", number=1),
        Decimal(option["each"]),
    )


def test_money_that_ends_first_is_said_and_what_was_ordered_is_offered_again(toy: Toy) -> None:
    world, row, each = ordered_for("3.00", toy)
    world.costs = each
    row = go_on(world, row)
    assert row.stage_reason == "budget"
    assert balance(purpose=row.purpose).open < each
    plan.tick()
    assert (
        "0.030" in narrower_half_widths(row) and "0.030" in current_order_offer(row).plan["options"]
    )
    asked = Sample.objects.filter(batch__submission=row, batch__settings__order=1)
    assert asked.count() == int(Decimal("3.00") / each)


def test_what_is_ordered_is_not_given_back_with_the_rest(toy: Toy) -> None:
    _, row = scored(toy)
    stale = Submission.objects.get(pk=row.pk)
    ordered = order_judgments(row, toy.users["Rosa"], half_width="0.030", number=1)
    assert stale.status == "scored" and not release_unneeded_money(stale)
    assert balance(purpose=row.purpose).open == Decimal(ordered.plan["options"]["0.030"]["at_most"])


@pytest.mark.parametrize("design", ["poisson", pytest.param("iid", marks=pytest.mark.soak)])
def test_more_is_ordered_while_it_is_judged_again(toy: Toy, design: str) -> None:
    world, row = scored(toy, design)
    row = order_judgments(row, toy.users["Rosa"], half_width="0.040", number=1)
    draw.tick()
    row.refresh_from_db()
    assert row.status == "judging"
    plan.tick()
    offer = current_order_offer(row)
    assert offer is not None and set(offer.plan["options"]) <= {"0.030", "0.025", "0.020"}
    before = balance(purpose=row.purpose).open
    row = order_judgments(row, toy.users["Rosa"], half_width="0.030", number=2)
    assert (row.status, row.orders) == ("judging", 2)
    assert balance(purpose=row.purpose).open == before + Decimal(
        offer.plan["options"]["0.030"]["at_most"]
    )
    assert order_judgments(row, toy.users["Rosa"], half_width="0.030", number=2).orders == 2
    row = go_on(world, row)
    assert half_width(world, row) == pytest.approx(0.03, abs=0.006)
    assert len(set(row.batches.values_list("settings__order", flat=True))) == 3


@pytest.mark.django_db(transaction=True)
def test_two_presses_at_the_same_moment_pay_once(toy: Toy) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with transaction.atomic():
        _, row = scored(toy)

    def press(_: int) -> int:
        try:
            return order_judgments(row, toy.users["Rosa"], half_width="0.030", number=1).orders
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(press, range(4))) == [1, 1, 1, 1]
    assert (
        Ledger.objects.filter(
            **row.purpose.filter_condition("purpose"), key__startswith="order:"
        ).count()
        == 1
    )
