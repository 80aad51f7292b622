"""Experts are asked blind; what they say stands beside the label and never in its place."""

from __future__ import annotations

from typing import Any

import pytest
from annotation_world import PARTS, answer_all, make_submission
from django.test import Client

from annotation.desk import experts
from annotation.desk.experts import judged_by_filter, load_trail
from annotation.labels import settle
from annotation.models import Question
from kbpo.accounts.models import Audit, Delivery, User, Webhook
from kbpo.experts import queue
from kbpo.experts.queue import Outcome
from kbpo.instances.models import Label, Target
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db
YES = {"a": ["0-3"], "b": ["other"], "holds": [PARTS[0]]}
NO = {"a": ["0-3"], "b": ["other"], "none": ["1"]}
DOUBT = "She did not study there, she taught there."


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create_user("root", password="long enough 1", is_staff=True)


@pytest.fixture
def rosa(db: None) -> User:
    return User.objects.create_user("rosa", password="long enough 1", is_researcher=True)


@pytest.fixture
def judged(published: Submission, clients: list[Client], keep: Any) -> Submission:
    """Two of three say yes to everything."""

    def play() -> None:
        for client, said in zip(clients, (YES, YES, NO), strict=True):
            answer_all(client, said)
        settle.tick()

    keep("two of three say yes", play)
    return published


def target_of(submission: Submission) -> int:
    return int(
        Question.objects.filter(**submission.purpose.filter_condition("payer"))
        .order_by("pk")[0]
        .target_id
    )


def test_a_dispute_says_why_and_there_is_one_at_a_time(judged: Submission, rosa: User) -> None:
    with pytest.raises(experts.CannotAsk, match="10 characters"):
        experts.store_dispute(judged, target_of(judged), rosa, "no")
    experts.store_dispute(judged, target_of(judged), rosa, DOUBT)
    with pytest.raises(experts.CannotAsk, match="already"):
        experts.store_dispute(judged, target_of(judged), rosa, DOUBT)
    assert Audit.objects.get(what="dispute").why == DOUBT


def test_two_teams_dispute_a_judgment_without_knowing_and_an_expert_answers_once(
    judged: Submission, rosa: User, root: User
) -> None:
    target, tim = target_of(judged), User.objects.create_user("tim", is_researcher=True)
    other = make_submission(judged.track, [Target.objects.get(pk=target)], "Twin")
    judged.team.members.add(rosa)
    other.team.members.add(tim)
    for user in (rosa, tim):
        Webhook.objects.create(user=user, url=f"https://{user.username}.example/")
    mine = experts.store_dispute(judged, target, rosa, DOUBT)
    theirs = experts.store_dispute(other, target, tim, "He never set foot there.")
    experts.parse_and_store_answer(mine, NO, root)
    assert queue.take_next_check(judged.track, root, judged_by_filter(root)) is None
    for run, row, note in ((judged, mine, DOUBT), (other, theirs, "He never set foot there.")):
        [seen] = experts.latest_disputes_by_target(run).values()
        assert (seen.pk, seen.note, seen.status, seen.agrees) == (row.pk, note, "answered", False)
    told = Delivery.objects.filter(event="dispute").values_list("body__submission__id", flat=True)
    assert set(told) == {judged.pk, other.pk}
    found = load_trail(judged.track, mine.pk)
    assert found is not None and [one.pk for one in found.disputes] == [theirs.pk]
    experts.store_remark(found.row, root, "The text says who taught there.")
    theirs.refresh_from_db()
    assert theirs.remark == "The text says who taught there."


def test_an_experts_answer_to_a_dispute_writes_no_label(
    judged: Submission, rosa: User, root: User
) -> None:
    labels = Label.objects.count()
    row = experts.store_dispute(judged, target_of(judged), rosa, DOUBT)
    assert experts.parse_and_store_answer(row, NO, root) is Outcome.STORED
    row.refresh_from_db()
    assert (row.status, row.agrees, row.expert) == ("answered", False, root)
    assert Label.objects.count() == labels
    assert experts.parse_and_store_answer(row, YES, root) is Outcome.ALREADY
    found = load_trail(judged.track, row.pk)
    assert found is not None
    assert (found.parts, found.voters) == ([(PARTS[0], 2, True, False)], 3)
    a, b = (found.row.payload[side]["gloss"] for side in ("a", "b"))
    assert found.rows == [(f"{a} studied at {b}", 2, True, False)]
    assert [(name, same) for name, _, _, same in found.links] == [(a, True), (b, True)]
    assert experts.latest_disputes_by_target(judged)[row.target_id].agrees is False


def test_nobody_answers_what_they_raised_or_judged(
    judged: Submission, root: User, clients: list[Client]
) -> None:
    experts.store_dispute(judged, target_of(judged), root, DOUBT)
    assert not queue.checks_for_expert(judged.track, root, judged_by_filter(root)).exists()
    ada = User.objects.get(username="ada")
    assert not queue.checks_for_expert(judged.track, ada, judged_by_filter(ada)).exists()
    other = User.objects.create_user("other", is_staff=True)
    assert queue.checks_for_expert(judged.track, other, judged_by_filter(other)).count() == 1


def test_what_no_people_judged_is_not_disputed(
    track: Track, published: Submission, rosa: User
) -> None:
    with pytest.raises(experts.CannotAsk, match="No people judged this"):
        experts.store_dispute(published, target_of(published), rosa, DOUBT)


def test_a_dispute_is_dropped_for_a_reason_that_stays_with_it(
    judged: Submission, rosa: User, root: User
) -> None:
    Webhook.objects.create(user=rosa, url="https://rosa.example/")
    judged.team.members.add(rosa)
    row = experts.store_dispute(judged, target_of(judged), rosa, DOUBT)
    with pytest.raises(experts.CannotAsk, match="give a reason"):
        experts.drop_dispute(row, root, " ")
    assert not Delivery.objects.exists()
    assert experts.drop_dispute(row, root, "It was settled by mail.") and not experts.drop_dispute(
        row, root, "Again."
    )
    row.refresh_from_db()
    assert (row.status, row.remark) == ("dropped", "It was settled by mail.")
    assert Audit.objects.get(what="drop from queue").why == "It was settled by mail."
    told = Delivery.objects.get(event="dispute").body
    assert "dismissed" in told["subject"] and "It was settled by mail." in told["text"]
