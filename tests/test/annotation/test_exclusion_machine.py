"""Answer, settle, exclude, reinstate, reject and undo in any order: once all is undone, every
answer counts.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import ClassVar

import pytest
from annotation_world import PARTS, make_submission, take
from django.db import transaction
from django.test import Client
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from annotation.budget import promises
from annotation.hits import collect, publish
from annotation.hits.ask_again import count_answers
from annotation.labels import exclude, reject, settle
from annotation.models import Assignment, Question, Response, Worker
from annotation.questions import ask
from annotation.questions.limits import MOST_ANSWERS
from kbpo.accounts.models import User
from kbpo.instances.models import Label, Target
from kbpo.money.spend import balance
from kbpo.tracks.models import Track

pytestmark = [pytest.mark.django_db, pytest.mark.longer]

NAMES = ["ada", "bo", "cy", "dana", "eve", "finn"]
STEPS = {"publish": publish.tick, "collect": collect.tick, "settle": settle.tick}
ANSWERS = {
    "yes": {"a": "0-3", "b": "other", "holds": PARTS[0]},
    "no": {"a": "0-3", "b": "other", "none": "1"},
}


class Desk(RuleBasedStateMachine):
    """People who answer on our own pages, the pipeline's steps, and an admin who changes their
    mind.
    """

    track: Track
    targets: list[Target]
    admin: User
    clients: ClassVar[dict[str, Client]]

    def __init__(self) -> None:
        super().__init__()
        self.atomic = transaction.atomic()
        self.atomic.__enter__()
        self.submission = make_submission(self.track, self.targets[:2])
        ask.tick()
        publish.tick()

    def teardown(self) -> None:
        try:
            self.all_is_undone()
            self.nothing_is_asked_in_vain()
            self.everybody_answers()
            self.every_answer_counts()
        finally:
            transaction.set_rollback(True)
            self.atomic.__exit__(None, None, None)

    def all_is_undone(self) -> None:
        for answer in Assignment.objects.filter(status="rejected").order_by("pk"):
            reject.undo_rejection(answer, self.admin, "A slip.")
        for worker in Worker.objects.exclude(excluded_at=None).order_by("pk"):
            exclude.reinstate_worker(worker, self.admin, "A slip.")

    def nothing_is_asked_in_vain(self) -> None:
        held = Assignment.objects.filter(status__in=["leased", "submitted"]).values(
            "hit__questions"
        )
        assert (
            not Question.objects.filter(status="published", asked_again=True)
            .exclude(pk__in=held)
            .exists()
        )

    def everybody_answers(self) -> None:
        for _ in range(4):
            for step in STEPS.values():
                step()
            for client in self.clients.values():
                while address := take(client):
                    assert client.post(address, ANSWERS["yes"]).status_code == 302

    def every_answer_counts(self) -> None:
        settle.tick()
        assert Question.objects.counts() == {"settled": Question.objects.count()}
        assert not Response.objects.filter(counts=False).exists()
        for question in Question.objects.all():
            label = Label.objects.filter(
                target=question.target, origin__startswith=question.origin
            ).latest("pk")
            # One that came after all was settled is paid and kept.
            read = question.responses.filter(created_at__lte=label.created_at)
            assert label.n == read.values("assignment").distinct().count()
        spent = sum(
            question.price * n
            for question in Question.objects.all()
            if (n := count_answers([question])[question.pk])
        )
        assert balance(purpose=self.submission.purpose).spent == spent

    @rule(name=st.sampled_from(NAMES), says=st.sampled_from(sorted(ANSWERS)))
    def somebody_answers(self, name: str, says: str) -> None:
        if address := take(self.clients[name]):
            assert self.clients[name].post(address, ANSWERS[says]).status_code == 302

    @rule(says=st.sampled_from(sorted(ANSWERS)))
    def many_answer(self, says: str) -> None:
        for number, name in enumerate(NAMES[:3]):
            self.somebody_answers(name, says if number else "yes")

    @rule(name=st.sampled_from(NAMES))
    def somebody_takes_a_question(self, name: str) -> None:
        take(self.clients[name])

    @rule(step=st.sampled_from(sorted(STEPS)))
    def the_clock_comes_round(self, step: str) -> None:
        STEPS[step]()

    @rule(name=st.sampled_from(NAMES))
    def somebody_is_excluded(self, name: str) -> None:
        exclude.exclude_worker(
            Worker.objects.get(user__username=name), f"{name} presses one button.", self.admin
        )

    @rule(name=st.sampled_from(NAMES))
    def somebody_is_reinstated(self, name: str) -> None:
        exclude.reinstate_worker(
            Worker.objects.get(user__username=name), self.admin, "They were right."
        )

    @rule(data=st.data())
    def an_answer_is_rejected(self, data: st.DataObject) -> None:
        if rows := list(Assignment.objects.filter(status__in=reject.REJECTABLE).order_by("pk")):
            answer = data.draw(st.sampled_from(range(len(rows))), label="answer")
            reject.reject_answer(
                rows[answer], self.admin, "The same button, six times in two seconds."
            )

    @rule(data=st.data())
    def a_rejection_is_undone(self, data: st.DataObject) -> None:
        if rows := list(Assignment.objects.filter(status="rejected").order_by("pk")):
            answer = data.draw(st.sampled_from(range(len(rows))), label="answer")
            reject.undo_rejection(rows[answer], self.admin, "The text was ambiguous.")

    @invariant()
    def what_is_promised_can_be_paid(self) -> None:
        purpose = self.submission.purpose
        assert promises.committed_money(purpose) <= balance(purpose=purpose).open

    @invariant()
    def nobody_asks_for_ever(self) -> None:
        waiting = list(Question.objects.filter(status="waiting"))
        given = count_answers(waiting)
        assert all(0 < one.answers_wanted <= MOST_ANSWERS - given[one.pk] for one in waiting)


@pytest.mark.soak
def test_whatever_is_undone_leaves_every_answer_counting(
    track: Track, targets: list[Target], admin: User, annotator: Callable[[str], User]
) -> None:
    Desk.track, Desk.targets, Desk.admin, Desk.clients = track, targets, admin, {}
    for name in NAMES:
        Desk.clients[name] = Client()
        Desk.clients[name].force_login(annotator(name))
    run_state_machine_as_test(
        Desk,
        settings=settings(
            max_examples=int(os.environ.get("KILLS", "3")),
            stateful_step_count=25,
            deadline=None,
            derandomize="KILLS" not in os.environ,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.explicit, Phase.generate, Phase.shrink),
            database=None,
        ),
    )
