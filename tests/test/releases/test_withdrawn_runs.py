"""Whichever run is withdrawn, the release rescores to the board of the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbpo.releases.write import write_release
from kbpo.sampling.open_track import close_track
from kbpo.submissions.models import Submission
from kbpo.submissions.withdraw import withdraw_submission
from scoring.release import Release
from scoring.rescore import rescore_release
from tests.test.golden.fixed_world import FixedWorld
from tests.test.golden.worlds import by_draws, by_thresholds
from tests.test.releases.test_rescore import finished

pytestmark = [pytest.mark.django_db, pytest.mark.soak]


@pytest.fixture(autouse=True)
def _at_once(settings: Any) -> None:
    settings.DEBOUNCE_SECONDS = 0


@pytest.mark.parametrize("make", [by_draws, by_thresholds])
def test_a_board_is_recomputed_whoever_was_withdrawn(
    make: Callable[[Path], FixedWorld], tmp_path: Path
) -> None:
    world = finished(make(tmp_path))
    close_track(world.track)
    world.track.refresh_from_db()
    scored = Submission.objects.filter(track=world.track).that_have_score().order_by("pk")
    for name, run in [(run.name, run) for run in scored][:-1]:
        withdraw_submission(run)
        write_release(world.track, tmp_path / name)  # which rescores it
        found = rescore_release(Release(tmp_path / name))
        assert found.agrees and found.numbers > 20, (name, found.differences[:3])
