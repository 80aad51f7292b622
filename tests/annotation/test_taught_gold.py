"""Gold that is taught: a question of the tutorial, with a sentence that is read after it."""

from __future__ import annotations

from typing import Any

import pytest
from annotation_world import GOOD, take
from django.test import Client
from test_annotators_teaching import TUTORIAL, agree, attempt

from annotation.interfaces.registry import INTERFACES
from annotation.models import Gold, Question, Worker
from annotation.quality.gold import candidates, make_gold, standings, taught_on
from annotation.workers import teach
from annotation.workers.models import TutorialRun
from annotation.workers.standing import standing_of
from kbpo.accounts.models import Audit, User
from kbpo.instances.models import Label, Target
from kbpo.instances.record import NewLabel, record
from kbpo.submissions.models import Submission

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("untaught")]
PAGE = "/desk/tracks/toy/gold/"
SAYS = "The text says that she founded it, in so many words."


@pytest.fixture(autouse=True)
def _whole_site(settings: Any) -> None:
    settings.ROOT_URLCONF = "kbpo.urls"


@pytest.fixture
def gold(published: Submission, admin: User) -> Gold:
    source = Question.objects.filter(status="published").order_by("pk")[0]
    Target.objects.filter(pk=source.target_id).update(is_dev=True)
    record([NewLabel(source.target_id, {"holds": []}, "crowd", "majority", 3, "one")])
    return make_gold(source, GOOD, admin, "It stands there.")


@pytest.fixture
def desk(admin: User, monkeypatch: pytest.MonkeyPatch) -> Client:
    for name in ("known", "find_unmarked_pairs"):  # the toy track has no schema
        monkeypatch.setattr(f"kbpo.web.desk.quality.measures.{name}", lambda track: [])
    client = Client()
    client.force_login(admin)
    return client


def sent(gold: Gold, verb: str = "teach", why: str = SAYS) -> dict[str, Any]:
    return {"verb": verb, "gold": str(gold.pk), "why": why}


def may_judge(name: str) -> bool:
    """Whether nothing is left to learn, by each way to ask."""
    worker = Worker.objects.get(user__username=name)
    by_runs = "relation" in teach.taught(worker)
    assert by_runs == ("relation" in standing_of(worker.pk).taught)
    assert by_runs == ("relation" not in teach.learnable(worker))
    return by_runs


def test_what_is_taught_is_asked_last_and_who_passed_or_began_before_keeps_theirs(
    gold: Gold, clients: list[Client], desk: Client
) -> None:
    ada, bo, cy = clients
    for client in clients:
        agree(client)
    before = teach.tutorials()["relation"]
    n = len(before.questions)
    assert "You passed" in attempt(ada)
    bo.post(TUTORIAL)
    assert desk.post(PAGE, sent(gold)).status_code == 302
    lesson = teach.tutorials()["relation"]
    assert (len(lesson.questions), len(lesson.asked(2))) == (n + 1, n + 1)
    assert lesson.needed == before.needed + 1
    assert may_judge("ada") and "You passed" in ada.get(TUTORIAL).content.decode()
    assert f"of {n}" in bo.get(f"{TUTORIAL}1/").content.decode()
    assert "You passed" in attempt(cy) and may_judge("cy")
    assert SAYS in cy.get(f"{TUTORIAL}{n + 1}/").content.decode()
    assert desk.post(PAGE, sent(gold, "stop", "It is too easy.")).status_code == 302
    assert SAYS in cy.get(f"{TUTORIAL}{n + 1}/").content.decode(), "what was explained stays so"
    assert may_judge("cy") and take(cy)
    [began, *_] = TutorialRun.objects.filter(worker__user__username="bo")
    assert teach.tutorial_of(began).questions == before.questions
    assert teach.tutorials()["relation"] == before
    told = Audit.objects.filter(what__contains="teach").order_by("pk").values_list("why", flat=True)
    assert list(told) == [SAYS, "It is too easy."]


def test_what_is_taught_is_gold_no_more_and_stands_on_the_page(gold: Gold, desk: Client) -> None:
    assert "Teach it" in desk.get(PAGE).content.decode()
    desk.post(PAGE, sent(gold))
    gold.refresh_from_db()
    track = gold.question.track
    assert gold.retired_at and not standings(track) and gold.source not in candidates(track)
    assert taught_on(track) == [gold] and SAYS in desk.get(PAGE).content.decode()
    assert all(label.is_public for label in Label.objects.filter(target=gold.question.target_id))


def test_gold_alone_makes_a_tutorial(
    gold: Gold, ada: Client, desk: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    agree(ada)
    shipped = {name: one for name, one in teach.shipped().items() if name != "relation"}
    monkeypatch.setattr(teach, "shipped", lambda: shipped)
    assert "relation" in INTERFACES and may_judge("ada")
    desk.post(PAGE, sent(gold))
    assert not may_judge("ada")
    assert "You passed" in attempt(ada) and may_judge("ada")


@pytest.mark.parametrize(
    ("is_dev", "why", "sentence"),
    [
        (True, "Because.", "20 to 1,000 characters"),
        (False, SAYS, "choose gold of the development part"),
    ],
)
def test_what_cannot_be_taught_is_refused_with_a_sentence(
    gold: Gold, desk: Client, ada: Client, is_dev: bool, why: str, sentence: str
) -> None:
    Target.objects.filter(pk=gold.question.target_id).update(is_dev=is_dev)
    refused = desk.post(PAGE, sent(gold, why=why))
    assert refused.status_code == 422 and sentence in refused.content.decode()
    assert not taught_on(gold.question.track)
    assert ada.post(PAGE, sent(gold)).status_code in (302, 403)
    assert not taught_on(gold.question.track)
