"""Ask, publish, lease, answer, settle: from samples to labels and payments."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from annotation_world import GOOD, PARTS, ToyTrack, answer_all, make_submission, take
from django.test import Client
from django.utils import timezone

from annotation.budget import accrue, halts, promises
from annotation.desk import journey
from annotation.hits import batch, collect, publish
from annotation.labels import settle
from annotation.labels.exclude import exclude_worker
from annotation.models import HIT, Assignment, Payment, Question, Response, Worker
from annotation.quality import agreement, describe
from annotation.questions import ask
from kbpo import queue
from kbpo.instances.models import Label, Target
from kbpo.money.spend import balance
from kbpo.sampling.models import Threshold
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db


def test_the_whole_way_from_sample_to_label_and_payment(
    published: Submission, clients: list[Client]
) -> None:
    assert [answer_all(client) for client in clients] == [6, 6, 6]
    settle.tick()
    assert Question.objects.counts() == {"settled": 6}
    assert HIT.objects.counts() == {"closed": 6}
    labels = Label.objects.filter(target__kind="pair")
    assert labels.count() == 6
    label = labels.first()
    assert label is not None
    assert label.value == {"shown": PARTS, "holds": PARTS[:1], "votes": {PARTS[0]: 3}}
    assert (label.source, label.method, label.n, label.disagreement) == (
        "crowd",
        "majority",
        3,
        0.0,
    )
    mention = Label.objects.get(target__kind="mention", origin=label.origin, target__a_begin=0)
    assert mention.value["canonical"] == [0, 3]
    assert balance(purpose=published.purpose).spent == Decimal("0.06") * 18
    assert [payment.amount for payment in Payment.objects.all()] == [Decimal("0.05")] * 18
    assert promises.committed_money(published.purpose) == 0


def test_an_answer_that_comes_while_others_are_read_waits_for_the_next_tick(
    published: Submission, clients: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, ben, _ = clients
    ada.post(take(ada), GOOD)

    accept = settle.parse_accepted_answers

    def read_slowly(rows: list[Assignment]) -> None:
        accept(rows)
        ben.post(take(ben), GOOD)

    monkeypatch.setattr(settle, "parse_accepted_answers", read_slowly)
    settle.tick()
    assert Assignment.objects.filter(status="submitted").count() == 1
    assert Response.objects.values("assignment").distinct().count() == 1
    settle.tick()
    assert Response.objects.values("assignment").distinct().count() == 2


def test_questions_go_out_in_the_order_of_their_random_numbers_not_of_arrival(
    published: Submission, ada: Client
) -> None:
    seen = []
    while address := take(ada):
        seen.append(
            Assignment.objects.get(token=address.split("/")[2]).hit.questions.get().target.u
        )
        ada.post(address, GOOD)
    assert seen == [0.1, 0.2, 0.3, 0.6, 0.7, 0.9]


def raised(submission: Submission, thresholds: dict[Target, tuple[float, float]]) -> Submission:
    """The submission's sample as design poisson would have made it: u and threshold of each target
    (0: not by it).
    """
    batch = submission.batches.get()
    batch.design = "poisson"
    batch.save()
    batch.samples.update(probability=0.5)
    for target, (u, pi) in thresholds.items():
        Target.objects.filter(pk=target.pk).update(u=u)
        if pi:
            Threshold.objects.create(batch=batch, target=target, pi=pi)
    return submission


def test_the_highest_threshold_that_any_submission_raised_orders_a_question(
    track: Track, targets: list[Target]
) -> None:
    raised(make_submission(track, targets[:1], "Earlier"), {targets[0]: (0.2, 0.8)})
    raised(make_submission(track, targets[:1], "Later"), {targets[0]: (0.2, 0.4)})
    ask.tick()
    assert Question.objects.get(target=targets[0]).order == pytest.approx(0.25)


def test_a_target_is_asked_again_only_for_what_was_not_shown(
    published: Submission,
    track: Track,
    targets: list[Target],
    clients: list[Client],
    toy_kind: type[ToyTrack],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for client in clients:
        answer_all(client)
    settle.tick()
    # Labels that say nothing, as if another relation were wanted: the toy track asks about
    # everything again.
    monkeypatch.setattr(ToyTrack, "shown", [*PARTS[:1]])
    Label.objects.all().update(value={})
    make_submission(track, targets, "Twin")
    assert ask.tick() == 0
    monkeypatch.setattr(ToyTrack, "shown", [*PARTS, "per:x>"])
    monkeypatch.setitem(__import__("annotation_world").TEMPLATES, "per:x>", "{subject} x {object}")
    Label.objects.all().update(created_at=timezone.now() + timedelta(seconds=1))
    assert ask.tick() == 6
    assert set(Question.objects.filter(status="waiting").values_list("round", flat=True)) == {2}


def test_no_question_is_published_beyond_the_reservation(
    track: Track, targets: list[Target], clients: list[Client]
) -> None:
    poor = make_submission(track, targets, money="0.40")  # two questions at 3 × $0.06 need $0.36
    ask.tick()
    publish.tick()
    assert Question.objects.counts() == {"published": 2, "waiting": 4}
    waiting = Question.objects.filter(status="waiting").first()
    assert waiting is not None
    assert waiting.reason == "$0.04 of the reservation is left; the next question needs $0.18."
    for client in clients:
        answer_all(client)
    settle.tick()
    publish.tick()
    assert Question.objects.counts() == {
        "settled": 2,
        "unanswered": 4,
    }  # nothing more can come: nobody waits for ever
    assert balance(purpose=poor.purpose).open == Decimal("0.04")


def test_without_a_reservation_nothing_is_published_and_nobody_waits_for_ever(
    track: Track, targets: list[Target]
) -> None:
    make_submission(track, targets, money="0")
    ask.tick()
    publish.tick()
    assert Question.objects.counts() == {"unanswered": 6}
    assert {q.reason for q in Question.objects.all()} == {
        "$0.00 of the reservation is left; the next question needs $0.18."
    }


def test_a_stop_holds_publishing_back_and_a_pause_holds_everything_back(
    submission: Submission, ada: Client
) -> None:
    ask.tick()
    halts.stop_publishing(None, None, "The budget is being counted.")
    publish.tick()
    assert (
        Question.objects.filter(
            reason="Publishing is stopped: The budget is being counted."
        ).count()
        == 6
    )
    halts.lift_halts(None, None, "It is mended")
    publish.tick()
    assert take(ada)
    halts.pause_work(submission.track, None, "A mistake in the schema.")
    Assignment.objects.update(status="returned")
    assert take(ada) == ""
    halts.lift_halts(submission.track, None, "It is mended")
    assert take(ada)


def test_most_flags_make_a_label_that_says_the_target_is_missing(
    published: Submission, clients: list[Client]
) -> None:
    for client in clients[:2]:
        answer_all(client, {"problem": "text", "remark": "two texts in one"})
    answer_all(clients[2])
    settle.tick()
    label = Label.objects.filter(target__kind="pair").first()
    assert label is not None
    assert (label.value, label.method, label.n) == ({}, "flagged", 3)
    assert label.disagreement == pytest.approx(1 / 3)
    assert not Label.objects.filter(target__kind="mention").exists()


def test_a_question_nobody_answers_is_given_up_in_words_and_its_label_says_so(
    published: Submission,
) -> None:
    Question.objects.update(status_since=timezone.now() - timedelta(days=15))
    assert queue.fail_late_rows() >= 6
    settle.tick()
    settle.tick()
    labels = Label.objects.filter(target__kind="pair")
    assert [(one.value, one.method, one.n) for one in labels] == [({}, "nonresponse", 0)] * 6
    assert HIT.objects.counts() == {"expired": 6}
    assert ask.tick() == 0


def test_a_question_with_one_answer_at_its_deadline_is_settled_with_that(
    published: Submission, ada: Client
) -> None:
    answer_all(ada)
    settle.tick()
    Question.objects.update(status_since=timezone.now() - timedelta(days=15))
    queue.fail_late_rows()
    settle.tick()
    assert Question.objects.counts() == {"settled": 6}
    assert set(Label.objects.values_list("n", flat=True)) == {1}


def test_an_answer_that_cannot_be_read_is_asked_of_somebody_else(
    published: Submission, clients: list[Client]
) -> None:
    address = take(clients[0])
    clients[0].post(address, GOOD)
    Assignment.objects.filter(status="submitted").update(
        raw={"a": ["99-100"], "b": ["other"], "none": ["1"]}
    )
    settle.tick()
    failed = Assignment.objects.get(status="failed")
    assert failed.reason.startswith("The answer cannot be used: “99-100” is not one of the answers")
    for client in clients[1:]:
        answer_all(client)
    collect.tick()
    settle.tick()
    assert (
        failed.hit.questions.get().status == "published"
    )  # two answers of three; ada may not answer it again
    assert take(clients[0]) != address
    assert Payment.objects.filter(assignment=failed).count() == 0


def test_an_excluded_worker_gets_nothing_more_and_counts_no_more(
    published: Submission, clients: list[Client]
) -> None:
    for client in clients[:2]:
        answer_all(client)
    settle.tick()
    worker = Worker.objects.get(user__username="bo")
    with pytest.raises(ValueError, match="Say why"):
        exclude_worker(worker, "  ", worker.user)
    assert exclude_worker(worker, "Always the first button", worker.user).judgments == 18
    assert take(clients[1]) == ""
    answer_all(clients[2], {"a": "other", "b": "other", "none": "1"})
    settle.tick()
    label = Label.objects.filter(target__kind="pair").first()
    assert label is not None
    assert (label.n, label.value["holds"]) == (2, [])  # one of two: a tie does not hold
    assert Response.objects.filter(counts=False).count() == 18
    assert Payment.objects.count() == 18  # all work is paid


def test_the_report_counts_votes_predicts_and_agreement(
    published: Submission, clients: list[Client]
) -> None:
    answer_all(clients[0])
    answer_all(clients[1])
    answer_all(clients[2], {"a": "other", "b": "other", "none": "1"})
    settle.tick()
    state = batch.questions_progress(payer=published.purpose)
    assert (state.settled, state.answers, state.answers_wanted, state.seconds_left) == (
        6,
        18,
        18,
        0.0,
    )
    measured = {one.what: one for one in agreement.measure_agreement(track=published.track)}[
        "relation"
    ]
    # Of 18 items, 12 are agreed by all (1) and 6 by two of three (1/3); yes is 12 of 54.
    assert measured.observed == pytest.approx((12 + 6 / 3) / 18)
    chance = (12 / 54) ** 2 + (42 / 54) ** 2
    assert measured.kappa == pytest.approx((14 / 18 - chance) / (1 - chance))
    assert accrue.total_owed() == Decimal("0.90")
    assert {line.answers for line in describe.worker_lines()} == {6}
    assert {stage.name: stage.waiting for stage in journey.crowd_stages()}["Pay answers"] == 18


def test_a_withdrawn_submission_asks_nothing_more_and_another_takes_over(
    published: Submission, track: Track, targets: list[Target], ada: Client
) -> None:
    ada.post(take(ada), GOOD)
    Assignment.objects.filter(status="leased").update(status="returned")
    twin = make_submission(track, targets, "Twin")
    assert ask.tick() == 0
    published.move("withdrawn")
    publish.tick()
    collect.tick()
    assert Question.objects.counts() == {
        "published": 1,
        "cancelled": 5,
    }  # what is begun is finished and paid
    assert HIT.objects.counts() == {"open": 1, "closed": 5}
    assert ask.tick() == 5
    assert (
        Question.objects.filter(
            **twin.purpose.filter_condition("payer"), status="waiting", round=2
        ).count()
        == 5
    )
