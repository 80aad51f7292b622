"""Terms and tutorials: nobody answers a real question before them, two attempts, remembered by
version, paid once.
"""

from __future__ import annotations

import json
from decimal import Decimal
from hashlib import sha256
from typing import Any

import pytest
from annotation_world import GOOD, take
from django.test import Client

from annotation.hits.lease import lease_next
from annotation.interfaces.registry import INTERFACES
from annotation.labels import settle
from annotation.models import Assignment, Payment, Worker
from annotation.workers import consent, teach
from annotation.workers.models import Consent, Intake, Terms, TutorialRun
from kbpo.money.models import Budget
from kbpo.money.spend import balance
from kbpo.submissions.models import Submission

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("untaught")]
TERMS, TUTORIAL = "/annotate/terms/", "/annotate/tutorial/relation/"


def agree(client: Client, **change: Any) -> Any:
    return client.post(
        TERMS, {"agree": "yes", "version": consent.current_terms().version, **change}
    )


def attempt(client: Client, *, wrong: int = 0) -> str:
    """Goes through the tutorial with some wrong answers; what its page says at the end."""
    client.post(TUTORIAL)
    run = TutorialRun.objects.latest("pk")
    for number, question in enumerate(teach.tutorials()["relation"].asked(run.attempt), start=1):
        said = question["right"] if number > wrong else mistaken(question)
        assert client.post(f"{TUTORIAL}{number}/", said)["Location"] == f"{TUTORIAL}{number}/"
    return client.get(TUTORIAL).content.decode()


def mistaken(question: dict[str, Any]) -> dict[str, Any]:
    """A wrong answer: other names, and a sentence where none holds, or none where some hold."""
    if "none" in question["right"]:
        return {"a": "other", "b": "other", "holds": question["payload"]["predicates"][0]["part"]}
    return {"a": "other", "b": "other", "none": "1"}


def the_worker() -> Worker:
    return Worker.objects.get(user__username="ada")


def test_every_tutorial_can_be_read_and_passed_and_says_why() -> None:
    assert (
        set(teach.builtin_tutorials())
        == {path.parent.name for path in teach.HOME.glob("*/tutorial.json")}
        <= set(INTERFACES)
    )
    for tutorial in teach.tutorials().values():
        assert 0 < tutorial.needed <= len(tutorial.questions)
        for attempt in (1, 2):
            asked = tutorial.asked(attempt)
            assert len(asked) == len(tutorial.questions)
            for number, question in enumerate(asked, start=1):
                right = teach.right_answer(tutorial, number, attempt)
                assert teach.missed_criteria(tutorial, number, right, attempt) == []
                assert right and len(question["why"]) > 40
                assert {one.criterion for one in right} <= set(tutorial.criteria)
        assert not any(
            one["payload"] == other["payload"]
            for one in tutorial.questions
            for other in tutorial.asked(2)
        )


def test_terms_then_tutorial_then_the_first_question(published: Submission, ada: Client) -> None:
    assert ada.get("/annotate/next/")["Location"] == TERMS
    assert lease_next(the_worker()) is None, "nothing is leased to somebody who agreed to nothing"
    assert agree(ada)["Location"] == "/annotate/next/"
    assert ada.get("/annotate/next/")["Location"] == TUTORIAL
    assert lease_next(the_worker()) is None
    assert "You passed" in attempt(ada)
    assert take(ada)
    assert ada.post(take(ada), GOOD).status_code == 302
    assert Assignment.objects.filter(status="submitted").count() == 1


def test_the_tick_and_the_version_are_wanted(published: Submission, ada: Client) -> None:
    refused = ada.post(TERMS, {"version": "1"})
    assert refused.status_code == 422 and "Tick the box" in refused.content.decode()
    stale = agree(ada, version=7)
    assert stale.status_code == 422 and "version 5 holds now" in stale.content.decode()
    assert agree(ada, version="x").status_code == 422
    assert not Consent.objects.exists()
    assert (
        ada.post(TERMS, {"agree": "yes", "version": 5, "next": "https://example.org/"})["Location"]
        == "/annotate/next/"
    )


