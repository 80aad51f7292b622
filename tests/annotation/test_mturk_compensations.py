"""The HIT of a payment, from making to deletion: stopped and put back, offered for long, refused,
lost, killed.
"""

from __future__ import annotations

from decimal import Decimal

import pytest
from annotation_world import make_submission
from mturk_world import (
    FAULTS,
    Turk,
    bury,
    check_cleared,
    check_money,
    due,
    dying,
    killed,
    settle_down,
)

from annotation.budget import halts
from annotation.desk import command
from annotation.desk.journey import failures, oldest
from annotation.hits import publish, take_down
from annotation.marketplace import compensations, give, pay_out
from annotation.models import Bonus, Halt, Worker
from annotation.platforms.mturk import compensate, kinds
from annotation.platforms.mturk.platform import MTurk
from annotation.questions import ask
from kbpo.accounts.models import User
from kbpo.instances.models import Target
from kbpo.money.models import Budget, Ledger
from kbpo.money.spend import balance
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db

DIED = pytest.mark.parametrize(
    "before", [True, False], ids=["between intent and call", "between call and record"]
)


@pytest.fixture
def admin(db: None) -> User:
    return User.objects.create_user("root", password="long enough 1", is_staff=True)


@pytest.fixture
def owed(turk: Turk, track: Track, targets: list[Target]) -> Bonus:
    """A payment to somebody who has sent one answer in; nothing is offered for it yet."""
    make_submission(track, targets[:1])
    ask.tick()
    publish.tick()
    turk.do("W1", turk.hits()[0])
    settle_down(3)
    return give.grant(
        Worker.objects.get(), track, Decimal("0.50"), "Our page failed while you worked."
    )


@pytest.fixture
def offered(owed: Bonus, turk: Turk) -> Bonus:
    """The payment, offered by a HIT that its worker finds."""
    pay_out.tick()
    owed.refresh_from_db()
    assert owed.external_id in turk.offered("W1") and owed.offered_at is not None
    return owed


def spent(bonus: Bonus) -> Decimal:
    return balance(purpose=bonus.purpose).spent


def taken_and_paid(turk: Turk, bonus: Bonus) -> None:
    """Its worker finds the one HIT there is of it, takes it, and has the money; nothing is left
    there.
    """
    bonus.refresh_from_db()
    assert bonus.status == "owed" and bonus.external_id in turk.offered("W1"), (
        bonus.status,
        bonus.reason,
    )
    turk.do("W1", bonus.external_id)
    settle_down()
    paid(turk, bonus)


def paid(turk: Turk, bonus: Bonus) -> None:
    bonus.refresh_from_db()
    assert bonus.status == "paid" and bonus.cleared_at is not None, bonus.reason
    assert spent(bonus) == Decimal("0.60")
    check_cleared(turk)
    check_money(turk)


@pytest.mark.soak
def test_a_stop_takes_it_down_gives_its_money_back_and_going_on_offers_it_again(
    offered: Bonus, turk: Turk, admin: User
) -> None:
    track = offered.track
    take_down.take_down(track, admin, "Something smells.")
    pay_out.tick()
    offered.refresh_from_db()
    assert (offered.status, offered.reason) == ("stopped", "Taken down: Something smells.")
    assert turk.offered("W1") == [] and spent(offered) == 0
    before = turk.calls("GetHIT")
    settle_down(3)
    offered.refresh_from_db()
    assert (offered.status, offered.cleared_at) == ("stopped", None), (
        "it stays, to be offered again"
    )
    assert turk.calls("GetHIT") == before
    halts.resume(track, admin, "It was nothing.")
    pay_out.tick()
    assert spent(offered) == Decimal("0.60")
    assert turk.rows("SELECT count(*) AS n FROM hit WHERE annotation LIKE 'kbpo-comp%'") == [
        {"n": 1}
    ]
    taken_and_paid(turk, offered)


@pytest.mark.soak
def test_a_stop_of_another_track_leaves_it_alone(offered: Bonus, turk: Turk, admin: User) -> None:
    other = Track.objects.create(corpus=offered.track.corpus, name="Other", slug="other")
    take_down.take_down(other, admin, "Something smells.")
    settle_down(2)
    taken_and_paid(turk, offered)


@pytest.mark.soak
def test_whoever_has_it_in_hand_at_a_stop_may_send_it_in_and_is_paid(
    offered: Bonus, turk: Turk, admin: User
) -> None:
    assignment, _ = turk.accept("W1", offered.external_id)
    take_down.take_down(None, admin, "Something smells.")
    settle_down(2)
    offered.refresh_from_db()
    assert offered.status == "owed" and spent(offered) == Decimal("0.60"), (
        "it is not known yet what becomes of it"
    )
    turk.send({"assignmentId": assignment, "thanks": "taken"})
    settle_down(2)
    paid(turk, offered)


