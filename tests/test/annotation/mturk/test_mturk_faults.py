"""The platform misbehaves or we die while HITs are put up: no HIT twice, and none forgotten."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from mturk_world import (
    TOO_LATE,
    Turk,
    check_books,
    collect_and_reconcile,
    due,
    dying,
    killed,
    put_up,
    round_,
    rounds,
)

from annotation.hits import publish
from annotation.marketplace import reconcile
from annotation.models import (
    HIT,
    Assignment,
    Payment,
    PlatformBooks,
)
from annotation.platforms.base import PlatformDown, Refused, UnknownOutcome
from annotation.platforms.mturk import client
from annotation.platforms.mturk.platform import MTurk
from kbpo.submissions.models import Submission

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "before", [True, False], ids=["between intent and call", "between call and record"]
)
@pytest.mark.parametrize("at", [1, 4])
@pytest.mark.soak
def test_a_kill_while_publishing_makes_no_hit_twice(
    asked: Submission, turk: Turk, before: bool, at: int
) -> None:
    with dying(MTurk, "publish", before=before, at=at):
        killed(publish.tick)
    rounds()
    assert put_up(turk) == 6
    assert HIT.objects.counts() == {"open": 6}
    check_books(turk)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["timeout", "error_after"])
def test_a_hit_whose_answer_never_came_is_adopted(asked: Submission, turk: Turk, kind: str) -> None:
    turk.fault("CreateHITWithHITType", kind, times=2)
    publish.tick()
    assert HIT.objects.filter(status="intent").exclude(reason="").count() == 2
    rounds()
    assert put_up(turk) == 6
    assert HIT.objects.counts() == {"open": 6}
    check_books(turk)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["throttle", "error"])
def test_throttling_and_faults_cost_time_and_nothing_else(
    asked: Submission, turk: Turk, kind: str
) -> None:
    for operation in (
        "CreateHITWithHITType",
        "ListHITs",
        "ListAssignmentsForHIT",
        "ApproveAssignment",
        "DeleteHIT",
    ):
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


@pytest.mark.soak
@pytest.mark.parametrize("recorded", [True, False])
def test_after_25_hours_a_forgotten_token_makes_no_second_hit(
    asked: Submission, turk: Turk, recorded: bool
) -> None:
    with dying(MTurk, "publish", before=False):
        killed(publish.tick)
    turk.advance(hours=25)
    if not recorded:  # the list is the only way to know: the token is forgotten
        due()
        publish.tick()
    rounds()
    assert put_up(turk) == 6
    check_books(turk)


@pytest.mark.soak
def test_every_failure_is_told_apart_by_what_may_have_happened(turk: Turk, settings: Any) -> None:
    turk.fault("GetAccountBalance", "throttle")
    with pytest.raises(PlatformDown, match="fewer calls"):
        client.call_operation("GetAccountBalance")
    turk.fault("GetAccountBalance", "error")
    with pytest.raises(UnknownOutcome, match="fault"):
        client.call_operation("GetAccountBalance")
    turk.fault("GetAccountBalance", "timeout")
    settings.MTURK_TIMEOUT = TOO_LATE
    with pytest.raises(UnknownOutcome, match="no answer came"):
        client.call_operation("GetAccountBalance")
    with pytest.raises(Refused) as refusal:
        client.call_operation("GetHIT", HITId="3NONE")
    assert refusal.value.code == "HITDoesNotExist"
    settings.MTURK_ENDPOINT_URL = "http://127.0.0.1:9"
    with pytest.raises(PlatformDown, match="cannot be reached"):
        client.call_operation("GetAccountBalance")


@pytest.mark.soak
def test_a_hint_makes_us_look_at_once_and_is_never_believed(
    up: Submission, turk: Turk, settings: Any
) -> None:
    rounds()
    settings.MTURK_POLL_SECONDS = Decimal("3600")
    turk.do("W1", turk.hits()[0])
    PlatformBooks.objects.update(hinted_at=None)
    assert collect_and_reconcile() == 0
    reconcile.make_hits_due("mturk", [turk.hits()[0], "3INVENTED"])
    assert collect_and_reconcile() > 0
    assert Assignment.objects.exclude(raw=None).count() == 1


@pytest.mark.soak
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
        client.call_operation("GetAccountBalance")


def there(turk: Turk, hit: HIT) -> list[dict[str, Any]]:
    """The platform's rows of a HIT of ours, the oldest first."""
    return turk.rows(
        "SELECT id, disposed FROM hit WHERE annotation = ? ORDER BY number", f"kbpo:{hit.token}"
    )
