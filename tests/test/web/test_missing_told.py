"""A submission's page says how many of its drawn relations have no judgment, and why."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from kbpo import clock
from kbpo.evaluation.run import score_track
from kbpo.instances.models import Label
from kbpo.money.spend import balance, spend_money
from kbpo.sampling import draw
from kbpo.sampling.confirm import confirm_plan
from kbpo.sampling.models import Sample
from kbpo.submissions.models import Submission
from kbpo.submissions.withdraw import withdraw_submission
from kbpo.web.components.figures import money_text
from kbpo.web.kept import CSRF_PLACEHOLDER
from tests.conftest import Toy
from tests.test.evaluation.replay import Replay
from tests.test.web.scored import make_study

pytestmark = pytest.mark.django_db


@pytest.fixture
def half(toy: Toy) -> tuple[Replay, Submission]:
    """A run of which eighteen drawn relations are judged, two were given up, and the others
    wait.
    """
    world = Replay.of(toy, 300, 0.5)
    make_study(toy.track, toy.teams["Patterns"])
    row = world.upload("Patterns", range(300))
    confirm_plan(row, toy.users["Admin"])
    draw.tick()
    assert world.answer(20) == 20
    first = list(
        Label.objects.filter(target__in=world.target)
        .order_by("pk")
        .values_list("target_id", flat=True)[:2]
    )
    Label.objects.filter(target__in=first).update(method="nonresponse", value={})
    score_track(toy.track)
    row.refresh_from_db()
    assert row.status == "judging"
    return world, row


def test_a_page_says_how_many_drawn_relations_have_no_judgment(
    half: tuple[Replay, Submission],
) -> None:
    _, row = half
    drawn = Sample.objects.filter(batch__submission=row).count()
    assert drawn > 22
    client = Client()
    client.force_login(row.team.members.get())
    page = client.get(reverse("submission", args=[row.pk]))
    table = next(one for one in page.context["tables"] if one["criterion"] == "relation")
    assert table["n_missing"] == drawn - 18
    assert f"{drawn - 18} of the drawn relations" in " ".join(page.content.decode().split())


TOKENS = 'name="csrfmiddlewaretoken" value="([^"]+)"'


def asked(client: Client, page: str) -> tuple[int, str]:
    """How many statements a page takes, and what it says."""
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(page)
    assert answer.status_code == 200
    return len(queries), re.sub(TOKENS, "", answer.content.decode())


def test_a_page_that_somebody_has_read_is_not_made_again_until_something_changes(
    half: tuple[Replay, Submission], settings: Any
) -> None:
    settings.PAGES_KEPT_SECONDS = 100_000_000
    world, row = half
    own, other = Client(), Client()
    own.force_login(row.team.members.get())
    page = reverse("submission", args=[row.pk])
    for address in (page, reverse("submission", args=[row.pk]) + "?part=live"):
        _, first = asked(own, address)
        n, again = asked(own, address)
        assert n <= 12 and again == first
    other.force_login(world.toy.users["Admin"])
    asked(other, page)
    n, seen = asked(other, page)
    assert n <= 12 and "Cost" in seen  # an admin is told the same
    drawn = Sample.objects.filter(batch__submission=row).count()
    assert f"{drawn - 18} of the drawn" in again
    assert world.answer(1) == 1
    n, later = asked(own, page)
    assert later != again and n > 12
    assert asked(own, page)[0] <= 12
    row.name = "Called otherwise"
    row.save()
    assert "Called otherwise" in asked(own, page)[1]
    spend_money(row.track, row.purpose, Decimal("0.0123"), key="a test")
    spent = balance(row.purpose).spent
    said = asked(own, page)[1]
    assert money_text(spent) in said and "<dt>Answers paid</dt>" in said
    assert "1 answer more than" in said
    withdraw_submission(row, world.toy.users["Admin"])
    assert "Withdrawn" in asked(own, page)[1]


def test_a_form_in_a_kept_page_has_its_own_readers_token(toy: Toy, settings: Any) -> None:
    settings.PAGES_KEPT_SECONDS = 100_000_000
    row = Submission.objects.create(
        track=toy.track,
        team=toy.teams["Neural"],
        name="Broken",
        status="failed",
        file="x",
        file_name="x",
        file_size=1,
        file_digest="x",
        read_at=clock.now(),
        planned_at=clock.now(),
        confirmed_at=clock.now(),
    )
    row.team.members.add(toy.users["Rosa"])
    page = reverse("submission", args=[row.pk])
    for name in ("Tim", "Rosa", "Tim"):
        client = Client(enforce_csrf_checks=True)
        client.force_login(toy.users[name])
        told = client.get(page).content.decode()
        tokens = re.findall(TOKENS, told)
        assert len(tokens) == 2 and CSRF_PLACEHOLDER not in told
        retry = reverse("submission", args=[row.pk])
        form = {"action": "retry"}
        assert client.post(retry, form | {"csrfmiddlewaretoken": "x" * 64}).status_code == 403
        assert client.post(retry, form | {"csrfmiddlewaretoken": tokens[-1]}).status_code == 302
        row.refresh_from_db()
        assert row.status != "failed"
        row.move("failed")
