"""Recall from annotated documents: with their probabilities, and with what annotators miss."""

from __future__ import annotations

import pytest

from kbpo.evaluation.run import score_track
from kbpo.instances.models import Instance
from kbpo.sampling.documents.draw import order_documents, settle_documents, waiting_documents
from kbpo.sampling.documents.second_stage import draw_second_stage
from kbpo.sampling.models import DocumentSample
from kbpo.tracks.registry import kind_of
from scoring.report import Figure
from tests.conftest import Toy
from tests.reports import figures_of
from tests.test.evaluation.world import World

pytestmark = pytest.mark.django_db


def number(world: World, quantity: str = "recall") -> Figure:
    evaluation = score_track(world.track)
    of = {"quantity": quantity, "criterion": "relation", "method": "centred", "slice": ""}
    [figure] = figures_of(evaluation, **of).values()
    return figure


def predicted(one: Instance) -> bool:
    """What the only system predicts: all but the last sentence of each document."""
    return (
        "x4" not in one.document.text[one.subject_begin : one.subject_end]
        and "y4" not in (one.document.text[one.subject_begin : one.subject_end])
    )


@pytest.fixture
def judged(toy: Toy) -> World:
    """Sixteen documents, everything that the system predicts is judged."""
    world = World(toy, is_study=True, n_documents=16)
    world.answer(world.sample(world.system("one", predicted)))
    return world


def test_documents_of_two_stages_count_with_their_probabilities(judged: World) -> None:
    world, texts = judged, {one.pk: one for one in judged.documents}
    order_documents(world.track, 10, "two_stage", seed=2)
    first = waiting_documents(world.track)
    world.read_in_full([texts[pk] for pk in first], lambda one: True)
    settle_documents(world.track, first)
    name = next(word for word in texts[first[0]].text.split() if word.startswith("Carl"))
    for at, one in enumerate(world.documents):
        one.text += f" {name}." * (
            at % 4
        )  # now some documents speak of somebody whom the first stage found
        one.save()
    only_first = number(world)
    assert only_first.n_documents == 2
    draw_second_stage(world.track, seed=4)
    second = waiting_documents(world.track)
    world.read_in_full([texts[pk] for pk in second], lambda one: True)
    settle_documents(world.track, second)
    found = number(world)
    chance = dict(DocumentSample.objects.filter(stage=2).values_list("document_id", "probability"))
    assert len(set(chance.values())) > 1
    unseen = {
        pk: sum(
            world.truth[one.pk]
            for one in world.instances
            if one.document_id == pk and not predicted(one)
        )
        for pk in (*first, *second)
    }
    M = sum(unseen[pk] for pk in first) + sum(unseen[pk] / chance[pk] for pk in second)
    T = sum(world.truth[one.pk] for one in world.instances if predicted(one))
    assert found.value == pytest.approx(T / (T + M)) and found.n_documents == 10
    assert found.low80 is not None and found.low80 < T / (T + M)


def test_a_settled_document_says_true_of_what_was_marked_and_nothing_of_the_rest(
    judged: World,
) -> None:
    world = judged
    other = world.system("two", lambda one: True, team="Neural")
    world.read_in_full(world.documents, lambda one: one.pk % 2 == 0)
    settle_documents(world.track, [one.pk for one in world.documents])
    asked = world.sample(other)
    waiting = kind_of(world.track).find_unanswered({other.pk: [one.pk for one in asked]})[other.pk]
    unmarked = {
        one.target_id
        for one in world.instances
        if not predicted(one) and not (world.truth[one.pk] and one.pk % 2 == 0)
    }
    assert waiting == unmarked  # none is taken to be false


def test_recall_is_printed_with_and_without_what_annotators_miss(judged: World) -> None:
    world = judged
    world.read_in_full(world.documents, lambda one: one.pk % 3 != 0)  # they find two thirds
    settle_documents(world.track, [one.pk for one in world.documents])
    plain, corrected = number(world), number(world, "recall_corrected")
    true = [one for one in world.instances if world.truth[one.pk]]
    pool, rest = ([one for one in true if predicted(one) is side] for side in (True, False))
    share = sum(one.pk % 3 != 0 for one in pool) / len(pool)
    marked = sum(one.pk % 3 != 0 for one in rest)
    assert plain.value == pytest.approx(len(pool) / (len(pool) + marked))
    assert corrected.value == pytest.approx(len(pool) / (len(pool) + marked / share))
    told = world.track.evaluations.latest("number").report.misses
    assert (
        told
        and told.share == pytest.approx(share)
        and told.n == len({one.target_id for one in pool})
    )
    assert told.low80 <= share <= told.high80


def test_where_what_is_not_marked_is_false_nobody_misses_anything(judged: World) -> None:
    world = judged
    world.read_in_full(world.documents, lambda one: True, closed=True)
    settle_documents(world.track, [one.pk for one in world.documents])
    evaluation = score_track(world.track)
    assert evaluation.report.misses is None
    assert not figures_of(evaluation, quantity="recall_corrected")
