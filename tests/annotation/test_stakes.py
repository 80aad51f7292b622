"""Nobody judges what a team of theirs pays for or predicts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from annotation_world import GOOD, answer_all, make_neighbour, make_submission
from django.test import Client

from annotation.desk import adjudicate
from annotation.hits import lease, publish
from annotation.hits.submit import Outcome, submit
from annotation.labels import settle
from annotation.labels.change import change
from annotation.models import HIT, Assignment, Question
from annotation.questions import ask
from annotation.workers.worker import worker_of
from kbpo.accounts.models import User
from kbpo.accounts.teams import join, remove
from kbpo.experts import queue
from kbpo.instances.models import Instance, Target
from kbpo.money.purpose import Purpose
from kbpo.sampling.models import ExpertCheck
from kbpo.submissions.models import Prediction, Submission
from kbpo.tracks.content.store import store
from kbpo.tracks.generation.declared import _pair as compared
from kbpo.tracks.generation.models import Written
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


def judged_by(user: User) -> set[int]:
    worker = worker_of(user)
    return set(
        Assignment.objects.filter(worker=worker).values_list("hit__questions__target", flat=True)
    )


def test_a_member_of_a_team_is_offered_what_others_pay_for_and_his_team_does_not_state(
    teams: tuple[Submission, Submission],
    targets: list[Target],
    annotator: Callable[[str], User],
    client: Client,
) -> None:
    member = annotator("member")
    teams[0].team.members.add(member)
    assert lease.open_to(worker_of(member)) == 3
    User.objects.filter(pk=member.pk).update(is_researcher=True)
    client.force_login(member)
    assert (
        "What Team Ours submitted is judged by others" in client.get("/annotate/").content.decode()
    )
    assert answer_all(client) == 3
    assert judged_by(member) == {target.pk for target in targets[3:]}


def test_who_belongs_to_no_team_is_offered_everything(
    teams: tuple[Submission, Submission], annotator: Callable[[str], User], client: Client
) -> None:
    client.force_login(annotator("ada"))
    assert answer_all(client) == 6


def test_a_member_of_both_teams_is_offered_nothing(
    teams: tuple[Submission, Submission], annotator: Callable[[str], User], client: Client
) -> None:
    member = annotator("member")
    for row in teams:
        row.team.members.add(member)
    assert lease.lease(worker_of(member)) is None
    client.force_login(member)
    assert client.get("/annotate/next/")["Location"] == "/annotate/"


def test_who_leaves_a_team_to_judge_its_questions_is_not_offered_them(
    teams: tuple[Submission, Submission], annotator: Callable[[str], User]
) -> None:
    member, owner = annotator("member"), annotator("owner")
    ours = teams[0].team
    for one in (owner, member):
        join(ours, one)
    assert lease.open_to(worker_of(member)) == 3
    remove(ours, member, member)
    assert lease.open_to(worker_of(member)) == 3


def test_a_whole_document_is_not_read_by_who_predicts_something_in_it(
    teams: tuple[Submission, Submission], track: Track, annotator: Callable[[str], User]
) -> None:
    predicted = Prediction.objects.get().instance.document
    HIT.objects.update(status="closed")
    for document in (predicted, Target.objects.exclude(document=predicted).first().document):
        whole = Target.objects.create(
            corpus=track.corpus, document=document, kind="document", key=f"{document.pk:032}", u=0.5
        )
        question = Question.objects.create(
            status="published",
            track=track,
            target=whole,
            interface="entities",
            order=0.5,
            payer=Purpose("documents", 1),
            price="1.00",
            reward="1.00",
        )
        hit = HIT.objects.create(status="open", track=track, platform="pool", reward="1.00")
        hit.questions.add(question)
    member, other = annotator("member"), annotator("other")
    teams[0].team.members.add(member)
    assert lease.open_to(worker_of(member)) == 1
    assert lease.open_to(worker_of(other)) == 2


MENTION = {"begin": 0, "end": len("Ann 4 Lee")}


@pytest.mark.parametrize("said", ["subject", "object", "subject_canonical", "object_canonical"])
def test_who_a_mention_is_is_not_told_by_who_predicts_another_relation_of_it(
    said: str,
    teams: tuple[Submission, Submission],
    targets: list[Target],
    track: Track,
    annotator: Callable[[str], User],
) -> None:
    """What people say of A beside (A, C) settles whether (A, B) is linked right."""
    (asked,) = [one for one in targets if one.document.text.startswith("Ann 4 Lee")]
    assert asked.a_end == MENTION["end"]
    HIT.objects.exclude(questions__target=asked).update(status="closed")
    question = Question.objects.get(target=asked)
    check = ExpertCheck.objects.create(
        track=track, kind="disagreement", target=asked, order=0.5, payload=question.payload
    )
    member, other = annotator("member"), annotator("other")
    teams[0].team.members.add(member)
    held = lease.lease(worker_of(member))
    assert held is not None and lease.stop(held)

    neighbour = make_neighbour(track, asked)
    at = {"subject": (40, 41), "object": (42, 43), "subject_canonical": (44, 45)}
    spans = at | {"object_canonical": (46, 47)} | {said: tuple(MENTION.values())}
    instance = Instance.objects.create(
        target=neighbour,
        document=asked.document,
        predicate=Instance.objects.get(target=asked).predicate,
        **edges_of({one: spans[one] for one in ("subject", "object")}),
    )
    prediction = Prediction.objects.create(
        submission=teams[0],
        instance=instance,
        **edges_of({one: spans[one] for one in ("subject_canonical", "object_canonical")}),
    )
    assert lease.open_to(worker_of(member)) == 0 and lease.lease(worker_of(member)) is None
    assert not lease.revive(held)
    assert not queue.askable(track, member).exists()
    assert lease.open_to(worker_of(other)) == 1
    assert list(queue.askable(track, other)) == [check]

    payload = question.payload
    payload["a"]["candidates"] = [{"span": payload["a"]["span"], "gloss": "Ann 4 Lee"}]
    for rows in (Question.objects.filter(pk=question.pk), ExpertCheck.objects.all()):
        rows.update(payload=payload)
    assert lease.open_to(worker_of(member)) == 1, "nobody is asked who it is"
    assert list(queue.askable(track, member)) == [check]

    prediction.delete()
    Question.objects.filter(pk=question.pk).update(payload=check.payload)
    assert lease.open_to(worker_of(member)) == 1


def edges_of(spans: dict[str, tuple[int, int]]) -> dict[str, int]:
    """The columns of some spans."""
    return {
        f"{name}_{edge}": at
        for name, span in spans.items()
        for edge, at in zip(("begin", "end"), span, strict=True)
    }


def test_who_wrote_one_of_two_texts_does_not_compare_them(
    teams: tuple[Submission, Submission], track: Track, annotator: Callable[[str], User]
) -> None:
    """Another team's private run predicts the pair; ours, whose text it shows, does not."""
    ours, theirs = teams
    HIT.objects.update(status="closed")
    for key, text in (("d1", "what we wrote"), ("d2", "what people wrote")):
        pair = compared(key, "what they wrote", text, 1)
        store(theirs.pk, track.corpus, "pair-f00d", [pair])
        Written.objects.create(submission=theirs, key=key, text="what they wrote", line=1)
        shown = Target.objects.get(kind="pair-f00d", content__input=key)
        question = Question.objects.create(
            status="published",
            track=track,
            target=shown,
            interface="relation",
            order=0.5,
            payer=theirs.purpose,
            price="1.00",
            reward="1.00",
        )
        hit = HIT.objects.create(status="open", track=track, platform="pool", reward="1.00")
        hit.questions.add(question)
        ExpertCheck.objects.create(
            track=track, kind="disagreement", target=shown, order=0.5, payload={}
        )
    Written.objects.create(submission=ours, key="d1", text="what we wrote", line=1)
    Written.objects.create(submission=ours, key="d2", text="something else", line=2)
    member, other = annotator("member"), annotator("other")
    assert lease.open_to(worker_of(member)) == lease.open_to(worker_of(other)) == 2
    ours.team.members.add(member)
    assert lease.open_to(worker_of(member)) == 1
    assert lease.open_to(worker_of(other)) == 2
    (check,) = queue.askable(track, member)
    assert check.target.content["input"] == "d2"
    assert queue.askable(track, other).count() == 2


