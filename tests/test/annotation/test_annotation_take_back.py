"""What leaving workers out or a rejection has ordered is taken back with it; nobody waits or pays
for it for ever.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from annotation_world import answer_all, take
from django.test import Client
from exclusion_world import BAD, NO, YES, judged, worker

from annotation.budget import promises
from annotation.hits import collect, publish
from annotation.labels import exclude, reject, settle
from annotation.labels.recount import RecountResult
from annotation.labels.settle import MET_BEFORE
from annotation.models import HIT, Assignment, Question, Response
from kbpo.accounts.models import User
from kbpo.instances.merge import merged_value
from kbpo.instances.models import Label
from kbpo.submissions.models import Submission
from kbpo.tracks.kbp.merge import merge_labels

pytestmark = pytest.mark.django_db
EVIDENCE = "The same button, six times in two seconds."


def answer_of(name: str, question: Question) -> Assignment:
    return Assignment.objects.get(worker__user__username=name, hit__questions=question)


def test_one_answer_settles_what_a_rejection_divided(
    published: Submission, clients: list[Client], annotator: Callable[[str], User], admin: User
) -> None:
    judged(clients, YES, NO, YES)
    question = Question.objects.order_by("pk")[0]
    reject.reject_answer(answer_of("cy", question), admin, EVIDENCE)
    publish.tick()
    dana = Client()
    dana.force_login(annotator("dana"))
    assert answer_all(dana, NO) == 1
    settle.tick()
    assert (
        Question.objects.counts() == {"settled": 6}
        and merged_value(question.target.labels.all(), merge_labels)["holds"] == []
    )


def test_undoing_a_rejection_reinstates_nobody(
    published: Submission, clients: list[Client], admin: User
) -> None:
    judged(clients, YES, YES, YES)
    answer = answer_of("bo", Question.objects.order_by("pk")[0])
    first = answer.responses.order_by("pk")[0]
    Response.objects.filter(pk=first.pk).update(
        counts=False, excluded_reason=MET_BEFORE, met_before=True
    )
    reject.reject_answer(answer, admin, EVIDENCE)
    exclude.exclude_worker(worker("bo"), BAD)
    answer.refresh_from_db()
    reject.undo_rejection(answer, admin, "The text was ambiguous.")
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
    exclude.exclude_worker(worker("cy"), BAD)
    publish.tick()
    return published


def test_readmission_takes_back_what_is_asked_again(asked_again: Submission, admin: User) -> None:
    n = Label.objects.count()
    done = exclude.reinstate_worker(worker("cy"), admin, "A slip.")
    assert done.settled == RecountResult(restored=6) and "6 questions settled next" in str(done)
    assert promises.committed_money(asked_again.purpose) == 0
    collect.tick()
    assert not HIT.objects.filter(status__in=["open", "intent"]).exists()
    settle.tick()
    assert Question.objects.counts() == {"settled": 6} and Label.objects.count() == n, (
        "they say what they had said"
    )
    assert set(Question.objects.values_list("answers_wanted", flat=True)) == {3}
    assert exclude.exclude_worker(worker("cy"), BAD).settled == RecountResult(asked_again=6), (
        "and all that can be done again"
    )


def test_what_somebody_has_in_hand_is_not_taken_back(
    asked_again: Submission, annotator: Callable[[str], User]
) -> None:
    dana = Client()
    dana.force_login(annotator("dana"))
    address = take(dana)
    assert exclude.reinstate_worker(worker("cy")).settled == RecountResult(restored=5)
    assert dana.post(address, NO).status_code == 302 and take(dana) == ""
    settle.tick()
    assert Question.objects.counts() == {"settled": 6}
    assert sorted(Label.objects.filter(target__kind="pair").values_list("n", flat=True)) == [
        3
    ] * 6 + [4]


def test_a_question_without_a_usable_answer_is_asked_as_at_first_and_not_for_ever(
    asked_again: Submission, annotator: Callable[[str], User]
) -> None:
    for names, wanted in ((["dana"], 3), (["eve", "finn", "gil"], 2)):
        for name in names:
            client = Client()
            client.force_login(annotator(name))
            assert answer_all(client, YES) == 6
        for name in ["ada", "bo", *names]:
            exclude.exclude_worker(worker(name), BAD)
        settle.tick()
        assert Question.objects.counts() == {"waiting": 6}
        assert set(Question.objects.values_list("answers_wanted", flat=True)) == {wanted}
        publish.tick()
    for name in ("hal", "ida"):
        client = Client()
        client.force_login(annotator(name))
        assert answer_all(client, YES) == 6
        exclude.exclude_worker(worker(name), BAD)
    settle.tick()
    assert (
        Question.objects.counts() == {"unanswered": 6}
        and promises.committed_money(asked_again.purpose) == 0
    )
    assert Question.objects.filter(reason__startswith="9 people answered it").count() == 6
