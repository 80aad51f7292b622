"""What leaving workers out or a rejection has ordered is taken back with it; nobody waits or pays
for it for ever.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from annotation_world import PARTS, answer_all, take
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from exclusion_world import BAD, NO, YES, holds, judged, worker

from annotation.budget import promises
from annotation.hits import collect, publish
from annotation.hits.batch import stop_batch
from annotation.labels import exclude, reject, settle
from annotation.labels.accept import MET_BEFORE
from annotation.labels.recount import Again
from annotation.models import HIT, Assignment, Question, Response
from kbpo.accounts.models import User
from kbpo.instances.merge import merged, values_of
from kbpo.instances.models import Label
from kbpo.submissions.models import Submission
from kbpo.tracks.kbp.merge import together

pytestmark = pytest.mark.django_db
EVIDENCE = "The same button, six times in two seconds."


def answer_of(name: str, question: Question) -> Assignment:
    return Assignment.objects.get(worker__user__username=name, hit__questions=question)


def test_one_answer_settles_what_a_rejection_divided(
    published: Submission, clients: list[Client], annotator: Callable[[str], User], admin: User
) -> None:
    judged(clients, YES, NO, YES)
    question = Question.objects.order_by("pk")[0]
    reject.reject(answer_of("cy", question), admin, EVIDENCE)
    publish.tick()
    dana = Client()
    dana.force_login(annotator("dana"))
    assert answer_all(dana, NO) == 1
    settle.tick()
    assert (
        Question.objects.counts() == {"settled": 6}
        and merged(question.target.labels.all(), together)["holds"] == []
    )


def test_what_was_asked_again_gets_one_more_for_an_answer_that_is_rejected_meanwhile(
    published: Submission, clients: list[Client], annotator: Callable[[str], User], admin: User
) -> None:
    judged(clients, YES, NO, YES)
    exclude.exclude(worker("cy"), BAD)
    publish.tick()
    first, second = Question.objects.order_by("pk")[:2]
    reject.reject(answer_of("ada", first), admin, EVIDENCE)
    reject.reject(answer_of("cy", second), admin, EVIDENCE)
    dana = Client()
    dana.force_login(annotator("dana"))
    assert answer_all(dana, NO) == 6
    settle.tick()
    assert Question.objects.counts() == {"settled": 5, "published": 1} and holds(
        published.track
    ) == {()}
    assert Question.objects.get(status="published") == first, "two count, and three are promised"
    publish.tick()
    erin = Client()
    erin.force_login(annotator("erin"))
    assert answer_all(erin, NO) == 1
    settle.tick()
    assert Question.objects.counts() == {"settled": 6} and holds(published.track) == {()}


def test_an_undone_rejection_counts_though_its_worker_was_excluded_and_reinstated_meanwhile(
    published: Submission, clients: list[Client], admin: User
) -> None:
    judged(clients, YES, YES, YES)
    question = Question.objects.order_by("pk")[0]
    answer = answer_of("bo", question)
    exclude.exclude(worker("bo"), BAD)
    reject.reject(answer, admin, EVIDENCE)
    exclude.reinstate(worker("bo"))
    assert question.target.labels.latest("pk").n == 2
    answer.refresh_from_db()
    reject.undo(answer, admin, "The text was ambiguous.")
    settle.tick()
    assert question.target.labels.latest("pk").n == 3
    assert not Response.objects.filter(counts=False).exists()


def test_undoing_a_rejection_reinstates_nobody(
    published: Submission, clients: list[Client], admin: User
) -> None:
    judged(clients, YES, YES, YES)
    answer = answer_of("bo", Question.objects.order_by("pk")[0])
    first = answer.responses.order_by("pk")[0]
    Response.objects.filter(pk=first.pk).update(
        counts=False, excluded_reason=MET_BEFORE, met_before=True
    )
    reject.reject(answer, admin, EVIDENCE)
    exclude.exclude(worker("bo"), BAD)
    answer.refresh_from_db()
    reject.undo(answer, admin, "The text was ambiguous.")
    assert list(answer.responses.order_by("pk").values_list("excluded_reason", flat=True)) == [
        MET_BEFORE,
        BAD,
        BAD,
    ]


# -- What an exclusion had ordered, taken back
# -------------------------------------------------------------------------


@pytest.fixture
def asked_again(published: Submission, clients: list[Client]) -> Submission:
    """Six questions that two said yes to and one no; a yes is excluded, so that they are out again
    for one more.
    """
    judged(clients, YES, NO, YES)
    exclude.exclude(worker("cy"), BAD)
    publish.tick()
    return published


def test_readmission_takes_back_what_is_asked_again(asked_again: Submission, admin: User) -> None:
    n = Label.objects.count()
    done = exclude.reinstate(worker("cy"), admin, "A slip.")
    assert done.settled == Again(back=6) and "6 questions settled next" in str(done)
    assert promises.committed(asked_again.purpose) == 0
    collect.tick()
    assert not HIT.objects.filter(status__in=["open", "intent"]).exists()
    settle.tick()
    assert Question.objects.counts() == {"settled": 6} and Label.objects.count() == n, (
        "they say what they had said"
    )
    assert set(Question.objects.values_list("answers_wanted", flat=True)) == {3}
    assert exclude.exclude(worker("cy"), BAD).settled == Again(asked=6), (
        "and all that can be done again"
    )


def test_what_somebody_has_in_hand_is_not_taken_back(
    asked_again: Submission, annotator: Callable[[str], User]
) -> None:
    dana = Client()
    dana.force_login(annotator("dana"))
    address = take(dana)
    assert exclude.reinstate(worker("cy")).settled == Again(back=5)
    assert dana.post(address, NO).status_code == 302 and take(dana) == ""
    settle.tick()
    assert Question.objects.counts() == {"settled": 6}
    assert sorted(Label.objects.filter(target__kind="pair").values_list("n", flat=True)) == [
        3
    ] * 6 + [4]


def test_what_is_still_divided_after_a_readmission_stays_open(asked_again: Submission) -> None:
    exclude.exclude(worker("bo"), BAD)
    exclude.exclude(worker("ada"), BAD)
    exclude.reinstate(worker("ada"))
    assert Question.objects.counts() == {"published": 6}, "one answer where three are promised"
    assert exclude.reinstate(worker("bo")).settled == Again(), "a yes and a no"
    assert Question.objects.counts() == {"published": 6}


def test_a_question_that_was_given_up_meanwhile_uses_what_counts_again(
    published: Submission, clients: list[Client], admin: User
) -> None:
    judged(clients, YES, YES, YES)
    for name in ("ada", "bo", "cy"):
        exclude.exclude(worker(name), BAD)
    stop_batch(published.purpose, admin, "Enough.")
    settle.tick()
    targets = set(Question.objects.values_list("target", flat=True))
    assert {unanswered for _, _, unanswered in values_of(targets, together)} == {True}
    assert exclude.reinstate(worker("ada")).settled == Again(back=6)
    settle.tick()
    assert Question.objects.counts() == {"settled": 6}
    assert [
        (value["holds"], unanswered) for _, value, unanswered in values_of(targets, together)
    ] == [([PARTS[0]], False)] * 6


def test_what_was_to_be_asked_anew_is_settled_if_its_answers_count_in_time(
    published: Submission, clients: list[Client]
) -> None:
    for client in clients:
        answer_all(client, YES)
    for name in ("ada", "bo", "cy"):
        exclude.exclude(worker(name), BAD)
    settle.tick()
    assert Question.objects.counts() == {"waiting": 6}
    publish.tick()
    exclude.reinstate(worker("ada"))
    assert exclude.reinstate(worker("bo")).settled == Again(), "three are wanted"
    assert exclude.reinstate(worker("cy")).settled == Again(back=6)
    settle.tick()
    assert (
        Question.objects.counts() == {"settled": 6} and promises.committed(published.purpose) == 0
    )


def test_a_question_without_a_usable_answer_is_asked_as_at_first_and_not_for_ever(
    asked_again: Submission, annotator: Callable[[str], User]
) -> None:
    for names, wanted in ((["dana"], 3), (["eve", "finn", "gil"], 2)):
        for name in names:
            client = Client()
            client.force_login(annotator(name))
            assert answer_all(client, YES) == 6
        for name in ["ada", "bo", *names]:
            exclude.exclude(worker(name), BAD)
        settle.tick()
        assert Question.objects.counts() == {"waiting": 6}
        assert set(Question.objects.values_list("answers_wanted", flat=True)) == {wanted}
        publish.tick()
    for name in ("hal", "ida"):
        client = Client()
        client.force_login(annotator(name))
        assert answer_all(client, YES) == 6
        exclude.exclude(worker(name), BAD)
    settle.tick()
    assert (
        Question.objects.counts() == {"unanswered": 6}
        and promises.committed(asked_again.purpose) == 0
    )
    assert Question.objects.filter(reason__startswith="9 people answered it").count() == 6


def test_an_admin_waits_no_longer_for_many_questions_than_for_few(
    published: Submission, clients: list[Client]
) -> None:
    judged(clients, YES, NO, YES)
    questions = Question.objects.order_by("pk")
    counts = []
    for n in (2, 6):
        with transaction.atomic():
            others = Response.objects.filter(assignment__worker=worker("cy"))
            others = others.exclude(question__in=list(questions[:n]))
            others.update(counts=False, excluded_reason=BAD)
            with CaptureQueriesContext(connection) as out:
                assert exclude.exclude(worker("cy"), BAD).settled == Again(asked=n)
            others.update(counts=True, excluded_reason="")
            with CaptureQueriesContext(connection) as reinstated:
                assert exclude.reinstate(worker("cy")).settled == Again(back=n)
            counts.append((len(out), len(reinstated)))
            transaction.set_rollback(True)
    assert counts[0] == counts[1]