@pytest.mark.soak
def test_whoever_lets_it_go_after_a_stop_gives_the_money_back(
    offered: Bonus, turk: Turk, admin: User
) -> None:
    assignment, _ = turk.accept("W1", offered.external_id)
    take_down.take_down(None, admin, "Something smells.")
    settle_down(2)
    assert spent(offered) == Decimal("0.60")
    turk.give_back("W1", assignment)
    settle_down(2)
    offered.refresh_from_db()
    assert offered.status == "stopped" and spent(offered) == 0


@pytest.mark.soak
def test_under_a_stop_nothing_is_made(owed: Bonus, turk: Turk, admin: User) -> None:
    take_down.take_down(None, admin, "Something smells.")
    settle_down(2)
    owed.refresh_from_db()
    assert owed.status == "stopped" and spent(owed) == 0
    assert turk.rows("SELECT id FROM hit WHERE annotation LIKE 'kbpo-comp%'") == []
    halts.resume(None, admin, "It was nothing.")
    settle_down(2)
    taken_and_paid(turk, owed)


@pytest.mark.soak
def test_a_stop_of_publishing_lets_what_is_up_go_on(owed: Bonus, turk: Turk, admin: User) -> None:
    halts.stop_publishing(None, admin, "The corpus is looked at.")
    settle_down(2)
    owed.refresh_from_db()
    assert (owed.status, owed.external_id) == (
        "owed",
        "",
    ) and "The corpus is looked at." in owed.reason
    halts.resume(None, admin, "It was looked at.")
    settle_down(2)
    halts.stop_publishing(None, admin, "The corpus is looked at.")
    settle_down(2)
    taken_and_paid(turk, owed)


@pytest.mark.soak
def test_going_on_waits_until_a_cap_has_room_for_it(
    offered: Bonus, turk: Turk, admin: User
) -> None:
    take_down.take_down(None, admin, "Something smells.")
    settle_down(2)
    cap = Budget.objects.create(track=offered.track, scope="track", cap=Decimal("0.01"))
    halts.resume(None, admin, "It was nothing.")
    settle_down(2)
    offered.refresh_from_db()
    assert offered.status == "stopped" and "is left under the track's budget" in offered.reason
    cap.delete()
    settle_down(2)
    taken_and_paid(turk, offered)


@pytest.mark.soak
@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("operation", ["UpdateExpirationForHIT", "GetHIT", "ListAssignmentsForHIT"])
def test_a_stop_takes_it_down_whatever_the_platform_answers(
    offered: Bonus, turk: Turk, admin: User, operation: str, kind: str
) -> None:
    take_down.take_down(None, admin, "Something smells.")
    turk.fault(operation, kind, times=2)
    pay_out.tick()
    offered.refresh_from_db()
    assert spent(offered) == (0 if offered.status == "stopped" else Decimal("0.60")), (
        "only what is known is given back"
    )
    settle_down()
    offered.refresh_from_db()
    assert offered.status == "stopped" and spent(offered) == 0 and turk.offered("W1") == []
    halts.resume(None, admin, "It was nothing.")
    settle_down()
    taken_and_paid(turk, offered)


@pytest.mark.soak
@DIED
@pytest.mark.parametrize("at", [1, 2, 3], ids=["looking", "expiring", "looking again"])
def test_a_kill_while_it_is_taken_down_gives_back_once(
    offered: Bonus, turk: Turk, admin: User, at: int, before: bool
) -> None:
    take_down.take_down(None, admin, "Something smells.")
    with dying(compensate, "call", before=before, at=at):
        killed(pay_out.tick)
    assert spent(offered) == Decimal("0.60")
    settle_down()
    offered.refresh_from_db()
    assert offered.status == "stopped" and spent(offered) == 0
    halts.resume(None, admin, "It was nothing.")
    settle_down()
    taken_and_paid(turk, offered)


@pytest.mark.soak
@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("operation", ["DeleteHIT", "DeleteQualificationType"])
def test_it_is_deleted_whatever_the_platform_answers(
    offered: Bonus, turk: Turk, operation: str, kind: str
) -> None:
    turk.do("W1", offered.external_id)
    turk.fault(operation, kind, times=2)
    pay_out.tick()
    offered.refresh_from_db()
    settle_down()
    paid(turk, offered)


@pytest.mark.soak
@DIED
@pytest.mark.parametrize("owner", [compensate, kinds], ids=["the HIT", "the qualification"])
def test_a_kill_while_it_is_deleted_deletes_it(
    offered: Bonus, turk: Turk, owner: object, before: bool
) -> None:
    turk.do("W1", offered.external_id)
    at = 3 if owner is compensate else 1  # it is looked at and approved first
    with dying(owner, "call", before=before, at=at):
        killed(lambda: (due(), pay_out.tick()))
    offered.refresh_from_db()
    assert (offered.status, offered.cleared_at) == ("paid", None)
    settle_down()
    paid(turk, offered)


