"""The page of a scored submission offers narrower intervals, and a press or a program orders one,
once.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from kbpo.accounts.models import Token
from kbpo.money.models import Ledger
from kbpo.money.spend import balance
from kbpo.sampling import plan
from kbpo.sampling.confirm import current_order_offer
from kbpo.submissions.models import Submission
from tests.conftest import Toy
from tests.test.evaluation.replay import Replay

As = Callable[[str], Client]
pytestmark = pytest.mark.django_db
N = 500


@pytest.fixture
def row(toy: Toy, keep: Callable[..., Any]) -> Submission:
    """A scored submission with what more would take."""

    def play() -> Submission:
        world = Replay.of(toy, N, 0.5)
        found = world.judge(world.upload("Patterns", range(N)))
        plan.tick()
        return found

    found: Submission = keep("order more", play)
    return found


def orders(row: Submission) -> list[str]:
    return sorted(
        Ledger.objects.filter(
            **row.purpose.filter_condition("purpose"), key__startswith="order:"
        ).values_list("key", flat=True)
    )


def told(client: Client, row: Submission) -> str:
    return client.get(reverse("submission", args=[row.pk])).content.decode()


def form(row: Submission, width: str = "0.030") -> dict[str, str]:
    """What the page's form sends."""
    offer = current_order_offer(row)
    assert offer is not None and offer.made_at is not None
    return {"target": width, "order": str(offer.order), "offer": offer.made_at.isoformat()}


def test_the_page_offers_narrower_intervals_with_prices(row: Submission, as_user: As) -> None:
    offer = current_order_offer(row)
    assert offer is not None
    page = told(as_user("Rosa"), row)
    for width, option in offer.plan["options"].items():
        assert f'value="{width}"' in page and f"${Decimal(option['at_most']):,}" in page
    assert "is judged already, or asked for others" in page and 'name="order" value="1"' in page
    assert "data-slider-order" in page and "js/slider.js" in page
    for who in ("Tim", ""):
        assert 'id="more"' not in told(as_user(who), row)


def test_a_press_orders_and_judging_goes_on(row: Submission, as_user: As) -> None:
    price = Decimal(current_order_offer(row).plan["options"]["0.030"]["at_most"])
    before = balance(purpose=row.purpose).open
    page = (
        as_user("Rosa")
        .post(reverse("submission", args=[row.pk]), {"action": "order"} | form(row), follow=True)
        .content.decode()
    )
    row.refresh_from_db()
    assert (row.status, row.orders, str(row.target_half_width)) == ("confirmed", 1, "0.030")
    assert "More judgments were ordered: ±3" in page and f"at most ${price:,}" in page
    assert balance(purpose=row.purpose).open == before + price
    assert as_user("").get(reverse("submission", args=[row.pk])).status_code == 200, (
        "it stays on the board"
    )
    board = reverse("board", args=[row.track.slug]) + "?criterion=relation"
    assert "more is judged" in as_user("").get(board).content.decode()


def test_pressing_twice_spends_once(row: Submission, as_user: As) -> None:
    said, rosa = form(row), as_user("Rosa")
    for _ in range(3):
        rosa.post(reverse("submission", args=[row.pk]), {"action": "order"} | said)
    assert orders(row) == [f"order:{row.pk}:1"]
    row.refresh_from_db()
    assert row.orders == 1


def test_bad_input_gets_a_sentence_and_orders_nothing_and_others_cannot_order(
    row: Submission, as_user: As
) -> None:
    address, rosa = reverse("submission", args=[row.pk]), as_user("Rosa")
    for said, sentence in [
        ({"target": "0.5"}, "not offered"),
        ({"target": ""}, "not offered"),
        ({"target": "x" * 999}, "not offered"),
        ({"order": "7"}, "next order of this submission has number 1"),
        ({"offer": "2020-01-01T00:00:00+00:00"}, "computed again"),
    ]:
        page = rosa.post(
            address, {"action": "order"} | form(row) | said, follow=True
        ).content.decode()
        assert sentence in page and "Nothing was ordered" in page
    assert orders(row) == []
    assert as_user("Tim").post(address, {"action": "order"} | form(row)).status_code == 404
    assert as_user("").post(address, {"action": "order"} | form(row)).status_code == 302
    assert orders(row) == []


def test_a_budget_that_ended_is_a_state_with_its_own_sentence_and_a_way_on(
    row: Submission, as_user: As
) -> None:
    Submission.objects.filter(pk=row.pk).update(stage_reason="budget")
    page = told(as_user("Rosa"), row)
    assert "The money was spent before" in page
    assert '<details id="more-fold" open><summary class="small">Now ±' in page


def test_a_program_orders_once(row: Submission, toy: Toy) -> None:
    head = {
        "HTTP_AUTHORIZATION": "Token "
        + Token.create_with_secret(toy.users["Rosa"], "test", days=1)[1]
    }
    client, address = Client(), f"/api/submissions/{row.pk}/"
    further = client.get(address, **head).json()["further"]
    assert further["order"] == 1 and "0.030" in further["options"]
    for _ in range(2):
        answer = client.post(
            f"{address}order/",
            {"half_width": "0.030", "order": 1},
            content_type="application/json",
            **head,
        )
        assert (
            answer.status_code == 200
            and answer.json()["status"] == "confirmed"
            and answer.json()["orders"] == 1
        )
        assert answer.json()["further"] is None
    assert orders(row) == [f"order:{row.pk}:1"]
    wrong = client.post(
        f"{address}order/", {"half_width": "0.02"}, content_type="application/json", **head
    )
    assert wrong.status_code == 409 and wrong.json()["error"] == "cannot_order"
    bad = client.post(
        f"{address}order/", {"half_width": "much"}, content_type="application/json", **head
    )
    assert bad.status_code == 400