def test_who_joins_a_team_does_not_go_on_with_what_it_pays_for(
    teams: tuple[Submission, Submission], annotator: Callable[[str], User]
) -> None:
    member = annotator("member")
    worker = worker_of(member)
    HIT.objects.exclude(questions__payer_number=teams[0].pk).update(status="closed")
    begun = lease.lease(worker)
    assert begun is not None and lease.stop(begun, {"holds": ["half an answer"]})
    again = lease.lease(worker)
    assert again == begun and lease.stop(begun, {"holds": ["half an answer"]})
    join(teams[0].team, member)
    assert lease.lease(worker) is None


def hand_in(client: Client, held: Assignment) -> str:
    """What the page says to an answer, which goes back to be asked of others and earns nothing."""
    address = f"/annotate/{held.token}/"
    said = client.post(address, GOOD, follow=True).content.decode()
    held.refresh_from_db()
    assert (held.status, held.raw) == ("returned", None)
    assert not Assignment.objects.filter(status="submitted").exists()
    return said


@pytest.mark.parametrize("stake", ["pays", "states", "submitted later", "wrote"])
def test_who_joins_a_team_with_a_question_in_hand_does_not_answer_it(
    stake: str,
    teams: tuple[Submission, Submission],
    targets: list[Target],
    annotator: Callable[[str], User],
    client: Client,
) -> None:
    ours = teams[0]
    member = annotator("member")
    asked = {"pays": targets[0], "states": targets[2]}.get(stake, targets[3])
    HIT.objects.exclude(questions__target=asked).update(status="closed")
    held = lease.lease(worker_of(member))
    assert held is not None
    join(ours.team, member)
    if stake == "submitted later":
        state(ours, targets[3])
    elif stake == "wrote":
        Target.objects.filter(pk=asked.pk).update(
            content={"input": "d1", "texts": ["what we wrote", "what they wrote"]}
        )
        Written.objects.create(submission=ours, key="d1", text="what we wrote", line=1)
    client.force_login(member)
    assert "A team that you belong or belonged to" in hand_in(client, held)
    other = lease.lease(worker_of(annotator("other")))
    assert other is not None and other.hit_id == held.hit_id


