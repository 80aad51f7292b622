"""What the readers of a document are divided about goes to one person more, none of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from documents_world import answer_open, answer_to, order, place

from annotation.hits import publish
from annotation.hits.lease import count_open_hits
from annotation.interfaces.registry import document_interfaces
from annotation.labels import settle
from annotation.models import DocumentOrder, Question, Worker
from annotation.questions import read_documents
from annotation.questions.read_documents import document_orders
from annotation.workers.models import TutorialRun
from annotation.workers.worker import worker_of_user
from kbpo.accounts.models import User
from kbpo.instances.merge import merged_value
from kbpo.instances.models import Label, Target
from kbpo.money.models import Price
from kbpo.money.spend import balance
from kbpo.sampling.models import DocumentSample
from kbpo.tracks.kbp.merge import merge_labels
from tests.conftest import Toy

pytestmark = pytest.mark.django_db
READERS = ("Ada", "Bo", "Cy")


def lindt(toy: Toy) -> tuple[int, int]:
    """The mention that the readers are divided about."""
    return place(toy.documents["d1"], "Lindt", 1)


def divided(toy: Toy) -> Callable[[str, Question], dict[str, str]]:
    """What readers say: Ada that Lindt is Mara Lindt, Bo that it is itself; Cy misses it. Whoever
    is asked about it alone says that it is Mara Lindt, but for Eve.
    """

    def says(name: str, question: Question) -> dict[str, str]:
        if question.interface == "relation":
            assert name not in READERS, "none of its readers is asked again"
            return {"a": "{}-{}".format(*lindt(toy)) if name == "Eve" else "0-10"}
        answer = answer_to(question)
        if question.interface == "entities" and question.target.document == toy.documents["d1"]:
            marks = json.loads(answer["mentions"])
            at = next(one for one in marks if tuple(one["span"]) == lindt(toy))
            if name == "Bo":
                at["canonical"] = at["span"]
            if name == "Cy":
                marks.remove(at)
            answer["mentions"] = json.dumps(marks)
        return answer

    return says


def look_in(toy: Toy, annotator: Callable[[str], User], *names: str) -> None:
    """Nothing; these annotators, who read none of the documents, have looked in lately."""
    for name in names:
        toy.users[name] = annotator(name)
        worker = worker_of_user(toy.users[name])
        Worker.objects.filter(pk=worker.pk).update(last_seen_at=timezone.now())


def tick() -> None:
    for _ in range(2):
        settle.tick()
        read_documents.tick()
        publish.tick()


def read_all(toy: Toy, says: Callable[[str, Question], dict[str, str]]) -> DocumentOrder:
    """An order of all documents, all of them read by three."""
    made = order(toy.track, 4)
    for _ in range(2):
        for name in READERS:
            answer_open(toy, name, says)
        tick()
    return made


@pytest.fixture
def read(toy: Toy, annotator: Callable[[str], User], keep: Callable[..., Any]) -> DocumentOrder:
    """All documents read by three who are divided about one mention; Dee is there besides."""

    def play() -> tuple[DocumentOrder, User]:
        look_in(toy, annotator, "Dee")
        return read_all(toy, divided(toy)), toy.users["Dee"]

    made: DocumentOrder
    made, toy.users["Dee"] = keep("readers who are divided", play)
    Worker.objects.update(last_seen_at=timezone.now())
    return made


def value(toy: Toy) -> dict[str, Any]:
    target = Target.objects.get(kind="mention", a_begin=lindt(toy)[0], a_end=lindt(toy)[1])
    return merged_value(Label.objects.filter(target=target), merge_labels)


def test_a_tie_of_readers_is_asked_of_one_person_more_who_joins_them(
    toy: Toy, read: DocumentOrder
) -> None:
    asked = Question.objects.get(interface="relation")
    assert (asked.answers_wanted, asked.payer, asked.status) == (1, read.purpose, "published")
    assert asked.price < Decimal("0.10"), "not what another reader costs"
    assert DocumentSample.objects.filter(settled_at=None).count() == 0, "no document waits for it"
    assert (
        document_orders(toy.track)[0].divided == 1 and not document_orders(toy.track)[0].closed_at
    )
    read_documents.tick()
    assert Question.objects.filter(interface="relation").count() == 1
    assert answer_open(toy, "Dee", divided(toy)) == 1
    tick()
    now = value(toy)
    own = "{}-{}".format(*lindt(toy))
    assert (now["canonical"], now["votes"]) == ([0, 10], {"0-10": 2, own: 1})
    assert "undecided" not in now
    [state] = document_orders(toy.track)
    assert state.closed_at and state.divided == 0 and state.money.open == 0


@pytest.mark.parametrize("version", ["the same", "a new"])
def test_none_of_its_readers_is_offered_it(toy: Toy, read: DocumentOrder, version: str) -> None:
    if version == "a new":  # of the tutorials of reading: they may not read now, and did
        TutorialRun.objects.filter(interface__in=document_interfaces()).update(version=0)
    assert Question.objects.filter(interface="relation", status="published").exists()
    assert {name: answer_open(toy, name, divided(toy)) for name in READERS} == dict.fromkeys(
        READERS, 0
    )
    assert {count_open_hits(worker_of_user(toy.users[name])) for name in READERS} == {0}
    assert count_open_hits(worker_of_user(toy.users["Dee"])) == 1


def test_at_most_two_more_are_asked(
    toy: Toy, read: DocumentOrder, annotator: Callable[[str], User]
) -> None:
    asked = Question.objects.get(interface="relation")
    third = {"a": "other"}
    look_in(toy, annotator, "Eve", "Fay")
    for name in ("Dee", "Eve"):
        assert answer_open(toy, name, lambda *_: third) == 1
        tick()
    assert answer_open(toy, "Fay", divided(toy)) == 0
    asked.refresh_from_db()
    assert (asked.status, asked.answers_wanted) == ("settled", 2)
    assert value(toy)["undecided"], "missing, and neither right nor wrong"
    assert document_orders(toy.track)[0].closed_at


def gone(toy: Toy, name: str) -> None:
    """Nothing; somebody was not seen for more than a day."""
    Worker.objects.filter(pk=worker_of_user(toy.users[name]).pk).update(
        last_seen_at=timezone.now() - timedelta(hours=25)
    )


def ended(order: DocumentOrder) -> Question:
    """The question of one person more, once its order has closed and its money is back."""
    for _ in range(2):
        tick()
    order.refresh_from_db()
    assert order.closed_at and balance(purpose=order.purpose).open == 0
    return Question.objects.get(interface="relation", payer_kind="documents")


def test_the_page_asks_about_the_mention_alone(toy: Toy, read: DocumentOrder) -> None:
    client = Client()
    client.force_login(toy.users["Dee"])
    address = client.get("/annotate/next/")["Location"]
    page = client.get(address).content.decode()
    assert "Who is Lindt?" in page and "What does the text say" not in page
    assert client.post(address, {}).status_code == 422


def test_killed_between_two_steps_it_is_asked_once(
    toy: Toy, annotator: Callable[[str], User], monkeypatch: pytest.MonkeyPatch
) -> None:
    look_in(toy, annotator, "Dee")
    with monkeypatch.context() as patched:
        patched.setattr(read_documents, "_ask_about_ties", lambda *_: 1 / 0)
        read_all(toy, divided(toy))
    assert not DocumentSample.objects.filter(settled_at=None).exists()
    with monkeypatch.context() as patched:
        patched.setattr(read_documents, "wake_step", lambda *_: 1 / 0)
        read_documents.tick()
    assert not Question.objects.filter(interface="relation").exists()
    for _ in range(2):
        read_documents.tick()
    assert Question.objects.filter(interface="relation").count() == 1


def test_it_is_asked_as_far_as_the_money_reaches_that_is_left(
    toy: Toy, annotator: Callable[[str], User], monkeypatch: pytest.MonkeyPatch
) -> None:
    look_in(toy, annotator, "Dee")
    dear = Price(track=toy.track, interface="relation", reward=Decimal(900), seconds=20)
    monkeypatch.setattr("annotation.questions.ask.answer_price", lambda *_: dear)
    made = read_all(toy, divided(toy))
    assert not Question.objects.filter(interface="relation").exists()
    made.refresh_from_db()
    assert made.closed_at, "nobody has to add money"
