"""Signals warn before they exclude, exclude few at once, and leave no question with fewer answers
than its track promises.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from annotation_world import GOOD, answer_all
from django.test import Client
from django.utils import timezone

from annotation.hits import publish
from annotation.labels import exclude, settle
from annotation.models import Assignment, Comparison, Question, Response, Signal, Warned, Worker
from annotation.quality.warn import SUBJECT, had_a_chance, set_exclude_for, warn
from annotation.workers.models import Message
from kbpo.accounts.models import Audit, User
from kbpo.instances.models import Label
from kbpo.money.spend import release
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from rehearsal.demonstrate import judged_by_programs

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
    for model in (Comparison, Signal, Warned, Message, Audit):  # the tests themselves answer fast
        model._default_manager.all().delete()
    Worker.objects.bulk_create(
        Worker(platform="pool", handle=f"other{number}", last_seen_at=timezone.now())
        for number in range(5)
    )
    return published


def worker(name: str) -> Worker:
    return Worker.objects.get(user__username=name)


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
        Comparison.objects.create(assignment=made, kind=kind, against=True)
        Signal.objects.create(assignment=made, worker=one, kind=kind)


def test_half_of_the_limit_is_a_message_and_only_who_goes_on_is_excluded(
    answered: Submission, clients: list[Client]
) -> None:
    against(worker("cy"), 5)
    assert warn([worker("cy").pk]) == 0 and exclude.review() == 0
    against(worker("cy"), 1)
    assert exclude.review() == 0 and exclude.review() == 0
    message = Message.objects.get()
    assert (message.worker, message.subject) == (worker("cy"), SUBJECT)
    assert "6 of 6 answers to texts that were new to them came faster" in message.text
    assert message.text.endswith("/annotate/feedback/"), "where they write to us"
    assert "Read each text before you answer" in message.text and "stays paid" in message.text
    assert Audit.objects.get(what="warn").about == f"worker:{worker('cy').handle}"
    assert SUBJECT in clients[2].get("/annotate/messages/").content.decode()
    against(worker("cy"), 4)
    assert exclude.review() == 0, "ten are not more than ten"
    against(worker("cy"), 1)
    assert exclude.review() == 1 and worker("cy").excluded_at is not None
    assert Warned.objects.count() == 1


def test_who_passes_the_limit_at_once_is_warned_all_the_same_and_has_a_chance(
    answered: Submission,
) -> None:
    against(worker("cy"), 12)
    assert exclude.review() == 0 and Warned.objects.get().against == 12
    [row] = exclude.undecided()
    assert row.why == "They are warned first: a few answers more decide."
    against(worker("cy"), 4)
    assert exclude.review() == 0
    against(worker("cy"), 1)
    assert exclude.review() == 1


def test_a_whole_crowd_that_is_fast_is_not_excluded_in_an_hour(answered: Submission) -> None:
    workers = list(Worker.objects.all())
    for one in workers:
        against(one, 12)
    assert exclude.review() == 0 and Warned.objects.count() == len(workers) == 8
    for one in workers:
        against(one, 12)
    assert exclude.review() == 1 and exclude.review() == 0
    whys = {row.why for row in exclude.undecided()}
    assert whys == {"Signals alone exclude at most 1 of 7 active annotators a day."}
    a_day_ago = timezone.now() - timedelta(hours=25)
    Audit.objects.filter(what=exclude.EXCLUDE).update(at=a_day_ago)
    assert exclude.review() == 1


def test_a_warning_before_a_readmission_counts_no_more(answered: Submission, admin: User) -> None:
    against(worker("cy"), 6)
    exclude.review()
    exclude.keep(worker("cy"), admin, "They know the texts.")
    against(worker("cy"), 12)
    flags = exclude._excluding([worker("cy").pk])
    assert list(flags) == [worker("cy").pk] and had_a_chance(flags) == {}
    assert exclude.review() == 0 and Warned.objects.count() == 2


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
    exclude.exclude(worker("cy"), "Always the first button", admin)
    assert Question.objects.counts() == {"published": 6}, "two are left, and three are promised"
    assert_a_fourth_makes_them_three(annotator("dan"))
    exclude.reinstate(worker("cy"), admin, "A mistake of ours.")
    assert Question.objects.counts() == {"settled": 6}


def test_nor_does_one_whose_third_answer_was_excluded_before_it_was_read(
    published: Submission, clients: list[Client], annotator: Callable[[str], User], admin: User
) -> None:
    for client in clients[:2]:
        answer_all(client, GOOD)
    settle.tick()
    answer_all(clients[2], GOOD)
    exclude.exclude(worker("cy"), "Always the first button", admin)
    settle.tick()
    assert Question.objects.counts() == {"published": 6}, "two count, and three are promised"
    assert set(Label.objects.filter(target__kind="pair").values_list("n", flat=True)) == {2}
    assert_a_fourth_makes_them_three(annotator("dan"))


def test_a_question_whose_payer_somebody_else_is_counting_is_settled_a_little_later(
    published: Submission, clients: list[Client], admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for client in clients[:3]:
        answer_all(client, GOOD)
    exclude.exclude(worker("cy"), "Always the first button", admin)
    monkeypatch.setattr(settle, "one_publisher", lambda payer, wait: False)
    settle.tick()
    assert Question.objects.counts() == {"answered": 6}
    monkeypatch.undo()
    Question.objects.update(next_try_at=timezone.now())
    settle.tick()
    assert Question.objects.counts() == {"published": 6}


def test_a_warning_is_in_sight_of_who_goes_from_question_to_question(
    answered: Submission, annotator: Callable[[str], User], admin: User
) -> None:
    exclude.exclude(worker("cy"), "So that something is open", admin)
    publish.tick()
    dan = Client()
    dan.force_login(annotator("dan"))
    question = dan.get("/annotate/next/")["Location"]
    assert 'id="unread"' not in dan.get(question).content.decode()
    Message.objects.create(worker=worker("dan"), subject=SUBJECT, text="Take your time.")
    page = dan.get(question).content.decode()
    assert SUBJECT in page and 'id="unread"' in page
    assert "Take your time." in dan.get("/annotate/messages/").content.decode()
    assert 'id="unread"' not in dan.get(question).content.decode(), "it was read"


def test_signals_leave_nobody_out_whose_answers_cannot_be_replaced(answered: Submission) -> None:
    release(answered.track, answered.purpose, key="all")
    against(worker("cy"), 12)
    exclude.review()
    against(worker("cy"), 12)
    assert exclude.review() == 0
    [row] = exclude.undecided()
    assert row.why == (
        "The money that is set aside does not pay for other answers to 6 of their questions."
    )


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
    assert exclude.review() == 0 and not Warned.objects.exists(), "another track's rule, or none"
    set_exclude_for(track, ["unread"], None, "People judge here again.")
    assert exclude.review() == 0 and Warned.objects.exists()


def test_programs_that_err_at_random_are_warned_of_nothing(
    answered: Submission, track: Track
) -> None:
    judged_by_programs(track)
    against(worker("cy"), 8, "majority")
    against(worker("cy"), 12)
    assert exclude.review() == 0 and not Warned.objects.exists() and not Message.objects.exists()
    set_exclude_for(track, ["majority"], None, "People come.")
    assert exclude.review() == 0 and Warned.objects.get().kind == "majority", "the real rule stays"


def test_where_programs_answer_no_time_is_noted(
    published: Submission, clients: list[Client], track: Track
) -> None:
    with_times = set_exclude_for(track, ["majority"], None, "As ever.")
    assert with_times.timed
    policy = set_exclude_for(track, ["majority"], None, "Programs need none.", timed=False)
    assert not policy.timed and not set_exclude_for(track, [], None, "Still.").timed
    answer_all(clients[0], GOOD)
    settle.tick()
    assert Assignment.objects.filter(seconds__lt=2, status="approved").count() == 6
    assert not Signal.objects.exists() and not Comparison.objects.exists()
    set_exclude_for(track, [], None, "People come.", timed=True)
    answer_all(clients[1], GOOD)
    settle.tick()
    assert Signal.objects.filter(kind="too_fast").count() == 6
