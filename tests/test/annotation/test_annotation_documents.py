"""Documents from an order to facts that recall counts: price, questions, labels, instances, money,
kills.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from documents_world import FACTS, TRUE, answer_to, marks_answer, order, place

from annotation.hits import publish
from annotation.labels import settle
from annotation.models import HIT, Assignment, DocumentOrder, Payment, Question
from annotation.questions import read_documents
from annotation.questions.order import (
    CannotOrder,
    add_missing_money,
    assignment_price,
    missing_money,
    order_documents,
    plan_documents,
)
from kbpo.accounts.models import User
from kbpo.instances.models import Instance, Label
from kbpo.money.models import Budget
from kbpo.money.spend import OverBudget, balance
from kbpo.sampling.models import DocumentSample
from kbpo.tracks.models import Track
from tests.conftest import Toy


def move() -> None:
    """Everything that the clock moves, once."""
    settle.tick()
    read_documents.tick()
    publish.tick()


def annotate(toy: Toy, names: tuple[str, ...] = ("Ada", "Bo", "Cy"), rounds: int = 2) -> int:
    """How many answers these people gave, all true, until nothing was open to them."""
    given = 0
    for _ in range(rounds):
        for name in names:
            client = Client()
            client.force_login(toy.users[name])
            while (address := client.get("/annotate/next/")["Location"]) != "/annotate/":
                assignment = Assignment.objects.select_related("hit").get(
                    token=address.split("/")[2]
                )
                question = assignment.hit.questions.select_related("target__document")[0]
                response = client.post(address, answer_to(question))
                assert response.status_code == 302, response.content.decode()
                given += 1
        move()
    return given


def test_the_price_is_by_tokens_and_pairs_rounded_up_to_the_cent() -> None:
    assert assignment_price(100, Decimal("0.0075"), Decimal(0)) == Decimal("0.75")
    assert assignment_price(101, Decimal("0.0075"), Decimal(0)) == Decimal("0.76")
    assert assignment_price(1, Decimal("0.0075"), Decimal(0)) == Decimal("0.01")
    assert assignment_price(45, Decimal("0.05"), Decimal("0.2")) == Decimal("2.70")
    assert assignment_price(101, Decimal("0.0075"), Decimal("0.2")) == Decimal(
        "0.92"
    )  # 0.76 to the worker, fee rounded up


@pytest.mark.django_db
def test_the_plan_is_what_is_ordered_and_nothing_more_is_reserved(toy: Toy) -> None:
    plan = plan_documents(toy.track, 2)
    assert plan == plan_documents(toy.track, 2)
    assert plan.documents == 2 and plan.workers == 3
    # d1 has 19 words and stops, d2 20, d3 17, d4 17; at 0.75 cents each costs 0.15, 0.15, 0.13 or
    # 0.13 a worker.
    tokens = {toy.documents[key].pk: len(toy.documents[key].token_begin) for key in toy.documents}
    each = [assignment_price(tokens[pk], Decimal("0.0075"), Decimal(0)) for pk in plan.new]
    assert plan.entities == 3 * sum(each)
    made = order_documents(toy.track, 2, plan.at_most, who=toy.users["Admin"], why="To try.")
    assert balance(purpose=made.purpose).reserved == plan.at_most
    samples = DocumentSample.objects.filter(pk__in=made.samples)
    assert set(samples.values_list("document", flat=True)) == set(plan.new)
    assert list(DocumentSample.objects.values_list("probability", flat=True)) == [0.5, 0.5]
    assert plan_documents(toy.track, 2).new != plan.new


@pytest.mark.django_db
@pytest.mark.parametrize(("n", "sentence"), [(0, "at least one"), (5, "Only 4 documents are left")])
def test_what_cannot_be_ordered_is_said_in_a_sentence(toy: Toy, n: int, sentence: str) -> None:
    with pytest.raises(CannotOrder, match=sentence):
        plan_documents(toy.track, n)


@pytest.mark.django_db
def test_nothing_is_ordered_above_the_price_that_was_shown_or_a_cap(toy: Toy) -> None:
    plan = plan_documents(toy.track, 1)
    with pytest.raises(CannotOrder, match="Look at the price again"):
        order_documents(toy.track, 1, plan.at_most - Decimal("0.01"))
    Budget.objects.update(cap=plan.at_most - Decimal("0.01"))
    with pytest.raises(OverBudget):
        order_documents(toy.track, 1, plan.at_most)
    assert not DocumentSample.objects.exists() and not DocumentOrder.objects.exists()


@pytest.mark.django_db
def test_caps_of_submissions_and_teams_do_not_hold_for_documents(toy: Toy) -> None:
    Budget.objects.create(track=toy.track, scope="submission", cap=Decimal("0.01"))
    Budget.objects.create(track=toy.track, scope="team", cap=Decimal("0.01"))
    assert order(toy.track, 1).pk


@pytest.mark.django_db
def test_a_document_goes_from_an_order_to_facts(toy: Toy) -> None:
    made = order(toy.track, 4)
    assert Question.objects.filter(interface="entities", status="published").count() == 4
    read_documents.tick()
    assert Question.objects.count() == 4  # nothing is asked twice
    assert annotate(toy) == 24
    assert DocumentSample.objects.filter(settled_at__isnull=False).count() == 4
    for key, document in toy.documents.items():
        labels = Label.objects.filter(target__document=document, source="document")
        mentions = labels.filter(target__kind="mention")
        assert {
            (one.target.a_begin, one.target.a_end) for one in mentions.select_related("target")
        } == {place(document, words, which) for words, which, _, _ in TRUE[key]}
        assert labels.get(target__kind="document", value__has_key="closed").value == {
            "scope": "sentence",
            "closed": False,
        }
    lindt = Label.objects.get(
        target__document=toy.documents["d1"],
        target__kind="mention",
        target__a_begin=toy.span("d1", "Lindt", 1)[0],
    )
    assert lindt.value == {"canonical": [0, 10], "type": "PER", "votes": {"0-10": 3}}
    assert {one.predicate.name for one in Instance.objects.all()} == {
        n for f in FACTS.values() for _, n, _ in f
    }
    assert Instance.objects.count() == sum(map(len, FACTS.values())) == 11
    made.refresh_from_db()
    sums = balance(purpose=made.purpose)
    assert made.closed_at and sums.open == 0 and sums.released > 0
    paid = sum(one.amount for one in Payment.objects.all())
    assert sums.spent == paid == 3 * sum(question.price for question in Question.objects.all())


@pytest.mark.django_db
def test_what_was_marked_is_true_and_what_was_not_is_missing(toy: Toy) -> None:
    order(toy.track, 4)
    annotate(toy)
    pairs = Label.objects.filter(target__kind="pair")
    assert pairs.count() == 11
    assert all(
        one.value["shown"] == one.value["holds"] and one.source == "document" for one in pairs
    )


@pytest.mark.django_db
def test_two_of_three_are_enough_and_one_is_not(toy: Toy) -> None:
    order(toy.track, 4)
    question = Question.objects.get(target__document=toy.documents["d1"])
    for name, missed in (("Ada", set()), ("Bo", {"Halden"}), ("Cy", {"Halden", "Bergen"})):
        client = Client()
        client.force_login(toy.users[name])
        hit = question.hits.get()
        HIT.objects.filter(pk=hit.pk).update(order=-5)
        client.post(
            client.get("/annotate/next/")["Location"],
            marks_answer(toy.documents["d1"], without=missed),
        )
    settle.tick()
    labels = Label.objects.filter(target__document=toy.documents["d1"], target__kind="mention")
    spans = {(one.target.a_begin, one.target.a_end) for one in labels.select_related("target")}
    assert (
        place(toy.documents["d1"], "Bergen") in spans
        and place(toy.documents["d1"], "Halden") not in spans
    )


@pytest.mark.django_db
def test_pairs_are_those_of_a_sentence_or_as_far_as_the_scope_reaches(toy: Toy) -> None:
    def asked(scope: str) -> list[tuple[str, str]]:
        Question.objects.filter(interface="relations_exhaustive").delete()
        Track.objects.update(scope=scope)
        read_documents.tick()
        payload = Question.objects.get(interface="relations_exhaustive").payload
        mentions = payload["mentions"]
        return [
            (mentions[pair["a"]]["gloss"], mentions[pair["b"]]["gloss"])
            for pair in payload["pairs"]
        ]

    order(toy.track, 4)
    question = Question.objects.get(target__document=toy.documents["d1"])
    HIT.objects.exclude(questions=question).update(status="closed")
    annotate_once(toy, question)
    # "Mara Lindt founded Nordwerk in 1990. Lindt was born in Halden. Nordwerk is based in Bergen."
    sentence = [("Mara Lindt", "Nordwerk"), ("Lindt", "Halden"), ("Nordwerk", "Bergen")]
    assert asked("sentence") == sentence
    assert asked("neighbours") == [
        ("Mara Lindt", "Nordwerk"),
        ("Lindt", "Halden"),
        ("Lindt", "Bergen"),
        ("Halden", "Nordwerk"),
        ("Nordwerk", "Bergen"),
    ]
    assert set(asked("document")) == set(asked("neighbours"))


def annotate_once(toy: Toy, question: Question) -> None:
    for name in ("Ada", "Bo", "Cy"):
        client = Client()
        client.force_login(toy.users[name])
        address = client.get("/annotate/next/")["Location"]
        assert client.post(address, answer_to(question)).status_code == 302
    settle.tick()


@pytest.mark.django_db
def test_a_document_that_most_flag_is_given_up_and_its_money_comes_back(toy: Toy) -> None:
    made = order(toy.track, 1)
    for name in ("Ada", "Bo", "Cy"):
        client = Client()
        client.force_login(toy.users[name])
        assert (
            client.post(
                client.get("/annotate/next/")["Location"], {"problem": "language"}
            ).status_code
            == 302
        )
    move()
    move()
    made.refresh_from_db()
    assert made.closed_at and balance(purpose=made.purpose).open == 0
    assert not DocumentSample.objects.exclude(settled_at=None).exists()


@pytest.mark.django_db
def test_more_pairs_than_were_expected_wait_for_money_and_are_never_given_up(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("annotation.questions.order.PAIRS_A_TOKEN", Decimal("0.01"))
    made = order(toy.track, 1)
    annotate(toy, rounds=1)
    question = Question.objects.get(interface="relations_exhaustive")
    publish.tick()
    question.refresh_from_db()
    assert question.status == "waiting" and "of the reservation is left" in question.reason
    needed = missing_money(made)
    assert needed > 0 and add_missing_money(made) == needed and add_missing_money(made) == 0
    publish.tick()
    question.refresh_from_db()
    assert question.status == "published"


@pytest.mark.django_db
def test_killed_anywhere_each_step_happens_once(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    order(toy.track, 1)
    annotate(toy, rounds=1)
    question = Question.objects.get(interface="relations_exhaustive")
    annotate_once(toy, question)

    def killed(*_: Any) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(read_documents, "settle_documents", killed)
        read_documents.tick()
    assert (
        not Instance.objects.exists()
        and not DocumentSample.objects.exclude(settled_at=None).exists()
    )
    for _ in range(3):
        read_documents.tick()
    assert Instance.objects.count() == 3 or Instance.objects.count() == 2
    assert DocumentSample.objects.exclude(settled_at=None).count() == 1
    assert Question.objects.count() == 2


@pytest.mark.django_db
def test_the_server_refuses_pairs_that_are_missing_or_unknown(toy: Toy) -> None:
    order(toy.track, 1)
    annotate(toy, rounds=1)
    client = Client()
    client.force_login(toy.users["Ada"])
    address = client.get("/annotate/next/")["Location"]
    for sent, sentence in (
        ("{}", "Pair 1 of"),
        ("{", "did not arrive"),
        ("[]", "did not arrive"),
        (json.dumps({str(n): ["per:flies_to>"] for n in range(9)}), "is not one of the relations"),
        (json.dumps({str(n): "per" for n in range(9)}), "did not arrive"),
    ):
        response = client.post(address, {"pairs": sent})
        assert response.status_code == 422 and sentence in response.content.decode()


@pytest.mark.django_db
def test_a_worker_reads_a_document_once_and_nobody_else_may_answer_for_them(toy: Toy) -> None:
    order(toy.track, 1)
    ada, bo = Client(), Client()
    ada.force_login(toy.users["Ada"])
    bo.force_login(toy.users["Bo"])
    address = ada.get("/annotate/next/")["Location"]
    assert bo.post(address, {"nothing": "1"}).status_code == 403
    assert ada.post(address, {"nothing": "1"}).status_code == 302
    assert ada.get("/annotate/next/")["Location"] == "/annotate/"
    assert User.objects.count() == 6
