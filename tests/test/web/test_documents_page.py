"""The desk's pages of documents: order them, see what counts, and what samples would reach."""

from __future__ import annotations

import csv
from io import StringIO

import pytest
from django.test import Client
from django.urls import reverse

from kbpo.accounts.models import Audit
from kbpo.evaluation.run import score_track
from kbpo.sampling.documents.draw import settle_documents, waiting_documents
from kbpo.sampling.documents.second_stage import tick
from kbpo.sampling.models import DocumentBatch, DocumentSample
from tests.conftest import Toy
from tests.test.evaluation.world import World
from tests.test.web.scored import make_study

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(toy: Toy) -> World:
    return World(toy, n_documents=12)


@pytest.fixture
def admin(world: World) -> Client:
    client = Client()
    client.force_login(world.toy.users["Admin"])
    return client


def page(client: Client, name: str = "desk-reading", said: str = "") -> str:
    answer = client.get(reverse(name, args=["world"]) + said)
    assert answer.status_code == 200
    return answer.content.decode()


def test_an_admin_orders_documents_in_two_stages(world: World, admin: Client) -> None:
    address = reverse("desk-reading", args=["world"])
    text = " ".join(page(admin).split())
    assert "Draw them" in text
    for trade in (
        "improves with every document",
        "its interval may be wider",
    ):
        assert trade in text
    said = {"size": "10", "design": "two_stage", "seed": "7"}
    unsaid = admin.post(address, said)
    assert unsaid.status_code == 409 and "give a reason" in unsaid.content.decode()
    assert admin.post(address, said | {"why": "For recall."}).status_code == 302
    assert Audit.objects.get(what="draw documents").why == "For recall."
    batch = DocumentBatch.objects.get()
    assert (batch.size, batch.seed, batch.user) == (2, 7, world.toy.users["Admin"])
    assert "drawn automatically once the first is annotated" in page(admin)
    first = waiting_documents(world.track)
    world.read_in_full([one for one in world.documents if one.pk in first], lambda one: True)
    settle_documents(world.track, first)
    assert tick() == 1
    text = page(admin)
    assert (
        "Second stage" in text
        and "counts when all of it is annotated" in text
        and "Draw them" not in text
    )
    settle_documents(world.track, waiting_documents(world.track))
    assert "each with its own probability" in page(admin)
    rows = list(
        csv.DictReader(
            StringIO(
                admin.get(reverse("desk-reading", args=["world"]) + "?format=csv")
                .getvalue()
                .decode()
            )
        )
    )
    assert len(rows) == 10 and {row["stage"] for row in rows} == {"1", "2"}
    assert all(0 < float(row["probability"]) <= 1 for row in rows)


BAD_ORDERS = [
    ({"size": "13", "design": "uniform"}, "13 more cannot be drawn"),
    ({"size": "many", "design": "uniform"}, "Size: Enter a whole number"),
    ({"size": "5", "design": "best"}, "Design: Select a valid choice"),
    ({"design": "uniform"}, "Size: This field is required"),
    ({"size": "5", "design": "uniform", "seed": "-1"}, "Seed: "),
    ({"size": "3", "design": "two_stage"}, "between 4 and 12"),
]


def test_a_bad_order_is_refused_in_a_sentence(world: World, admin: Client) -> None:
    for said, sentence in BAD_ORDERS:
        answer = admin.post(reverse("desk-reading", args=["world"]), said | {"why": "For recall."})
        assert answer.status_code == 409 and sentence in answer.content.decode()
        assert not DocumentSample.objects.exists()


def test_the_board_and_the_submission_tell_what_annotators_miss(
    world: World, admin: Client, toy: Toy
) -> None:
    make_study(world.track, toy.teams["Patterns"])
    row = world.system("most", lambda one: one.pk % 5 != 0)
    world.answer(world.sample(row))
    world.read_in_full(world.documents, lambda one: one.pk % 3 != 0)
    settle_documents(world.track, [one.pk for one in world.documents])
    score_track(world.track, [row])
    row.refresh_from_db()
    assert row.status == "scored"
    board = page(admin, "board", "?criterion=relation")
    assert "readers had marked" in board
    own = admin.get(reverse("submission", args=[row.pk])).content.decode()
    assert "Recall, with what annotators miss" in own
    shown = admin.get(reverse("board-csv", args=["world"]) + "?criterion=relation").content.decode()
    [line] = csv.DictReader(StringIO(shown))
    assert float(line["recall_corrected_value"]) < float(line["recall_value"])
    assert (
        "annotators had marked" in admin.get(reverse("desk-track", args=["world"])).content.decode()
    )
