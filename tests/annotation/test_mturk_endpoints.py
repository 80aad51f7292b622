"""What was made at one endpoint is never paid, expired or counted at another: a sandbox's work
costs no real money.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from annotation_world import make_submission
from django.test import Client
from mturk_world import Turk, check_books, due, round_, rounds

from annotation.hits import publish
from annotation.marketplace import books, give
from annotation.models import HIT, Assignment, Bonus, Payment, PlatformBooks, Worker
from annotation.platforms.base import PlatformDown
from annotation.platforms.mturk.platform import MTurk
from annotation.questions import ask
from kbpo.accounts.models import User
from kbpo.instances.models import Target
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from rehearsal.marketplace.server import serving

pytestmark = pytest.mark.django_db


@pytest.fixture
def second(tmp_path: Path) -> Iterator[Turk]:
    """Another endpoint, with books of its own."""
    with serving(tmp_path / "second.sqlite3") as (url, store):
        yield Turk(url, store)


def switch(settings: Any, to: Turk) -> None:
    settings.MTURK_ENDPOINT_URL = to.url
    settings.MTURK_WORKER_SITES = [to.url]


@pytest.mark.soak
def test_work_of_one_endpoint_is_never_paid_at_another(
    up: Submission, turk: Turk, second: Turk, settings: Any
) -> None:
    turk.all_do("W1", "W2", "W3")
    round_()
    round_()
    paid_before = turk.calls("ApproveAssignment")
    Payment.objects.update(status="owed")  # as if nothing had been paid yet
    Assignment.objects.update(status="approved", platform_status="submitted")
    bonus = give.grant(
        Worker.objects.all()[0],
        up.track,
        Decimal("0.50"),
        "Thanks.",
        assignment=Assignment.objects.filter(worker=Worker.objects.all()[0])[0],
    )
    switch(settings, second)
    for _ in range(3):
        due()
        round_()
    assert second.rows(
        "SELECT count(*) AS n FROM call WHERE operation NOT LIKE 'Get%' AND operation NOT LIKE"
        " 'List%' AND operation NOT LIKE '%Qualification%'"
    ) == [{"n": 0}]
    assert turk.calls("ApproveAssignment") == paid_before
    assert Payment.objects.counts() == {"owed": 18} and set(
        Payment.objects.values_list("endpoint")
    ) == {(turk.url,)}
    told = Payment.objects.all()[0].reason
    assert told.startswith("Answer ") and turk.url in told and f"and {second.url} is set" in told
    bonus.refresh_from_db()
    assert (bonus.status, bonus.endpoint) == ("owed", turk.url) and "Bonus" in bonus.reason
    switch(settings, turk)
    rounds()
    assert Payment.objects.counts() == {"paid": 18} and Bonus.objects.get().status == "paid"
    assert turk.calls("SendBonus") == 1
    check_books(turk)


@pytest.mark.soak
def test_books_of_two_endpoints_are_kept_apart(
    up: Submission,
    turk: Turk,
    second: Turk,
    settings: Any,
    track: Track,
    targets: list[Target],
    client: Client,
) -> None:
    turk.all_do("W1", "W2", "W3")
    rounds()
    Payment.objects.filter(pk=Payment.objects.all()[0].pk).update(status="owed")
    first = PlatformBooks.objects.get()
    switch(settings, second)
    more = make_submission(track, Target.objects.filter(pk__in=[make_another(track).pk]), "More")
    ask.tick()
    publish.tick()
    second.all_do("W1", "W2", "W3")
    rounds_of_what_can_move()
    found = books.holdings("mturk")
    assert found.row.endpoint == second.url and found.row.pk != first.pk
    assert found.paid == Decimal("0.18") and found.difference == 0, "only what was paid here"
    assert found.row.differences == [] and found.hits == {"disposed": 1}
    assert [(one.endpoint, one.owed) for one in found.others] == [(turk.url, Decimal("0.05"))]
    assert set(
        HIT.objects.filter(**more.purpose.at("questions__payer")).values_list("endpoint", flat=True)
    ) == {second.url}
    settings.ROOT_URLCONF = "kbpo.urls"
    client.force_login(User.objects.create(username="root", is_staff=True))
    page = client.get("/desk/platforms/").content.decode()
    assert f"belong to {turk.url}" in page and "$0.05 owed" in page


@pytest.mark.soak
def test_a_hit_belongs_to_where_it_was_first_called_and_to_nowhere_before(
    turk: Turk, second: Turk, settings: Any, track: Track, targets: list[Target]
) -> None:
    make_submission(track, targets[:1])
    ask.tick()
    settings.REAL_MONEY = True  # the endpoint may not be called as things are set
    publish.tick()
    hit = HIT.objects.get()
    assert (hit.endpoint, hit.called_at, hit.attempts) == (
        "",
        None,
        0,
    ) and "REAL_MONEY is true" in hit.reason
    settings.REAL_MONEY = False
    turk.fault("CreateHITWithHITType", "error_after")
    publish.tick()
    assert HIT.objects.get().endpoint == turk.url
    switch(settings, second)
    due()
    publish.tick()
    hit.refresh_from_db()
    assert hit.status == "intent" and hit.reason.startswith(f"HIT {hit.pk} was made at {turk.url}")
    assert second.hits() == [], "it may be up at the first"
    switch(settings, turk)
    rounds()
    assert len(turk.hits()) == 1 and HIT.objects.get().status == "open"


@pytest.mark.soak
def test_rows_of_which_nobody_knows_where_they_were_made_are_left_alone(
    up: Submission, turk: Turk
) -> None:
    HIT.objects.update(endpoint="")
    with pytest.raises(PlatformDown, match="made before we noted where"):
        MTurk().expire(HIT.objects.all()[0])


def make_another(track: Track) -> Target:
    from annotation_world import make_target

    return make_target(track, 99, 0.5)


def rounds_of_what_can_move() -> None:
    for _ in range(8):
        due()
        round_()
