"""The simulated crowd judges through real pages over real HTTP."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from annotation_world import PARTS
from django.core.management import CommandError, call_command

from annotation.labels import settle
from annotation.models import Assignment, Question
from annotation.workers import teach
from annotation.workers.models import TutorialRun
from annotation.workers.worker import worker_of
from kbpo import clock
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
    crowd.workers[0].forget()  # the site was away for a moment; the login still holds
    work = crowd.work(at_most=60)
    assert (work.answers, work.wrong) == (6, 6)
    answers = [answer.get("holds") for answer in Assignment.objects.values_list("raw", flat=True)]
    assert [PARTS[0]] not in answers


@pytest.mark.django_db(transaction=True)
def test_who_is_not_let_in_says_so_and_does_not_try_again(
    published: Submission, live_server: Any
) -> None:
    told: list[str] = []
    crowd = Crowd(live_server.url, [("nobody", "wrong")], knows, tell=told.append)
    work = crowd.work(lambda: False, poll=0.01, at_most=5)
    assert work.refused == ["nobody"] and work.seconds < 5
    assert (
        work.errors == told == ["nobody was not let in: this name and password do not go together."]
    )


@pytest.mark.django_db(transaction=True)
def test_simulate_fails_where_somebody_is_not_let_in(
    published: Submission, live_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signal.signal", lambda *_: None)
    (thinks := tmp_path / "texts.json").write_text('{"ratings": {}, "questions": {}}')
    with pytest.raises(CommandError, match=r"Not let in: simulated, simulated2\. Say --user"):
        call_command(
            "simulate", live_server.url, thinks=thinks, workers=2, password="x", seconds=0.0
        )


@pytest.mark.django_db(transaction=True)
def test_who_knows_nothing_of_texts_takes_no_question_and_no_tutorial_of_them(
    published: Submission, live_server: Any, untaught: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    login = logins("ada")
    crowd = Crowd(live_server.url, login, knows)
    texts = Question.objects.order_by("pk")[:2].values_list("pk", flat=True)
    Question.objects.filter(pk__in=list(texts)).update(interface="language_quality")
    with monkeypatch.context() as patch:
        patch.setattr("annotation.hits.lease.to_learn", lambda _: "language_quality")
        assert not crowd.workers[0].answer_next(), "the tutorial of texts is not for them"
    assert not TutorialRun.objects.exists()
    work = crowd.work(at_most=60)
    assert (work.answers, work.errors) == (4, [])
    assert list(TutorialRun.objects.values_list("interface", flat=True)) == ["relation"]
    assert Assignment.objects.count() == 4


@pytest.mark.django_db(transaction=True)
def test_who_was_taught_texts_alone_gives_such_a_question_back_and_goes_on(
    published: Submission, live_server: Any, untaught: None
) -> None:
    login = logins("ada")
    text = Question.objects.order_by("pk")[0]
    lesson = teach.tutorials()["language_quality"]
    Question.objects.filter(pk=text.pk).update(
        interface="language_quality", order=-1, payload=lesson.question(1, 1).payload
    )
    worker = worker_of(User.objects.get(username="ada"))
    TutorialRun.objects.create(
        worker=worker,
        interface="language_quality",
        version=lesson.version,
        attempt=1,
        passed=True,
        ended_at=clock.now(),
    )
    work = Crowd(live_server.url, login, knows).work(at_most=60)
    assert (work.answers, work.errors) == (5, [])
    assert not Assignment.objects.filter(status="leased").exists()


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


def test_a_crowd_is_not_made_for_what_it_knows_nothing_of() -> None:
    with pytest.raises(ValueError, match="nothing of questions of 'language_quality'"):
        Crowd("http://localhost", [("ada", "x")], knows, kinds=["language_quality"])
