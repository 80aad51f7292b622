"""Over HTTP: a team reads what was judged for others of what it predicts once its own sample is
answered, not before; and never of a run that it takes back before.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from kbpo.accounts.models import Token
from kbpo.instances.models import Label
from kbpo.sampling import draw
from kbpo.sampling.confirm import confirm
from kbpo.submissions.models import Submission
from kbpo.submissions.withdraw import withdraw
from tests.conftest import Toy
from tests.evaluation.replay import Replay

pytestmark = pytest.mark.django_db
N = 240


def ask(row: Submission, name: str) -> Any:
    """What the API answers the one who uploaded a run."""
    assert row.user is not None
    headers = {"Authorization": f"Token {Token.issue(row.user, 'test')[1]}"}
    return Client().get(
        reverse(name, args=[row.pk]), {"limit": 500, "verdict": "judged"}, headers=headers
    )


def listed(row: Submission) -> set[int]:
    """The predictions whose judgments the API tells; none where it refuses."""
    answer = ask(row, "api-predictions")
    if answer.status_code == 404:
        return set()
    assert answer.status_code == 200
    return {one["prediction"] for one in answer.json()["results"]}


def on_page(client: Client, row: Submission) -> int:
    """How many judged predictions its page counts."""
    answer = client.get(reverse("submission-explore", args=[row.pk]))
    return judged_of(answer) if answer.status_code == 200 else 0


def judged_of(answer: Any) -> int:
    """The number beside the filter “Judged”."""
    [verdict] = [one for one in answer.context["filters"] if one["label"] == "Verdict"]
    [n] = [one["n"] for one in verdict["options"] if one["text"] == "Judged"]
    return int(n)


def predictions(row: Submission, world: Replay, targets: Any) -> set[int]:
    rows = row.predictions.filter(instance__target__in=targets)
    return set(rows.values_list("pk", flat=True))


def test_others_judgments_are_read_once_the_own_sample_is_answered(
    toy: Toy, client: Client
) -> None:
    world = Replay.of(toy, N, 0.5)
    world.judge(world.upload("Patterns", range(N // 2)))
    of_others = set(
        Label.objects.filter(target__in=world.target).values_list("target_id", flat=True)
    )
    client.force_login(toy.users["Tim"])
    rows = [world.upload("Neural", range(10, N)) for _ in range(2)]
    for row in rows:
        assert not listed(row) and not on_page(client, row), "a draft shows nothing"
        confirm(row, toy.users["Tim"])
    draw.tick()
    read, taken_back = rows
    assert not listed(read) and not on_page(client, read)
    page = client.get(reverse("submission", args=[read.pk])).content.decode()
    assert "once its own sample is answered" in page
    assert ask(read, "api-submission").json()["turned"] == []
    world.answer(3)
    new = (
        set(Label.objects.filter(target__in=world.target).values_list("target_id", flat=True))
        - of_others
    )
    assert len(new) == 3
    own = predictions(read, world, new)
    assert listed(read) == own and on_page(client, read) == len(own)
    withdraw(Submission.objects.get(pk=taken_back.pk))
    assert not listed(taken_back) and not on_page(client, taken_back)
    for _ in range(12):
        world.stage(read)
        if read.status == "scored":
            break
    everything = set(
        Label.objects.filter(target__in=world.target).values_list("target_id", flat=True)
    )
    assert listed(read) == predictions(read, world, everything)
    assert listed(read) >= predictions(read, world, of_others)
    assert not listed(taken_back)


def test_what_others_are_paying_for_is_not_read_either(toy: Toy) -> None:
    """Two runs wait for the same answers: they are the first one's until both are answered."""
    world = Replay.of(toy, N, 0.5)
    first, second = world.upload("Patterns", range(N)), world.upload("Neural", range(N))
    confirm(first, toy.users["Rosa"])
    draw.tick()
    confirm(second, toy.users["Tim"])
    draw.tick()
    world.answer(5)
    assert len(listed(first)) == 5
    assert not listed(second)