def test_terms_that_change_are_asked_again_and_lose_nothing(
    published: Submission, ada: Client
) -> None:
    agree(ada)
    attempt(ada)
    address = take(ada)
    Terms.objects.create(version=6, text="All is new\nRead it.")
    sent = ada.post(address, GOOD)
    assert sent["Location"] == f"{TERMS}?next={address}"
    page = ada.get(sent["Location"]).content.decode()
    assert "All is new" in page and f'name="next" value="{address}"' in page
    assert agree(ada, next=address)["Location"] == address
    assert 'value="0-3" checked' in ada.get(address).content.decode()
    assert Consent.objects.count() == 2
    assert "Read it." in Client().get(f"{TERMS}?version=6").content.decode()
    assert "You read short texts" in Client().get(f"{TERMS}?version=1").content.decode()
    assert Client().get(f"{TERMS}?version=7").status_code == 404


def test_a_text_that_people_agreed_to_stays_as_they_read_it(
    published: Submission, ada: Client
) -> None:
    read = {number: consent.terms_version(number) for number in consent.SHIPPED}
    assert {
        number: sha256(text.text.encode()).hexdigest() for number, text in read.items() if text
    } == {
        1: "b545a0e15ac9646d2d877c52426042c9849fc4edede9870a67872e107099f1cd",
        2: "96a47f97534c8fa144da736ddb058c26a4f0f7253c8140a5913ec33dcf2000d1",
        3: "1563f933818ae7ba6708902103da309a56cf535d952b7814a9c629a3c0594776",
        4: "bbf3c2e22528a5002bbe658e5634eba9d51921e6932d956f0811414d4784e62a",
        5: "252c4a20ec90f87b583c54da5bbb584742d28e82f42d684060d32445788cd1f4",
    }, "People agreed to this text. Ship another in a file of its own, with the next number."
    ada.get("/annotate/next/")
    Consent.objects.create(worker=the_worker(), version=1)
    assert not consent.has_consented(the_worker()), "they agreed to another text"
    agree(ada)
    assert consent.has_consented(the_worker())
    assert "differ often from those of others" in ada.get(f"{TERMS}?version=1").content.decode()
    assert "Pay can be refused only by a person" in ada.get(TERMS).content.decode()


def test_an_explanation_stands_under_each_answer_and_not_before(
    published: Submission, ada: Client
) -> None:
    agree(ada)
    ada.post(TUTORIAL)
    why = teach.tutorials()["relation"].questions[0]["why"]
    assert (
        "two sentences hold" in why
        and "two sentences hold" not in ada.get(f"{TUTORIAL}1/").content.decode()
    )
    ada.post(f"{TUTORIAL}1/", {"a": "0-11", "b": "21-31", "none": "1"})
    page = ada.get(f"{TUTORIAL}1/").content.decode()
    assert "two sentences hold" in page and "what the text says about A and B" in page
    ada.post(f"{TUTORIAL}1/", teach.tutorials()["relation"].questions[0]["right"])
    assert [one["right"] for one in TutorialRun.objects.get().answers] == [False], (
        "the first answer counts"
    )
    assert ada.get(f"{TUTORIAL}5/")["Location"] == TUTORIAL
    assert ada.post(f"{TUTORIAL}2/", {}).status_code == 422
    assert ada.get("/annotate/tutorial/nonsense/").status_code == 404


def test_there_are_two_attempts_and_no_third(published: Submission, ada: Client) -> None:
    agree(ada)
    assert "You have a second attempt" in attempt(ada, wrong=3)
    assert "Not passed" in attempt(ada, wrong=3)
    ada.post(TUTORIAL)
    assert TutorialRun.objects.count() == 2
    assert lease_next(the_worker()) is None


