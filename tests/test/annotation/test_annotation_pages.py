"""Who may see and answer what; what the page never says; bad answers."""

from __future__ import annotations

import re

import pytest
from annotation_world import GOOD, take
from django.test import Client

from annotation.models import Assignment, Question, Worker, WorkerIdentity
from annotation.workers.worker import worker_handle
from kbpo.accounts.models import User
from kbpo.submissions.models import Submission
from kbpo.web.judging.lessons import load_examples

pytestmark = pytest.mark.django_db
FORM = """
name: useful
title: How useful is it?
price: 0.05
shows: [question]
questions:
  - {name: useful, kind: rating, ask: "How useful is it?", range: [1, 4]}
tutorial:
  questions:
    - {text: A text., right: {useful: 1}, why: "It is short."}
"""


def test_nobody_reads_drafts_or_answers_what_was_leased_to_another(
    published: Submission, clients: list[Client]
) -> None:
    address = take(clients[0])
    for path in (address, address + "document/"):
        assert clients[1].get(path).status_code == 403
    for path in (address, address + "draft/", address + "return/"):
        assert clients[1].post(path, GOOD).status_code == 403
    assert Assignment.objects.get().status == "leased"
    assert clients[0].post("/annotate/" + "0" * 64 + "/", GOOD).status_code == 404


def test_sending_it_again_changes_nothing(published: Submission, ada: Client) -> None:
    address = take(ada)
    ada.post(address, GOOD)
    ada.post(address, {"a": "other", "b": "other", "none": "1"})
    assert Assignment.objects.get(status="submitted").raw["a"] == ["0-3"]
    assert ada.post(address + "draft/", GOOD).status_code == 409


def test_the_page_tells_neither_claims_nor_gold_nor_other_answers(
    published: Submission, clients: list[Client]
) -> None:
    address = take(clients[0])
    clients[0].post(
        address,
        {"a": "0-3", "b": "other", "holds": ["org:founded_by<"], "a_title": "Secret remark"},
    )
    page = clients[1].get(take(clients[1])).content.decode()
    assert "Secret remark" not in page
    assert "Patterns" not in page  # the system that claims it
    assert not re.search(r'(checked|selected)(?![^<]*value="")[^<]*name="(a|b|holds|none)"', page)
    assert (
        page.count('name="holds"') == 3
    )  # all that is shown, once each, in the order of the payload
    assert " checked" not in page.replace('name="problem" value="" checked', "")


BAD_ANSWERS = [
    ({}, "Step 1 is missing: who is “Ann 2 Lee”?"),
    ({"a": "0-3"}, "Step 2 is missing: what is “Elm College 2”?"),
    (
        {"a": "5-9", "b": "other", "none": "1"},
        "“5-9” is not one of the answers to who “Ann 2 Lee” is.",
    ),
    (
        {"a": "0-3", "b": "other"},
        "Step 3 is missing: pick what the text says, or “None of these”.",
    ),
    (
        {"a": "0-3", "b": "other", "none": "1", "holds": "per:schools_attended>"},
        "Keep one.",
    ),
    (
        {"a": "0-3", "b": "other", "holds": "<script>"},
        "“&lt;script&gt;” is not one of the relations on this page.",
    ),
    ({"problem": "boredom"}, "Say again what is wrong with this question"),
]


def test_a_bad_answer_gets_its_sentence_and_keeps_what_was_chosen(
    published: Submission, ada: Client
) -> None:
    for answer, sentence in BAD_ANSWERS:
        address = take(ada)
        response = ada.post(address, answer)
        assert response.status_code == 422
        assert sentence in response.content.decode()
        assert Assignment.objects.get().draft == {name: [value] for name, value in answer.items()}


def test_home_says_what_is_open_and_what_was_earned(published: Submission, ada: Client) -> None:
    assert "6 questions wait for you." in ada.get("/annotate/").content.decode()
    ada.post(take(ada), GOOD)
    page = ada.get("/annotate/").content.decode()
    assert "You have a question in hand, and 4 wait for you." in page
    assert "$0.05" in page and "Ann 2 Lee and Elm College 2, in Story 2" in page


def test_when_nothing_is_open_the_page_says_so(track: object, ada: Client) -> None:
    page = ada.get("/annotate/next/", follow=True).content.decode()
    assert "Nothing to judge now." in page


def test_a_worker_is_a_keyed_hash_everywhere_but_in_one_table(
    published: Submission, ada: Client
) -> None:
    take(ada)
    worker = Worker.objects.get()
    assert worker.user is not None
    assert (
        worker.handle
        == worker_handle("pool", str(worker.user.pk))
        != worker_handle("mturk", str(worker.user.pk))
    )
    assert WorkerIdentity.objects.get().external_id == str(worker.user.pk)


def test_a_preview_is_for_administrators_and_cannot_be_sent(
    published: Submission, ada: Client
) -> None:
    question = Question.objects.first()
    assert question is not None
    address = f"/annotate/preview/{question.pk}/"
    assert ada.get(address).status_code == 404
    ada.force_login(User.objects.create(username="admin", is_staff=True))
    page = ada.get(address).content.decode()
    assert (
        "This is a preview" in page
        and "Submit" not in page
        and '<fieldset class="parts" disabled>' in page
    )


def test_the_whole_document_can_be_read(published: Submission, ada: Client) -> None:
    for question in Question.objects.all():
        text = question.payload["text"]
        question.payload |= {"text": text[: text.index(". She")], "lit": [0, text.index(". She")]}
        question.save()
    address = take(ada)
    page = ada.get(address).content.decode()
    assert "Show the whole document" in page and "She founded" not in page
    assert "She founded nothing." in ada.get(address + "document/").content.decode()


def test_trying_shows_an_explanation_only_after_the_answer(client: Client, db: None) -> None:
    assert client.get("/annotate/try/")["Location"] == "/annotate/try/1/"
    page = client.get("/annotate/try/1/").content.decode()
    assert "two sentences hold" not in page
    answer = {"a": "0-14", "b": "other", "holds": ["per:schools_attended>"]}
    said = client.post("/annotate/try/1/", answer).content.decode()
    assert "Our answer differs" in said and "two sentences hold" in said
    assert client.get(f"/annotate/try/{len(load_examples()) + 1}/").status_code == 404
    assert Worker.objects.count() == Assignment.objects.count() == 0
