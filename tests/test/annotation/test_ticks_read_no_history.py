"""What the clock does every few seconds looks at what is due, and not at all that ever was."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from annotation_world import PARTS, answer_all
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from annotation.budget import give_back
from annotation.labels import exclude, settle
from annotation.models import Question, Signal, Worker
from annotation.quality import signals
from kbpo.money import spend
from kbpo.submissions.models import Submission

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
    assert spend.purposes_with_open_money("submission") == []
    assert len(queries(give_back.tick)) == 1, "the open reservations of submissions"


def test_money_that_turns_out_not_to_be_owed_is_given_back_though_it_was_closed(
    published: Submission,
) -> None:
    spend.spend_money(published.track, published.purpose, Decimal("0.06"), key="assignment:1/1")
    Question.objects.update(status="cancelled")
    Submission.objects.filter(pk=published.pk).update(status="withdrawn")
    assert (give_back.tick(), give_back.tick()) == (1, 0)
    assert spend.purposes_with_open_money("submission") == []
    spend.cancel_payment("assignment:1")
    assert give_back.tick() == 1
    sums = spend.balance(purpose=published.purpose)
    assert sums.open == 0 and sums.released == sums.reserved


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
    assert Signal.objects.filter(assignment__worker=cy, kind="majority", against=True).exists()
    assert list(signals.signals_to_review()) == [], "six against are not beyond the limit"
    assert len(queries(exclude.exclude_flagged)) == 1
    answered = cy.assignments.earliest("pk")
    Signal.objects.filter(assignment=answered).delete()
    Signal.objects.create(assignment=answered, kind="majority", against=True)
    assert list(signals.signals_to_review()) == [cy.pk]
