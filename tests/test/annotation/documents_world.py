"""Documents to be annotated whole: an order on the toy track, and what its readers would mark."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from django.test import Client

from annotation.hits import publish
from annotation.labels import settle
from annotation.models import Assignment, DocumentOrder, Question
from annotation.questions import read_documents
from annotation.questions.order import order_documents, plan_documents
from kbpo.corpus.models import Document

TRUE: dict[str, list[tuple[str, int, str, str]]] = {
    # words, which occurrence, type, canonical words
    "d1": [("Mara Lindt", 0, "PER", "Mara Lindt"), ("Nordwerk", 0, "ORG", "Nordwerk"),
           ("Lindt", 1, "PER", "Mara Lindt"), ("Halden", 0, "GPE", "Halden"), ("Nordwerk", 1,
           "ORG", "Nordwerk"),
           ("Bergen", 0, "GPE", "Bergen")],
    "d2": [("Ola Berg", 0, "PER", "Ola Berg"), ("Nordwerk", 0, "ORG", "Nordwerk"), ("Berg", 1,
    "PER", "Ola Berg"),
           ("Per Berg", 0, "PER", "Per Berg"), ("Mara Lindt", 0, "PER", "Mara Lindt"), ("Bergen",
           0, "GPE", "Bergen")],
    "d3": [("Per Berg", 0, "PER", "Per Berg"), ("Bergen", 0, "GPE", "Bergen"), ("Mara Lindt", 0,
    "PER", "Mara Lindt"),
           ("Oslo", 0, "GPE", "Oslo"), ("Nordwerk", 0, "ORG", "Nordwerk"), ("Fjordlys", 0, "ORG",
           "Fjordlys")],
    "d4": [("Fjordlys", 0, "ORG", "Fjordlys"), ("Oslo", 0, "GPE", "Oslo"), ("Ola Berg", 0, "PER",
    "Ola Berg"),
           ("Fjordlys", 1, "ORG", "Fjordlys"), ("Per Berg", 0, "PER", "Per Berg"), ("Oslo", 1,
           "GPE", "Oslo")],
}  # fmt: skip
FACTS: dict[str, list[tuple[str, str, str]]] = {
    "d1": [("Mara Lindt", "per:organizations_founded", "Nordwerk"), ("Lindt", "per:place_of_birth",
    "Halden"),
           ("Nordwerk", "org:place_of_headquarters", "Bergen")],
    "d2": [("Ola Berg", "per:employee_or_member_of", "Nordwerk"), ("Berg", "per:parents",
    "Per Berg")],
    "d3": [("Per Berg", "per:place_of_birth", "Bergen"), ("Mara Lindt", "per:place_of_residence",
    "Oslo"),
           ("Nordwerk", "org:subsidiaries", "Fjordlys")],
    "d4": [("Fjordlys", "org:place_of_headquarters", "Oslo"), ("Ola Berg",
    "per:employee_or_member_of", "Fjordlys"),
           ("Per Berg", "per:place_of_death", "Oslo")],
}  # fmt: skip


def place(document: Document, words: str, which: int = 0) -> tuple[int, int]:
    """The which-th occurrence of words in a document."""
    at = -1
    for _ in range(which + 1):
        at = document.text.index(words, at + 1)
    return at, at + len(words)


def true_marks(document: Document) -> list[dict[str, Any]]:
    """What somebody who misses nothing marks in a document of the toy corpus."""
    return [
        {
            "span": list(place(document, words, which)),
            "type": kind,
            "canonical": list(place(document, name)),
        }
        for words, which, kind, name in TRUE[document.key]
    ]


def marks_answer(document: Document, *, without: set[str] | None = None) -> dict[str, str]:
    """The form of such an answer."""
    marks = [
        one
        for one, row in zip(true_marks(document), TRUE[document.key], strict=True)
        if not without or row[0] not in without
    ]
    return {"mentions": json.dumps(marks), "read": "3"}


def pairs_answer(payload: Mapping[str, Any]) -> dict[str, str]:
    """The true answer about the pairs of a question of the toy corpus."""
    facts = FACTS[payload["document"]["key"]]
    said = {}
    for number, pair in enumerate(payload["pairs"]):
        a, b = (payload["mentions"][pair[side]]["gloss"] for side in ("a", "b"))
        true = [f"{name}>" for s, name, o in facts if (s, o) == (a, b)]
        said[str(number)] = true + [f"{name}<" for s, name, o in facts if (s, o) == (b, a)]
    return {"pairs": json.dumps(said)}


def order(track: Any, n: int, **terms: Any) -> DocumentOrder:
    """An order of n documents at its price, asked about and published."""
    plan = plan_documents(track, n, **terms)
    made = order_documents(track, n, plan.at_most, **terms)
    read_documents.tick()
    publish.tick()
    return made


def read_whole(toy: Any, n: int, said_by: Callable[[str, Question], dict[str, str]]) -> None:
    """n documents, ordered, and read by Ada, Bo and Cy, who say what they are told to, until
    nothing is left.
    """
    order(toy.track, n)
    for _ in range(2):
        for name in ("Ada", "Bo", "Cy"):
            answer_open(toy, name, said_by)
        settle.tick()
        read_documents.tick()
        publish.tick()


def answer_open(toy: Any, name: str, said_by: Callable[[str, Question], dict[str, str]]) -> int:
    """How many questions somebody answered until nothing was open to them."""
    client, given = Client(), 0
    client.force_login(toy.users[name])
    while (address := client.get("/annotate/next/")["Location"]) != "/annotate/":
        assignment = Assignment.objects.select_related("hit").get(token=address.split("/")[2])
        question = assignment.hit.questions.select_related("target__document")[0]
        response = client.post(address, said_by(name, question))
        assert response.status_code == 302, response.content.decode()
        given += 1
    return given


def answer_to(question: Question) -> dict[str, str]:
    """The true answer to a question about a whole document."""
    if question.interface == "entities":
        return marks_answer(question.target.document)
    return pairs_answer(question.payload)


def partly(name: str, question: Question) -> dict[str, str]:
    """The truth, but for a name that Cy misses, a fact that Ada alone marks, and one that Cy does
    not mark.
    """
    if question.interface == "entities":
        return marks_answer(question.target.document, without={"Oslo"} if name == "Cy" else None)
    answer = pairs_answer(question.payload)
    if name != "Ada":
        said = json.loads(answer["pairs"])
        drop = {"per:place_of_death>"} | ({"per:parents>"} if name == "Cy" else set())
        answer["pairs"] = json.dumps(
            {at: [part for part in some if part not in drop] for at, some in said.items()}
        )
    return answer
