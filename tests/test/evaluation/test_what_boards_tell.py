"""What is public of a track tells nothing of submissions that are not."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from kbpo.evaluation.run import score_track
from kbpo.submissions.models import Submission
from tests.conftest import Toy
from tests.test.evaluation.world import World

pytestmark = pytest.mark.django_db


def test_boards_tell_nothing_of_withdrawn_and_waiting_runs(toy: Toy) -> None:
    world = World(toy, is_study=True, n_documents=8)
    rows = {
        status: world.system(status, lambda one, at=at: one.pk % 4 != at, team=team)
        for at, (status, team) in enumerate(
            [("scored", "Patterns"), ("withdrawn", "Patterns"), ("judging", "Neural")]
        )
    }
    for row in rows.values():
        world.answer(world.sample(row, 0.9))
    for status, row in rows.items():
        Submission.objects.filter(pk=row.pk).update(status=status, counts={"relations": 7})
    evaluation = score_track(world.track)
    told = Client().get("/api/tracks/world/board/", {"distribution": "instance"}).json()
    assert [one["name"] for one in told["systems"]] == ["scored"]
    assert set(told["evaluation"]) <= {
        "number",
        "page",
        "made_at",
        "scope",
        "documents",
        "of_documents",
        "misses",
        "late_scorers",
        "targets",
        "labels",
        "expert",
        "judges",
        "model",
        "version",
    }
    assert told["evaluation"]["targets"] and told["evaluation"]["model"] == evaluation.report.model
    assert "withdrawn" not in json.dumps(told)
