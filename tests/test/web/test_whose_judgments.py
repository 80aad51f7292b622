"""Who sees which judgments: of an open shared track those of the development part, of a study its
own team all of them, of a closed track everybody all of them.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from django.test import Client
from django.urls import get_resolver, reverse

from kbpo.accounts.models import Token
from kbpo.clock import now
from kbpo.corpus.models import Part
from kbpo.evaluation.run import score_track
from kbpo.instances.models import Label, Target
from kbpo.sampling.models import Sample, Threshold
from kbpo.sampling.open_track import close_track
from kbpo.submissions.models import Submission
from tests.conftest import Toy
from tests.test.evaluation.world import World
from tests.test.web.knocking import knockers
from tests.test.web.scored import make_study
from tests.test.web.test_every_address import PART, patterns, value_of

pytestmark = pytest.mark.django_db
VARIES = re.compile(
    rb'name="(csrfmiddlewaretoken|key|until)" value="[^"]*"|"now":"[^"]*"'
    rb"|[0-9]{2}:[0-9]{2}\xc2\xa0UTC"
)
"""What is another one in every answer"""
PEOPLE = ("", "Ada", "Tim", "Rosa", "Admin")


@pytest.fixture
def world(toy: Toy) -> World:
    """A shared track whose first document is of the development part."""
    world = World(toy, n_documents=4)
    document = world.documents[0]
    document.part = Part.DEV
    document.save()
    Target.objects.filter(document=document).update(is_dev=True)
    return world


@pytest.fixture
def row(world: World) -> Submission:
    """A scored run, all of which is judged."""
    row = world.system("one", lambda one: True)
    row.predictions.filter(instance__document=world.documents[0]).update(is_dev=True)
    row.move("scored", scored_at=now())
    world.answer(world.sample(row))
    return row


def judged_of(answer: Any) -> int:
    """Return the number beside the filter “Judged”."""
    [verdict] = [one for one in answer.context["filters"] if one["label"] == "Verdict"]
    [n] = [one["n"] for one in verdict["options"] if one["text"] == "Judged"]
    return int(n)


def seen(toy: Toy, name: str, row: Submission, keys: dict[str, int]) -> dict[str, set[int]]:
    """Return which predictions the explorer's API, its file and the pages of the documents show as
    judged to somebody ("" is nobody in particular).
    """
    client, headers = Client(), {}
    if name:
        client.force_login(toy.users[name])
        headers = {"Authorization": f"Token {Token.create_with_secret(toy.users[name], 'test')[1]}"}
    chosen = {"verdict": "judged", "limit": 500}
    api = Client().get(reverse("api-predictions", args=[row.pk]), chosen, headers=headers)
    file: Any = client.get(
        reverse("submission-explore", args=[row.pk]), {"format": "csv", "verdict": "judged"}
    )
    lines = b"".join(file.streaming_content).decode().splitlines()
    page = client.get(reverse("submission-explore", args=[row.pk]))
    assert judged_of(page) == api.json()["count"] == len(lines) - 1
    documents = set()
    for key in keys:
        shown = client.get(reverse("track-document", args=[row.track.slug, key]))
        documents |= {
            claim.prediction.pk for claim, _ in shown.context["claims"] if claim.is_judged
        }
    return {
        "api": {one["prediction"] for one in api.json()["results"]},
        "documents": documents,
    }


def test_judgments_of_the_test_part_are_hidden_until_the_track_closes(
    world: World, row: Submission, toy: Toy
) -> None:
    keys = {one.key: one.pk for one in world.documents}
    everything = set(row.predictions.values_list("pk", flat=True))
    development = set(row.predictions.filter(is_dev=True).values_list("pk", flat=True))
    assert 0 < len(development) < len(everything)
    assert not Label.objects.filter(public_at__isnull=False, target__is_dev=False).exists()
    for name in PEOPLE:
        expected = everything if name == "Admin" else development
        assert seen(toy, name, row, keys) == {"api": expected, "documents": expected}, name
    close_track(world.track)
    for name in PEOPLE:
        assert seen(toy, name, row, keys) == {"api": everything, "documents": everything}, name


def test_a_study_shows_all_judgments_to_its_own_team_alone(
    world: World, row: Submission, toy: Toy
) -> None:
    Label.objects.update(public_at=None)  # a study has no development part
    make_study(world.track, toy.teams["Patterns"])
    keys = {one.key: one.pk for one in world.documents[1:]}
    everything = set(row.predictions.values_list("pk", flat=True))
    for name in PEOPLE:
        sees = name in ("Rosa", "Admin")
        assert seen(toy, name, row, keys)["api"] == (everything if sees else set()), name
        assert bool(seen(toy, name, row, keys)["documents"]) == sees, name


@pytest.mark.soak
def test_no_address_tells_which_test_targets_are_drawn_or_judged(
    world: World, toy: Toy, draft: Any
) -> None:
    """What every address answers depends on no such target: it is the same once other targets of
    the test part are drawn and judged in their place.
    """
    row = world.system("one", lambda one: True)
    row.predictions.filter(instance__document=world.documents[0]).update(is_dev=True)
    test = list(
        Target.objects.filter(instances__predictions__submission=row, is_dev=False)
        .distinct()
        .order_by("u")
    )
    half = len(test) // 2
    drawn, others = test[:half], test[half : 2 * half]
    asked = {one.pk for one in world.sample(row, 1.0)} - {one.pk for one in test}
    batch = row.batches.get()
    Sample.objects.filter(batch=batch, target__in=test[half:]).delete()
    Threshold.objects.filter(batch=batch, target__in=test[half:]).delete()
    world.answer([*drawn, *Target.objects.filter(pk__in=asked)])
    row.move("scored", scored_at=now(), user=toy.users["Rosa"])
    score_track(world.track)
    draft(name="other")
    who = knockers(toy)
    admin = who.pop("admin")
    addresses = []
    for pattern in sorted(patterns(get_resolver().url_patterns)):
        with suppress(IndexError):  # of questions and annotators, of whom there are none
            parts = partial(lambda part, pattern: value_of(part[1], pattern, row), pattern=pattern)
            addresses.append("/" + PART.sub(parts, pattern))
    assert len(addresses) > 130

    def answers() -> dict[tuple[str, str], bytes]:
        return {
            (role, address): VARIES.sub(b"", knocker.ask("GET", address).body)
            for role, knocker in who.items()
            for address in addresses
        }

    judgments = reverse("api-predictions", args=[row.pk])
    before, seen = answers(), admin.ask("GET", judgments).body
    Label.objects.filter(target__in=drawn).delete()
    for old, new in zip(drawn, others, strict=True):
        for model in (Sample, Threshold):
            model.objects.filter(target=old).update(target=new)
    world.answer(others)
    after = answers()
    assert admin.ask("GET", judgments).body != seen, "an admin sees the difference"
    for place, body in before.items():
        assert body.splitlines() == after[place].splitlines(), place
