"""The platform misbehaves or we die while a bonus, a compensation or a further place is paid for:
each once, and whole.

SendBonus is the least forgiving call: a token of it is forgotten after a day, and the money does
not come back.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from annotation_world import GOOD, make_submission
from mturk_world import (
    FAULTS,
    Turk,
    check_books,
    check_cleared,
    check_money,
    collect_and_reconcile,
    due,
    dying,
    killed,
    round_,
    rounds,
    settle_down,
)

from annotation.hits import publish
from annotation.marketplace import give, pay_out
from annotation.models import HIT, Assignment, Bonus, Question
from annotation.platforms.mturk import compensate, kinds
from annotation.platforms.mturk.platform import MTurk
from annotation.questions import ask
from kbpo.instances.models import Label, Target
from kbpo.money.spend import balance
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db

DIED = pytest.mark.parametrize(
    "before", [True, False], ids=["between intent and call", "between call and record"]
)


@pytest.fixture
def answer(turk: Turk, track: Track, targets: list[Target]) -> Assignment:
    """One question on the endpoint, and one answer to it, paid."""
    make_submission(track, targets[:1])
    ask.tick()
    publish.tick()
    turk.do("W1", turk.hits()[0])
    rounds()
    return Assignment.objects.get()


# -- A bonus


def give_bonus(answer: Assignment) -> Bonus:
    return give.grant_bonus(
        answer.worker, answer.hit.track, Decimal("0.50"), "A good find.", assignment=answer
    )


def bonus_is_paid_once(turk: Turk, bonus: Bonus) -> None:
    bonus.refresh_from_db()
    assert bonus.status == "paid", bonus.reason
    assert turk.rows("SELECT worker, cents, fee FROM bonus") == [
        {"worker": "W1", "cents": 50, "fee": 10}
    ]
    assert balance(purpose=bonus.purpose).spent == Decimal("0.60")
    check_books(turk)
    check_money(turk)


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.soak
def test_a_bonus_is_paid_once_whatever_the_platform_answers(
    answer: Assignment, turk: Turk, kind: str
) -> None:
    bonus = give_bonus(answer)
    turk.fault("SendBonus", kind, times=2)
    pay_out.tick()
    bonus.refresh_from_db()
    nothing_done = kind == "throttle"
    assert bonus.status == ("owed" if nothing_done else "unknown") and "SendBonus" in bonus.reason
    settle_down()
    bonus_is_paid_once(turk, bonus)


# -- A compensation


def compensation(answer: Assignment) -> Bonus:
    return give.grant_bonus(
        answer.worker, answer.hit.track, Decimal("0.20"), "Our page failed while you worked."
    )


def compensations(turk: Turk) -> list[str]:
    return [
        row["id"]
        for row in turk.rows("SELECT id FROM hit WHERE annotation LIKE 'kbpo-compensation:%'")
    ]


def compensation_is_paid_once(turk: Turk, bonus: Bonus) -> None:
    """Its worker finds it, once, takes it, and has the money."""
    bonus.refresh_from_db()
    assert bonus.status == "owed" and [bonus.external_id] == compensations(turk), bonus.reason
    assert bonus.external_id in turk.offered("W1") and bonus.external_id not in turk.offered("W2")
    turk.do("W1", bonus.external_id)
    settle_down()
    took_it(turk, bonus)


def took_it(turk: Turk, bonus: Bonus) -> None:
    bonus.refresh_from_db()
    assert bonus.status == "paid", bonus.reason
    [hit] = compensations(turk)
    assert turk.rows("SELECT worker, status FROM assignment WHERE hit = ?", hit) == [
        {"worker": "W1", "status": "Approved"}
    ]
    assert not turk.rows("SELECT * FROM bonus")
    assert bonus.cleared_at is not None
    check_cleared(turk)
    check_books(turk)
    check_money(turk)


MAKING = [
    "CreateQualificationType",
    "AssociateQualificationWithWorker",
    "CreateHITType",
    "CreateHITWithHITType",
]


@pytest.mark.soak
@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("operation", MAKING)
def test_a_compensation_is_made_once_whatever_the_platform_answers(
    answer: Assignment, turk: Turk, operation: str, kind: str
) -> None:
    bonus = compensation(answer)
    turk.fault(operation, kind, times=2)
    settle_down()
    compensation_is_paid_once(turk, bonus)


@pytest.mark.soak
@pytest.mark.parametrize("kind", FAULTS)
def test_a_compensation_is_approved_once_whatever_the_platform_answers(
    answer: Assignment, turk: Turk, kind: str
) -> None:
    bonus = compensation(answer)
    pay_out.tick()
    turk.do("W1", compensations(turk)[0])
    turk.fault("ApproveAssignment", kind, times=2)
    settle_down()
    took_it(turk, bonus)


@pytest.mark.soak
@DIED
@pytest.mark.parametrize(
    ("owner", "name", "at"),
    [
        (MTurk, "compensate", 1),
        (kinds, "call", 1),
        (compensate, "call", 1),
        (compensate, "call", 2),
        (compensate, "call", 3),
        (compensate, "_make_hit", 1),
    ],
    ids=[
        "the whole step",
        "the qualification",
        "its worker",
        "the type",
        "the HIT",
        "made and not saved",
    ],
)
def test_a_kill_while_a_compensation_is_made_makes_one(
    answer: Assignment, turk: Turk, owner: Any, name: str, at: int, before: bool
) -> None:
    bonus = compensation(answer)
    with dying(owner, name, before=before, at=at):
        killed(pay_out.tick)
    bonus.refresh_from_db()
    assert bonus.status == "sent"
    settle_down()
    compensation_is_paid_once(turk, bonus)


# -- Further places


@pytest.fixture
def short(turk: Turk, track: Track, targets: list[Target]) -> Question:
    """A question whose HIT ended with two answers that can be used and one that cannot: one more
    place is due.
    """
    make_submission(track, targets[:1])
    ask.tick()
    publish.tick()
    [hit] = turk.hits()
    assignment, _ = turk.accept("W1", hit)
    turk.send({"assignmentId": assignment, "answer": "nonsense"})
    for worker in ("W2", "W3"):
        turk.do(worker, hit, GOOD)
    return Question.objects.get()


def one_place_was_bought(turk: Turk) -> None:
    [hit] = turk.hits()
    assert turk.rows("SELECT most FROM hit") == [{"most": 4}]
    assert HIT.objects.get().max_assignments == 4
    assert turk.offered("W4") == [hit]
    turk.do("W4", hit)
    settle_down()
    assert Label.objects.get(target__kind="pair").n == 3
    check_books(turk)
    check_money(turk)


@pytest.mark.soak
@DIED
@pytest.mark.parametrize("hours", [0, 25])
def test_a_kill_while_a_further_place_is_bought_buys_one(
    short: Question, turk: Turk, hours: int, before: bool
) -> None:
    with dying(MTurk, "offer", before=before):
        killed(lambda: [round_together() for _ in range(5)])
    turk.advance(hours=hours)
    settle_down()
    one_place_was_bought(turk)


def round_together() -> None:
    due()
    collect_and_reconcile()
    round_()
