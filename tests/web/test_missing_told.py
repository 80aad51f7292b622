"""A submission's page says how many of its drawn relations have no judgment, and why."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from kbpo.evaluation.run import evaluate
from kbpo.instances.models import Label
from kbpo.sampling import draw
from kbpo.sampling.confirm import confirm
from kbpo.sampling.models import Sample
from kbpo.submissions.models import Submission
from kbpo.submissions.withdraw import withdraw
from tests.conftest import Toy
from tests.evaluation.replay import Replay

pytestmark = pytest.mark.django_db


@pytest.fixture
def half(toy: Toy) -> tuple[Replay, Submission]:
    """A run of which eighteen drawn relations are judged, two were given up, and the others
    wait.
    """
    world = Replay.of(toy, 300, 0.5)
    row = world.upload("Patterns", range(300))
    confirm(row, toy.users["Admin"])
    draw.tick()
    assert world.answer(20) == 20
    first = list(
        Label.objects.filter(target__in=world.target)
        .order_by("pk")
        .values_list("target_id", flat=True)[:2]
    )
    Label.objects.filter(target__in=first).update(method="given_up", value={})
    evaluate(toy.track)
    row.refresh_from_db()
    assert row.status == "judging"
    return world, row


def told(row: Submission) -> tuple[dict[str, int], str]:
    """What the page says is missing: as numbers, and as text."""
    client = Client()
    client.force_login(row.team.members.get())
    page = client.get(reverse("submission", args=[row.pk]))
    table = next(one for one in page.context["tables"] if one["criterion"] == "relation")
    return table["missing"], page.content.decode()


def test_what_waits_and_what_was_given_up_are_told_apart(half: tuple[Replay, Submission]) -> None:
    _, row = half
    drawn = Sample.objects.filter(batch__submission=row).count()
    assert drawn > 22
    gap, page = told(row)
    assert gap == {"n": drawn - 18, "waiting": drawn - 20, "dropped": 0, "given_up": 2}
    assert f"{drawn - 20} wait for one, 2 found no answer and were given up." in page


def test_where_all_is_judged_nothing_is_missing(half: tuple[Replay, Submission]) -> None:
    world, row = half
    world.answer()
    evaluate(world.toy.track)
    gap, page = told(row)
    assert gap == {"n": 2, "waiting": 0, "dropped": 0, "given_up": 2}
    assert "have no judgment: 2 found no answer and were given up." in page


def test_what_was_drawn_for_a_run_that_was_withdrawn_waits_for_nobody(toy: Toy) -> None:
    world = Replay.of(toy, 200, 0.5)
    mine = world.judge(world.upload("Patterns", range(200)))
    other = world.upload("Neural", range(180, 200))
    confirm(other, toy.users["Admin"])
    draw.tick()
    shared = Sample.objects.filter(
        batch__submission=other, target__in=world.target[180:200]
    ).exclude(target__labels__isnull=False)
    n = shared.values("target").distinct().count()
    evaluate(toy.track)
    assert n and told(mine)[0] == {"n": n, "waiting": n, "dropped": 0, "given_up": 0}
    withdraw(other, toy.users["Tim"])
    evaluate(toy.track)
    gap, page = told(mine)
    assert gap == {"n": n, "waiting": 0, "dropped": n, "given_up": 0}
    assert "drawn for a run that has ended" in page


def test_the_page_of_a_judged_run_reads_what_it_tells_in_few_statements(
    half: tuple[Replay, Submission],
) -> None:
    _, row = half
    client = Client()
    client.force_login(row.team.members.get())
    page = reverse("submission", args=[row.pk])
    client.get(page)
    with CaptureQueriesContext(connection) as asked:
        assert client.get(page).status_code == 200
    assert len(asked) <= 31, [query["sql"] for query in asked]