def test_what_went_back_or_is_opened_or_drafted_is_not_taken_up_by_who_joined_meanwhile(
    teams: tuple[Submission, Submission], annotator: Callable[[str], User], client: Client
) -> None:
    member = annotator("member")
    worker = worker_of(member)
    held = lease.lease(worker)
    assert held is not None
    address = f"/annotate/{held.token}/"
    client.force_login(member)
    assert client.get(address).status_code == 200
    for one in teams:
        join(one.team, member)
    assert lease.lease(worker) is None, "what is in hand is not shown again"
    Assignment.objects.update(returned_by=Assignment.ReturnedBy.LEASE)
    assert not lease.revive(held)
    assert client.post(f"{address}draft/", GOOD).status_code == 409
    hand_in(client, held)
    Assignment.objects.update(status="leased")
    page = client.get(address, follow=True).content.decode()
    assert "An answer of yours is not taken and not paid" in page


def test_an_answer_is_not_changed_by_who_joined_meanwhile(
    teams: tuple[Submission, Submission], annotator: Callable[[str], User], client: Client
) -> None:
    member = annotator("member")
    held = lease.lease(worker_of(member))
    assert held is not None
    raw = {name: value if isinstance(value, list) else [value] for name, value in GOOD.items()}
    assert submit(held, raw) is Outcome.STORED
    assert change(held, raw)
    for one in teams:
        join(one.team, member)
    assert not change(held, raw)
    client.force_login(member)
    page = client.get(f"/annotate/{held.token}/change/", follow=True).content.decode()
    assert "What you answered before it was so stays as it is." in page


def test_an_expert_does_not_decide_what_his_own_team_predicts(
    teams: tuple[Submission, Submission], targets: list[Target], clients: list[Client]
) -> None:
    for client in clients:
        answer_all(client)
    settle.tick()
    rosa = User.objects.create_user("rosa", is_researcher=True)
    row = adjudicate.dispute(teams[1], targets[2].pk, rosa, "She did not study there, she taught.")
    expert = User.objects.create_user("expert", is_staff=True)
    assert adjudicate.next_of(row.track, expert) == row
    teams[0].team.members.add(expert)
    assert adjudicate.next_of(row.track, expert) is None
    page = Client()
    page.force_login(expert)
    assert page.get(f"/annotate/adjudicate/toy/{row.pk}/").status_code == 403
