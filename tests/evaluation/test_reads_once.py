"""What no label changes is read once: a rescoring after new labels finds it kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from kbpo.evaluation.data import read
from kbpo.evaluation.run import evaluate
from kbpo.instances.models import Target
from kbpo.sampling.models import SampleBatch
from kbpo.submissions.models import Submission
from tests.evaluation.world import World

pytestmark = pytest.mark.django_db

EVERY_ROW = ("sampling_threshold h", "FROM submissions_prediction p JOIN instances_instance i ON")


def read_of_all(world: World) -> list[str]:
    """The statements of a rescoring that read every prediction or every threshold."""
    with CaptureQueriesContext(connection) as captured:
        evaluate(world.track)
    return [
        query["sql"]
        for query in captured
        if any(said in query["sql"] for said in EVERY_ROW) and "ANY" not in query["sql"]
    ]


@pytest.fixture
def sampled(world: World, tmp_path: Path, settings: Any) -> World:
    settings.ARRAYS_ROOT = tmp_path / "arrays"
    for name, team in zip(("one", "two"), world.toy.teams, strict=False):
        row = world.system(name, lambda one: one.pk % 3 > 0, team=team)
        targets = world.sample(row, pi=0.8)
        world.answer(targets[: len(targets) // 2])
        row.batches.update(settled_at=row.confirmed_at)
    return world


def test_a_rescoring_after_new_labels_makes_nothing_anew(sampled: World) -> None:
    evaluate(sampled.track)
    made = {path: path.stat().st_mtime_ns for path in _files()}
    assert {path.parent.parent.name.split("-")[0] for path in made} >= {"pool", "thresholds"}
    row = sampled.track.submissions.get(name="two")
    sampled.answer(_stated(row))
    evaluate(sampled.track)
    assert {path: path.stat().st_mtime_ns for path in _files()} == made
    assert not read_of_all(sampled)


def _files() -> list[Path]:
    return sorted(Path(settings.ARRAYS_ROOT).glob("*/*/*.npy"))


def test_a_batch_that_is_settled_is_seen_at_once(sampled: World) -> None:
    before = read(sampled.track).inclusion.chances.threshold
    row = sampled.track.submissions.get(name="two")
    targets = sampled.sample(row, pi=0.95)
    sampled.answer(targets)
    raised = read(sampled.track).inclusion.chances.threshold
    assert before.max() == pytest.approx(0.8)
    assert np.count_nonzero(raised == 0.95) == len(_stated(row))
    SampleBatch.objects.filter(submission=row).update(settled_at=row.confirmed_at)
    assert (read(sampled.track).inclusion.chances.threshold == raised).all()


def _stated(row: Submission) -> list[Target]:
    return list(Target.objects.filter(instances__predictions__submission=row).distinct())
