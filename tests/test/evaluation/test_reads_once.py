"""What no label changes is read once: a rescoring after new labels finds it kept."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbpo.corpus.cache import Arrays, cached_arrays
from kbpo.evaluation.data import load_data
from kbpo.evaluation.run import score_track
from kbpo.instances.models import Target
from kbpo.sampling.models import SampleBatch
from kbpo.submissions.models import Submission
from tests.test.evaluation.world import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders of what is made since, because it was not found."""
    names: list[str] = []

    def noting(name: str, state: object, make: Callable[[], Arrays], **options: Any) -> Arrays:
        def make_it() -> Arrays:
            names.append(name.split("-")[0])
            return make()

        return cached_arrays(name, state, make_it, **options)

    for room in ("inclusion.read", "pool.pool", "sampling.guess", "tracks.kbp.facts"):
        monkeypatch.setattr(import_module(f"kbpo.{room}"), "cached_arrays", noting)
    return names


@pytest.fixture
def sampled(world: World, tmp_path: Path, settings: Any) -> World:
    settings.ARRAYS_ROOT = tmp_path / "arrays"
    for name, team in zip(("one", "two"), world.toy.teams, strict=False):
        row = world.system(name, lambda one: one.pk % 3 > 0, team=team)
        targets = world.sample(row, pi=0.8)
        world.answer(targets[: len(targets) // 2])
        row.batches.update(settled_at=row.confirmed_at)
    return world


def test_a_rescoring_after_new_labels_makes_nothing_anew(sampled: World, made: list[str]) -> None:
    score_track(sampled.track)
    assert {*made} >= {"pool", "thresholds"}
    made.clear()
    row = sampled.track.submissions.get(name="two")
    sampled.answer(_predicted(row))
    score_track(sampled.track)
    assert made == []


def test_a_batch_that_is_settled_is_seen_at_once(sampled: World) -> None:
    before = load_data(sampled.track).inclusion.threshold
    row = sampled.track.submissions.get(name="two")
    targets = sampled.sample(row, pi=0.95)
    sampled.answer(targets)
    raised = load_data(sampled.track).inclusion.threshold
    assert before.max() == pytest.approx(0.8)
    assert np.count_nonzero(raised == 0.95) == len(_predicted(row))
    SampleBatch.objects.filter(submission=row).update(settled_at=row.confirmed_at)
    assert (load_data(sampled.track).inclusion.threshold == raised).all()


def _predicted(row: Submission) -> list[Target]:
    return list(Target.objects.filter(instances__predictions__submission=row).distinct())