def test_feedback_shows_ones_own_answer_beside_the_right_one(
    published: Submission, ada: Client
) -> None:
    agree(ada)
    ada.post(TUTORIAL)
    ada.post(f"{TUTORIAL}1/", {"holds": "per:employee_or_member_of>"})
    run = TutorialRun.objects.get()
    told = {
        line.words: (line.yours, line.right) for line in teach.answer_beside_right_one(run, 1).lines
    }
    assert told == {
        "Karin Osted works or worked for Osted Line": (True, True),
        "Karin Osted leads or led Osted Line": (False, True),
    }, "both names can only stand for themselves"
    page = ada.get(f"{TUTORIAL}1/").content.decode()
    assert all(words in page for words in told)
    ada.post(f"{TUTORIAL}2/", {"a": "other", "b": "90-94", "none": "1"})
    run.refresh_from_db()
    told = {
        line.words: (line.yours, line.right) for line in teach.answer_beside_right_one(run, 2).lines
    }
    assert told == {
        "A, “Hale”, is none of the names that were offered": (True, False),
        "A, “Hale”, is “Ruben Hale”": (False, True),
        "B, “Lund”, is “Lund”": (True, True),
        "None of the sentences holds": (True, True),
    }


def test_feedback_on_a_document_names_what_differs_and_where(
    published: Submission, ada: Client
) -> None:
    agree(ada)
    worker = the_worker()
    lesson = teach.tutorials()["entities"]
    right = json.loads(lesson.questions[1]["right"]["mentions"][0])
    mine = [one | {"type": "GPE"} if one["type"] == "ORG" else one for one in right[:-1]]
    run = teach.begin_tutorial(worker, lesson)
    assert run is not None
    run = teach.store_tutorial_answer(run, 1, lesson.questions[0]["right"])
    run = teach.store_tutorial_answer(run, 2, {"mentions": [json.dumps(mine)]})
    beside = teach.answer_beside_right_one(run, 2)
    differing = {line.words: (line.yours, line.right) for line in beside.differing_lines}
    assert differing == {
        "“Dunmore College”: organisation": (False, True),
        "“Dunmore College”: state or city": (True, False),
        "“dean”: title or job": (False, True),
    }
    numbers = {line.number for line in beside.differing_lines}
    where = {
        beside.text[begin:end]
        for begin, end, _, said in beside.marks
        if numbers & {int(one) for one in said.split(", ")}
    }
    assert where == {"Dunmore College", "dean"}
    page = ada.get("/annotate/tutorial/entities/2/").content.decode()
    assert "3 of 8 differ" in page and 'data-badge="' in page


def test_a_new_version_is_learned_anew(published: Submission, ada: Client) -> None:
    agree(ada)
    attempt(ada)
    assert take(ada)
    Assignment.objects.update(status="returned")
    TutorialRun.objects.update(version=0)
    assert ada.get("/annotate/next/")["Location"] == TUTORIAL


def test_passing_is_paid_once_out_of_money_that_was_reserved_before(
    published: Submission, ada: Client
) -> None:
    track = published.track
    Intake.objects.create(track=track, tutorial_reward=Decimal("0.75"))
    agree(ada)
    assert (
        "You are paid <b>$0.75</b>, once, when you have passed."
        in ada.get(TUTORIAL).content.decode()
    )
    ada.post(TUTORIAL)
    purpose = TutorialRun.objects.get().purpose
    assert balance(purpose=purpose).open == Decimal("0.75")
    attempt(ada, wrong=3)
    attempt(ada)
    ada.post(f"{TUTORIAL}8/", teach.tutorials()["relation"].questions[7]["right"])  # sent again
    payment = Payment.objects.get()
    assert (payment.amount, payment.status, payment.worker) == (
        Decimal("0.75"),
        "owed",
        the_worker(),
    )
    sums = balance(purpose=purpose)
    assert (sums.reserved, sums.spent, sums.open) == (Decimal("0.75"), Decimal("0.75"), 0)
    TutorialRun.objects.update(version=0)
    attempt(ada)
    assert Payment.objects.count() == 1 and balance(track=track).reserved == Decimal("100.75")
    settle.tick()


def test_nothing_is_promised_beyond_the_budget(published: Submission, ada: Client) -> None:
    Intake.objects.create(tutorial_reward=Decimal("0.75"))
    Budget.objects.create(track=published.track, scope="track", cap=Decimal("100.50"))
    agree(ada)
    ada.post(TUTORIAL)
    assert "The tutorial pays nothing now" in ada.get(TUTORIAL).content.decode()
    attempt(ada)
    assert not Payment.objects.exists() and balance(track=published.track).reserved == Decimal(
        "100.00"
    )
