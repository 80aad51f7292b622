"""The comparison of two systems that write shows texts: input by input, with all that was said."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from kbpo import clock
from kbpo.evaluation.run import score_track
from kbpo.instances.models import Instance, Label, Target
from kbpo.instances.record import NewLabel, record_labels
from kbpo.scores.read import instances_by_input
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from tests.test.scores.conftest import MANY, World

pytestmark = pytest.mark.django_db


def page(world: World, query: str = "", client: Client | None = None) -> str:
    a, b = world.runs["A"].pk, world.runs["B"].pk
    answer = (client or Client()).get(
        f"/tracks/answers/compare/?a={a}&b={b}&criterion=overall{query}"
    )
    return " ".join(answer.content.decode().split())


def rate(world: World, said: dict[str, list[list[float]]]) -> None:
    """Record what people said of the texts of each run, in the order of its inputs."""
    labels = []
    for name, ratings_of in said.items():
        instance_of = instances_by_input(world.runs[name].pk)
        for at, ratings in enumerate(ratings_of):
            if ratings:
                target = Instance.objects.get(pk=instance_of[f"input {at}"]).target_id
                value = {"ratings": {"overall": ratings}}
                labels.append(
                    NewLabel(target, value, "crowd", "ratings", len(ratings), f"q:{target}")
                )
    record_labels(labels)


@pytest.fixture
def closed(world: World) -> World:
    """Four inputs, for the first of which both wrote the same; all rated but one of B."""
    rate(world, {"A": [[1.0], [0.0, 0.5], [0.5], [1.0]], "B": [[], [0.75], [0.5]]})
    Submission.objects.update(status="scored")
    Label.objects.update(public_at=clock.now())
    Track.objects.filter(pk=world.track.pk).update(status="closed")
    world.track.refresh_from_db()
    return world


def inputs(text: str) -> list[str]:
    return re.findall(r'<article class="text-row"> <h3><span dir="auto">([^<]*)</span>', text)


def test_each_input_shows_both_texts_every_judgment_and_the_difference(closed: World) -> None:
    text = page(closed)
    assert "both predict it" not in text and "None is judged" not in text
    assert inputs(text) == ["input 0", "input 2", "input 1", "input 3"]
    # Of input 1 A has 1.5 and 2 of 1 to 3 (mean 1.5), B 2.5; what nobody rated comes last.
    assert re.search(r"input 1</span> <span class=\"label\">difference -1.00", text)
    assert "Overall: <b>1, 2</b>" in text and "Overall: <b>2.50</b>" in text
    assert "not both rated" in text
    ahead = re.search(r"ahead on <b>(\d+)</b>.*?on <b>(\d+)</b>, and <b>(\d+)</b> are ties", text)
    assert ahead is not None and ahead.groups() == ("0", "1", "2")
    assert "the cat sat on the mat" in text and "a cat was sitting" in text


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("&order=b", ["input 1", "input 0", "input 2", "input 3"]),
        ("&order=input", ["input 0", "input 1", "input 2", "input 3"]),
        ("&q=RAIN", ["input 1"]),
        ("&q=the+DOG", ["input 1"]),
        ("&q=nothing+has+this", []),
        ("&order=odd&page=99&against=7000000", ["input 0", "input 2", "input 1", "input 3"]),
    ],
)
def test_inputs_are_sorted_and_found(closed: World, query: str, found: list[str]) -> None:
    assert inputs(page(closed, query)) == found


def test_inputs_where_people_disagree_with_a_judge_are_found(studied: World) -> None:
    Submission.objects.update(status="scored")
    Label.objects.update(public_at=clock.now())
    score_track(studied.track)
    text = page(studied)
    [judge] = re.findall(r'<option value="(\d+)">[^<]*judge', text)
    told = re.search(r"1 to 10 of (\d+)", text)
    assert told is not None and int(told[1]) == MANY
    opposed = page(studied, f"&against={judge}")
    assert inputs(opposed) and "not both rated" not in opposed
    for article in opposed.split('<article class="text-row">')[1:]:
        people = float(re.findall(r"difference (-?[\d.]+)", article)[0])
        a, b = map(float, re.findall(r'<td class="num">(-?[\d.]+)</td>', article)[:2])
        assert people * (a - b) < 0


def test_while_the_track_is_open_only_the_development_part_is_shown(world: World) -> None:
    rate(world, {"A": [[1.0], [0.0], [0.5]], "B": [[], [0.75], [0.5]]})
    Submission.objects.update(status="scored")
    of_runs = [instances_by_input(world.runs[name].pk) for name in ("A", "B")]
    dev = [Instance.objects.get(pk=one["input 1"]).target_id for one in of_runs]
    Target.objects.filter(pk__in=dev).update(is_dev=True)
    Label.objects.filter(target__in=dev).update(public_at=clock.now())
    text = page(world)
    assert inputs(text) == ["input 1"] and "of the development part" in text
    Track.objects.filter(pk=world.track.pk).update(is_study=True, owner=world.runs["A"].team)
    Label.objects.update(public_at=None)
    text = page(world)
    assert inputs(text) == [] and "Only the authors of this study" in text and "rain" not in text
    admin = Client()
    admin.force_login(world.admin)
    assert len(inputs(page(world, client=admin))) == 4
