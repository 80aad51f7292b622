"""The platform misbehaves or we die: no HIT twice, no payment twice, no answer lost."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from annotation_world import make_submission
from mturk_world import Refusal, Turk, check_books, due, round_, rounds

from annotation import ask, batch, collect, command, elsewhere, publish, remit, report, settle
from annotation.models import (
    HIT,
    Assignment,
    Payment,
    PlatformBooks,
    Qualification,
    Question,
    Response,
    Worker,
    WorkerIdentity,
)  # fmt: skip
from annotation.platforms.base import PlatformDown, Refused, UnknownOutcome
from annotation.platforms.mturk import client
from annotation.platforms.mturk.platform import MTurk
from kbpo.accounts.models import User
from kbpo.instances.models import Label, Target
from kbpo.money.models import Budget
from kbpo.money.spend import balance
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db


class Killed(BaseException):
    """The process is gone."""


@contextmanager
def dying(owner: Any, name: str, *, before: bool, at: int = 1):  # type: ignore[no-untyped-def]
    """Kills us at the at-th call of a function: before it does anything, or when it has done it."""
    real, calls = getattr(owner, name), 0

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at and before:
            raise Killed
        result = real(*args, **kwargs)
        if calls == at:
            raise Killed
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, wrapped)
        yield


@pytest.fixture
def asked(turk: Turk, track: Track, targets: list[Target]) -> Submission:
    """Six questions that nobody has published yet."""
    submission = make_submission(track, targets)
    ask.tick()
    return submission


@pytest.fixture
def admin(db: None) -> User:
    return User.objects.create_user("root", password="long enough 1", is_staff=True)


def put_up(turk: Turk) -> int:
    return turk.rows("SELECT count(*) AS n FROM hit")[0]["n"]


def killed(step: Callable[[], Any]) -> None:
    with pytest.raises(Killed):
        step()


@pytest.mark.parametrize("before", [True, False], ids=["between intent and call", "between call and record"])
@pytest.mark.parametrize("at", [1, 4])
def test_a_kill_while_publishing_makes_no_hit_twice(asked: Submission, turk: Turk, before: bool, at: int) -> None:
    with dying(MTurk, "publish", before=before, at=at):
        killed(publish.tick)
    rounds()
    assert put_up(turk) == 6
    assert HIT.objects.counts() == {"open": 6}
    check_books(turk)


@pytest.mark.parametrize("kind", ["timeout", "error_after"])
def test_a_hit_whose_answer_never_came_is_adopted(asked: Submission, turk: Turk, kind: str) -> None:
    turk.fault("CreateHITWithHITType", kind, times=2)
    publish.tick()
    assert HIT.objects.filter(status="intent").exclude(reason="").count() == 2
    rounds()
    assert put_up(turk) == 6
    assert HIT.objects.counts() == {"open": 6}
    check_books(turk)


@pytest.mark.parametrize("kind", ["throttle", "error"])
def test_throttling_and_faults_cost_time_and_nothing_else(asked: Submission, turk: Turk, kind: str) -> None:
    for operation in ("CreateHITWithHITType", "ListHITs", "ListAssignmentsForHIT", "ApproveAssignment", "DeleteHIT"):
        turk.fault(operation, kind, times=2)
    publish.tick()
    rounds()
    for worker in ("W1", "W2", "W3"):
        turk.all_do(worker)
    for _ in range(8):
        due()
        round_()
    assert (put_up(turk), Payment.objects.counts()) == (6, {"paid": 18})
    assert HIT.objects.counts() == {"disposed": 6}
    check_books(turk)


def test_a_platform_that_stays_away_for_long_makes_nothing_fail(asked: Submission, turk: Turk) -> None:
    turk.fault("CreateHITWithHITType", "error", times=60)
    for _ in range(8):
        due()
        publish.tick()
    assert HIT.objects.counts() == {"intent": 6}
    with turk.store.begin() as books:
        books.run("DELETE FROM fault")
    rounds()
    assert put_up(turk) == 6
    check_books(turk)


@pytest.mark.parametrize("recorded", [True, False])
def test_after_25_hours_a_forgotten_token_makes_no_second_hit(asked: Submission, turk: Turk, recorded: bool) -> None:
    with dying(MTurk, "publish", before=False):
        killed(publish.tick)
    turk.advance(hours=25)
    if not recorded:  # the list is the only way to know: the token is forgotten
        due()
        publish.tick()
    rounds()
    assert put_up(turk) == 6
    check_books(turk)


def test_a_hit_that_no_list_has_is_made_after_a_day_and_not_before(asked: Submission, turk: Turk) -> None:
    with dying(MTurk, "publish", before=True):
        killed(publish.tick)
    turk.advance(hours=25)
    rounds()
    assert put_up(turk) == 6
    check_books(turk)


def test_a_refusal_gives_up_the_hit_and_its_questions_wait_again(asked: Submission, turk: Turk) -> None:
    with turk.store.begin() as books:
        books.run("UPDATE fact SET value = 10 WHERE name = 'deposit'")  # ten cents: nothing can be put up
    for _ in range(6):
        HIT.objects.update(next_try_at="2026-01-01T00:00:00Z")
        publish.tick()
    assert HIT.objects.counts() == {"failed": 6}
    assert "$0.18 is needed" in HIT.objects.all()[0].reason
    assert Question.objects.counts() == {"waiting": 6}
    assert put_up(turk) == 0


def refuse_all(turk: Turk) -> None:
    """The deposit is too small until the platform has refused every intent for good."""
    with turk.store.begin() as books:
        books.run("UPDATE fact SET value = 10 WHERE name = 'deposit'")
    for _ in range(6):
        HIT.objects.update(next_try_at="2026-01-01T00:00:00Z")
        publish.tick()
    with turk.store.begin() as books:
        books.run("UPDATE fact SET value = 100000 WHERE name = 'deposit'")


def test_a_refused_hit_whose_questions_went_out_in_another_is_not_retried(asked: Submission, turk: Turk) -> None:
    refuse_all(turk)
    refused = list(HIT.objects.order_by("pk"))
    assert command.retry("hit", refused[0].pk) == "intent"  # its question waits: it may go out again
    rounds()
    assert put_up(turk) == 6
    assert [one for one in report.failures() if one.kind == "hit"] == []
    HIT.objects.filter(pk=refused[1].pk).update(status="failed")  # as if it had been held when the others went out
    with pytest.raises(command.CannotRetry, match="have gone out in another HIT"):
        command.retry("hit", refused[1].pk)
    rounds()
    assert put_up(turk) == 6


def test_a_refused_sibling_does_not_send_its_question_out_again(up: Submission, turk: Turk, admin: User) -> None:
    batch.extend_batch(up.purpose, admin, "Too divided.")
    refuse_all(turk)
    assert HIT.objects.counts() == {"open": 6, "failed": 6}
    assert Question.objects.counts() == {"published": 6}, "their first HITs are up"
    turk.all_do("W1", "W2", "W3")
    rounds()
    assert (put_up(turk), Question.objects.counts()) == (6, {"settled": 6})
    check_books(turk)


def test_a_paused_batch_stops_its_own_hits_and_no_others(
    turk: Turk, track: Track, targets: list[Target], admin: User
) -> None:
    paused, other = (make_submission(track, targets[3 * n : 3 * n + 3], f"Team {n}") for n in (0, 1))
    ask.tick()
    publish.tick()
    batch.pause_batch(paused.purpose, admin, "The page shows too little.")
    due()
    collect.tick()
    ours = set(HIT.objects.filter(questions__payer=other.purpose).values_list("external_id", flat=True))
    assert set(turk.offered("W1")) == ours and len(ours) == 3
    batch.extend_batch(other.purpose, admin, "Too divided.")
    batch.extend_batch(paused.purpose, admin, "Too divided.")
    publish.tick()
    assert set(HIT.objects.filter(status="intent").values_list("questions__payer", flat=True)) == {paused.purpose}
    batch.resume_batch(paused.purpose, admin)
    rounds()
    assert len(turk.offered("W1")) == 12


def test_one_worker_whom_the_platform_refuses_keeps_no_other_waiting(
    turk: Turk, track: Track, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in (1, 2):
        worker = Worker.objects.create(platform="mturk", handle=str(n) * 32)
        WorkerIdentity.objects.create(worker=worker, external_id=f"W{n}")
        Qualification.objects.create(worker=worker, name="tutorial", wanted=True)
    real = MTurk.qualify

    def qualify(platform: MTurk, worker: Worker, name: str, held: bool) -> None:
        if worker.handle.startswith("1"):
            raise Refused("This worker's account is closed.")
        real(platform, worker, name, held)

    monkeypatch.setattr(MTurk, "qualify", qualify)
    assert remit._tell_qualifications(MTurk()) == 1
    assert list(Qualification.objects.order_by("worker__handle").values_list("told", flat=True)) == [None, True]


def refusing(monkeypatch: pytest.MonkeyPatch, name: str) -> Callable[[], None]:
    """Lets the platform refuse these calls until what is returned is called."""
    real = getattr(MTurk, name)

    def refuse(*_: object) -> None:
        raise Refused("You have too little balance.")

    monkeypatch.setattr(MTurk, name, refuse)
    return lambda: monkeypatch.setattr(MTurk, name, real)


def try_five_times() -> None:
    for _ in range(5):
        due()
        round_()


def test_a_payment_that_was_refused_is_tried_again_then_listed_and_retried(
    up: Submission, turk: Turk, monkeypatch: pytest.MonkeyPatch
) -> None:
    turk.do("W1", turk.hits()[0])
    settle_down = refusing(monkeypatch, "approve")
    due()
    round_()
    row = Payment.objects.get()
    assert (row.status, row.reason) == ("owed", "You have too little balance.") and row.next_try_at > row.status_since
    try_five_times()
    assert [(one.kind, one.pk, one.reason) for one in report.failures()] == [("payment", row.pk, row.reason)]
    settle_down()
    command.retry("payment", row.pk)
    rounds()
    assert Payment.objects.counts() == {"paid": 1} and report.failures() == []
    check_books(turk)


def test_what_the_platform_has_approved_is_paid_whatever_it_says_of_approving(
    up: Submission, turk: Turk, monkeypatch: pytest.MonkeyPatch
) -> None:
    turk.do("W1", turk.hits()[0])
    with turk.store.begin() as books:
        books.run("UPDATE assignment SET auto_approval = ?", books.now - 1)
    refusing(monkeypatch, "approve")
    rounds()
    assert Payment.objects.counts() == {"paid": 1}


def test_a_bonus_that_was_refused_gives_its_money_back_until_it_is_retried(
    up: Submission, turk: Turk, monkeypatch: pytest.MonkeyPatch
) -> None:
    turk.do("W1", turk.hits()[0])
    rounds()
    answer = Assignment.objects.get()
    bonus = command.grant(answer.worker, up.track, Decimal("0.50"), "A good find.", assignment=answer, key="k" * 32)
    again = command.grant(answer.worker, up.track, Decimal("0.50"), "A good find.", assignment=answer, key="k" * 32)
    assert again == bonus
    with pytest.raises(ValueError, match=r"sent already, for \$0.50"):
        command.grant(answer.worker, up.track, Decimal("0.70"), "A good find.", assignment=answer, key="k" * 32)
    settle_down = refusing(monkeypatch, "pay_bonus")
    try_five_times()
    assert [(one.kind, one.pk) for one in report.failures()] == [("bonus", bonus.pk)]
    assert balance(purpose=bonus.purpose).spent == 0
    settle_down()
    cap = Budget.objects.create(track=up.track, scope="track", cap=Decimal("100.10"))
    with pytest.raises(command.CannotRetry, match="is left under the track's budget"):
        command.retry("bonus", bonus.pk)
    cap.delete()
    command.retry("bonus", bonus.pk)
    rounds()
    bonus.refresh_from_db()
    assert (bonus.status, balance(purpose=bonus.purpose).spent) == ("paid", Decimal("0.60"))
    assert turk.calls("SendBonus") == 1


def test_an_answer_is_taken_in_once_however_often_it_is_told(up: Submission, turk: Turk) -> None:
    turk.do("W1", turk.hits()[0])
    turk.fault("ListAssignmentsForHIT", "duplicate", times=8)
    turk.fault("ListHITs", "duplicate")
    rounds()
    assert Assignment.objects.exclude(raw=None).count() == 1
    assert put_up(turk) == 6 and HIT.objects.counts() == {"open": 6}
    check_books(turk)


def test_an_empty_list_is_not_believed(up: Submission, turk: Turk) -> None:
    turk.fault("ListHITs", "lose", times=2)
    due()
    collect.tick()
    assert HIT.objects.exclude(platform_status="gone").count() == 6
    turk.all_do("W1", "W2", "W3")
    turk.fault("ListAssignmentsForHIT", "lose", times=3)
    rounds()
    due()
    rounds()
    assert Payment.objects.counts() == {"paid": 18}
    check_books(turk)


def test_an_assignment_that_was_returned_belongs_to_who_took_it(up: Submission, turk: Turk) -> None:
    hit = turk.hits()[0]
    first, src = turk.accept("W1", hit)
    form = turk.fill_in(src)
    turk.give_back("W1", first)
    second, src2 = turk.accept("W2", hit)
    assert second == first  # the platform gave the same identifier to somebody else
    turk.send(turk.fill_in(src2))
    with pytest.raises(Refusal, match="submitted"):
        turk.send(form)
    rounds()
    [answer] = Assignment.objects.exclude(raw=None)
    assert answer.worker.identity.external_id == "W2"
    assert Assignment.objects.filter(external_id=first).count() == 2  # W1's draft, given back
    assert Payment.objects.get().worker_id == answer.worker_id
    check_books(turk)


def test_a_stolen_form_of_a_returned_assignment_is_not_the_new_workers_answer(up: Submission, turk: Turk) -> None:
    hit = turk.hits()[0]
    first, src = turk.accept("W1", hit)
    form = turk.fill_in(src)
    turk.give_back("W1", first)
    turk.accept("W2", hit)
    turk.send(form)  # the same assignment id, with W1's proof in it
    rounds()
    [answer] = Assignment.objects.exclude(raw=None)
    assert answer.status == "failed" and answer.worker.identity.external_id == "W2"
    assert not Response.objects.exists()


def test_an_answer_that_only_the_platform_has_is_rebuilt_whole(up: Submission, turk: Turk) -> None:
    turk.do("W1", turk.hits()[0])
    Assignment.objects.all().delete()  # our database lost the draft
    Worker.objects.all().delete()
    rounds()
    assert Assignment.objects.counts() == {"paid": 1}
    assert Response.objects.filter(criterion="relation").get().value == {"holds": ["per:schools_attended>"]}
    check_books(turk)


def test_an_answer_that_only_we_have_is_a_draft_and_is_never_paid(up: Submission, turk: Turk) -> None:
    _, src = turk.accept("W1", turk.hits()[0])
    form = turk.fill_in(src)
    turk.fault("externalSubmit", "lose")
    turk.send(form)  # the worker was told that it arrived
    rounds()
    assert Assignment.objects.get().status == "leased" and Assignment.objects.get().draft
    assert not Payment.objects.exists() and not Response.objects.exists()
    turk.send(form)  # sent again: it counts once
    rounds()
    assert Payment.objects.counts() == {"paid": 1}
    check_books(turk)


def test_an_answer_after_the_hit_expired_counts_and_is_paid(up: Submission, turk: Turk) -> None:
    hit = turk.hits()[0]
    _, src = turk.accept("W1", hit)
    with turk.store.begin() as books:
        books.run("UPDATE hit SET expiration = ? WHERE id = ?", books.now - 1, hit)
    HIT.objects.filter(external_id=hit).update(renewed_at="2026-01-01T00:00:00Z")
    due()
    round_()
    turk.send(turk.fill_in(src))
    rounds()
    assert Label.objects.get(target__kind="pair").n == 1
    assert Payment.objects.counts() == {"paid": 1}
    check_books(turk)


@pytest.mark.parametrize("before", [True, False], ids=["between intent and call", "between call and record"])
def test_a_kill_while_paying_pays_nobody_twice(up: Submission, turk: Turk, before: bool) -> None:
    turk.all_do("W1", "W2", "W3")
    due()
    collect.tick()
    settle.tick()
    with dying(MTurk, "approve", before=before, at=5):
        killed(remit.tick)
    assert Payment.objects.filter(status="sent").count() == 1
    Payment.objects.filter(status="sent").update(status_since="2026-01-01T00:00:00Z")
    rounds()
    assert Payment.objects.counts() == {"paid": 18}
    assert turk.rows("SELECT count(*) AS n FROM assignment WHERE status = 'Approved'") == [{"n": 18}]
    assert balance(purpose=up.purpose).spent == Decimal("0.06") * 18
    check_books(turk)


def test_a_payment_that_is_being_sent_is_not_taken_by_another_process(up: Submission, turk: Turk) -> None:
    turk.do("W1", turk.hits()[0])
    due()
    collect.tick()
    settle.tick()
    with dying(MTurk, "approve", before=True):
        killed(remit.tick)
    remit.tick()
    assert Payment.objects.counts() == {"sent": 1}  # whoever sent it may still be waiting for the answer


def test_an_approval_that_races_auto_approval_is_done(up: Submission, turk: Turk) -> None:
    turk.all_do("W1", "W2", "W3")
    due()
    collect.tick()
    settle.tick()
    turk.advance(days=8)
    assert turk.rows("SELECT DISTINCT status FROM assignment")[0]["status"] in ("Submitted", "Approved")
    rounds()
    assert Payment.objects.counts() == {"paid": 18}
    assert turk.calls("ApproveAssignment", "AWS.MechanicalTurk.InvalidAssignmentState") == 18
    check_books(turk)


def test_what_was_auto_approved_before_we_ever_saw_it_is_labelled_and_owed(up: Submission, turk: Turk) -> None:
    turk.all_do("W1", "W2", "W3")
    turk.advance(days=2)
    with turk.store.begin() as books:
        books.run("UPDATE assignment SET auto_approval = ?", books.now - 1)
    rounds()
    assert Question.objects.counts() == {"settled": 6}
    assert balance(purpose=up.purpose).spent == Decimal("0.06") * 18
    assert Payment.objects.counts() == {"paid": 18}
    check_books(turk)


def test_a_worker_who_never_finishes_keeps_nobody_waiting(up: Submission, turk: Turk) -> None:
    hit = turk.hits()[0]
    for worker in ("W1", "W2", "W3"):
        turk.accept(worker, hit)
    assert hit not in turk.offered("W4")
    turk.advance(minutes=11)
    assert hit in turk.offered("W4")
    for worker in ("W4", "W5", "W6"):
        turk.do(worker, hit)
    rounds()
    assert Question.objects.counts() == {"settled": 1, "published": 5}
    check_books(turk)


def test_a_hit_that_expires_with_one_of_three_is_renewed_once_and_then_scored_with_one(
    up: Submission, turk: Turk
) -> None:
    turk.do("W1", turk.hits()[0])
    rounds()
    turk.advance(hours=73)
    rounds()
    assert len(turk.offered("W2")) == 6  # renewed
    assert Question.objects.counts() == {"published": 6}
    turk.advance(hours=73)
    rounds()
    assert turk.offered("W2") == []
    assert Question.objects.counts() == {"settled": 1, "given_up": 5}
    assert Label.objects.get(target__kind="pair", n=1).source == "crowd"
    assert HIT.objects.counts() == {"disposed": 6}
    check_books(turk)


def test_an_unusable_answer_is_paid_and_another_worker_is_asked(up: Submission, turk: Turk) -> None:
    hit = turk.hits()[0]
    assignment, _ = turk.accept("W1", hit)
    turk.send({"assignmentId": assignment, "answer": "nonsense"})
    for worker in ("W2", "W3"):
        turk.do(worker, hit)
    rounds()
    assert Assignment.objects.filter(status="failed").count() == 1
    assert hit in turk.offered("W4")  # one more place
    turk.do("W4", hit)
    rounds()
    assert Label.objects.get(target__kind="pair").n == 3
    assert Payment.objects.counts() == {"paid": 4}
    assert balance(purpose=up.purpose).spent == Decimal("0.06") * 4
    check_books(turk)


def test_without_money_for_another_worker_the_label_is_made_from_two(
    turk: Turk, track: Track, targets: list[Target]
) -> None:
    make_submission(track, targets[:1], money="0.18")
    ask.tick()
    publish.tick()
    [hit] = turk.hits()
    assignment, _ = turk.accept("W1", hit)
    turk.send({"assignmentId": assignment, "answer": "nonsense"})
    for worker in ("W2", "W3"):
        turk.do(worker, hit)
    rounds()
    assert Label.objects.get(target__kind="pair").n == 2
    assert Payment.objects.counts() == {"paid": 3}


def test_a_second_hit_of_ours_on_the_platform_is_taken_down(up: Submission, turk: Turk) -> None:
    with turk.store.begin() as books:  # as if a token had been forgotten
        row = dict(books.one("SELECT * FROM hit ORDER BY number LIMIT 1"))
        row.pop("number")
        books.insert("hit", **row | {"id": "3TWICE00000000000000000000TWICE", "created": row["created"] + 5})
    rounds()
    assert "3TWICE00000000000000000000TWICE" not in turk.offered("W1")
    assert len(turk.offered("W1")) == 6


def test_a_hit_that_somebody_deleted_there_is_settled_with_what_there_is(up: Submission, turk: Turk) -> None:
    hit = turk.hits()[0]
    turk.do("W1", hit)
    rounds()
    with turk.store.begin() as books:
        books.run("UPDATE hit SET disposed = 1 WHERE id = ?", hit)
    rounds()
    assert Question.objects.counts() == {"settled": 1, "published": 5}


def test_the_books_say_where_they_disagree(up: Submission, turk: Turk) -> None:
    rounds()
    assert PlatformBooks.objects.get().differences == []
    with turk.store.begin() as books:
        row = dict(books.one("SELECT * FROM hit ORDER BY number LIMIT 1"))
        row.pop("number")
        books.insert("hit", **row | {"id": "3STRANGER", "annotation": "kbpo:" + "0" * 64})
        books.run("UPDATE fact SET value = value - 500 WHERE name = 'deposit'")
    due()
    collect.tick()
    from annotation.books import explain, holdings

    told = holdings("mturk")
    assert told.row.differences == ["HIT 3STRANGER carries our mark, but we do not know it."]
    assert told.difference == Decimal("-5.00")
    explain("mturk")
    assert holdings("mturk").difference == 0


def test_every_failure_is_told_apart_by_what_may_have_happened(turk: Turk, settings: Any) -> None:
    turk.fault("GetAccountBalance", "throttle")
    with pytest.raises(PlatformDown, match="fewer calls"):
        client.call("GetAccountBalance")
    turk.fault("GetAccountBalance", "error")
    with pytest.raises(UnknownOutcome, match="fault"):
        client.call("GetAccountBalance")
    turk.fault("GetAccountBalance", "timeout", seconds=0.8)
    with pytest.raises(UnknownOutcome, match="no answer came"):
        client.call("GetAccountBalance")
    with pytest.raises(Refused) as refusal:
        client.call("GetHIT", HITId="3NONE")
    assert refusal.value.code == "HITDoesNotExist"
    settings.MTURK_ENDPOINT_URL = "http://127.0.0.1:9"
    with pytest.raises(PlatformDown, match="cannot be reached"):
        client.call("GetAccountBalance")


def test_a_hint_makes_us_look_at_once_and_is_never_believed(up: Submission, turk: Turk, settings: Any) -> None:
    rounds()
    settings.MTURK_POLL_SECONDS = Decimal("3600")
    turk.do("W1", turk.hits()[0])
    PlatformBooks.objects.update(hinted_at=None)
    assert collect.tick() == 0
    elsewhere.hint("mturk", [turk.hits()[0], "3INVENTED"])
    assert collect.tick() > 0
    assert Assignment.objects.exclude(raw=None).count() == 1


def test_nothing_is_called_when_real_money_and_the_endpoint_disagree(
    asked: Submission, turk: Turk, settings: Any
) -> None:
    settings.REAL_MONEY = True
    publish.tick()
    assert put_up(turk) == 0
    assert "REAL_MONEY is true, but 127.0.0.1 is a place for trials" in HIT.objects.all()[0].reason
    settings.REAL_MONEY = False
    settings.MTURK_ENDPOINT_URL = "https://mturk-requester.us-east-1.amazonaws.com"
    with pytest.raises(PlatformDown, match="REAL_MONEY is not true"):
        client.call("GetAccountBalance")


def test_time_does_not_run_backwards_in_these_tests(up: Submission, turk: Turk) -> None:
    before = HIT.objects.get(external_id=turk.hits()[0]).called_at
    turk.advance(hours=1)
    after = HIT.objects.get(external_id=turk.hits()[0]).called_at
    assert before is not None and after is not None and before - after == timedelta(hours=1)
