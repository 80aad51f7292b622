"""Nobody judges on a track where a team of theirs has a run, studies excepted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from annotation_world import GOOD, answer_all, make_submission
from django.test import Client

from annotation.desk import experts
from annotation.desk.experts import judged_by_filter
from annotation.hits import lease, publish
from annotation.labels import settle
from annotation.models import HIT, Assignment
from annotation.questions import ask
from annotation.workers.worker import worker_of_user
from kbpo.accounts.models import User
from kbpo.accounts.teams import add_member, remove_member
from kbpo.experts import queue
from kbpo.instances.models import Instance, Target
from kbpo.submissions.models import Prediction, Submission
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db


def state(submission: Submission, target: Target) -> None:
    instance = Instance.objects.get(target=target)
    Prediction.objects.create(
        submission=submission,
        instance=instance,
        subject_canonical_begin=0,
        subject_canonical_end=1,
        object_canonical_begin=0,
        object_canonical_end=1,
        provenance=[],
        subject_entity=0,
        object_entity=1,
        same_predicate=1,
        same_subject=1,
        subject_facts=1,
    )


@pytest.fixture
def teams(track: Track, targets: list[Target]) -> tuple[Submission, Submission]:
    """Ours pays for the questions about two targets, theirs for four; ours predicts one of
    these."""
    ours = make_submission(track, targets[:2], "Ours")
    theirs = make_submission(track, targets[2:], "Theirs")
    state(ours, targets[2])
    ask.tick()
    publish.tick()
    assert HIT.objects.filter(status="open").count() == 6
    return ours, theirs


def test_a_member_of_a_team_with_a_run_is_offered_nothing(
    teams: tuple[Submission, Submission], annotator: Callable[[str], User], client: Client
) -> None:
    member = annotator("member")
    teams[0].team.members.add(member)
    assert (
        lease.count_open_hits(worker_of_user(member)) == 0
        and lease.lease_next(worker_of_user(member)) is None
    )
    User.objects.filter(pk=member.pk).update(is_researcher=True)
    client.force_login(member)
    assert client.get("/annotate/next/")["Location"] == "/annotate/"
    page = client.get("/annotate/").content.decode()
    assert "You cannot judge on tracks with runs of Team Ours" in page


def test_members_of_the_team_that_owns_a_study_may_judge_it(
    teams: tuple[Submission, Submission], track: Track, annotator: Callable[[str], User]
) -> None:
    member, ours = annotator("member"), teams[0].team
    ours.members.add(member)
    track.is_study, track.owner = True, ours
    track.save()
    assert lease.count_open_hits(worker_of_user(member)) == 6


def test_who_belongs_to_no_team_is_offered_everything(
    teams: tuple[Submission, Submission], annotator: Callable[[str], User], client: Client
) -> None:
    client.force_login(annotator("ada"))
    assert answer_all(client) == 6


def test_who_leaves_a_team_to_judge_its_questions_is_not_offered_them(
    teams: tuple[Submission, Submission], annotator: Callable[[str], User]
) -> None:
    member, owner = annotator("member"), annotator("owner")
    ours = teams[0].team
    for one in (owner, member):
        add_member(ours, one)
    remove_member(ours, member, member)
    assert lease.count_open_hits(worker_of_user(member)) == 0


def hand_in(client: Client, held: Assignment) -> str:
    """What the page says to an answer, which goes back to be asked of others and earns nothing."""
    address = f"/annotate/{held.token}/"
    said = client.post(address, GOOD, follow=True).content.decode()
    held.refresh_from_db()
    assert (held.status, held.raw) == ("returned", None)
    assert not Assignment.objects.filter(status="submitted").exists()
    return said


def test_who_joins_a_team_with_a_question_in_hand_does_not_answer_it(
    teams: tuple[Submission, Submission], annotator: Callable[[str], User], client: Client
) -> None:
    member = annotator("member")
    held = lease.lease_next(worker_of_user(member))
    assert held is not None
    HIT.objects.exclude(pk=held.hit_id).update(status="closed")
    add_member(teams[0].team, member)
    client.force_login(member)
    assert "Your team pays for this question" in hand_in(client, held)
    other = lease.lease_next(worker_of_user(annotator("other")))
    assert other is not None and other.hit_id == held.hit_id


def test_an_expert_does_not_decide_what_his_own_team_predicts(
    teams: tuple[Submission, Submission],
    targets: list[Target],
    clients: list[Client],
    settings: Any,
) -> None:
    settings.ROOT_URLCONF = "kbpo.urls"
    for client in clients:
        answer_all(client)
    settle.tick()
    rosa = User.objects.create_user("rosa", is_researcher=True)
    row = experts.store_dispute(
        teams[1], targets[2].pk, rosa, "She did not study there, she taught."
    )
    expert = User.objects.create_user("expert", is_staff=True)
    assert queue.take_next_check(row.track, expert, judged_by_filter(expert)) == row
    teams[0].team.members.add(expert)
    assert queue.take_next_check(row.track, expert, judged_by_filter(expert)) is None
    page = Client()
    page.force_login(expert)
    told = page.get(f"/annotate/expert/toy/{row.pk}/", follow=True)
    assert "open questions is for you" in told.content.decode()
