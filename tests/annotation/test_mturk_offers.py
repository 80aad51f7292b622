"""What a marketplace says that a HIT is: workers choose by it, so it is what they will do."""

from __future__ import annotations

import pytest
from documents_world import order

from annotation.hits.publish import advert_of
from annotation.interfaces.registry import interface_of
from annotation.models import HIT, Question
from annotation.platforms.mturk.question import title_and_description
from tests.conftest import Toy


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("relation", "two names"),
        ("entities", "Mark the names"),
        ("relations_exhaustive", "pairs of its names"),
    ],
)
def test_every_interface_is_offered_as_what_it_is(name: str, told: str) -> None:
    assert told in interface_of(name).offered_as
    assert len(interface_of(name).offered_as) <= 128


@pytest.mark.django_db
def test_a_document_is_not_offered_as_a_few_sentences(toy: Toy) -> None:
    order(toy.track, 1)
    hit = HIT.objects.get()
    seconds = Question.objects.get().seconds
    hourly = round(hit.reward * 3600 / seconds)
    title, description = title_and_description(advert_of(hit))
    assert title == "Mark the names, dates and titles in a news article"
    assert (
        description
        == f"{title}: one question, about {max(1, round(seconds / 60))} min. Flags are paid like"
        f" answers. About ${hourly} an hour. Who is new does a tutorial first: 3 questions, about 6"
        " min, paid $0.75 once, by a bonus."
    )
