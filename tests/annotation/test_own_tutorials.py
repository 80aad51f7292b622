"""An admin chooses what is taught: questions that are built in, and gold with a sentence each."""

from __future__ import annotations

from typing import Any

import pytest
from annotation_world import GOOD, take
from django.test import Client
from django.urls import reverse
from test_annotators_teaching import TUTORIAL, agree, attempt

from annotation.budget.check_books import check_books
from annotation.hits.lease import to_learn
from annotation.models import Gold, Question, Worker
from annotation.quality.gold import make_gold
from annotation.quality.taught import gold_of, halves, teach_these, teachable
from annotation.workers import teach
from annotation.workers.models import OwnTutorial, TutorialRun
from annotation.workers.standing import standing_of
from kbpo import clock
from kbpo.accounts.models import Audit, User
from kbpo.corpus.fetch import fetch
from kbpo.instances.models import Label, Target
from kbpo.instances.record import NewLabel, record
from kbpo.money.purpose import Purpose
from kbpo.money.spend import balance
from kbpo.submissions.models import Submission

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("untaught")]
PAGE = "/desk/tutorials/relation/"
SAYS = "The text says that she founded it, in so many words."


@pytest.fixture(autouse=True)
def _whole_site(settings: Any) -> None:
    settings.ROOT_URLCONF = "kbpo.urls"


@pytest.fixture
def admin(db: None) -> User:
    return User.objects.create_user("root", is_staff=True)


@pytest.fixture
def gold(published: Submission, admin: User) -> Gold:
    source = Question.objects.filter(status="published").order_by("pk")[0]
    Target.objects.filter(pk=source.target_id).update(is_dev=True)
    record([NewLabel(source.target_id, {"holds": []}, "crowd", "majority", 3, "one")])
    return make_gold(source, GOOD, admin, "It stands there.")


@pytest.fixture
def desk(admin: User) -> Client:
    client = Client()
    client.force_login(admin)
    return client


def sent(gold_: Gold, **more: Any) -> dict[str, Any]:
    """What the form sends; of the version that holds, if no other is said."""
    last = OwnTutorial.objects.order_by("version").last()
    says = {f"why-{gold_.pk}": SAYS, "version": last.version if last else 0}
    return {"built_in": [0, 1], "gold": [gold_.pk], "needed": 3} | says | more


def of(name: str) -> Worker:
    return Worker.objects.get(user__username=name)


def may_judge(name: str) -> bool:
    """Whether nothing is left to learn, by both ways to ask."""
    by_runs = "relation" in teach.taught(of(name))
    assert by_runs == ("relation" in standing_of(of(name).pk).taught)
    assert by_runs == ("relation" not in teach.learnable(of(name)))
    return by_runs


def test_what_is_chosen_is_taught_and_who_passed_or_began_before_keeps_theirs(
    gold: Gold, clients: list[Client], desk: Client
) -> None:
    ada, bo, cy = clients
    for client in clients:
        agree(client)
    assert "You passed" in attempt(ada)
    bo.post(TUTORIAL)
    bo.post(f"{TUTORIAL}1/", teach.tutorials()["relation"].questions[0]["right"])
    assert SAYS not in desk.get(PAGE).content.decode()
    assert desk.post(PAGE, sent(gold))["Location"] == PAGE
    lesson = teach.tutorials()["relation"]
    assert (len(lesson.questions), len(lesson.asked(2)), lesson.needed) == (3, 3, 3)
    assert not lesson.has_others and teach.shipped()["relation"].has_others
    assert desk.get(PAGE).content.decode().count(" checked") == 3
    assert may_judge("ada") and "You passed" in ada.get(TUTORIAL).content.decode()
    assert not may_judge("bo") and "of 8" in bo.get(f"{TUTORIAL}2/").content.decode()
    assert bo.get(f"{TUTORIAL}1/").status_code == 200, "what it explained is explained still"
    assert "You passed" in attempt(cy) and may_judge("cy")
    assert SAYS in cy.get(f"{TUTORIAL}3/").content.decode()
    assert TutorialRun.objects.get(worker=of("cy")).version == 2
    assert take(cy)
    gold.refresh_from_db()
    assert gold.retired_at and not teachable("relation").exists()
    assert all(label.is_public for label in Label.objects.filter(target=gold.question.target_id))
    assert Audit.objects.filter(what="teach").count() == 1


