"""A judge of relations is one more feature of the model:
it saves judgments, and off it saves none.
"""

from __future__ import annotations

import numpy as np
import pytest
from django.test import Client

from kbpo.evaluation.data import load_data
from kbpo.evaluation.models import Evaluation
from kbpo.evaluation.run import score_track
from kbpo.scores.bring import Name, set_scorer_used, store_scores
from kbpo.scores.models import Scorer
from kbpo.submissions.models import Submission
from tests.conftest import Toy
from tests.test.evaluation.world import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(toy: Toy) -> World:
    """Two systems of which half is asked, and a judge that is right nine times in ten, on a study,
    where all numbers are stored.
    """
    world = World(toy, n_documents=16)
    samples = [
        world.sample(world.system("one", lambda one: one.pk % 2 > 0), 0.5),
        world.sample(world.system("two", lambda one: True, team="Neural"), 0.5),
    ]
    rng = np.random.default_rng(3)
    said = [(one.pk, float(world.truth[one.pk] != (rng.random() < 0.1))) for one in world.instances]
    store_scores(world.track, Name("judge"), said, toy.users["Admin"])
    for sample in samples:
        world.answer(sample)
    world.track.is_study, world.track.owner = True, toy.teams["Patterns"]
    world.track.save()
    return world


def saved_by(evaluation: Evaluation) -> list[float]:
    """The share of judgments that is saved, of each system."""
    told = evaluation.report.saved.get(("relation", "instance"), {})
    return [float(share) for share in told.values()]


def test_a_judge_saves_judgments_of_relations_and_says_so(world: World, toy: Toy) -> None:
    evaluation = score_track(world.track)
    assert len(saved_by(evaluation)) == 2 and min(saved_by(evaluation)) > 0.25
    data = load_data(world.track)
    bare = data.without_scorers()
    assert bare is not None
    truth = np.array([float(world.truth[pk]) for pk in data.pool.instance.tolist()])
    error, alone = (((one.g["relation"] - truth) ** 2).mean() for one in (data, bare))
    assert error < 0.7 * alone, "cross-fitted: no label predicts itself"
    told = evaluation.report.worth["relation"].scorers[0]
    assert told.worth and told.worth > 1.5 and told.rho is None, "a majority is taken for true"
    Submission.objects.update(status="scored")
    page = Client().get("/tracks/world/").content.decode()
    assert "saved" in page and "biases no score" in page
    assert Client().get("/tracks/world/metrics/?criterion=relation").status_code == 200
    set_scorer_used(world.track, Scorer.objects.get().pk, toy.users["Admin"], used=False)
    assert saved_by(score_track(world.track)) == []
    page = Client().get("/tracks/world/metrics/").content.decode()
    assert "No metric or judge is used" in page and "0 so far" not in page


def test_a_judge_that_knows_nothing_costs_next_to_nothing(world: World, toy: Toy) -> None:
    Scorer.objects.all().delete()
    rng = np.random.default_rng(5)
    noise = [(one.pk, float(rng.normal())) for one in world.instances]
    store_scores(world.track, Name("dice"), noise, toy.users["Admin"], not_tuned=True)
    assert min(saved_by(score_track(world.track))) > -0.1
