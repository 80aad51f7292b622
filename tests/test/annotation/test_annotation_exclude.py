"""Answers that are excluded leave settled labels too, and come back; more are asked for where too
few are left.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from annotation_world import PARTS, answer_all, make_submission
from django.test import Client
from exclusion_world import BAD, FLAG, NO, YES, holds, judged, worker

from annotation.budget import promises
from annotation.hits import ask_again, publish
from annotation.labels import exclude, recount, reject, settle
from annotation.labels.recount import RecountResult
from annotation.models import HIT, Question, Response
from annotation.questions import ask
from kbpo.accounts.models import Audit, User
from kbpo.evaluation.due import scoring_state
from kbpo.instances.merge import merged_value, merged_values
from kbpo.instances.models import Label, Target
from kbpo.instances.record import NewLabel, record_labels
from kbpo.money.spend import release_money
from kbpo.submissions.models import Submission
from kbpo.tracks.kbp.merge import merge_labels
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db


@pytest.fixture
def of_two(track: Track, targets: list[Target], clients: list[Client]) -> Submission:
    """Six questions to two people: ada says yes, bo says no, so that nothing holds."""
    Track.objects.filter(pk=track.pk).update(workers_per_question=2)
    track.refresh_from_db()
    submission = make_submission(track, targets)
    ask.tick()
    publish.tick()
    judged(clients, YES, NO)
    return submission


def without_money(submission: Submission) -> None:
    release_money(submission.track, submission.purpose, key="all")


def test_a_bad_workers_answers_leave_settled_labels_which_flip(
    of_two: Submission, admin: User
) -> None:
    track, before = of_two.track, Label.objects.count()
    track.is_study, track.owner = True, of_two.team
    track.save()
    stale, kept = (
        scoring_state(track),
        list(Label.objects.order_by("pk").values_list("value", "origin")),
    )
    assert holds(track) == {()}
    done = exclude.exclude_worker(worker("bo"), BAD, admin)
    assert done == exclude.ExclusionResult(18, RecountResult(changed=6, asked_again=6))
    assert holds(track) == {(PARTS[0],)}
    label = Label.objects.filter(target__kind="pair").order_by("-pk")[0]
    assert (label.n, label.disagreement, label.value["votes"]) == (1, 0.0, {PARTS[0]: 1})
    assert scoring_state(track) != stale, "the board is scored again"
    assert list(Label.objects.order_by("pk").values_list("value", "origin")[:before]) == kept, (
        "nothing was rewritten"
    )
    assert Response.objects.count() == 36
    entry = Audit.objects.get(what="leave out")
    assert (entry.who, entry.why, entry.after) == (
        admin,
        BAD,
        "18 judgments; 6 labels changed, 6 questions asked again",
    )
    about = Audit.objects.get(what="add up again")
    assert (about.who, about.track, about.after) == (
        admin,
        track.slug,
        "6 labels changed, 6 questions asked again",
    )


def test_readmission_brings_the_answers_back(of_two: Submission, admin: User) -> None:
    exclude.exclude_worker(worker("bo"), BAD, admin)
    assert exclude.reinstate_worker(
        worker("bo"), admin, "They were right."
    ) == exclude.ExclusionResult(18, RecountResult(restored=6))
    settle.tick()
    assert holds(of_two.track) == {()}
    said = "18 judgments; 0 labels changed, 6 questions settled next with what counts again"
    assert Audit.objects.get(what="reinstate").after == said
    exclude.exclude_worker(worker("bo"), BAD, admin)
    assert holds(of_two.track) == {(PARTS[0],)}
    assert max(Label.objects.values_list("origin", flat=True)).endswith("/again-3")


def test_killed_on_the_way_it_has_done_nothing(
    of_two: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = Label.objects.count()
    with monkeypatch.context() as killed:
        killed.setattr(recount, "ask_again", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            exclude.exclude_worker(worker("bo"), BAD)
    assert worker("bo").excluded_at is None and Label.objects.count() == n
    assert not Response.objects.filter(counts=False).exists() and holds(of_two.track) == {()}
    assert not Audit.objects.filter(what__in=["leave out", "add up again"]).exists()
    exclude.exclude_worker(worker("bo"), BAD)
    assert holds(of_two.track) == {(PARTS[0],)}


def test_what_an_expert_said_stays(of_two: Submission) -> None:
    target = Question.objects.order_by("pk")[0].target_id
    record_labels(
        [NewLabel(target, {"shown": PARTS, "holds": [PARTS[1]]}, "expert", "expert", 1, "expert:1")]
    )
    exclude.exclude_worker(worker("bo"), BAD)
    assert merged_value(Label.objects.filter(target=target), merge_labels)["holds"] == [PARTS[1]]
    assert holds(of_two.track) == {(PARTS[0],), (PARTS[1],)}


def test_what_another_question_said_later_is_not_hidden(of_two: Submission) -> None:
    mention = Target.objects.filter(kind="mention", labels__isnull=False).order_by("pk")[0]
    record_labels(
        [
            NewLabel(
                mention.pk,
                {"canonical": [9, 12], "type": "PER"},
                "crowd",
                "majority",
                3,
                "question:999999",
            )
        ]
    )
    exclude.exclude_worker(worker("bo"), BAD)
    assert Label.objects.filter(target=mention, again__isnull=False).exists()
    assert merged_value(Label.objects.filter(target=mention), merge_labels)["canonical"] == [9, 12]


def test_where_people_are_divided_then_one_more_decides(
    published: Submission, clients: list[Client], annotator: Callable[[str], User]
) -> None:
    judged(clients, YES, NO, YES)
    assert exclude.exclude_worker(worker("cy"), BAD).settled == RecountResult(asked_again=6)
    assert holds(published.track) == {(PARTS[0],)}, "until somebody answers"
    publish.tick()
    assert promises.committed_money(published.purpose) == 6 * Decimal("0.06")
    assert HIT.objects.filter(status="open", max_assignments=1).count() == 6
    dana = Client()
    dana.force_login(annotator("dana"))
    assert answer_all(clients[0], NO) == 0, "nobody is asked twice"
    assert answer_all(dana, NO) == 6
    settle.tick()
    assert Question.objects.counts() == {"settled": 6} and holds(published.track) == {()}
    label = Label.objects.filter(target__kind="pair").order_by("-pk")[0]
    assert (label.n, label.method) == (3, "majority") and label.origin.endswith("/again-1")


def test_without_an_answer_left_as_many_are_asked_as_the_track_asks(
    published: Submission, clients: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged(clients, YES, YES, YES)
    with monkeypatch.context() as poor:
        poor.setattr(ask_again, "unpromised_money", lambda *_: Decimal(0))
        for name in ("ada", "bo"):
            exclude.exclude_worker(worker(name), BAD)
    assert exclude.exclude_worker(worker("cy"), BAD).settled == RecountResult(asked_again=6)
    publish.tick()
    assert set(HIT.objects.filter(status="open").values_list("max_assignments", flat=True)) == {3}
    assert set(Question.objects.values_list("answers_wanted", flat=True)) == {6}


@pytest.mark.parametrize("why", ["no money", "closed", "some money"])
def test_where_nobody_can_be_asked_the_label_stays_and_is_counted(
    why: str, published: Submission, clients: list[Client]
) -> None:
    judged(clients, YES, NO, YES)
    left = {"no money": "0.00", "closed": "9.00", "some money": "0.13"}[why]
    release_money(published.track, published.purpose, key="all", keep=Decimal(left))
    if why == "closed":
        Track.objects.update(status="closed")
    n = Label.objects.count()
    asked = 2 if why == "some money" else 0
    done = exclude.exclude_worker(worker("cy"), BAD)
    assert (
        done.settled == RecountResult(asked_again=asked, unchanged=6 - asked)
        and Label.objects.count() == n
    )
    assert holds(published.track) == {(PARTS[0],)}
    assert f"{6 - asked} question" in str(done) and "as before" in str(done)
    again_ = exclude.exclude_worker(worker("bo"), BAD)
    assert again_.settled == RecountResult(changed=0), (
        "ada alone says what all had said, with other votes"
    )
    assert Question.objects.filter(status="published").count() == asked


def test_a_question_that_could_not_be_answered_says_nothing_any_more(
    published: Submission, clients: list[Client]
) -> None:
    judged(clients, FLAG, YES, YES)
    without_money(published)
    exclude.exclude_worker(worker("bo"), BAD)
    assert holds(published.track) == {(PARTS[0],)}, "one says so, one could not read it"
    exclude.exclude_worker(worker("cy"), BAD)
    targets = set(Question.objects.values_list("target", flat=True))
    assert [
        (value, unanswered) for _, value, unanswered in merged_values(targets, merge_labels)
    ] == [({}, True)] * 6
    mentions = {
        pk
        for (pk,) in Target.objects.filter(kind="mention", labels__isnull=False).values_list("pk")
    }
    assert all(not value for _, value, _ in merged_values(mentions, merge_labels))
    exclude.reinstate_worker(worker("cy"))
    exclude.reinstate_worker(worker("bo"))
    assert [
        (value["holds"], unanswered)
        for _, value, unanswered in merged_values(targets, merge_labels)
    ] == [([PARTS[0]], False)] * 6
    again = [value for _, value, _ in merged_values(mentions, merge_labels)]
    assert all(value.get("canonical") or value.get("elsewhere") for value in again)


def test_a_rejected_answer_leaves_settled_labels_too_until_that_is_undone(
    of_two: Submission, admin: User
) -> None:
    answer = worker("bo").assignments.order_by("pk")[0]
    target = answer.hit.questions.get().target_id
    reject.reject_answer(answer, admin, "The same button, six times in two seconds.")
    assert merged_value(Label.objects.filter(target=target), merge_labels)["holds"] == [PARTS[0]]
    answer.refresh_from_db()
    reject.undo_rejection(answer, admin, "The text was ambiguous.")
    settle.tick()
    assert merged_value(Label.objects.filter(target=target), merge_labels)["holds"] == []


# -- Documents that were read whole
# ------------------------------------------------------------------------------------


WRONG = ("Mara Lindt", "per:place_of_residence", "Bergen")
