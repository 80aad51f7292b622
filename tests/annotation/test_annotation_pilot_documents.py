"""Pilots of whole documents: k people mark all names of n documents, and the union of 1 … k of them
is held against what is true.
"""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.test import Client
from documents_world import TRUE, marks_answer, order, place

from annotation.hits import publish
from annotation.labels import settle
from annotation.models import Assignment, Pilot, Question
from annotation.questions import pilot
from annotation.questions.order import price_of
from kbpo.instances.models import Label
from kbpo.instances.record import NewLabel, record
from kbpo.instances.targets import Place, targets_at
from kbpo.money.spend import balance
from kbpo.sampling.models import DocumentSample
from tests.conftest import Toy

pytestmark = pytest.mark.django_db
MISSES = {"Ada": set(), "Bo": {"Bergen", "Oslo"}, "Cy": {"Per Berg", "Halden", "Oslo"}}


def launch(toy: Toy, *, workers: int = 3, documents: int = 4) -> Pilot:
    made = pilot.launch_pilot(
        toy.track,
        toy.users["Admin"],
        workers=workers,
        items=documents,
        seed=1,
        interface="entities",
        why="To learn.",
    )
    publish.tick()
    return made


def mark(toy: Toy) -> None:
    """Ada, Bo and Cy mark everything that is open to them, but for the names that each of them
    misses.
    """
    for name, missed in MISSES.items():
        client = Client()
        client.force_login(toy.users[name])
        while (address := client.get("/annotate/next/")["Location"]) != "/annotate/":
            question = Assignment.objects.get(
                token=address.split("/")[2]
            ).hit.questions.select_related("target")[0]
            assert (
                client.post(
                    address, marks_answer(question.target.document, without=missed)
                ).status_code
                == 302
            )
    settle.tick()


def finders() -> list[list[int]]:
    """Document -> of every true name, how many of the three marked it."""
    return [
        [sum(row[0] not in missed for missed in MISSES.values()) for row in rows]
        for rows in TRUE.values()
    ]


def test_it_asks_many_about_few_documents_and_pays_by_the_word(toy: Toy) -> None:
    made = launch(toy, documents=2)
    questions = Question.objects.filter(**made.payer.at("payer")).select_related("target__document")
    assert [(one.interface, one.answers_wanted) for one in questions] == [("entities", 3)] * 2
    each = [
        price_of(len(one.target.document.token_begin), Decimal("0.0075"), Decimal(0))
        for one in questions
    ]
    assert [one.price for one in questions] == each and balance(purpose=made.payer).open == 3 * sum(
        each
    )
    assert not DocumentSample.objects.exists(), "a pilot draws nothing that recall counts"


def test_it_tells_what_one_to_k_people_find_together_beside_the_published_value(toy: Toy) -> None:
    made = launch(toy)
    mark(toy)
    found = pilot.pilot_report(toy.track, made)
    # "Oslo" is marked by one of three, and so is not among the names that most of them marked.
    held = [[n for n in numbers if n >= 2] for numbers in finders()]
    one = sum(sum(n / 3 for n in numbers) / len(numbers) for numbers in held) / 4
    assert [(row.workers, row.documents, row.published) for row in found.recall] == [
        (1, 4, None),
        (2, 4, None),
        (3, 4, 0.92),
    ]
    assert [row.union for row in found.recall] == pytest.approx([one, 1.0, 1.0])
    # By words the majority of three is exactly what most of them marked.
    assert [(row.majority, row.published_majority) for row in found.recall] == [
        (None, None),
        (None, None),
        (1.0, 0.78),
    ]
    assert found.reference.startswith("spans that most of them marked")
    assert {row.what for row in found.agreement if row.interface == "entities"} >= {
        "mention",
        "canonical",
    }


def test_where_an_expert_marked_the_documents_it_is_held_against_them(toy: Toy) -> None:
    made = launch(toy)
    mark(toy)
    places = [
        Place("mention", toy.documents[key].pk, place(toy.documents[key], words, which))
        for key, rows in TRUE.items()
        for words, which, _, _ in rows
    ]
    targets = targets_at(toy.corpus, places).values()
    record(
        NewLabel(target, {"type": "PER"}, "expert", "marked", 1, "expert:1") for target in targets
    )
    found = pilot.pilot_report(toy.track, made)
    assert (
        found.reference.startswith("an expert’s") and Label.objects.filter(source="expert").exists()
    )
    by_document = finders()
    expected = [
        sum(sum(1 - _missed(3, n, k) for n in some) / 6 for some in by_document) / 4
        for k in (1, 2, 3)
    ]
    assert [row.union for row in found.recall] == pytest.approx(expected)
    assert found.recall[2].union == pytest.approx(1.0), "Ada misses nothing"
    most = [sum(n >= 2 for n in some) / 6 for some in by_document]
    assert found.recall[2].majority == pytest.approx(sum(most) / 4)


def _missed(m: int, found: int, k: int) -> float:
    """The chance that none of k of m people, of whom so many found a name, is one who did."""
    left = 1.0
    for at in range(k):
        left *= max(0, m - found - at) / (m - at)
    return left


def test_it_takes_only_documents_that_are_neither_drawn_nor_asked_about(toy: Toy) -> None:
    order(toy.track, 3)
    made = launch(toy)
    [question] = Question.objects.filter(**made.payer.at("payer"))
    assert made.items == 1
    assert question.target.document_id not in DocumentSample.objects.values_list(
        "document", flat=True
    )
    with pytest.raises(pilot.CannotPilot, match="nothing to read"):
        launch(toy)
