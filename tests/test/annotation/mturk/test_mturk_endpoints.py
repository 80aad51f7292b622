"""What was made at one endpoint is never paid, expired or counted at another: a sandbox's work
costs no real money.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from mturk_world import Turk, check_books, due, round_, rounds

from annotation.marketplace import give
from annotation.models import Assignment, Bonus, Payment, Worker
from kbpo.submissions.models import Submission
from rehearsal.mturk.app import serve_endpoint

pytestmark = pytest.mark.django_db


@pytest.fixture
def second(tmp_path: Path) -> Iterator[Turk]:
    """Another endpoint, with books of its own."""
    with serve_endpoint(tmp_path / "second.sqlite3") as (url, store):
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
    bonus = give.grant_bonus(
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