def test_it_can_be_asked_of_everybody_anew_and_promises_go_back(
    gold: Gold, clients: list[Client], desk: Client
) -> None:
    ada, bo, _ = clients
    for client in (ada, bo):
        agree(client)
    attempt(ada)
    bo.post(TUTORIAL)
    assert desk.post(PAGE, sent(gold, anew="1")).status_code == 302
    assert not may_judge("ada") and not may_judge("bo") and to_learn(of("ada")) == "relation"
    begun = TutorialRun.objects.get(worker=of("bo"))
    assert begun.promised == 0 and balance(purpose=Purpose("tutorial", begun.pk)).open == 0
    assert "You passed" in attempt(bo) and may_judge("bo")
    assert bo.get(f"{TUTORIAL}3/").status_code == 200
    again = sent(gold, built_in=[], needed=1) | {f"why-{gold.pk}": f"{SAYS} Read on."}
    assert desk.post(PAGE, again).status_code == 302, "what is taught stays to be chosen"
    assert may_judge("bo") and not may_judge("ada")
    assert check_books() == []


def test_a_second_attempt_has_its_own_half_of_the_gold() -> None:
    few, even, odd = ([{"gold": pk} for pk in range(n)] for n in (3, 4, 7))
    assert halves(few) == (few, few)
    assert halves(even) == (even[:2], even[2:])
    first, second = halves(odd)
    assert len(first) == len(second) == 4 and [one for one in first if one in second] == odd[6:]
    own = OwnTutorial(questions=[{"built_in": 0}, *first], again=[{"built_in": 0}, *second])
    assert sorted(one["gold"] for one in gold_of(own)) == list(range(7))


def test_what_was_changed_meanwhile_is_not_overwritten_and_what_was_typed_stays(
    gold: Gold, desk: Client, admin: User
) -> None:
    seen = desk.get(PAGE).content.decode()
    assert 'name="version" value="0"' in seen
    assert desk.post(PAGE, sent(gold)).status_code == 302
    late = {"version": 0, "built_in": [3], f"why-{gold.pk}": f"{SAYS} Mine.", "needed": 1}
    refused = desk.post(PAGE, sent(gold) | late)
    page = refused.content.decode()
    assert refused.status_code == 409 and "Somebody made version 2 of this tutorial" in page
    assert f"{SAYS} Mine." in page and page.count(" checked") == 2, "what was typed stands there"
    assert 'name="version" value="2"' in page and OwnTutorial.objects.count() == 1
    assert desk.post(PAGE, sent(gold) | late | {"version": 2}).status_code == 302
    assert OwnTutorial.objects.latest("version").needed == 1


def test_gold_that_was_left_out_meanwhile_is_not_lost_with_its_sentence(
    gold: Gold, desk: Client
) -> None:
    assert desk.post(PAGE, sent(gold)).status_code == 302
    without = {"version": 2, "built_in": [0], "needed": 1}
    assert desk.post(PAGE, without).status_code == 302
    mine = {f"why-{gold.pk}": f"{SAYS} Mine.", "anew": "1"}
    refused = desk.post(PAGE, sent(gold, version=2) | mine)
    page = refused.content.decode()
    assert refused.status_code == 409 and f"{SAYS} Mine." in page
    assert page.count(" checked") == 4, "two built in, gold, and that it is asked anew"
    assert desk.post(PAGE, sent(gold, version=3) | mine).status_code == 302
    [asked] = gold_of(OwnTutorial.objects.latest("version"))
    assert asked["gold"] == gold.pk and asked["why"].endswith("Mine.")


@pytest.mark.parametrize("wrong", [{"needed": "x"}, {"gold": ["x"]}, {"built_in": ["x"]}])
def test_what_was_refused_for_something_else_stays_of_the_version_that_was_seen(
    gold: Gold, desk: Client, wrong: dict[str, Any]
) -> None:
    mine = sent(gold, built_in=[3], needed=1)
    assert desk.post(PAGE, sent(gold)).status_code == 302
    refused = desk.post(PAGE, mine | wrong)
    assert refused.status_code == 422
    assert 'name="version" value="0"' in refused.content.decode()
    assert desk.post(PAGE, mine).status_code == 409
    assert OwnTutorial.objects.count() == 1, "nobody overwrites what they were not told of"


