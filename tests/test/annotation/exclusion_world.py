"""What tests about leaving workers out share: two ways to answer, and six questions that are
settled.
"""

from __future__ import annotations

from typing import Any

from annotation_world import PARTS, answer_all
from django.test import Client

from annotation.labels import settle
from annotation.models import Question, Worker
from kbpo.instances.merge import merged_values
from kbpo.tracks.kbp.merge import merge_labels
from kbpo.tracks.models import Track

YES = {"a": "0-3", "b": "other", "holds": PARTS[0]}
NO = {"a": "0-3", "b": "other", "none": "1"}
FLAG = {"problem": "text"}
BAD = "Always the first button"


def worker(name: str) -> Worker:
    return Worker.objects.get(user__username=name)


def holds(track: Track) -> set[tuple[str, ...]]:
    """What counts of each pair now."""
    targets = Question.objects.filter(track=track).values_list("target", flat=True)
    return {
        tuple(value.get("holds", ("unknown",)))
        for _, value, _ in merged_values(set(targets), merge_labels)
    }


def judged(clients: list[Client], *answers: dict[str, Any]) -> None:
    for client, answer in zip(clients, answers, strict=False):
        assert answer_all(client, answer) > 0
    settle.tick()
    assert Question.objects.counts() == {"settled": Question.objects.count()}
