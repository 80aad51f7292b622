"""A submission's page says how its sample was drawn, and that the model never replaces a
judgment.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from kbpo.sampling.models import Sample
from kbpo.submissions.models import Submission
from kbpo.web.research.score_tables import sampling_stages
from tests.conftest import Toy
from tests.test.evaluation.replay import Replay
from tests.test.web.scored import make_study

As = Callable[[str], Client]
pytestmark = pytest.mark.django_db
N = 300


def _judged(toy: Toy, share: float, *, design: str = "poisson") -> tuple[Replay, Submission]:
    """Return a study and its scored run that predicts all relations."""
    world = Replay.of(toy, N, share, design=design)
    make_study(toy.track, toy.teams["Patterns"])
    return world, world.judge(world.upload("Patterns", range(N)))


@pytest.mark.parametrize("design", ["poisson", "iid"])
def test_the_page_tells_each_stage_with_what_was_planned_and_what_it_came_to(
    toy: Toy, as_user: As, design: str
) -> None:
    world, row = _judged(toy, 0.5, design=design)
    told = sampling_stages(row)
    assert told and len(told["stages"]) == row.batches.count()
    last = told["stages"][-1]
    printed = world.number(row)
    assert last["came_to"] == round((printed.high80 - printed.low80) / 2, 3)
    assert (
        sum(one["targets"] for one in told["stages"])
        == Sample.objects.filter(batch__submission=row).count()
    )
    assert told["design"] == design
    page = as_user("Rosa").get(reverse("submission", args=[row.pk])).content.decode()
    assert (">Planned</th>" in page, "With replacement" in page) == (
        design == "poisson",
        design == "iid",
    )
    assert (
        "How its sample was drawn"
        not in as_user("Tim").get(reverse("submission", args=[row.pk])).content.decode()
    )
