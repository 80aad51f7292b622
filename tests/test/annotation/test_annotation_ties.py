"""Where people are divided about what a mention refers to, one more person is asked."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from annotation_world import GOOD, answer_all
from django.test import Client
from django.utils import timezone

from annotation.hits import publish
from annotation.labels import settle
from annotation.models import Question, Worker
from annotation.workers.worker import worker_of_user
from kbpo.accounts.models import User
from kbpo.instances.merge import merged_value
from kbpo.instances.models import Label, Target
from kbpo.instances.record import NewLabel, record_labels
from kbpo.submissions.models import Submission
from kbpo.tracks.kbp.merge import merge_labels

pytestmark = pytest.mark.django_db
OTHERWISE = GOOD | {"b": "0-3"}


@pytest.fixture
def earlier(two_published: Submission) -> list[int]:
    """The second mentions of the two pairs, of each of which three people said before, asked about
    another pair, that it is the name at 0-3.
    """
    sides = [one.payload["b"]["target"] for one in Question.objects.order_by("pk")]
    value = {"canonical": [0, 3], "type": "ORG", "votes": {"0-3": 3}, "titles": {}}
    record_labels(NewLabel(pk, value, "crowd", "majority", 3, "question:999999") for pk in sides)
    return sides


@pytest.fixture
def fourth(annotator: Callable[[str], User]) -> Client:
    """One more annotator, who has looked in lately."""
    user = annotator("fourth")
    Worker.objects.filter(pk=worker_of_user(user).pk).update(last_seen_at=timezone.now())
    client = Client()
    client.force_login(user)
    return client


def published_again() -> int:
    settle.tick()
    publish.tick()
    return Question.objects.filter(status="published").count()


def test_a_tie_over_all_questions_asks_one_more_person_and_they_decide(
    earlier: list[int], clients: list[Client], fourth: Client
) -> None:
    for client in clients:
        answer_all(client)  # three say that it is none of the names: three against three
    assert published_again() == 2
    assert not Label.objects.filter(target__kind="pair").exists(), "nothing is settled yet"
    assert answer_all(fourth, OTHERWISE) == 2
    assert published_again() == 0
    for pk in earlier:
        value = merged_value(Label.objects.filter(target=pk), merge_labels)
        assert (value["canonical"], value["votes"]["0-3"]) == ([0, 3], 4), "four of seven"


def test_nobody_is_waited_for_who_is_not_there(earlier: list[int], clients: list[Client]) -> None:
    for client in clients:
        answer_all(client)
    assert published_again() == 0, "all who were seen lately have answered"
    for pk in earlier:
        value = merged_value(Label.objects.filter(target=pk), merge_labels)
        assert value["undecided"] and "canonical" not in value, (
            "missing, and neither right nor wrong"
        )


def test_without_a_tie_nobody_more_is_asked(
    two_published: Submission, clients: list[Client], fourth: Client
) -> None:
    for client in clients:
        answer_all(client)
    assert published_again() == 0 and answer_all(fourth) == 0
    mention = Target.objects.get(pk=Question.objects.order_by("pk")[0].payload["b"]["target"])
    assert merged_value(Label.objects.filter(target=mention), merge_labels)["elsewhere"], (
        "none of the names"
    )
