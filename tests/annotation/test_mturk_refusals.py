"""What a platform refuses: HITs, workers, payments, bonuses; and what is stopped. Nothing else
waits for it.
"""

from __future__ import annotations

from decimal import Decimal

import pytest
from annotation_world import make_submission
from mturk_world import (
    Turk,
    check_books,
    collect_and_reconcile,
    due,
    put_up,
    refuse_all,
    refusing,
    round_,
    rounds,
    try_five_times,
)

from annotation.desk import command, journey
from annotation.hits import batch, publish
from annotation.marketplace import give, pay_out
from annotation.models import (
    HIT,
    Assignment,
    Payment,
    Qualification,
    Question,
    Worker,
    WorkerIdentity,
)
from annotation.platforms.base import Refused
from annotation.platforms.mturk.platform import MTurk
from annotation.questions import ask
from kbpo.accounts.models import User
from kbpo.instances.models import Target
from kbpo.money.models import Budget
from kbpo.money.spend import balance
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db


@pytest.mark.soak
def test_a_refusal_gives_up_the_hit_and_its_questions_wait_again(
    asked: Submission, turk: Turk
) -> None:
    with turk.store.begin() as books:
        books.run(
            "UPDATE fact SET value = 10 WHERE name = 'deposit'"
        )  # ten cents: nothing can be put up
    for _ in range(6):
        HIT.objects.update(next_try_at="2026-01-01T00:00:00Z")
        publish.tick()
    assert HIT.objects.counts() == {"failed": 6}
    assert "$0.18 is needed" in HIT.objects.all()[0].reason
    assert Question.objects.counts() == {"waiting": 6}
    assert put_up(turk) == 0


@pytest.mark.soak
def test_a_refused_hit_whose_questions_went_out_in_another_is_not_retried(
    asked: Submission, turk: Turk
) -> None:
    refuse_all(turk)
    refused = list(HIT.objects.order_by("pk"))
    assert (
        command.retry("hit", refused[0].pk) == "intent"
    )  # its question waits: it may go out again
    rounds()
    assert put_up(turk) == 6
    assert [one for one in journey.failures() if one.kind == "hit"] == []
    HIT.objects.filter(pk=refused[1].pk).update(
        status="failed"
    )  # as if it had been held when the others went out
    with pytest.raises(command.CannotRetry, match="have gone out in another HIT"):
        command.retry("hit", refused[1].pk)
    rounds()
    assert put_up(turk) == 6


@pytest.mark.soak
def test_a_refused_sibling_does_not_send_its_question_out_again(
    up: Submission, turk: Turk, admin: User
) -> None:
    batch.extend_batch(up.purpose, admin, "Too divided.")
    refuse_all(turk)
    assert HIT.objects.counts() == {"open": 6, "failed": 6}
    assert Question.objects.counts() == {"published": 6}, "their first HITs are up"
    turk.all_do("W1", "W2", "W3")
    rounds()
    assert (put_up(turk), Question.objects.counts()) == (6, {"settled": 6})
    check_books(turk)


@pytest.mark.soak
def test_a_paused_batch_stops_its_own_hits_and_no_others(
    turk: Turk, track: Track, targets: list[Target], admin: User
) -> None:
    paused, other = (
        make_submission(track, targets[3 * n : 3 * n + 3], f"Team {n}") for n in (0, 1)
    )
    ask.tick()
    publish.tick()
    batch.pause_batch(paused.purpose, admin, "The page shows too little.")
    due()
    collect_and_reconcile()
    ours = set(
        HIT.objects.filter(**other.purpose.at("questions__payer")).values_list(
            "external_id", flat=True
        )
    )
    assert set(turk.offered("W1")) == ours and len(ours) == 3
    batch.extend_batch(other.purpose, admin, "Too divided.")
    batch.extend_batch(paused.purpose, admin, "Too divided.")
    publish.tick()
    intended = Question.objects.filter(hits__status="intent")
    assert {question.payer for question in intended} == {paused.purpose}
    batch.resume_batch(paused.purpose, admin, "It is mended")
    rounds()
    assert len(turk.offered("W1")) == 12


@pytest.mark.soak
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
    assert pay_out._tell_qualifications(MTurk()) == 1
    assert list(
        Qualification.objects.order_by("worker__handle").values_list("told", flat=True)
    ) == [None, True]


@pytest.mark.soak
def test_a_payment_that_was_refused_is_tried_again_then_listed_and_retried(
    up: Submission, turk: Turk, monkeypatch: pytest.MonkeyPatch
) -> None:
    turk.do("W1", turk.hits()[0])
    settle_down = refusing(monkeypatch, "approve")
    due()
    round_()
    row = Payment.objects.get()
    assert (row.status, row.reason) == (
        "owed",
        "You have too little balance.",
    ) and row.next_try_at > row.status_since
    try_five_times()
    assert [(one.kind, one.pk, one.reason) for one in journey.failures()] == [
        ("payment", row.pk, row.reason)
    ]
    settle_down()
    command.retry("payment", row.pk)
    rounds()
    assert Payment.objects.counts() == {"paid": 1} and journey.failures() == []
    check_books(turk)


@pytest.mark.soak
def test_what_the_platform_has_approved_is_paid_whatever_it_says_of_approving(
    up: Submission, turk: Turk, monkeypatch: pytest.MonkeyPatch
) -> None:
    turk.do("W1", turk.hits()[0])
    with turk.store.begin() as books:
        books.run("UPDATE assignment SET auto_approval = ?", books.now - 1)
    refusing(monkeypatch, "approve")
    rounds()
    assert Payment.objects.counts() == {"paid": 1}


@pytest.mark.soak
def test_a_bonus_that_was_refused_gives_its_money_back_until_it_is_retried(
    up: Submission, turk: Turk, monkeypatch: pytest.MonkeyPatch
) -> None:
    turk.do("W1", turk.hits()[0])
    rounds()
    answer = Assignment.objects.get()
    bonus = give.grant(
        answer.worker, up.track, Decimal("0.50"), "A good find.", assignment=answer, key="k" * 32
    )
    again = give.grant(
        answer.worker, up.track, Decimal("0.50"), "A good find.", assignment=answer, key="k" * 32
    )
    assert again == bonus
    with pytest.raises(ValueError, match=r"sent already, for \$0.50"):
        give.grant(
            answer.worker,
            up.track,
            Decimal("0.70"),
            "A good find.",
            assignment=answer,
            key="k" * 32,
        )
    settle_down = refusing(monkeypatch, "pay_bonus")
    try_five_times()
    assert [(one.kind, one.pk) for one in journey.failures()] == [("bonus", bonus.pk)]
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
