"""A track's checklist says what is done, what comes next and what it costs, as the pages do to
which it leads.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse

from annotation.questions.order import order_documents, plan_documents
from kbpo import clock
from kbpo.corpus.models import Corpus
from kbpo.tracks.models import Track
from kbpo.web.components.figures import money_text
from kbpo.web.desk.checklist import Step, next_of, steps_of
from tests.conftest import Toy

As = Callable[[str], Client]
pytestmark = pytest.mark.django_db


def by_name(track: Track) -> dict[str, Step]:
    return {step.name: step for step in steps_of(track)}


def test_the_next_step_of_a_new_track_is_named_and_each_leads_to_a_page(
    toy: Toy, as_user: As
) -> None:
    track, admin = toy.track, as_user("Admin")
    Track.objects.update(status="draft", description="", who_pays="")
    track.refresh_from_db()
    steps = by_name(track)
    assert steps["Documents"].done and not steps["Open"].done
    first = next_of(list(steps.values()))
    assert first is not None and first.name == "Public page"
    assert "a description, who pays" in first.says
    page = admin.get(reverse("desk-track", args=["toy"])).content.decode()
    assert "next: Public page" in page
    for step in steps.values():
        if not step.url.startswith("#"):
            assert admin.get(step.url).status_code == 200, step.name


def test_that_instructions_and_tutorials_are_built_in_is_said_where_a_track_is_prepared(
    toy: Toy, as_user: As
) -> None:
    assert "instructions of relation are built in" in by_name(toy.track)["Tutorials"].says
    page = as_user("Admin").get(reverse("desk-track-describe", args=["toy"])).content.decode()
    assert "the kind of track (relations in documents)," in page
    assert "How to judge is built in" in page and "#tutorials" in page
    gold = as_user("Admin").get(reverse("desk-gold", args=["toy"])).content.decode()
    assert "In the tutorial" in gold


def test_nothing_comes_next_on_a_closed_track(toy: Toy, as_user: As) -> None:
    Track.objects.update(status="closed")
    page = as_user("Admin").get(reverse("desk-track", args=["toy"])).content.decode()
    assert "the track is closed" in page and "next: " not in page
    paid = {"Reading, for recall", "Gold questions", "Pilot", "Tutorials"}
    track = Track.objects.select_related("corpus").get()
    assert not paid & set(by_name(track))
    assert "#moves" not in page and 'id="moves"' not in page, "nothing moves it any more"
    assert 'id="releases"' in page and 'href="#releases"' in page
    assert by_name(track)["Release"].says == "None is made yet"
    track.releases.create(number=1, status="made", made_at=clock.now())
    assert by_name(track)["Release"].done and "Release 1: made" in by_name(track)["Release"].says


def test_reading_that_is_ordered_does_not_come_next(toy: Toy, as_user: As) -> None:
    lacks = toy.track.corpus.n_documents
    order_documents(toy.track, lacks - 1, Decimal(100))
    step = by_name(toy.track)["Reading, for recall"]
    assert step.price == plan_documents(toy.track, 1).at_most and not step.under_way
    order_documents(toy.track, 1, Decimal(100))
    step = by_name(toy.track)["Reading, for recall"]
    assert step.says == f"0 read in full, {lacks} ordered" and step.price is None
    assert (step.under_way, step.done, step.verb) == (True, False, "Look")
    left = next_of(steps_of(toy.track))
    assert left is None or left.name != step.name
    page = as_user("Admin").get(reverse("desk-track", args=["toy"])).content.decode()
    assert "under way" in page and "next: Reading" not in page


def test_what_reading_costs_is_what_its_page_says(toy: Toy, as_user: As) -> None:
    step = by_name(toy.track)["Reading, for recall"]
    assert not step.done and step.price == plan_documents(toy.track, 4).at_most > 0
    page = as_user("Admin").get(step.url).content.decode()
    assert money_text(step.price) in page


def test_what_is_written_and_opened_is_done(toy: Toy) -> None:
    Track.objects.update(description="Facts.", who_pays="We do.", status="open")
    Corpus.objects.update(description="News.", licence="CC BY 4.0")
    track = Track.objects.select_related("corpus").get()
    steps = by_name(track)
    assert steps["Public page"].done and steps["Open"].done
    left = next_of(list(steps.values()))
    assert left is not None and left.name == "Reading, for recall"
