"""What the demo leaves to people, once the simulated annotators have gone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from annotation.models import DocumentOrder
from annotation.questions.order import order_documents, plan_documents
from kbpo.tracks.models import Track
from rehearsal.demonstrate import NAME, Demo, Study
from tests.conftest import Toy

pytestmark = pytest.mark.django_db


def demo(toy: Toy, **study: object) -> Demo:
    Track.objects.filter(pk=toy.track.pk).update(name=NAME)
    made = Demo.__new__(Demo)  # without servers and files
    told = {"for_people": 1, "by_hand": True, "read_in_full": 2}
    made.study = cast(Study, SimpleNamespace(**(told | study)))
    return made


def test_a_document_is_left_to_people_also_where_annotators_read_some(toy: Toy) -> None:
    order_documents(toy.track, 2, plan_documents(toy.track, 2).at_most)
    one = demo(toy)
    assert [order.pk for order in one._own_reading()] == [DocumentOrder.objects.get().pk]
    for _ in range(2):  # a demo that goes on orders none again
        one._order_reading()
        assert DocumentOrder.objects.count() == 2
    assert len(one._own_reading()) == 1, "the simulated annotators wait for their own alone"


@pytest.mark.parametrize("by_hand", [True, False])
def test_none_is_left_where_all_were_read_and_one_where_none_was(toy: Toy, by_hand: bool) -> None:
    if by_hand:
        order_documents(toy.track, 4, plan_documents(toy.track, 4).at_most)
    demo(toy, by_hand=by_hand, read_in_full=4)._order_reading()
    assert DocumentOrder.objects.count() == 1
