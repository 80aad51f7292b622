"""Batches: paused and stopped, with the money and the workers in mind."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from annotation_world import answer_all, take
from django.test import Client
from django.utils import timezone

from annotation.budget import halts
from annotation.hits import batch
from annotation.hits.batch import unfinished_batches
from annotation.labels import settle
from annotation.models import Assignment, Payment, Question
from kbpo import clock
from kbpo.accounts.models import Audit, User
from kbpo.instances.models import Label, Target
from kbpo.money.models import Purpose
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db


def test_a_batch_counts_its_questions_answers_and_money(
    published: Submission, clients: list[Client]
) -> None:
    answer_all(clients[0])
    settle.tick()
    [found] = unfinished_batches()
    assert (found.payer, found.name) == (published.purpose, "Team Patterns Patterns")
    assert (found.published, found.open, found.n_questions, found.n_finished) == (6, 6, 6, 0)
    assert (found.answers, found.answers_wanted, found.spent) == (6, 18, Decimal("0.36"))
    for client in clients[1:]:
        answer_all(client)
    settle.tick()
    assert unfinished_batches() == []
    done = batch.load_batch(published.purpose)
    assert done is not None and (done.settled, done.open) == (6, 0)
    assert batch.load_batch(Purpose("submission", 99999)) is None


def test_a_paused_batch_is_offered_to_nobody_and_the_others_go_on(
    published: Submission, track: Track, targets: list[Target], clients: list[Client], admin: User
) -> None:
    with pytest.raises(ValueError, match="Say why"):
        halts.pause_work(track, admin, " ", payer=published.purpose)
    halts.pause_work(track, admin, "The page shows too little.", payer=published.purpose)
    with pytest.raises(ValueError, match="paused already"):
        halts.pause_work(track, admin, "Again.", payer=published.purpose)
    assert take(clients[0]) == ""
    halts.lift_halts(track, admin, "It is mended")
    assert take(clients[0]) == "", "lifting the stop of a track leaves that of a batch"
    assert halts.lift_halts(track, admin, "It is mended", payer=published.purpose) == 1
    assert take(clients[0]) != ""
    assert [
        entry.what
        for entry in Audit.objects.filter(about=published.purpose, who=admin).order_by("pk")
    ] == [
        "pause",
        "go on",
    ]


def test_a_stopped_batch_does_not_wait_for_a_worker_who_walked_away(
    published: Submission, clients: list[Client], admin: User
) -> None:
    take(clients[0])
    batch.stop_batch(published.purpose, admin, "The prices were wrong.")
    settle.tick()
    labels = Label.objects.filter(target__kind="pair", method="nonresponse")
    assert labels.count() == 5
    Question.objects.update(next_try_at=clock.now())
    settle.tick()
    assert labels.count() == 5, "the lease still runs"
    Assignment.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    Question.objects.update(next_try_at=clock.now())
    settle.tick()
    assert labels.count() == 6


def test_a_stopped_batch_settles_with_what_it_has_and_pays_for_work_in_hand(
    published: Submission, clients: list[Client], admin: User
) -> None:
    address = take(clients[0])
    clients[0].post(address, {"a": "0-3", "b": "other", "holds": "per:schools_attended>"})
    settle.tick()
    in_hand = take(clients[0])
    with pytest.raises(batch.CannotChange, match="Say why"):
        batch.stop_batch(published.purpose, admin, "")
    assert batch.stop_batch(published.purpose, admin, "The prices were wrong.") == 6
    settle.tick()
    assert Question.objects.counts() == {"unanswered": 5, "settled": 1}
    labels = Label.objects.filter(target__kind="pair")
    assert sorted(labels.values_list("method", "n")) == [("majority", 1)] + [("nonresponse", 0)] * 4
    clients[0].post(in_hand, {"a": "0-3", "b": "other", "none": "1"})
    settle.tick()
    assert Question.objects.counts() == {"unanswered": 4, "settled": 2}, (
        "what is in hand is waited for, and used"
    )
    assert (
        sorted(labels.values_list("method", "n"))
        == [("majority", 1)] * 2 + [("nonresponse", 0)] * 4
    )
    assert Payment.objects.count() == 2, "who was at work is paid"
    assert Assignment.objects.counts() == {"approved": 2}
    assert take(clients[1]) == ""
    assert Audit.objects.get(what="stop").why == "The prices were wrong."
