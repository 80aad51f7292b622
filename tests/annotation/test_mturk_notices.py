"""The platform tells us that something happened, and we look; whether it does or not, nothing else
changes.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from annotation_world import make_submission
from mturk_world import Turk, check_books, collect_and_reconcile, put_up, rounds
from processes import wait_for

from annotation.hits import publish
from annotation.models import HIT, Assignment, PlatformBooks
from annotation.platforms import proof
from annotation.questions import ask
from kbpo.instances.models import Target
from kbpo.tracks.models import Track

EVENTS = ["AssignmentSubmitted", "AssignmentReturned", "AssignmentAbandoned", "HITReviewable"]
ARN = "arn:aws:sns:us-east-1:123456789012:kbpo"


@pytest.fixture
def put_two_up(turk: Turk, track: Track, targets: list[Target]) -> Callable[[], None]:
    def go() -> None:
        make_submission(track, targets[:2])
        ask.tick()
        publish.tick()

    return go


@pytest.mark.django_db
def test_each_type_of_hit_is_subscribed_once(
    turk: Turk, settings: Any, put_two_up: Callable[[], None]
) -> None:
    settings.MTURK_NOTIFY_TOPIC = ARN
    put_two_up()
    assert put_up(turk) == 2 and turk.calls("UpdateNotificationSettings") == 1
    [row] = turk.rows("SELECT * FROM notice")
    [kind] = turk.rows("SELECT id FROM hit_type")
    assert (row["type"], row["destination"], row["transport"], row["active"]) == (
        kind["id"],
        ARN,
        "SNS",
        1,
    )
    assert all(event in row["events"] for event in EVENTS)


@pytest.mark.django_db
def test_without_a_topic_nothing_is_subscribed(turk: Turk, put_two_up: Callable[[], None]) -> None:
    put_two_up()
    assert put_up(turk) == 2 and turk.calls("UpdateNotificationSettings") == 0


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["throttle", "error", "error_after", "refuse", "timeout"])
@pytest.mark.soak
def test_hits_go_up_though_the_subscription_fails_and_it_is_tried_again(
    turk: Turk, settings: Any, put_two_up: Callable[[], None], kind: str
) -> None:
    settings.MTURK_NOTIFY_TOPIC = ARN
    turk.fault("UpdateNotificationSettings", kind)
    put_two_up()
    assert put_up(turk) == 2 and HIT.objects.counts() == {"open": 2}
    assert [row["destination"] for row in turk.rows("SELECT * FROM notice")] == [ARN], (
        "with the second HIT"
    )
    check_books(turk)


@pytest.mark.django_db(transaction=True)
def test_a_notification_makes_us_look_at_once(
    turk: Turk, settings: Any, live_server: Any, put_two_up: Callable[[], None]
) -> None:
    """From the worker's click over the platform's post to our address, to the answer in our
    books.
    """
    settings.MTURK_NOTIFY_TOPIC = live_server.url + proof.hook_path("mturk")
    put_two_up()
    rounds()
    settings.MTURK_POLL_SECONDS = Decimal("3600")
    PlatformBooks.objects.update(hinted_at=None)
    assert collect_and_reconcile() == 0, "it is not time to look"
    turk.do("W1", turk.hits()[0])
    wait_for(
        lambda: PlatformBooks.objects.get().hinted_at is not None, "the notification", every=0.1
    )
    assert HIT.objects.get(external_id=turk.hits()[0]).checked_at is None
    assert collect_and_reconcile() > 0
    assert Assignment.objects.exclude(raw=None).count() == 1
    PlatformBooks.objects.update(hinted_at=None)
    assignment, _ = turk.accept("W2", turk.hits()[0])
    turk.give_back("W2", assignment)
    wait_for(lambda: PlatformBooks.objects.get().hinted_at is not None, "the other one", every=0.1)
