"""How long answers took: of a track in the middle, and each beside the judgment that it is part of,
for those who may see that.
"""

from __future__ import annotations

from decimal import Decimal

import pytest

from annotation.models import HIT, Assignment, Question, Response, Worker
from kbpo import clock
from kbpo.instances.models import Target
from kbpo.money.models import Purpose
from kbpo.tracks.models import Track
from tests.test.web.test_explore import row, world

pytestmark = pytest.mark.django_db
__all__ = ["row", "world"]


def question_of(track: Track, target: Target, interface: str = "relation") -> Question:
    return Question.objects.create(
        track=track,
        target=target,
        interface=interface,
        round=1 + Question.objects.count(),
        status="settled",
        order=0.5,
        payer=Purpose("documents", 1),
        price=Decimal("0.06"),
        reward=Decimal("0.05"),
    )


def answered(questions: list[Question], *seconds: float, counts: bool = True) -> None:
    """Somebody else each time answers these questions on one page, in so many seconds."""
    track = questions[0].track
    hit = HIT.objects.create(status="closed", track=track, platform="pool", reward=0)
    hit.questions.set(questions)
    for each in seconds:
        answer = Assignment.objects.create(
            hit=hit,
            worker=Worker.objects.create(platform="pool", handle=f"w{Worker.objects.count()}"),
            status="approved",
            leased_until=clock.now(),
            submitted_at=clock.now(),
            raw={},
            seconds=each,
        )
        for one in questions:
            for criterion in ("relation", "linking"):
                Response.objects.create(
                    assignment=answer,
                    question=one,
                    target=one.target,
                    criterion=criterion,
                    value={},
                    counts=counts,
                    excluded_reason="" if counts else "Answered at random",
                )
