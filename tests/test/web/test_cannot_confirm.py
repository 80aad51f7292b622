"""What refuses a confirmation is told before anybody presses the button: on the pages of the draft
and over the API, in the same sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse

from kbpo import clock
from kbpo.accounts.models import Token
from kbpo.money.models import Budget
from kbpo.sampling.confirm import confirm_plan
from kbpo.submissions.limits import next_run_time
from kbpo.submissions.models import Submission
from tests.conftest import Toy
from tests.test.web.conftest import GOOD

As = Callable[[str], Client]
Draft = Callable[..., Submission]
pytestmark = pytest.mark.django_db
PAGES = ("upload-check", "upload-describe", "upload-confirm")


def _no_run_left(toy: Toy, draft: Draft) -> None:
    toy.track.runs_a_week = 1
    toy.track.save()
    confirm_plan(draft(GOOD[:3], name="before"), toy.users["Rosa"])


def _closed(toy: Toy, draft: Draft) -> None:
    toy.track.status = "closed"
    toy.track.save()


def _no_money(toy: Toy, draft: Draft) -> None:
    Budget.objects.create(
        track=toy.track, scope="team", team=toy.teams["Patterns"], cap=Decimal("0.05")
    )


@pytest.mark.parametrize("refuse", [_no_run_left, _closed, _no_money])
def test_what_refuses_a_confirmation_is_told_of_the_draft(
    toy: Toy, draft: Draft, refuse: Callable[[Toy, Draft], None]
) -> None:
    row, client = draft(), Client()
    _, secret = Token.create_with_secret(toy.users["Rosa"], "t")
    token = {"Authorization": f"Bearer {secret}"}
    address = f"/api/submissions/{row.pk}/"
    before = client.get(address, headers=token).json()
    assert (before["can_confirm"], before["why_not"]) == (True, "")
    refuse(toy, draft)
    told = client.get(address, headers=token).json()
    refused = client.post(f"{address}confirm/", headers=token)
    assert refused.status_code in (402, 409)
    assert (told["can_confirm"], told["why_not"]) == (False, refused.json()["detail"])


def test_what_is_confirmed_already_waits_for_nobody(toy: Toy, draft: Draft) -> None:
    row = confirm_plan(draft(), toy.users["Rosa"])
    _, secret = Token.create_with_secret(toy.users["Rosa"], "t")
    told = Client().get(
        f"/api/submissions/{row.pk}/", headers={"Authorization": f"Bearer {secret}"}
    )
    assert told.json()["can_confirm"] is False
    assert told.json()["why_not"].startswith("It is confirmed")


def test_a_limit_stands_on_every_page_of_the_draft_and_the_button_is_off(
    toy: Toy, as_user: As, draft: Draft
) -> None:
    row, rosa = draft(), as_user("Rosa")
    addresses = [reverse(page, args=[row.pk]) for page in PAGES]
    for address in addresses:
        assert b"has no run left" not in rosa.get(address).content
    _no_run_left(toy, draft)
    before = Submission.objects.get(name="before")
    Submission.objects.filter(pk=before.pk).update(confirmed_at=clock.now() - timedelta(days=2))
    until = next_run_time(toy.track, toy.teams["Patterns"])
    assert until is not None and timedelta(days=4) < until - clock.now() <= timedelta(days=5)
    until += timedelta(minutes=1, microseconds=-1)  # at the minute that is told one may
    for address in [*addresses, reverse("submit"), reverse("runs")]:
        page = rosa.get(address).content.decode()
        assert "Patterns has no run left on" in page and "1 run a week" in page, address
        assert f"from {until.day} {until:%B %Y, %H:%M} UTC on" in page, address
    page = rosa.get(addresses[-1]).content.decode()
    button = page[page.index('data-busy="Reserving the money"') :].split(">")[0]
    assert button.endswith(" disabled")
    pressed = rosa.post(addresses[-1])
    assert pressed.status_code == 409
    assert pressed.content.decode().count("has no run left on") == 1


def test_no_day_is_told_where_none_brings_a_run(toy: Toy, draft: Draft) -> None:
    toy.track.runs_a_week, toy.track.runs_in_all = 1, 1
    toy.track.save()
    assert next_run_time(toy.track, toy.teams["Patterns"]) is None, "there is one now"
    confirm_plan(draft(name="before"), toy.users["Rosa"])
    assert next_run_time(toy.track, toy.teams["Patterns"]) is None, "one in all"
