"""Signals warn before they exclude, exclude few at once, and leave no question with fewer answers
than its track promises.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from annotation_world import GOOD, answer_all
from django.db.models import QuerySet
from django.test import Client
from django.utils import timezone

from annotation.hits import publish
from annotation.labels import exclude, settle
from annotation.models import Assignment, Question, Response, Signal, Worker
from annotation.quality.warn import SUBJECT, set_excluding_signals, warn_workers
from annotation.workers.models import Message
from kbpo.accounts.models import Audit, User
from kbpo.money.spend import release_money
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db
WRONG = {"a": "0-3", "b": "other", "none": "1"}


@pytest.fixture
def admin(db: None) -> User:
    return User.objects.create_user("root", is_staff=True)


@pytest.fixture
def answered(published: Submission, clients: list[Client]) -> Submission:
    """Six questions that ada, bo and cy answered alike, and five who are at work besides."""
    for client in clients[:3]:
        answer_all(client, GOOD)
    settle.tick()
    for model in (Signal, Message, Audit):  # the tests themselves answer fast
        model._default_manager.all().delete()
    Worker.objects.update(warned={})
    Worker.objects.bulk_create(
        Worker(platform="pool", handle=f"other{number}", last_seen_at=timezone.now())
        for number in range(5)
    )
    return published


def worker(name: str) -> Worker:
    return Worker.objects.get(user__username=name)


def warned_workers() -> QuerySet[Worker]:
    return Worker.objects.exclude(warned={})


def against(one: Worker, n: int, kind: str = "unread") -> None:
    """So many more answers of a worker that a signal speaks against."""
    hit = Assignment.objects.filter(status__in=["approved", "accepted"])[0].hit
    for _ in range(n):
        other = type(hit).objects.create(
            status="closed", track=hit.track, platform="pool", reward=hit.reward
        )
        made = Assignment.objects.create(
            status="approved",
            hit=other,
            worker=one,
            leased_until=timezone.now(),
            raw={},
            submitted_at=timezone.now(),
        )
        Signal.objects.create(assignment=made, kind=kind, against=True)


def test_half_of_the_limit_is_a_message_and_only_who_goes_on_is_excluded(
    answered: Submission, clients: list[Client]
) -> None:
    against(worker("cy"), 5)
    assert warn_workers([worker("cy").pk]) == 0 and exclude.exclude_flagged() == 0
    against(worker("cy"), 1)
    assert exclude.exclude_flagged() == 0 and exclude.exclude_flagged() == 0
    message = Message.objects.get()
    assert (message.worker, message.subject) == (worker("cy"), SUBJECT)
    assert "6 of 6 answers to texts that were new to them came faster" in message.text
    assert message.text.endswith("/annotate/feedback/"), "where they write to us"
    assert "Read each text before you answer" in message.text and "stays paid" in message.text
    assert Audit.objects.get(what="warn").about == f"worker:{worker('cy').handle}"
    assert SUBJECT in clients[2].get("/annotate/messages/").content.decode()
    against(worker("cy"), 4)
    assert exclude.exclude_flagged() == 0, "ten are not more than ten"
    against(worker("cy"), 1)
    assert exclude.exclude_flagged() == 1 and worker("cy").excluded_at is not None
    assert warned_workers().count() == 1


def test_a_whole_crowd_that_is_fast_is_not_excluded_in_an_hour(answered: Submission) -> None:
    workers = list(Worker.objects.all())
    for one in workers:
        against(one, 12)
    assert exclude.exclude_flagged() == 0 and warned_workers().count() == len(workers) == 8
    for one in workers:
        against(one, 12)
    assert exclude.exclude_flagged() == 1 and exclude.exclude_flagged() == 0
    whys = {row.why for row in exclude.undecided_workers()}
    assert whys == {"Signals alone exclude at most 1 of 7 active annotators a day."}
    a_day_ago = timezone.now() - timedelta(hours=25)
    Audit.objects.filter(what=exclude.EXCLUDE).update(at=a_day_ago)
    assert exclude.exclude_flagged() == 1


def assert_a_fourth_makes_them_three(user: User) -> None:
    """Somebody else answers; then three answers of each question count."""
    publish.tick()
    fourth = Client()
    fourth.force_login(user)
    answer_all(fourth, GOOD)
    settle.tick()
    assert Question.objects.counts() == {"settled": 6}
    for question in Question.objects.all():
        rows = Response.objects.filter(question=question, counts=True)
        assert rows.values("assignment").distinct().count() == 3


def test_no_question_keeps_fewer_answers_than_its_track_promises(
    answered: Submission, annotator: Callable[[str], User], admin: User
) -> None:
    exclude.exclude_worker(worker("cy"), "Always the first button", admin)
    assert Question.objects.counts() == {"published": 6}, "two are left, and three are promised"
    assert_a_fourth_makes_them_three(annotator("dan"))
    exclude.reinstate_worker(worker("cy"), admin, "A mistake of ours.")
    assert Question.objects.counts() == {"settled": 6}


def test_signals_leave_nobody_out_whose_answers_cannot_be_replaced(answered: Submission) -> None:
    release_money(answered.track, answered.purpose, key="all")
    against(worker("cy"), 12)
    exclude.exclude_flagged()
    against(worker("cy"), 12)
    assert exclude.exclude_flagged() == 0
    [row] = exclude.undecided_workers()
    assert row.why == ("The reserved money does not pay for other answers to 6 of their questions.")


def test_the_rule_is_the_tracks_and_admins_change_it_on_its_page(
    answered: Submission, track: Track, admin: User, settings: Any
) -> None:
    settings.ROOT_URLCONF = "kbpo.urls"
    client = Client()
    client.force_login(admin)
    page = f"/desk/tracks/{track.slug}/quality/"
    assert client.post(page, {"kind": ["gold"], "why": ""}).status_code == 422
    assert client.post(page, {"kind": ["telepathy"], "why": "x"}).status_code == 422
    assert client.post(page, {"kind": ["gold"], "why": "Programs judge here."}).status_code == 302
    track.refresh_from_db()
    assert track.policy.exclude_for == ["gold"]
    entry = Audit.objects.get(what="exclude for")
    assert (entry.before, entry.after) == ("majority, gold, unread", "gold")
    against(worker("cy"), 30)
    assert exclude.exclude_flagged() == 0 and not warned_workers().exists(), (
        "another track's rule, or none"
    )
    set_excluding_signals(track, ["unread"], None, "People judge here again.")
    assert exclude.exclude_flagged() == 0 and warned_workers().exists()
