"""Leases: nobody meets a target twice, no question has a place too many, what is abandoned
returns.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from annotation_world import GOOD, answer_all, at_once, make_submission, take
from django.test import Client
from django.utils import timezone

from annotation.budget.check_books import check_books
from annotation.hits import collect, lease, publish
from annotation.hits.submit import Outcome, submit_answer
from annotation.labels import settle
from annotation.models import COUNTED, HIT, Assignment, Payment, Question, Response
from annotation.questions import ask
from annotation.workers.consent import current_terms
from annotation.workers.leave import _waive_payments
from annotation.workers.worker import worker_of_user
from kbpo.accounts.models import User
from kbpo.corpus.models import Corpus
from kbpo.instances.models import Target
from kbpo.money.models import Purpose
from kbpo.money.spend import balance
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track


@pytest.mark.django_db(transaction=True)
def test_eight_workers_at_once_take_each_place_once_and_meet_each_target_once(
    published: Submission,
) -> None:
    workers = [
        worker_of_user(User.objects.create(username=f"w{number}", is_annotator=True))
        for number in range(8)
    ]

    def work(worker):  # type: ignore[no-untyped-def]
        def run() -> None:
            while (assignment := lease.lease_next(worker)) is not None:
                assert (
                    submit_answer(assignment, {"a": ["other"], "b": ["other"], "none": ["1"]})
                    is Outcome.STORED
                )

        return run

    assert at_once([work(worker) for worker in workers]) == []
    per_hit = Counter(Assignment.objects.filter(status__in=COUNTED).values_list("hit", flat=True))
    assert set(per_hit.values()) == {3}
    assert Assignment.objects.count() == 18
    met = Counter(Assignment.objects.values_list("worker", "hit__questions__target"))
    assert set(met.values()) == {1}
    assert HIT.objects.counts() == {"closed": 6}


@pytest.mark.django_db(transaction=True)
def test_one_worker_in_many_windows_holds_one_question(published: Submission) -> None:
    worker = worker_of_user(User.objects.create(username="ada", is_annotator=True))
    assert at_once([lambda: lease.lease_next(worker)] * 6) == []
    assert Assignment.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_the_same_form_sent_six_times_at_once_is_stored_once(published: Submission) -> None:
    assignment = lease.lease_next(
        worker_of_user(User.objects.create(username="ada", is_annotator=True))
    )
    assert assignment is not None
    outcomes: list[Outcome] = []
    raw = {"a": ["other"], "b": ["other"], "none": ["1"]}
    assert at_once([lambda: outcomes.append(submit_answer(assignment, raw))] * 6) == []
    assert Counter(outcomes) == {Outcome.STORED: 1, Outcome.ALREADY: 5}


@pytest.mark.django_db(transaction=True)
def test_several_clocks_at_once_ask_and_publish_each_question_once(submission: Submission) -> None:
    assert at_once([ask.tick] * 4) == []
    ask.tick()
    assert Question.objects.count() == 6
    assert at_once([publish.tick] * 4) == []
    publish.tick()
    assert HIT.objects.counts() == {"open": 6}
    assert Question.objects.counts() == {"published": 6}


@pytest.mark.django_db
def test_a_worker_never_meets_a_target_twice_not_even_on_another_track(
    published: Submission, targets: list[Target], ada: Client, track: Track
) -> None:
    assert answer_all(ada) == 6
    other = Track.objects.create(
        corpus=Corpus.objects.get(), name="Other", slug="other", status="open"
    )
    make_submission(other, targets, "Neural")
    Question.objects.filter(track=track).update(status="cancelled")
    assert ask.tick() == 6
    publish.tick()
    assert HIT.objects.filter(track=other, status="open").count() == 6
    Question.objects.filter(track=other).update(round=1)
    assert take(ada) == ""
    Question.objects.filter(track=other).update(round=2)
    assert take(ada) != ""


@pytest.mark.django_db
def test_an_abandoned_question_returns_and_goes_to_somebody_else(
    published: Submission, clients: list[Client]
) -> None:
    HIT.objects.update(max_assignments=1)
    address = take(clients[0])
    assert Assignment.objects.get().hit.questions.get().target.u == 0.1
    Assignment.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    assert collect.tick() == 1
    lost = Assignment.objects.get()
    assert (lost.status, lost.returned_by) == ("returned", "lease")
    clients[1].post(take(clients[1]), GOOD)
    told = clients[0].post(f"{address}draft/", GOOD)
    assert told.status_code == 409 and "is paid" in told.json()["error"]
    assert told.json()["late"], "what is there may be sent"
    response = clients[0].post(address, GOOD, follow=True)
    assert "but it is paid" in response.content.decode()
    assert "is paid all the same" in current_terms().text, "as the terms say"
    assert Assignment.objects.filter(status="submitted").count() == 1


@pytest.mark.django_db
def test_an_answer_that_comes_too_late_is_paid_once_and_never_used(
    published: Submission, clients: list[Client], track: Track
) -> None:
    HIT.objects.update(max_assignments=1)
    address = take(clients[0])
    Assignment.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    collect.tick()
    clients[1].post(take(clients[1]), GOOD)
    assert clients[0].post(address, {"a": ["0-3"]}).status_code == 422, "half an answer is none"
    for _ in range(2):
        clients[0].post(address, GOOD)
    late = Assignment.objects.get(status="returned")
    assert submit_answer(late, dict(GOOD)) is Outcome.LATE, (
        "whoever sends it again is told the same"
    )
    assert late.raw is not None and late.raw["a"] == [GOOD["a"]], "an admin can read it"
    payment = Payment.objects.get()
    assert (payment.worker, payment.amount, payment.status) == (
        late.worker,
        late.hit.reward,
        "owed",
    )
    settle.tick()
    assert Response.objects.filter(assignment=late).count() == 0
    assert check_books() == []
    assert balance(Purpose("late", late.pk)).open == 0
    assert "came too late to count, and is paid" in clients[0].get("/annotate/").content.decode()
    Assignment.objects.filter(status="submitted").update(status="failed")
    HIT.objects.filter(pk=late.hit_id).update(status="open")
    assert take(clients[0]) != address, "it is not asked of them again"
    assert not lease.revive_expired_lease(late)
    _waive_payments([payment])
    assert check_books() == [], "who leaves may give it up"
    assert balance(Purpose("late", late.pk)).released == payment.amount


@pytest.mark.django_db
def test_a_question_that_was_given_back_is_not_paid(
    published: Submission, clients: list[Client]
) -> None:
    address = take(clients[0])
    clients[0].post(f"{address}return/")
    told = clients[0].post(address, GOOD, follow=True).content.decode()
    assert "You returned this question" in told and not Payment.objects.exists()


@pytest.mark.django_db
def test_a_late_answer_counts_while_its_place_is_free(published: Submission, ada: Client) -> None:
    address = take(ada)
    Assignment.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    collect.tick()
    ada.post(address, GOOD)
    assert Assignment.objects.filter(status="submitted").count() == 1


@pytest.mark.django_db
def test_an_autosave_renews_the_lease_and_keeps_the_draft(
    published: Submission, ada: Client
) -> None:
    address = take(ada)
    Assignment.objects.update(leased_until=timezone.now() + timedelta(seconds=5))
    response = ada.post(address + "draft/", {"a": "0-3", "holds": ["per:schools_attended>"]})
    assert response.json()["lease_seconds"] == 600
    held = Assignment.objects.get()
    assert held.leased_until > timezone.now() + timedelta(minutes=9)
    page = ada.get(address).content.decode()
    assert 'value="0-3" checked' in page
    assert 'value="per:schools_attended>" checked' in page.replace("&gt;", ">")
