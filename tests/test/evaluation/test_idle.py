"""While nothing comes in, a tick counts no history; whatever comes in is seen at once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from kbpo import clock
from kbpo.evaluation import due, run
from kbpo.evaluation.models import Rescoring
from kbpo.instances.models import Target
from kbpo.submissions.models import Submission
from tests.test.evaluation.world import World

pytestmark = pytest.mark.django_db
HERE = "django.core.cache.backends.locmem.LocMemCache"


@pytest.fixture
def judging(world: World, settings: Any) -> Submission:
    """A system whose sample waits for its judgments; the track was looked at."""
    settings.DEBOUNCE_SECONDS = 0
    # A Redis that does not answer for a second keeps nothing, and all is counted.
    own = settings.CACHES["default"]["KEY_PREFIX"]
    settings.CACHES = {"default": {"BACKEND": HERE, "LOCATION": own}}
    submission = world.system("slow", lambda one: True)
    world.sample(submission)
    Submission.objects.filter(pk=submission.pk).update(status="judging")
    for _ in range(2):  # scored, and looked at once more
        run.tick()
    return submission


def statements_of_a_tick() -> list[str]:
    """What a tick asks that finds the track due."""
    Rescoring.objects.update(next_try_at=clock.now())
    with CaptureQueriesContext(connection) as captured:
        run.tick()
    return [query["sql"] for query in captured]


def test_an_idle_tick_reads_no_sample_and_counts_no_label_of_the_corpus(
    judging: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(due, "finished_submissions", lambda track: pytest.fail("asked in vain"))
    texts = statements_of_a_tick()
    assert not [text for text in texts if '"sampling_sample"' in text], texts
    assert not [text for text in texts if not text.startswith("SELECT")], "nothing is written"
    assert not [text for text in texts if "corpus_id" in text and "instances_label" in text], texts
    Rescoring.objects.update(next_try_at=clock.now() + timedelta(hours=1))
    run.tick()


def test_the_last_judgment_ends_a_stage_before_the_debounce(
    judging: Submission, world: World
) -> None:
    Rescoring.objects.update(next_try_at=clock.now() + timedelta(hours=1))
    world.answer(list(Target.objects.filter(pk__in=due.unjudged_targets(judging))))
    run.tick()
    judging.refresh_from_db()
    assert judging.status != "judging"


def test_what_no_sign_tells_is_counted_within_a_minute(
    judging: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(due, "finished_submissions", lambda track: asked.append(track) or [])
    cache.clear()  # as it does by itself
    statements_of_a_tick()
    assert judging.track in asked
