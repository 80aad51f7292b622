"""Questions that nobody answered: those of the same relation that were answered stand for them, for
every criterion.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from kbpo.evaluation.data import load_data
from kbpo.instances.models import Label, Target
from kbpo.instances.record import NewLabel, record_labels
from scoring.data import Data
from scoring.default import Centred
from scoring.inclusion import LEAST_ASKED
from scoring.score import default_estimates
from tests.conftest import Toy
from tests.test.evaluation.world import BASED, LIVES, WORKS, World

pytestmark = pytest.mark.django_db
RIGHT, HARD = {WORKS: 0.2, BASED: 0.9, LIVES: 0.9}, {WORKS: 0.7, BASED: 0.0, LIVES: 0.1}


@pytest.fixture
def world(toy: Toy) -> World:
    """Of one relation little is right and little gets an answer; of the others much."""
    world, rng = World(toy, is_study=True, n_documents=12), np.random.default_rng(5)
    world.truth = {
        one.pk: bool(rng.random() < RIGHT[one.predicate.name]) for one in world.instances
    }
    return world


def give_up(targets: Iterable[Target]) -> None:
    """People were asked about these in vain."""
    record_labels(
        NewLabel(one.pk, {}, "crowd", "nonresponse", 0, "question:x/nonresponse") for one in targets
    )


def without(data: Data, lost: np.ndarray, *, single: bool = False) -> Data:
    """The data had nobody answered about some targets, and with a model that knows nothing."""
    f = {
        name: np.where(lost[data.pool.target[data.judged]][:, None], np.nan, one)
        for name, one in data.f.items()
    }
    pool = replace(data.pool, stratum=np.zeros_like(data.pool.stratum)) if single else data.pool
    return replace(
        data, f=f, pool=pool, g={name: np.full(g.size, 0.5) for name, g in data.g.items()}
    )


@pytest.mark.soak
@pytest.mark.statistical
def test_what_is_given_up_may_be_harder_and_more_often_wrong(world: World) -> None:
    """Given up not by chance, but by chance within each relation: no bias; with one share for all
    there is much.
    """
    row = world.system("whole", lambda one: True)
    world.answer(world.sample(row))
    data, rng = load_data(world.track), np.random.default_rng(11)
    true = world.share_true(world.instances)
    of = {one.pk: one.predicate.name for one in world.instances}
    first = np.unique(data.pool.target, return_index=True)[1]
    hard = np.array([HARD[of[pk]] for pk in data.pool.instance[first].tolist()])
    errors: dict[bool, list[float]] = {True: [], False: []}
    covered = []
    for _ in range(150):
        lost = rng.random(hard.size) < hard
        for single in errors:
            found = Centred(without(data, lost, single=single)).precision("instance", "relation")
            errors[single].append(float(np.asarray(found.value)[0]) - true)
        low, high = found.confidence_interval(0.8, method="wilson")
        covered.append(bool(np.asarray(low)[0] <= true <= np.asarray(high)[0]))
    by_relation, by_one = np.array(errors[False]), np.array(errors[True])
    assert abs(by_relation.mean()) < 4 * by_relation.std() / np.sqrt(150) + 1e-3
    assert by_one.mean() > 0.05, (
        "with one share for all, what is easy and right stands for what is hard and wrong"
    )
    assert np.mean(covered) > 0.72


def test_the_share_is_that_of_the_relation(world: World) -> None:
    row = world.system("whole", lambda one: True)
    asked = world.sample(row)
    of = {one.target_id: one.predicate.name for one in world.instances}
    works = [one for one in asked if of[one.pk] == WORKS]
    world.answer([one for one in asked if one not in works[:30]])
    give_up(works[:30])
    data = load_data(world.track)
    share = Centred(data).answered_share
    told = dict(zip(data.pool.target_id.tolist(), share.tolist(), strict=True))
    assert {told[pk] for pk, name in of.items() if name == WORKS} == {
        (len(works) - 30) / len(works)
    }
    assert {told[pk] for pk, name in of.items() if name != WORKS} == {1.0}


def test_relations_of_which_little_was_asked_are_taken_together(world: World) -> None:
    row = world.system(
        "few",
        lambda one: (
            one.predicate.name != LIVES
            and one.document_id in {document.pk for document in world.documents[:3]}
        ),
    )
    asked = world.sample(row)
    assert len(asked) < 2 * LEAST_ASKED
    world.answer(asked[:20])
    give_up(asked[20:])
    share = Centred(load_data(world.track)).answered_share
    assert set(np.round(share, 12)) == {round(20 / len(asked), 12)}
    Label.objects.all().delete()
    give_up(asked)
    nothing = load_data(world.track)
    assert set(Centred(nothing).answered_share) == {1.0}, (
        "nobody stands for anything, and nothing is divided by zero"
    )
    assert np.isnan(Centred(nothing).precision("instance", "relation").value).all(), (
        "no judgment, no score"
    )


def test_every_criterion_has_its_own_share(world: World) -> None:
    """Where a name got no answer, the relation still has one: its chance is not made smaller."""
    row = world.system("whole", lambda one: True)
    asked = world.sample(row)
    world.answer(asked)
    documents = [one.pk for one in world.documents[:4]]  # which are laid out alike
    town = {
        one.object_begin
        for one in world.instances
        if one.predicate.name == BASED and one.document_id in documents
    }
    Label.objects.filter(
        target__kind="mention", target__document__in=documents, target__a_begin__in=town
    ).delete()
    of_town = {
        one.target_id
        for one in world.instances
        if one.predicate.name != WORKS and one.document_id in documents
    }
    give_up(one for one in asked if one.pk in of_town)
    data = load_data(world.track)
    arranged = Centred(data)
    assert set(arranged.answered_share) == {1.0}
    of = {one.target_id: one.predicate.name for one in world.instances}
    correct = dict(
        zip(
            data.pool.target_id.tolist(),
            arranged.for_criterion("correct").answered_share.tolist(),
            strict=True,
        )
    )
    assert {correct[pk] for pk, name in of.items() if name == WORKS} == {1.0}
    assert {correct[pk] for pk, name in of.items() if name != WORKS} == {8 / 12}
    found = default_estimates(data, ("relation", "linking", "correct"), ("relation", "correct"))
    assert found["precision", "correct", "instance"][1].pi.min() == pytest.approx(8 / 12)
    assert (found["precision", "relation", "instance"][1].pi == 1).all()