@pytest.mark.parametrize("version", ["", "x", "1" * 30])
def test_a_form_that_says_no_version_is_refused_and_told_so(
    gold: Gold, desk: Client, version: str
) -> None:
    for n in (0, 1):
        refused = desk.post(PAGE, sent(gold) | {"version": version})
        page = refused.content.decode()
        assert refused.status_code == 409 and OwnTutorial.objects.count() == n
        assert "does not say which version" in page and "Somebody made" not in page
        assert f'name="version" value="{2 * n}"' in page
        unreadable = desk.post(PAGE, sent(gold, needed="x") | {"version": version})
        assert unreadable.status_code == 422
        assert 'name="version" value="-1"' in unreadable.content.decode(), "it says none still"
        desk.post(PAGE, sent(gold))


def test_two_admins_wait_for_each_other(gold: Gold, admin: User) -> None:
    held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
    before = fetch(held, [])[0][0]
    teach_these("relation", [0], {}, 1, admin, anew=False, seen=0)
    assert fetch(held, []) == [(before + 1,)]


def test_what_was_failed_before_a_change_can_be_tried_again(
    gold: Gold, clients: list[Client], desk: Client
) -> None:
    agree(clients[0])
    for n in (1, 2):
        TutorialRun.objects.create(
            worker=of("ada"),
            interface="relation",
            version=teach.tutorials()["relation"].version,
            attempt=n,
            passed=False,
            ended_at=clock.now(),
        )
    assert desk.post(PAGE, sent(gold)).status_code == 302
    address = reverse("desk-another-attempt", args=[of("ada").handle, "relation"])
    assert address in desk.get(reverse("desk-requests")).content.decode()
    told = desk.post(address, {"why": "They asked."}, follow=True).content.decode()
    assert "They may try it again" in told and address not in told


@pytest.mark.parametrize("has_one", [True, False])
def test_the_first_tutorial_of_a_kind_says_that_everybody_has_to_pass_it(
    desk: Client, monkeypatch: pytest.MonkeyPatch, has_one: bool
) -> None:
    if not has_one:
        monkeypatch.setattr(teach, "built_in", dict)
    assert ("so everybody may judge" in desk.get(PAGE).content.decode()) is not has_one


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"built_in": [], "gold": []}, "Choose between 1 and 20 questions; these are 0."),
        ({"needed": 4}, "Say how many of the 3 must be right: from 1 to 3."),
        ({"needed": "many"}, "Give a whole number"),
        ({"built_in": [99]}, "That question is not built in."),
        ({"gold": ["999"], "why-999": SAYS}, "cannot be taught any more"),
        ({"gold": ["x"]}, "Give a whole number"),
    ],
)
def test_what_cannot_be_taught_is_refused_with_a_sentence(
    gold: Gold, desk: Client, more: dict[str, Any], sentence: str
) -> None:
    refused = desk.post(PAGE, sent(gold, **more))
    assert refused.status_code == 422 and sentence in refused.content.decode()
    assert not OwnTutorial.objects.exists() and teachable("relation").exists()


def test_each_gold_question_needs_a_sentence_and_only_admins_choose(
    gold: Gold, desk: Client, ada: Client
) -> None:
    refused = desk.post(PAGE, sent(gold) | {f"why-{gold.pk}": "Because."})
    assert refused.status_code == 422 and "20 to 1,000 characters" in refused.content.decode()
    assert 'value="Because."' in refused.content.decode(), "what was sent stands there"
    assert ada.get(PAGE).status_code in (302, 403)
    assert desk.get("/desk/tutorials/nothing/").status_code == 404


def test_gold_of_the_test_part_is_not_taught(gold: Gold, desk: Client) -> None:
    Target.objects.filter(pk=gold.question.target_id).update(is_dev=False)
    refused = desk.post(PAGE, sent(gold))
    assert refused.status_code == 422
    assert "choose gold of the development part" in refused.content.decode()
    assert not OwnTutorial.objects.exists()
