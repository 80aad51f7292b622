"""Whole documents: gold that an admin makes of one, scored by what was found; and the examples that
anybody may try.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from documents_world import answer_to, marks_answer, order, pairs_answer

from annotation.hits import publish
from annotation.interfaces.registry import interface_by_name, interface_names
from annotation.labels import settle
from annotation.models import Assignment, Gold, Payment, Question, Signal, Worker
from annotation.quality import gold
from annotation.questions import read_documents
from kbpo.accounts.models import User
from kbpo.instances.models import Label
from kbpo.web.judging.lessons import load_examples
from tests.conftest import Toy

pytestmark = pytest.mark.django_db


@pytest.fixture
def people(toy: Toy) -> list[Client]:
    found = []
    for name in ("Ada", "Bo", "Cy"):
        client = Client()
        client.force_login(toy.users[name])
        found.append(client)
    return found


@pytest.fixture
def read(
    toy: Toy, people: list[Client], settings: Any, keep: Callable[[str, Callable[[], None]], None]
) -> None:
    """All four documents, read whole by three people, pairs included."""
    settings.ROOT_URLCONF = "kbpo.urls"  # gold is made from the desk
    keep("four documents, read whole by three people", lambda: _read(toy, people))


def _read(toy: Toy, people: list[Client]) -> None:
    order(toy.track, 4)
    for _ in range(2):
        for client in people:
            while (address := client.get("/annotate/next/")["Location"]) != "/annotate/":
                asked = Assignment.objects.get(token=address.split("/")[2]).hit.questions.get()
                assert client.post(address, answer_to(asked)).status_code == 302
        settle.tick()
        read_documents.tick()
        publish.tick()


@pytest.fixture
def made(read: None, toy: Toy) -> dict[str, Gold]:
    """Gold of the first document, for either step, made by an admin on the page."""
    admin = Client()
    admin.force_login(toy.users["Admin"])
    gold.reserve_gold_money(
        toy.track, Decimal("50.00"), toy.users["Admin"], "It is needed.", key="1"
    )
    for interface in ("entities", "relations_exhaustive"):
        source = Question.objects.get(interface=interface, target__document=toy.documents["d1"])
        assert source in gold.gold_candidates(toy.track, 50)
        page = admin.get(f"/annotate/gold/{source.pk}/")
        assert page.status_code == 200 and "The right answer, for gold" in page.content.decode()
        assert 'name="why"' in page.content.decode()
        sent = answer_to(source) | {"why": "Read twice."}
        assert admin.post(f"/annotate/gold/{source.pk}/", sent).status_code == 302
    return {one.question.interface: one for one in Gold.objects.all()}


def answers(one: Gold, raw: dict[str, str]) -> list[object]:
    parsed = interface_by_name(one.question.interface).parse(
        one.question, {name: [said] for name, said in raw.items()}
    )
    return list(parsed)


def test_the_answer_that_it_was_made_of_is_right(made: dict[str, Gold]) -> None:
    for one in made.values():
        assert gold.is_gold_answer_right(one, answers(one, answer_to(one.question)))  # type: ignore[arg-type]


def test_a_document_may_lack_a_little_and_not_much(made: dict[str, Gold], toy: Toy) -> None:
    one, document = made["entities"], toy.documents["d1"]
    little = answers(one, marks_answer(document, without={"Bergen"}))
    much = answers(one, marks_answer(document, without={"Bergen", "Halden", "Nordwerk"}))
    flag = answers(one, {"problem": "text"})
    assert gold.is_gold_answer_right(one, little)  # type: ignore[arg-type]
    assert not gold.is_gold_answer_right(one, much) and not gold.is_gold_answer_right(one, flag)  # type: ignore[arg-type]


def test_pairs_are_scored_by_what_holds_not_by_the_many_that_do_not(made: dict[str, Gold]) -> None:
    one = made["relations_exhaustive"]
    none = {
        "pairs": json.dumps(
            {str(number): [] for number in range(len(one.question.payload["pairs"]))}
        )
    }
    assert not gold.is_gold_answer_right(one, answers(one, none))  # type: ignore[arg-type]
    said = json.loads(pairs_answer(one.question.payload)["pairs"])
    holding = [number for number, parts in said.items() if parts]
    said[holding[0]] = []
    assert len(holding) == 3 and gold.is_gold_answer_right(
        one, answers(one, {"pairs": json.dumps(said)})
    )  # type: ignore[arg-type]


def test_it_is_dealt_out_graded_paid_and_never_a_label(
    made: dict[str, Gold],
    toy: Toy,
    monkeypatch: pytest.MonkeyPatch,
    learned: Callable[[str], Client],
) -> None:
    gold.set_gold_rate(toy.track, 0.5, toy.users["Admin"], "To try it.")
    monkeypatch.setattr(gold.DICE, "random", lambda: 0.0)
    Question.objects.filter(interface="entities", target__document=toy.documents["d2"]).update(
        status="published"
    )
    Question.objects.get(interface="entities", target__document=toy.documents["d2"]).hits.update(
        status="open", max_assignments=9
    )
    labels = Label.objects.count()
    dana = learned("dana")
    address = dana.get("/annotate/next/")["Location"]
    row = Assignment.objects.get(token=address.split("/")[2])
    assert row.hit.questions.get() == made["entities"].question
    assert "gold" not in dana.get(address).content.decode().lower()
    dana.post(address, marks_answer(toy.documents["d1"], without={"Bergen", "Halden", "Nordwerk"}))
    settle.tick()
    assert Signal.objects.get(assignment=row, kind="gold").against
    assert Payment.objects.filter(assignment=row, amount=made["entities"].question.reward).exists()
    assert Label.objects.count() == labels


@pytest.fixture
def learned(toy: Toy) -> Callable[[str], Client]:
    """Somebody new, who has agreed to the terms and passed the tutorials."""

    def make(name: str) -> Client:
        client = Client()
        client.force_login(
            User.objects.create_user(name, password="long enough 1", is_annotator=True)
        )
        return client

    return make


# -- Try it


def test_every_example_is_a_page_and_its_own_answer_is_right(db: None) -> None:
    numbers = {one["interface"]: number for number, one in enumerate(load_examples(), start=1)}
    assert set(numbers) == {*interface_names()} - {"form"}, (
        "forms are declared by those who use them"
    )
    for number, one in enumerate(load_examples(), start=1):
        page = Client().get(f"/annotate/try/{number}/")
        assert page.status_code == 200 and one["why"] not in page.content.decode()
        said = Client().post(f"/annotate/try/{number}/", one["right"]).content.decode()
        assert "Our answer is the same" in said and one["why"] in said
    assert not Worker.objects.exists() and not Assignment.objects.exists()


def test_what_was_missed_and_what_was_too_much_is_named(db: None) -> None:
    number, one = next(
        (n, one) for n, one in enumerate(load_examples(), 1) if one["interface"] == "entities"
    )
    marks = json.loads(one["right"]["mentions"][0])[1:]
    marks = [mark for mark in marks if mark["canonical"] == mark["span"]]
    extra = one["payload"]["text"].index("telescope")
    marks.append({"span": [extra, extra + 9], "type": "ORG", "canonical": [extra, extra + 9]})
    said = (
        Client()
        .post(f"/annotate/try/{number}/", {"mentions": json.dumps(marks), "read": "9"})
        .content.decode()
    )
    assert "Our answer differs" in said and "“telescope”" in said
    assert "“Henrik Dalby”: person" in said
    number = next(
        n for n, one in enumerate(load_examples(), 1) if one["interface"] == "relations_exhaustive"
    )
    pairs = {"0": ["per:employee_or_member_of>"], "1": [], "2": [], "3": ["per:children>"]}
    said = Client().post(f"/annotate/try/{number}/", {"pairs": json.dumps(pairs)}).content.decode()
    assert "Henrik Dalby works or worked for Dalby Observatory" in said
    assert "Dalby Observatory was founded by Henrik Dalby" in said
    assert "Dalby has the child Signe" in said
    assert Client().post(f"/annotate/try/{number}/", {"pairs": "{}"}).status_code == 422
