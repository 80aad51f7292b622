"""The admins' page of documents that are read in full: the price first, then the order, then where
it is.
"""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.test import Client

from annotation.models import DocumentOrder, Question
from annotation.questions.order import order_documents, plan_documents
from kbpo.accounts.models import Audit
from tests.conftest import Toy

PAGE = "/desk/tracks/toy/reading/"
pytestmark = pytest.mark.django_db


def test_the_price_stands_there_before_anything_is_spent(toy: Toy, admin: Client) -> None:
    plan = plan_documents(toy.track, 2)
    page = admin.get(PAGE, {"n": 2, "token": "0.75", "pair": "5"}).content.decode()
    assert f"Order, at most ${plan.at_most}" in page and not DocumentOrder.objects.exists()
    order = {"n": 2, "token": "0.75", "pair": "5", "at_most": str(plan.at_most)}
    unsaid = admin.post(PAGE, order)
    assert unsaid.status_code == 409 and "say what they are read for" in unsaid.content.decode()
    assert admin.post(PAGE, order | {"why": "For recall."}).status_code == 302
    assert "2 not asked yet" in admin.get(PAGE).content.decode()
    assert DocumentOrder.objects.get().who == toy.users["Admin"]


REFUSED = [
    ({"n": 2, "at_most": "0.01"}, "Look at the price again"),
    ({"n": 2}, "Look at the price first"),
    ({"n": 2, "at_most": "NaN"}, "Look at the price first"),
    ({"n": 9, "at_most": "999"}, "Only 4 documents are left"),
    ({"more": "77"}, "There is no such order"),
    ({"more": "x" * 40}, "There is no such order"),
]


def test_what_cannot_be_is_said_in_a_sentence(toy: Toy, admin: Client) -> None:
    for said, sentence in REFUSED:
        response = admin.post(PAGE, {"token": "0.75", "pair": "5", "why": "For recall.", **said})
        assert response.status_code == 409 and sentence in response.content.decode()
        assert not DocumentOrder.objects.exists()


def test_an_order_that_lacks_money_says_so_and_takes_more(toy: Toy, admin: Client) -> None:
    plan = plan_documents(toy.track, 1)
    order = order_documents(toy.track, 1, plan.at_most)
    from annotation.hits import publish
    from annotation.questions import read_documents

    read_documents.tick()
    Question.objects.update(price=Decimal("90.00"))
    publish.tick()
    needed = f"${90 * 3 - plan.at_most}"
    page = admin.get(PAGE).content.decode()
    assert f"Reserve {needed} more" in page and "of the reservation is left" in page
    unsaid = admin.post(PAGE, {"more": str(order.pk)})
    assert unsaid.status_code == 409 and "say why it may cost more" in unsaid.content.decode()
    admin.post(PAGE, {"more": str(order.pk), "why": "These are long."})
    assert Audit.objects.get(what="add money").why == "These are long."
    assert "Reserve $" not in admin.get(PAGE).content.decode()
    publish.tick()
    assert Question.objects.get().status == "published"
