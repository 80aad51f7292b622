"""Documents from an order to a recall figure on the board: read by a crowd over HTTP, never
imported.

Each step is held without processes in `tests/annotation/test_annotation_documents.py` and
`tests/evaluation/test_recall_of_documents.py`; this is for a soak.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pytest
from processes import Service, wait_for
from travel import Travel, make_travel

from annotation.models import DocumentOrder, Payment
from annotation.questions.order import order_documents, plan_documents
from kbpo.evaluation.models import Evaluation
from kbpo.instances.models import Instance, Label
from kbpo.money.spend import balance
from kbpo.sampling.models import DocumentSample
from kbpo.tracks.models import Track
from tests.reports import figures_of

pytestmark = [pytest.mark.journey, pytest.mark.soak]
DOCUMENTS = 5
RUN = "Harbor_2"


@pytest.fixture(scope="module")
def travel(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Travel]:
    """A track on which five of eight documents were ordered and read, and one system was scored."""
    made = make_travel(
        service,
        tmp_path_factory.mktemp("documents"),
        "Read whole",
        seed=9,
        documents=8,
        read_in_full=0,
    )
    with service.speaking():
        track = Track.objects.get(slug=made.track)
        order_documents(track, DOCUMENTS, plan_documents(track, DOCUMENTS).at_most)
    with made.judging(mention_recall=0.9):
        made.travel(RUN)
        wait_for(lambda: _closed(made), "the documents to be read", patience=400)
        wait_for(lambda: _recall(made) is not None, "a recall figure", patience=120)
    yield made


def _closed(travel: Travel) -> bool:
    with travel.service.speaking():
        return not DocumentOrder.objects.filter(track__slug=travel.track, closed_at=None).exists()


def _recall(travel: Travel) -> float | None:
    """The recall in the latest evaluation; None before there is one that rests on these
    documents.
    """
    with travel.service.speaking():
        newest = Evaluation.objects.filter(track__slug=travel.track).order_by("-number").first()
        if newest is None:
            return None
        of = {"quantity": "recall", "criterion": "relation", "slice": ""}
        found = figures_of(newest, **of).values()
        return next((one.value for one in found if one.value is not None), None)


def test_every_document_is_read_and_paid_for(travel: Travel) -> None:
    with travel.service.speaking():
        order = DocumentOrder.objects.get(track__slug=travel.track)
        assert (
            DocumentSample.objects.filter(track=order.track, settled_at__isnull=False).count()
            == DOCUMENTS
        )
        sums = balance(purpose=order.purpose)
        assert sums.open == Decimal(0)
        paid = Payment.objects.filter(**order.purpose.at("assignment__hit__questions__payer"))
        assert sums.spent == sum(one.amount for one in paid) > 0


def test_nearly_all_true_mentions_and_nothing_false_were_found(travel: Travel) -> None:
    from rehearsal.newspaper.knows import Knowledge

    knowledge = Knowledge(travel.files / "mentions.tsv", travel.files / "gold.tsv")
    with travel.service.speaking():
        labels = Label.objects.filter(target__kind="mention", source="document").select_related(
            "target__document"
        )
        found = {(one.target.document.key, one.target.a_begin, one.target.a_end) for one in labels}
        keys = set(
            DocumentSample.objects.filter(
                track__slug=travel.track, settled_at__isnull=False
            ).values_list("document__key", flat=True)
        )
    true = {(key, *span) for key in keys for span in knowledge.mentions_of(key)}
    assert found <= true
    assert (
        len(found) / len(true) > 0.9
    )  # of three readers who find nine in ten each, two or more find 97 %


def test_what_was_found_are_true_facts_that_nobody_need_state(travel: Travel) -> None:
    with travel.service.speaking():
        pairs = Label.objects.filter(target__kind="pair", source="document")
        assert pairs.exists() and all(one.value["shown"] == one.value["holds"] for one in pairs)
        unclaimed = Instance.objects.filter(target__labels__source="document", predictions=None)
        assert unclaimed.exists()


def test_recall_stands_on_the_board(travel: Travel) -> None:
    recall = _recall(travel)
    assert recall is not None and 0.0 < recall < 1.0
    board = travel.page(f"/tracks/{travel.track}/")
    assert f"{recall * 100:.1f}" in board or f"{recall * 100:.0f}" in board
