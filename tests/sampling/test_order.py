"""More is ordered for a scored submission: paid for once, judged on, and its interval narrows."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from annotation.budget.give_back import give_back
from kbpo.evaluation import stages
from kbpo.evaluation.leaderboard import board
from kbpo.evaluation.run import evaluate
from kbpo.money.models import Budget, Ledger
from kbpo.money.spend import OverBudget, balance
from kbpo.sampling import distribution, draw
from kbpo.sampling.confirm import confirm
from kbpo.sampling.models import Further, Sample
from kbpo.sampling.open_track import freeze_track
from kbpo.sampling.order import CannotOrder, offer_of, order
from kbpo.sampling.plan import narrower, refresh
from kbpo.submissions.models import Submission
from tests.conftest import Toy
from tests.evaluation.replay import Replay

pytestmark = pytest.mark.django_db
N = 600


def scored(toy: Toy, design: str = "poisson") -> tuple[Replay, Submission]:
    """A submission on the board, with what more would take."""

    def play() -> tuple[Replay, Submission]:
        world = Replay.of(toy, N, 0.5, design=design)
        row = world.judge(world.upload("Patterns", range(N)))
        give_back(row)
        distribution.tick()
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
    offer = offer_of(row)
    assert offer is not None and offer.order == 1
    widths = list(offer.plan["options"])
    assert widths and all(float(one) < before for one in widths)
    option = offer.plan["options"]["0.030"]
    assert option["new"] > 0 and option["judged"] > 0 and Decimal(option["at_most"]) > 0
    row = order(row, toy.users["Rosa"], half_width="0.030", number=1)
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
    assert not give_back(row) or balance(purpose=row.purpose).open == 0
    distribution.tick()
    again = offer_of(row)
    assert again is not None and again.order == 2
    assert all(float(one) < half_width(world, row) for one in again.plan["options"])


def test_the_same_order_twice_is_paid_once(toy: Toy) -> None:
    _, row = scored(toy)
    rosa = toy.users["Rosa"]
    first = order(row, rosa, half_width="0.030", number=1)
    assert order(row, rosa, half_width="0.030", number=1).orders == first.orders == 1
    assert order(row, rosa, half_width="0.030").orders == 1
    with pytest.raises(CannotOrder, match="confirmed"):
        order(row, rosa, half_width="0.025")
    with pytest.raises(CannotOrder, match="confirmed"):
        order(row, rosa, half_width="0.030", number=2)
    kept = Ledger.objects.filter(
        **row.purpose.at("purpose"), kind="reserve", key__startswith="order:"
    )
    assert [one.key for one in kept] == [f"order:{row.pk}:1"]


@pytest.mark.soak
def test_a_wider_interval_or_one_that_is_not_offered_is_refused(toy: Toy) -> None:
    _, row = scored(toy)
    spent = balance(purpose=row.purpose)
    for width in ("0.050", "0.500", "nan", ""):
        with pytest.raises(CannotOrder, match="not offered"):
            order(row, toy.users["Rosa"], half_width=width)
    with pytest.raises(CannotOrder, match="reckoned anew"):
        order(row, toy.users["Rosa"], half_width="0.030", made_at=timezone.now())
    row.refresh_from_db()
    assert row.status == "scored" and row.orders == 0 and balance(purpose=row.purpose) == spent


def test_a_small_allowance_is_said_and_nothing_is_reserved(toy: Toy) -> None:
    _, row = scored(toy)
    before = balance(purpose=row.purpose)
    Budget.objects.update_or_create(
        track=toy.track,
        scope="submission",
        defaults={"cap": before.reserved - before.released + Decimal("0.15")},
    )
    with pytest.raises(OverBudget, match=r"\$0\.15 is left"):
        order(row, toy.users["Rosa"], half_width="0.030", number=1)
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
        order(row, toy.users["Rosa"], half_width="0.030", number=1),
        Decimal(option["each"]),
    )


def test_money_that_ends_first_is_said_and_what_was_ordered_is_offered_again(toy: Toy) -> None:
    world, row, each = ordered_for("3.00", toy)
    world.costs = each
    row = go_on(world, row)
    assert row.stage_reason == "budget"
    assert balance(purpose=row.purpose).open < each
    distribution.tick()
    assert "0.030" in narrower(row) and "0.030" in offer_of(row).plan["options"]
    asked = Sample.objects.filter(batch__submission=row, batch__settings__order=1)
    assert asked.count() == int(Decimal("3.00") / each)


@pytest.mark.soak
def test_what_answers_cost_less_than_was_set_aside_for_them_asks_on(toy: Toy) -> None:
    world, row, each = ordered_for("3.00", toy)
    world.costs = each / 2
    row = go_on(world, row)
    assert row.stage_reason == "budget"
    assert balance(purpose=row.purpose).open < 2 * each, "and what is left pays for no other"
    asked = Sample.objects.filter(batch__submission=row, batch__settings__order=1)
    assert asked.count() > 1.7 * int(Decimal("3.00") / each)


@pytest.mark.soak
def test_a_frozen_track_takes_no_orders(toy: Toy) -> None:
    _, row = scored(toy)
    freeze_track(toy.track)
    row.track.refresh_from_db()
    assert offer_of(row) is None, "programs are told no prices at which nothing is sold"
    with pytest.raises(CannotOrder, match="frozen"):
        order(row, toy.users["Rosa"], half_width="0.030", number=1)


@pytest.mark.soak
def test_it_stays_on_the_board_while_more_is_judged(toy: Toy) -> None:
    world, row = scored(toy)
    row = order(row, toy.users["Rosa"], half_width="0.030", number=1)
    assert row.is_on_board
    draw.tick()
    evaluate(toy.track)
    row.refresh_from_db()
    assert row.status == "judging" and row.is_on_board
    assert world.number(row).kind == "provisional"
    shown = board(toy.track, distribution="instance", criterion="relation")
    assert [one.submission.pk for one in shown.rows] == [row.pk]


@pytest.mark.soak
def test_what_more_would_take_is_reckoned_anew_when_judgments_came(toy: Toy) -> None:
    world, row = scored(toy)
    refresh(row)
    assert Further.objects.get(submission=row).status == "made"
    long_ago = timezone.now() - timedelta(hours=1)
    Submission.objects.filter(pk=row.pk).update(scored_at=long_ago - timedelta(minutes=1))
    Further.objects.filter(submission=row).update(made_at=long_ago, status_since=long_ago)
    world.judge(world.upload("Neural", range(0, N, 2)))
    refresh(row)
    assert Further.objects.get(submission=row).status == "wanted"
    assert offer_of(row) is not None, "what was reckoned can be ordered meanwhile"
    distribution.tick()
    assert Further.objects.get(submission=row, status="made").made_at > long_ago


def test_what_is_ordered_is_not_given_back_with_the_rest(toy: Toy) -> None:
    _, row = scored(toy)
    stale = Submission.objects.get(pk=row.pk)
    ordered = order(row, toy.users["Rosa"], half_width="0.030", number=1)
    assert stale.status == "scored" and not give_back(stale)
    assert balance(purpose=row.purpose).open == Decimal(ordered.plan["options"]["0.030"]["at_most"])


@pytest.mark.parametrize("design", ["poisson", pytest.param("iid", marks=pytest.mark.soak)])
def test_more_is_ordered_while_it_is_judged_again(toy: Toy, design: str) -> None:
    world, row = scored(toy, design)
    row = order(row, toy.users["Rosa"], half_width="0.040", number=1)
    draw.tick()
    row.refresh_from_db()
    assert row.status == "judging"
    distribution.tick()
    offer = offer_of(row)
    assert offer is not None and set(offer.plan["options"]) <= {"0.030", "0.025", "0.020"}
    before = balance(purpose=row.purpose).open
    row = order(row, toy.users["Rosa"], half_width="0.030", number=2)
    assert (row.status, row.orders) == ("judging", 2)
    assert balance(purpose=row.purpose).open == before + Decimal(
        offer.plan["options"]["0.030"]["at_most"]
    )
    assert order(row, toy.users["Rosa"], half_width="0.030", number=2).orders == 2
    row = go_on(world, row)
    assert half_width(world, row) == pytest.approx(0.03, abs=0.006)
    assert len(set(row.batches.values_list("settings__order", flat=True))) == 3


def test_nothing_more_is_offered_before_its_own_sample_is_answered(toy: Toy) -> None:
    """What more would take is a function of what was judged for others, too."""
    world = Replay.of(toy, N, 0.5)
    row = world.upload("Patterns", range(N))
    confirm(row, toy.users["Rosa"])
    draw.tick()
    row.refresh_from_db()
    assert row.status == "judging"
    refresh(row)
    distribution.tick()
    assert Further.objects.get(submission=row).plan["options"] and offer_of(row) is None
    with pytest.raises(CannotOrder, match="once it is scored"):
        order(row, toy.users["Rosa"], half_width="0.030", number=1)


@pytest.mark.django_db(transaction=True)
def test_two_presses_at_the_same_moment_pay_once(toy: Toy) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with transaction.atomic():
        _, row = scored(toy)

    def press(_: int) -> int:
        try:
            return order(row, toy.users["Rosa"], half_width="0.030", number=1).orders
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(press, range(4))) == [1, 1, 1, 1]
    assert Ledger.objects.filter(**row.purpose.at("purpose"), key__startswith="order:").count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_page_says_what_more_would_take_while_a_stage_is_being_scored(toy: Toy) -> None:
    """A scoring holds the runs whose stage ended, for seconds; a page that writes a row about one
    of them does not wait for it, or it would be refused.
    """
    from concurrent.futures import ThreadPoolExecutor

    with transaction.atomic():
        _, row = scored(toy)
        Submission.objects.filter(pk=row.pk).update(status="judging")
        Further.objects.all().delete()

    def look() -> int:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '300ms'")
                refresh(row)
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # what it names is looked up now
            return Further.objects.filter(submission=row).count()
        finally:
            connections.close_all()

    with transaction.atomic(), ThreadPoolExecutor(1) as pool:
        assert stages.lock([row]) == [row]
        assert pool.submit(look).result() == 1
