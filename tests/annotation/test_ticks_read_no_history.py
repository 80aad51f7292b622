"""What the clock does every few seconds looks at what is due, and not at all that ever was."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from annotation_world import PARTS, answer_all
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from documents_world import order

from annotation.budget import give_back
from annotation.labels import exclude, settle
from annotation.models import Pilot, Question, Signal, Warned, Worker
from annotation.quality import signals
from annotation.questions import read_documents
from kbpo.money import spend
from kbpo.money.models import Ledger
from kbpo.submissions.models import Submission
from tests.conftest import Toy

pytestmark = pytest.mark.django_db
YES = {"a": "0-3", "b": "other", "holds": PARTS[0]}
NO = {"a": "0-3", "b": "other", "none": "1"}


def queries(act: Callable[[], object]) -> list[str]:
    """The statements that something sends to the database."""
    with CaptureQueriesContext(
        connection,
    ) as sent:
        act()
    return [query["sql"] for query in sent.captured_queries]


def test_a_submission_whose_money_is_back_is_not_looked_at_again(published: Submission) -> None:
    Question.objects.update(status="cancelled")
    Submission.objects.filter(pk=published.pk).update(status="withdrawn")
    assert give_back.tick() == 1
    assert give_back.tick() == 0
    assert spend.unclosed("submission") == []
    assert len(queries(give_back.tick)) == 2, "the open reservations of submissions and of pilots"


def test_money_that_turns_out_not_to_be_owed_is_given_back_though_it_was_closed(
    published: Submission,
) -> None:
    spend.spend(published.track, published.purpose, Decimal("0.06"), key="assignment:1/1")
    Question.objects.update(status="cancelled")
    Submission.objects.filter(pk=published.pk).update(status="withdrawn")
    assert (give_back.tick(), give_back.tick()) == (1, 0)
    assert spend.unclosed("submission") == []
    spend.unspend("assignment:1")
    assert give_back.tick() == 1
    sums = spend.balance(purpose=published.purpose)
    assert sums.open == 0 and sums.released == sums.reserved


def test_what_is_reserved_after_the_end_is_looked_at(published: Submission) -> None:
    Question.objects.update(status="cancelled")
    Submission.objects.filter(pk=published.pk).update(status="withdrawn")
    assert (give_back.tick(), give_back.tick()) == (1, 0)
    spend.reserve(published.track, published.team, published.purpose, Decimal("1.00"), key="more")
    assert give_back.tick() == 1
    assert spend.balance(purpose=published.purpose).open == 0


def test_an_ended_pilot_is_not_looked_at_again(published: Submission) -> None:
    pilot = Pilot.objects.create(track=published.track, seed=1, interface="relation")
    spend.reserve(pilot.track, None, pilot.payer, Decimal("1.00"), key="pilot")
    assert (give_back.tick(), give_back.tick()) == (1, 0)
    assert not Ledger.objects.filter(
        **pilot.payer.at("purpose"), kind="reserve", closed_at=None
    ).exists()


def test_documents_that_are_being_asked_about_wait_without_a_look(toy: Toy) -> None:
    order(toy.track, 3)
    assert Question.objects.counts() == {"published": 3}
    sent = queries(read_documents.tick)
    assert not any("pg_try_advisory_xact_lock" in sql for sql in sent)
    Question.objects.filter(pk=Question.objects.earliest("pk").pk).update(status="settled")
    sent = queries(read_documents.tick)
    assert sum("annotation.questions.read_documents" in sql for sql in sent) == 1


def test_questions_that_were_given_up_long_ago_are_found_by_when_they_are_due() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE tablename = 'annotation_question'")
        indexes = [definition for (definition,) in cursor.fetchall()]
    assert any("(status, next_try_at)" in definition for definition in indexes)


def test_a_review_looks_only_at_those_of_whom_something_was_noted_since(
    published: Submission, clients: list[Client]
) -> None:
    for client, answer in zip(clients, (YES, YES, NO), strict=True):
        answer_all(client, answer)
    settle.tick()
    cy = Worker.objects.get(user__username="cy")
    assert Signal.objects.filter(worker=cy, kind="against_majority").exists()
    assert list(signals.due_for_review()) == [], "six against are not beyond the limit"
    assert len(queries(exclude.review)) == 1
    answered = cy.assignments.earliest("pk")
    Signal.objects.filter(assignment=answered).delete()
    Signal.objects.create(assignment=answered, worker=cy, kind="against_majority")
    assert list(signals.due_for_review()) == [cy.pk]


def test_who_is_beyond_a_limit_and_cannot_be_spared_is_looked_at_again(
    published: Submission, clients: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(signals.LIMITS, "majority", signals.Limit(4, 0.2))
    for client, answer in zip(clients, (YES, YES, NO), strict=True):
        answer_all(client, answer)
    settle.tick()
    cy = Worker.objects.get(user__username="cy")
    assert cy.excluded_at is None and list(signals.due_for_review()) == [cy.pk]
    Worker.objects.bulk_create(
        Worker(platform="pool", handle=f"other{number}", last_seen_at=timezone.now())
        for number in range(9)
    )
    assert exclude.review() == 0, "warned, and no more yet"
    assert Warned.objects.filter(worker=cy, kind="majority").update(against=1) == 1
    Signal.objects.filter(worker=cy).update(reviewed=False)
    assert exclude.review() == 1, "as if the warning had come after the first"
    cy.refresh_from_db()
    assert cy.excluded_at is not None and list(signals.due_for_review()) == []
