"""The simulated crowd judges through real pages over real HTTP."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from annotation_world import PARTS

from annotation.labels import settle
from annotation.models import Assignment, Question
from kbpo.accounts.models import User
from kbpo.instances.models import Label
from kbpo.submissions.models import Submission
from rehearsal.annotators import Crowd


@dataclass(frozen=True)
class Truth:
    subject_canonical: tuple[int, int] = (0, 3)
    object_canonical: tuple[int, int] = (900, 901)
    holds: frozenset[tuple[str, str]] = field(
        default_factory=lambda: frozenset({("per:schools_attended", ">")})
    )


def knows(document: str, a: tuple[int, int], b: tuple[int, int]) -> Truth:
    assert document.startswith("doc-") and a < b
    return Truth()


def logins(*names: str) -> list[tuple[str, str]]:
    for name in names:
        User.objects.create_user(name, password="long enough 1", is_annotator=True)
    return [(name, "long enough 1") for name in names]


@pytest.mark.soak
@pytest.mark.django_db(transaction=True)
def test_perfect_workers_make_true_labels(published: Submission, live_server: Any) -> None:
    work = Crowd(live_server.url, logins("ada", "bea", "cid"), knows).work(at_most=60)
    assert (work.answers, work.wrong, work.errors) == (18, 0, [])
    settle.tick()
    assert Question.objects.counts() == {"settled": 6}
    assert {tuple(label.value["holds"]) for label in Label.objects.filter(target__kind="pair")} == {
        (PARTS[0],)
    }
    first = Label.objects.filter(target__kind="mention", target__a_begin=0)
    assert {tuple(label.value["canonical"]) for label in first} == {(0, 3)}


@pytest.mark.django_db(transaction=True)
def test_a_worker_of_no_accuracy_is_always_wrong_and_the_seed_says_how(
    published: Submission, live_server: Any
) -> None:
    crowd = Crowd(live_server.url, logins("cy"), knows, accuracy=0.0, seed=7)
    assert crowd.workers[0].answer_next()
    crowd.workers[0].log_in_anew()  # the site was away for a moment; the login still holds
    work = crowd.work(at_most=60)
    assert (work.answers, work.wrong) == (6, 6)
    answers = [answer.get("holds") for answer in Assignment.objects.values_list("raw", flat=True)]
    assert [PARTS[0]] not in answers


@pytest.mark.django_db(transaction=True)
def test_what_a_worker_cannot_answer_is_told_and_given_back_and_they_go_on(
    published: Submission, live_server: Any
) -> None:
    asked: list[str] = []

    def knows_others(document: str, a: tuple[int, int], b: tuple[int, int]) -> Truth:
        asked.append(document)
        if len(asked) == 1:
            raise KeyError(document)
        return Truth()

    told: list[str] = []
    work = Crowd(live_server.url, logins("ada"), knows_others, tell=told.append).work(at_most=60)
    assert (work.answers, told) == (5, [f"ada: KeyError: '{asked[0]}'"])
    assert len(asked) == 6, "it is not asked of them again"
    returned = Assignment.objects.get(status="returned")
    assert returned.returned_by == Assignment.ReturnedBy.WORKER
