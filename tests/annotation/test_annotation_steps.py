"""Ask, publish, lease, answer, settle: from samples to labels and payments."""

from __future__ import annotations

from decimal import Decimal

import pytest
from annotation_world import PARTS, answer_all
from django.test import Client

from annotation import publish, settle
from annotation.models import HIT, Payment, Question
from kbpo.instances.models import Label
from kbpo.money.spend import balance
from kbpo.submissions.models import Submission

pytestmark = pytest.mark.django_db


def test_the_whole_way_from_sample_to_label_and_payment(published: Submission, clients: list[Client]) -> None:
    assert [answer_all(client) for client in clients] == [6, 6, 6]
    settle.tick()
    assert Question.objects.counts() == {"settled": 6}
    assert HIT.objects.counts() == {"closed": 6}
    labels = Label.objects.filter(target__kind="pair")
    assert labels.count() == 6
    label = labels.first()
    assert label is not None
    assert label.value == {
        "shown": PARTS, "holds": ["per:schools_attended>"], "votes": {"per:schools_attended>": 3},
    }  # fmt: skip
    assert (label.source, label.method, label.n, label.disagreement) == ("crowd", "majority", 3, 0.0)
    mention = Label.objects.get(target__kind="mention", origin=label.origin, target__a_begin=0)
    assert mention.value["canonical"] == [0, 3]
    spent = balance(purpose=published.purpose)
    assert spent.spent == Decimal("0.06") * 18
    assert Payment.objects.count() == 18
    assert {payment.amount for payment in Payment.objects.all()} == {Decimal("0.05")}
    assert publish.committed(published.purpose) == 0
