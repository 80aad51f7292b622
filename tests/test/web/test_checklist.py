"""A track's checklist says what is done, what comes next and what it costs, as the pages do to
which it leads.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from kbpo import clock
from kbpo.tracks.models import Track
from kbpo.web.desk.tracks import Step, next_step, track_checklist
from tests.conftest import Toy

As = Callable[[str], Client]
pytestmark = pytest.mark.django_db


def by_name(track: Track) -> dict[str, Step]:
    return {step.name: step for step in track_checklist(track)}


def test_the_next_step_of_a_new_track_is_named_and_each_leads_to_a_page(
    toy: Toy, as_user: As
) -> None:
    track, admin = toy.track, as_user("Admin")
    Track.objects.update(status="draft", description="", who_pays="")
    track.refresh_from_db()
    steps = by_name(track)
    assert steps["Documents"].done and not steps["Open"].done
    first = next_step(list(steps.values()))
    assert first is not None and first.name == "Public page"
    assert "a description, who pays" in first.says
    page = admin.get(reverse("desk-track", args=["toy"])).content.decode()
    assert "next: Public page" in page
    for step in steps.values():
        if not step.url.startswith("#"):
            assert admin.get(step.url).status_code == 200, step.name


def test_nothing_comes_next_on_a_closed_track(toy: Toy, as_user: As) -> None:
    Track.objects.update(status="closed")
    page = as_user("Admin").get(reverse("desk-track", args=["toy"])).content.decode()
    assert "the track is closed" in page and "next: " not in page
    paid = {"Reading, for recall", "Gold questions"}
    track = Track.objects.select_related("corpus").get()
    assert not paid & set(by_name(track))
    assert "#moves" not in page and 'id="moves"' not in page, "nothing moves it any more"
    assert 'id="releases"' in page and 'href="#releases"' in page
    assert by_name(track)["Release"].says == "None is made yet"
    track.releases.create(number=1, status="made", made_at=clock.now())
    assert by_name(track)["Release"].done and "Release 1: made" in by_name(track)["Release"].says
