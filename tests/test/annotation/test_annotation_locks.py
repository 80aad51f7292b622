"""Nobody waits in a circle: steps that meet on the same rows, on two real connections, each held
where it hurts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from annotation_world import answer_all
from django.db import connection, connections, transaction
from django.test import Client
from django.utils import timezone

from annotation.budget import promises
from annotation.budget.give_back import release_unneeded_money
from annotation.hits import batch, publish, take_down
from annotation.labels import exclude, recount, settle
from annotation.labels.settle import parse_accepted_answers
from annotation.models import HIT, Assignment, Question
from kbpo import clock
from kbpo.accounts.models import User
from kbpo.submissions.models import Submission

pytestmark = pytest.mark.django_db(transaction=True)


def blocked() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_stat_clear_snapshot()"
        )  # else a transaction sees what it saw at first
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND wait_event_type = 'Lock' AND backend_type = 'client backend'"
        )
        return int(cursor.fetchone()[0])


class Beside(threading.Thread):
    """Runs a function on a connection of its own, and keeps what it raised."""

    def __init__(self, function: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self.function = function
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.function()
        except BaseException as error:
            self.error = error
        finally:
            connections.close_all()

    def wait_until_blocked(self) -> None:
        """Until it waits for a lock that somebody else has, or is through."""
        deadline = time.monotonic() + 60
        while self.is_alive() and not blocked():
            assert time.monotonic() < deadline, "it neither waits nor ends"
            time.sleep(0.02)

    def ended(self) -> None:
        self.join(60)
        assert not self.is_alive()
        assert self.error is None, self.error


def one_more_answer(question: Question) -> Assignment:
    """An answer to this question that was sent in and not read yet."""
    answer = Assignment.objects.filter(hit__questions=question).order_by("-pk")[0]
    assert answer.status == "submitted"
    return answer


@transaction.atomic
def read(pk: int) -> None:
    parse_accepted_answers([Assignment.objects.select_for_update(of=("self",)).get(pk=pk)])


@pytest.fixture
def answered(two_published: Submission, clients: list[Client]) -> Question:
    """A question with two answers that were read and one that was not."""
    for client in clients:
        answer_all(client)
    question = Question.objects.order_by("pk")[0]
    for answer in Assignment.objects.filter(hit__questions=question).order_by("pk")[:2]:
        read(answer.pk)
    return question


def test_an_answer_is_read_while_its_question_is_settled(answered: Question) -> None:
    """Settling holds the question and comes to its HIT; whoever held the HIT and waited for the
    question would kill one of the two.
    """
    last = one_more_answer(answered)
    with transaction.atomic():
        question = Question.objects.select_for_update(of=("self",)).get(pk=answered.pk)
        other = Beside(lambda: read(last.pk))
        other.wait_until_blocked()
        assert other.is_alive(), "both were at it at once"
        recount.settle_questions([question])
    other.ended()
    last.refresh_from_db()
    assert last.status == "accepted" and last.responses.count() == 3
    answered.refresh_from_db()
    assert answered.status == "settled"


def test_a_question_is_settled_while_an_answer_to_it_is_read(answered: Question) -> None:
    last = one_more_answer(answered)
    Question.objects.filter(pk=answered.pk).update(status="answered")

    def settled() -> None:
        with transaction.atomic():
            recount.settle_questions(
                [Question.objects.select_for_update(of=("self",)).get(pk=answered.pk)]
            )

    with transaction.atomic():
        read(last.pk)
        other = Beside(settled)
        other.wait_until_blocked()
        assert other.is_alive()
    other.ended()
    answered.refresh_from_db()
    assert answered.status == "settled" and last.responses.count() == 3


def _refused(hit: HIT) -> None:
    HIT.objects.filter(pk=hit.pk).update(status="intent", attempts=99)
    hit.refresh_from_db()
    publish._give_up_refused_hit(hit, "The platform says no.")


def _put_back(hit: HIT) -> None:
    HIT.objects.filter(pk=hit.pk).update(status="expired", taken_down_at=timezone.now())
    take_down._reopen_hits(hit.questions.get().payer)


@pytest.mark.parametrize("step", [_refused, _put_back])
def test_whoever_takes_questions_and_hits_takes_questions_first(
    answered: Question, step: Callable
) -> None:
    hit = answered.hits.get()
    with transaction.atomic():
        question = Question.objects.select_for_update(of=("self",)).get(pk=answered.pk)
        other = Beside(lambda: step(hit))
        other.wait_until_blocked()
        assert other.is_alive()
        recount.settle_questions([question])
    other.ended()


def test_an_answer_that_is_read_while_its_worker_is_excluded_does_not_count(
    answered: Question,
) -> None:
    """Who excludes waits for who reads, and what was read meanwhile is excluded with the rest."""
    last = one_more_answer(answered)
    with transaction.atomic():
        read(last.pk)
        other = Beside(lambda: exclude.exclude_worker(last.worker, "Always the first button"))
        other.wait_until_blocked()
        assert other.is_alive(), "it did not wait for the answer"
    other.ended()
    assert last.responses.count() == 3 and not last.responses.filter(counts=True).exists()


def _stop(submission: Submission) -> None:
    batch.stop_batch(submission.purpose, User.objects.create_user("root"), "Too dear")


def _end(submission: Submission) -> None:
    Submission.objects.filter(pk=submission.pk).update(status="scored")
    release_unneeded_money(submission)


def _up_again(submission: Submission) -> None:
    take_down._reopen_hits(submission.purpose)


@pytest.mark.parametrize("step", [_stop, _end, _up_again])
def test_a_payers_money_is_promised_or_given_back_by_one_at_a_time(
    step: Callable[[Submission], None], two_published: Submission
) -> None:
    with transaction.atomic():
        promises.lock_payer(two_published.purpose)
        other = Beside(lambda: step(two_published))
        other.wait_until_blocked()
        assert other.is_alive(), "both were at the same money"
    other.ended()


def test_one_more_is_asked_once_nobody_else_promises_the_same_money(
    answered: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever settles holds questions and must not wait for that: the question waits instead."""
    monkeypatch.setattr("annotation.hits.ask_again.has_other_worker", lambda question: True)
    monkeypatch.setattr(recount, "questions_with_tied_targets", set)
    promised, settled = threading.Event(), threading.Event()

    @transaction.atomic
    def promise() -> None:
        promises.lock_payer(answered.payer)
        promised.set()
        settled.wait(60)

    other = Beside(promise)
    assert promised.wait(60)
    settle.tick()
    settled.set()
    other.ended()
    assert Question.objects.counts() == {"answered": 2}
    assert not Question.objects.filter(next_try_at__lte=timezone.now()).exclude(attempts=0).exists()
    Question.objects.update(next_try_at=clock.now())
    settle.tick()
    assert Question.objects.counts() == {"published": 2}
    assert set(Question.objects.values_list("answers_wanted", flat=True)) == {4}
