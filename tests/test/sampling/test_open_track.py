"""Tracks are made with their money and their secret, move one way, and close with everything
public.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from kbpo.instances.models import Label
from kbpo.instances.record import NewLabel, record_labels
from kbpo.instances.targets import Place, make_targets
from kbpo.money.models import Budget, Price
from kbpo.sampling.open_track import (
    CannotMove,
    Money,
    close_track,
    create_track,
    freeze_track,
    open_track,
)
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db


def test_a_track_comes_with_budget_price_and_secret(toy: Any) -> None:
    track = create_track(
        toy.corpus,
        "People, 2013",
        money=Money(Decimal("80"), day=Decimal("10"), team=Decimal("20")),
        scope="document",
    )
    assert (track.status, track.slug, track.scope, track.distribution) == (
        "draft",
        "people-2013",
        "document",
        "entity_relation",
    )
    caps = dict(Budget.objects.filter(track=track).values_list("scope", "cap"))
    assert caps == {"track": Decimal("80"), "day": Decimal("10"), "team": Decimal("20")}
    price = Price.objects.get(track=track)
    assert (price.interface, price.reward, price.seconds) == ("relation", Decimal("0.05"), 20)
    assert len(track.secret) == 64


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"criterion": "beauty"}, "criterion"),
        ({"distribution": "uniform"}, "distribution"),
        ({"kind": "chess"}, "kind"),
        ({"target_half_width": Decimal("0.5")}, "target_half_width"),
        ({"scope": "galaxy"}, "scope"),
        ({"workers_per_question": 0}, "workers_per_question"),
        ({"name": "Toy track"}, "name"),
    ],
)
def test_what_is_wrong_is_said_of_its_field(toy: Any, fields: dict[str, Any], field: str) -> None:
    name = fields.pop("name", "New")
    with pytest.raises(ValidationError) as problem:
        create_track(toy.corpus, name, **fields)
    assert field in problem.value.message_dict
    assert Track.objects.count() == 1


def test_it_opens_freezes_and_closes_and_never_opens_again(toy: Any) -> None:
    track = create_track(toy.corpus, "New")
    with pytest.raises(CannotMove, match="is draft: it cannot become frozen"):
        freeze_track(track)
    opened = open_track(track)
    assert opened.opened_at and open_track(freeze_track(opened)).opened_at == opened.opened_at
    closed = close_track(track)
    assert closed.status == "closed" and closed.closed_at
    with pytest.raises(CannotMove):
        open_track(track)


def test_closing_the_last_open_track_makes_all_labels_of_its_corpus_public(toy: Any) -> None:
    [target] = make_targets(
        toy.corpus, [Place("mention", toy.documents["d1"].pk, toy.span("d1", "Mara Lindt"))]
    ).values()
    record_labels([NewLabel(target, {"canonical": [0, 1]}, "crowd", "majority", 3, "question:1")])
    other = open_track(create_track(toy.corpus, "Other"))
    first = close_track(toy.track)
    assert Label.objects.get(target=target).public_at is None, "another track is open"
    assert first.hides_test, "its scores rest on the same judgments"
    closed = close_track(other)
    assert not first.hides_test and not closed.hides_test
    assert Label.objects.get(target=target).public_at == closed.closed_at


def test_a_new_track_asks_each_relation_at_most_once_and_draws_with_replacement_if_told(
    toy: Any,
) -> None:
    assert create_track(toy.corpus, "Default").design == "poisson"
    assert create_track(toy.corpus, "Told", design="iid").design == "iid"
