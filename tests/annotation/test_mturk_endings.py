"""How HITs end: paid once whoever dies, expired, deleted, short of answers or money; and both books
agree.
"""

from __future__ import annotations

from decimal import Decimal

import pytest
from annotation_world import make_submission
from django.utils import timezone
from mturk_world import Turk, check_books, collect_and_reconcile, due, dying, killed, rounds

from annotation.budget import halts
from annotation.hits import publish
from annotation.labels import settle
from annotation.marketplace import pay_out
from annotation.models import (
    HIT,
    Assignment,
    Payment,
    PlatformBooks,
    Question,
)
from annotation.platforms.mturk.platform import MTurk
from annotation.questions import ask
from kbpo.accounts.models import User
from kbpo.instances.models import Label, Target
from kbpo.money.spend import balance
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(True, id="between intent and call", marks=pytest.mark.soak),
        pytest.param(False, id="between call and record", marks=pytest.mark.soak),
    ],
)
def test_a_kill_while_paying_pays_nobody_twice(up: Submission, turk: Turk, before: bool) -> None:
    turk.all_do("W1", "W2", "W3")
    due()
    collect_and_reconcile()
    settle.tick()
    with dying(MTurk, "approve", before=before, at=5):
        killed(pay_out.tick)
    assert Payment.objects.filter(status="sent").count() == 1
    Payment.objects.filter(status="sent").update(status_since="2026-01-01T00:00:00Z")
    rounds()
    assert Payment.objects.counts() == {"paid": 18}
    assert turk.rows("SELECT count(*) AS n FROM assignment WHERE status = 'Approved'") == [
        {"n": 18}
    ]
    assert balance(purpose=up.purpose).spent == Decimal("0.06") * 18
    check_books(turk)


@pytest.mark.soak
def test_a_payment_that_is_being_sent_is_not_taken_by_another_process(
    up: Submission, turk: Turk
) -> None:
    turk.do("W1", turk.hits()[0])
    due()
    collect_and_reconcile()
    settle.tick()
    with dying(MTurk, "approve", before=True):
        killed(pay_out.tick)
    pay_out.tick()
    assert Payment.objects.counts() == {
        "sent": 1
    }  # whoever sent it may still be waiting for the answer


@pytest.mark.soak
def test_an_approval_that_races_auto_approval_is_done(up: Submission, turk: Turk) -> None:
    turk.all_do("W1", "W2", "W3")
    due()
    collect_and_reconcile()
    settle.tick()
    turk.advance(days=8)
    assert turk.rows("SELECT DISTINCT status FROM assignment")[0]["status"] in (
        "Submitted",
        "Approved",
    )
    rounds()
    assert Payment.objects.counts() == {"paid": 18}
    assert turk.calls("ApproveAssignment", "AWS.MechanicalTurk.InvalidAssignmentState") == 18
    check_books(turk)


@pytest.mark.soak
def test_what_was_auto_approved_before_we_ever_saw_it_is_labelled_and_owed(
    up: Submission, turk: Turk
) -> None:
    turk.all_do("W1", "W2", "W3")
    turk.advance(days=2)
    with turk.store.begin() as books:
        books.run("UPDATE assignment SET auto_approval = ?", books.now - 1)
    rounds()
    assert Question.objects.counts() == {"settled": 6}
    assert balance(purpose=up.purpose).spent == Decimal("0.06") * 18
    assert Payment.objects.counts() == {"paid": 18}
    check_books(turk)


@pytest.mark.soak
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


@pytest.mark.soak
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
    assert Question.objects.counts() == {"settled": 1, "unanswered": 5}
    assert Label.objects.get(target__kind="pair", n=1).source == "crowd"
    assert HIT.objects.counts() == {"disposed": 6}
    check_books(turk)


@pytest.mark.soak
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


@pytest.mark.soak
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


@pytest.mark.soak
def test_a_hit_that_somebody_deleted_there_is_settled_with_what_there_is(
    up: Submission, turk: Turk
) -> None:
    hit = turk.hits()[0]
    turk.do("W1", hit)
    rounds()
    with turk.store.begin() as books:
        books.run("UPDATE hit SET disposed = 1 WHERE id = ?", hit)
    rounds()
    assert Question.objects.counts() == {"settled": 1, "published": 5}


@pytest.mark.soak
def test_the_books_say_where_they_disagree(up: Submission, turk: Turk) -> None:
    rounds()
    assert PlatformBooks.objects.get().differences == []
    with turk.store.begin() as books:
        row = dict(books.one("SELECT * FROM hit ORDER BY number LIMIT 1"))
        row.pop("number")
        books.insert("hit", **row | {"id": "3STRANGER", "annotation": "kbpo:" + "0" * 64})
        books.run("UPDATE fact SET value = value - 500 WHERE name = 'deposit'")
    due()
    collect_and_reconcile()
    from annotation.marketplace.books import explain, holdings

    told = holdings("mturk")
    assert told.row.differences == ["HIT 3STRANGER carries our mark, but we do not know it."]
    assert told.difference == Decimal("-5.00")
    explain("mturk")
    assert holdings("mturk").difference == 0


@pytest.mark.parametrize("before", ["collect", pytest.param("find", marks=pytest.mark.soak)])
def test_a_hit_that_a_stop_took_down_is_still_so_when_its_next_call_fails(
    up: Submission, turk: Turk, admin: User, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    """It had been offered once more already: taken for expired, it would never be offered again."""
    HIT.objects.update(renewed_at=timezone.now())
    halts.pause(None, admin, "Something smells.")
    rounds()
    assert turk.offered("W1") == [] and HIT.objects.filter(taken_down_at=None).count() == 0

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(MTurk, before, broken)
        if before == "find":
            patch.setattr(MTurk, "survey", lambda _: [])
        HIT.objects.update(checked_at=None)
        due()
        collect_and_reconcile()
    assert {hit.reason for hit in HIT.objects.all()} == {
        "It could not be looked after (RuntimeError)."
    }
    assert HIT.objects.filter(taken_down_at=None).count() == 0
    halts.resume(None, admin, "It was nothing.")
    rounds()
    assert len(turk.offered("W1")) == 6
    assert HIT.objects.exclude(taken_down_at=None).count() == 0


@pytest.mark.soak
def test_who_is_killed_after_taking_a_hit_down_has_taken_it_down(
    up: Submission, turk: Turk, admin: User
) -> None:
    HIT.objects.update(renewed_at=timezone.now())
    halts.pause(None, admin, "Something smells.")
    due()
    with dying(MTurk, "expire", before=False, at=1):
        killed(collect_and_reconcile)
    rounds()
    assert turk.offered("W1") == []
    halts.resume(None, admin, "It was nothing.")
    rounds()
    assert len(turk.offered("W1")) == 6
