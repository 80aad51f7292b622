"""How long answers took: of a track in the middle, and each beside the judgment that it is part of,
for those who may see that.
"""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import HIT, Assignment, Question, Response, Worker
from annotation.quality import pace
from kbpo import clock
from kbpo.instances.models import Label, Target
from kbpo.money.purpose import Purpose
from kbpo.sampling.open_track import close_track, freeze_track
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from tests.conftest import Toy
from tests.evaluation.world import World
from tests.web.test_explore import client_of, header_of, row, world

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


def times(page: str) -> list[str]:
    """The times that stand beside the prediction that is opened."""
    found = re.search(r"Answered in\s(.*?\S)\.</p>", page, re.S)
    return " ".join(found[1].replace("\xa0", " ").split()).split(", ") if found else []


def test_who_sees_a_judgment_sees_how_long_its_answers_took(
    row: Submission, world: World, toy: Toy
) -> None:
    label = Label.objects.filter(target__kind="pair").earliest("pk")
    question = question_of(row.track, label.target)
    Label.objects.filter(pk=label.pk).update(question=question.pk)
    answered([question], 33.4, 14.2, 190.0)
    answered([question], 2.0, counts=False)
    answered([question, question_of(row.track, label.target)], 55.0)
    [one, *_] = row.predictions.filter(instance__target=label.target)
    page, api = (reverse(name, args=[row.pk]) for name in ("submission-explore", "api-predictions"))

    def told(name: str) -> tuple[list[str], list[int] | None]:
        client = client_of(toy, name) if name else Client()
        shown = client.get(page, {"p": one.pk})
        headers = header_of(toy, name) if name else {}
        answer = Client().get(api, {"limit": 500}, headers=headers)
        records = {each["prediction"]: each for each in answer.json()["results"]}
        if name == "Rosa":
            assert sum(bool(each["seconds"]) for each in records.values()) == 1 + (
                row.predictions.filter(instance__target=label.target).count() - 1
            )
        assert not re.search(r'"(worker|handle)"', answer.content.decode())
        return times(shown.content.decode()), records[one.pk][
            "seconds"
        ] if one.pk in records else None

    divided = "about 28 s (on a page with more questions: its time divided by their number)"
    everything = (["14 s", "33 s", "3 min", divided], [14, 33, 190])
    assert told("Rosa") == told("Admin") == everything
    assert told("Tim") == told("") == ([], None), "another team's study"
    lines = client_of(toy, "Rosa").get(reverse("submission-explore", args=[row.pk]) + "?format=csv")
    told_all = b"".join(lines.streaming_content)
    assert b"[14, 33, 190]" in told_all and b"[28]" in told_all
    Label.objects.filter(pk=label.pk).update(public_at=None)
    assert pace.seconds_of([label.target_id], public=True) == {}
    close_track(freeze_track(row.track))
    assert told("") == everything