@pytest.mark.soak
@DIED
def test_a_kill_while_it_is_cleared_away_clears_it(
    offered: Bonus, turk: Turk, before: bool
) -> None:
    turk.do("W1", offered.external_id)
    with dying(MTurk, "clear_away", before=before):
        killed(lambda: (due(), pay_out.tick()))
    settle_down()
    paid(turk, offered)


@pytest.mark.soak
def test_what_is_not_deleted_stands_on_the_desk(offered: Bonus, turk: Turk) -> None:
    turk.do("W1", offered.external_id)
    turk.fault("DeleteHIT", "refuse", times=99)
    settle_down(2)
    [stage] = [one for one in oldest() if one.what == "Delete HITs of payments"]
    assert (stage.waiting, stage.step) == (1, "pay_out")


@pytest.mark.soak
def test_what_nobody_takes_is_taken_down_after_its_time_and_can_be_offered_anew(
    offered: Bonus, turk: Turk, admin: User
) -> None:
    first = offered.external_id
    for _ in range(13):
        turk.advance(days=6)
        settle_down(1)
        assert turk.offered("W1") == [first]
    Bonus.objects.update(offered_at=offered.offered_at - compensations.OFFERED_FOR)
    with pytest.raises(command.CannotRetry, match="nothing to retry"):
        command.retry("bonus", offered.pk, admin)
    settle_down(2)
    offered.refresh_from_db()
    assert (offered.status, offered.reason) == ("failed", compensations.NEVER_TAKEN)
    assert offered.cleared_at is not None and spent(offered) == 0 and turk.offered("W1") == []
    check_cleared(turk)
    assert [(one.kind, one.pk, one.again) for one in failures()] == [("bonus", offered.pk, True)]
    command.retry("bonus", offered.pk, admin)
    settle_down(2)
    offered.refresh_from_db()
    assert offered.external_id != first and offered.offers == 2
    taken_and_paid(turk, offered)


@pytest.mark.soak
def test_what_the_platform_refuses_for_good_is_given_back_and_leaves_no_qualification(
    owed: Bonus, turk: Turk, admin: User
) -> None:
    turk.fault("CreateHITWithHITType", "refuse", times=99)
    settle_down(4)
    assert spent(owed) == Decimal("0.60")
    settle_down(3)
    owed.refresh_from_db()
    assert owed.status == "failed" and spent(owed) == 0 and owed.cleared_at is not None
    check_cleared(turk)
    turk.forgive()
    command.retry("bonus", owed.pk, admin)
    settle_down(2)
    taken_and_paid(turk, owed)


@pytest.mark.soak
def test_the_money_stays_set_aside_while_it_cannot_be_taken_down_for_certain(
    offered: Bonus, turk: Turk
) -> None:
    turk.fault("ListAssignmentsForHIT", "refuse", times=99)
    for _ in range(8):
        bury()
        due()
        pay_out.tick()
    offered.refresh_from_db()
    assert offered.status == "unknown" and "Nor could it be taken down" in offered.reason
    assert spent(offered) == Decimal("0.60")
    turk.forgive()
    settle_down(2)
    taken_and_paid(turk, offered)


@pytest.mark.soak
def test_what_was_made_while_the_list_was_short_is_found_and_paid_after_all(
    owed: Bonus, turk: Turk, admin: User
) -> None:
    """We never knew of the HIT, gave it up, and its worker has it."""
    with dying(compensate, "_made", before=False):
        killed(pay_out.tick)
    [hit] = [
        row["id"] for row in turk.rows("SELECT id FROM hit WHERE annotation LIKE 'kbpo-comp%'")
    ]
    turk.do("W1", hit)
    Bonus.objects.update(status="failed", reason="Refused for good.")
    Ledger.objects.filter(**owed.purpose.at("purpose")).update(state="failed")
    with pytest.raises(command.CannotRetry, match="not deleted yet"):
        command.retry("bonus", owed.pk, admin)
    settle_down(3)
    paid(turk, owed)


@pytest.mark.soak
def test_a_hit_that_somebody_deleted_by_hand_needs_a_person_and_keeps_its_money(
    offered: Bonus, turk: Turk
) -> None:
    with turk.store.begin() as books:
        books.run("DELETE FROM hit WHERE id = ?", offered.external_id)
    settle_down(2)
    offered.refresh_from_db()
    assert offered.status == "failed" and "does not know the HIT" in offered.reason
    assert spent(offered) == Decimal("0.60"), "nobody knows whether it was paid"
    assert not Halt.objects.exists() and [one.kind for one in failures()] == ["bonus"]
