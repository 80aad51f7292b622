"""What is short on a platform: answers that cannot be used, places nobody took, money, and a
payment not taken.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from annotation_world import GOOD, make_submission
from django.utils import timezone
from mturk_world import Turk, check_books, check_money, due, rounds

from annotation.budget.cents import cents
from annotation.desk import command
from annotation.hits import batch, publish
from annotation.labels import settle
from annotation.marketplace import give, pay_out
from annotation.models import (
    HIT,
    Assignment,
    Bonus,
    Payment,
    Qualification,
    Question,
    Response,
    Worker,
    WorkerIdentity,
)
from annotation.questions import ask
from kbpo import clock
from kbpo.accounts.models import User
from kbpo.instances.models import Label, Target
from kbpo.money.models import Price
from kbpo.money.spend import balance, release
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(db: None) -> User:
    return User.objects.create_user("root", password="long enough 1", is_staff=True)


@pytest.fixture
def one(turk: Turk, track: Track, targets: list[Target]) -> Question:
    """One question, up on the endpoint."""
    make_submission(track, targets[:1])
    ask.tick()
    publish.tick()
    return Question.objects.get()


@pytest.mark.soak
def test_who_judges_a_question_twice_is_paid_twice_counts_once_and_another_is_asked(
    one: Question, turk: Turk, admin: User
) -> None:
    batch.extend_batch(one.payer, admin, "Too divided.")  # a sibling HIT for the fourth answer
    publish.tick()
    forms = []
    for hit in turk.hits():
        forms.append(turk.fill_in(turk.accept("W1", hit)[1], GOOD))
        # our rows are lost, or the second page would have been refused
        Assignment.objects.all().delete()
    for form in forms:
        turk.send(form)
    for worker in ("W2", "W3"):
        turk.do(worker, turk.hits()[0])
    rounds()
    assert Response.objects.filter(met_before=True).values("assignment").distinct().count() == 1
    one.refresh_from_db()
    assert one.status == "published", "three people answered it, and four were wanted"
    [again] = turk.offered("W4")
    turk.do("W4", again)
    rounds()
    assert Label.objects.get(target__kind="pair").n == 4
    assert Payment.objects.counts() == {"paid": 5}
    check_books(turk)


@pytest.mark.soak
def test_a_place_that_was_bought_and_not_taken_is_not_bought_again(
    one: Question, turk: Turk
) -> None:
    [hit] = turk.hits()
    assignment, _ = turk.accept("W1", hit)
    turk.send({"assignmentId": assignment, "answer": "nonsense"})
    for worker in ("W2", "W3"):
        turk.do(worker, hit)
    rounds()
    assert HIT.objects.get().max_assignments == 4
    for _ in range(3):
        turk.advance(hours=73)
        rounds()
    assert HIT.objects.get().max_assignments == 4
    one.refresh_from_db()
    assert one.status == "settled" and Label.objects.get(target__kind="pair").n == 2
    check_books(turk)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["error", "error_after"])
@pytest.mark.parametrize(
    "operation", ["CreateAdditionalAssignmentsForHIT", "UpdateExpirationForHIT"]
)
def test_a_place_whose_purchase_is_disturbed_is_bought_once(
    one: Question, turk: Turk, operation: str, kind: str
) -> None:
    [hit] = turk.hits()
    assignment, _ = turk.accept("W1", hit)
    turk.send({"assignmentId": assignment, "answer": "nonsense"})
    for worker in ("W2", "W3"):
        turk.do(worker, hit)
    turk.fault(operation, kind)
    for _ in range(2):  # a disturbed round moves nothing; the clock comes round again
        rounds()
    assert (
        turk.rows("SELECT most FROM hit") == [{"most": 4}]
        and HIT.objects.get().max_assignments == 4
    )
    turk.do("W4", hit)
    rounds()
    assert Label.objects.get(target__kind="pair").n == 3
    assert Payment.objects.counts() == {"paid": 4}
    check_books(turk)


@pytest.mark.soak
def test_a_place_for_two_questions_of_one_payer_needs_the_money_of_both(
    turk: Turk, track: Track, targets: list[Target], settings: object
) -> None:
    settings.MTURK_QUESTIONS_PER_HIT = 2  # type: ignore[attr-defined]
    Target.objects.filter(pk=targets[1].pk).update(document=targets[0].document)
    submission = make_submission(track, targets[:2], money="0.42")
    ask.tick()
    publish.tick()
    [hit] = turk.hits()
    assert HIT.objects.get().questions.count() == 2
    assignment, _ = turk.accept("W1", hit)
    turk.send({"assignmentId": assignment, "answer": "nonsense"})
    for worker in ("W2", "W3"):
        turk.do(worker, hit)
    rounds()
    assert HIT.objects.get().max_assignments == 3, (
        "$0.06 are left, and a place for both costs $0.12"
    )
    assert Question.objects.counts() == {"settled": 2}
    assert Payment.objects.counts() == {"paid": 3}
    assert balance(purpose=submission.purpose).open == Decimal("0.06")
    check_books(turk)


@pytest.mark.soak
def test_the_fee_of_a_hit_of_several_questions_is_what_the_platform_takes_for_it(
    turk: Turk, track: Track, targets: list[Target], settings: object
) -> None:
    """A fifth of 7 cents is 2 cents, rounded up; a fifth of two times 7 cents is 3, not 4."""
    settings.MTURK_QUESTIONS_PER_HIT = 2  # type: ignore[attr-defined]
    Price.objects.update(reward=Decimal("0.07"))
    Target.objects.filter(pk=targets[1].pk).update(document=targets[0].document)
    submission = make_submission(track, targets[:3])
    ask.tick()
    publish.tick()
    turk.all_do("W1", "W2", "W3")
    rounds()
    both, alone = Decimal("0.17"), Decimal("0.09")
    assert balance(purpose=submission.purpose).spent == 3 * (both + alone)
    parts = {one.state: Decimal(0) for one in cents()}
    for one in cents():
        parts[one.state] += one.amount
    assert (parts["paid"], parts["fee"]) == (3 * Decimal("0.21"), 3 * Decimal("0.05"))
    check_books(turk)
    check_money(turk)


@pytest.mark.soak
def test_an_answer_that_comes_after_its_question_was_given_up_is_used(
    one: Question, turk: Turk, admin: User
) -> None:
    [hit] = turk.hits()
    _, frame = turk.accept("W1", hit)
    form = turk.fill_in(frame, GOOD)
    Assignment.objects.all().delete()  # as if our page had never heard of it
    batch.stop_batch(one.payer, admin, "No need.")
    settle.tick()
    assert [row.method for row in Label.objects.filter(target__kind="pair")] == ["nonresponse"]
    turk.send(form)
    rounds()
    one.refresh_from_db()
    assert one.status == "settled"
    late = Label.objects.filter(target__kind="pair").order_by("-pk")[0]
    assert (late.n, late.method) == (1, "majority") and late.value
    assert Payment.objects.counts() == {"paid": 1}


@pytest.mark.soak
def test_a_question_that_is_reopened_is_never_up_twice(
    turk: Turk, track: Track, targets: list[Target], admin: User
) -> None:
    make_submission(track, targets[:1])
    ask.tick()
    turk.fault("CreateHITWithHITType", "error_after")  # done, and we are never told
    publish.tick()
    question, first = Question.objects.get(), HIT.objects.get()
    assert first.external_id == "" and len(turk.hits()) == 1
    batch.stop_batch(question.payer, admin, "No need.")
    settle.tick()
    assert command.retry("question", question.pk, admin) == "waiting"
    rounds()
    assert len(turk.offered("W1")) == 1, "the first one is found and taken down"
    turk.all_do("W1", "W2", "W3")
    rounds()
    question.refresh_from_db()
    assert question.status == "settled" and Payment.objects.counts() == {"paid": 3}
    check_books(turk)


@pytest.mark.soak
def test_a_failed_hit_is_retried_only_if_its_money_is_still_there(
    turk: Turk, track: Track, targets: list[Target], admin: User
) -> None:
    submission = make_submission(track, targets[:1], money="0.20")
    ask.tick()
    question = Question.objects.get()
    hit = HIT.objects.create(
        status="failed",
        track=track,
        platform="mturk",
        reward=question.reward,
        reason="The platform says no.",
    )
    hit.questions.add(question)
    Question.objects.update(next_try_at=clock.now() + timedelta(hours=1))
    release(track, submission.purpose, key="back", keep=Decimal("0.10"))
    with pytest.raises(command.CannotRetry, match=r"\$0.08 more than submission"):
        command.retry("hit", hit.pk, admin)
    hit.refresh_from_db()
    question.refresh_from_db()
    assert (hit.status, question.status) == ("failed", "waiting")


@pytest.mark.soak
def test_a_worker_whom_the_platform_refuses_is_asked_about_less_and_less_often(
    turk: Turk, track: Track
) -> None:
    worker = Worker.objects.create(platform="mturk", handle="1" * 32)
    WorkerIdentity.objects.create(worker=worker, external_id="W1")
    Qualification.objects.create(worker=worker, name="tutorial", wanted=True)
    HIT.objects.create(
        status="disposed",
        platform_status="gone",
        track=track,
        platform="mturk",
        reward=Decimal("0.05"),
    )
    turk.fault("AssociateQualificationWithWorker", "refuse", times=99)
    waits = []
    for _ in range(3):
        Qualification.objects.update(next_try_at=clock.now())
        pay_out.tick()
        row = Qualification.objects.get()
        waits.append((row.next_try_at - timezone.now()).total_seconds())
        assert pay_out.tick() == 0 and Qualification.objects.get().refusals == row.refusals, (
            "it is not asked at once"
        )
    assert waits[0] < waits[1] < waits[2] and row.reason
    turk.forgive()
    Qualification.objects.update(next_try_at=clock.now())
    pay_out.tick()
    row = Qualification.objects.get()
    assert (row.told, row.refusals, row.reason) == (True, 0, "")


@pytest.mark.soak
def test_a_compensation_is_offered_until_its_worker_takes_it(
    one: Question, turk: Turk, track: Track
) -> None:
    turk.do("W1", turk.hits()[0])
    rounds()
    give.grant(Worker.objects.get(), track, Decimal("0.50"), "Your page broke.")
    pay_out.tick()
    [hit] = [
        row["id"]
        for row in turk.rows("SELECT id FROM hit WHERE annotation LIKE 'kbpo-compensation%'")
    ]
    turk.advance(days=20)
    assert hit not in turk.offered("W1")
    due()
    pay_out.tick()
    assert hit in turk.offered("W1"), "three weeks later it is offered again"
    assignment, _ = turk.accept("W1", hit)
    turk.send({"assignmentId": assignment, "thanks": "taken"})
    rounds()
    assert Bonus.objects.get().status == "paid"
    assert len(turk.rows("SELECT id FROM hit WHERE annotation LIKE 'kbpo-compensation%'")) == 1
