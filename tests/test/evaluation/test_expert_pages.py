"""An admin checks the crowd in the browser: draws, answers blind, stops and goes on, reads what it
says.
"""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from django.db.models import Q
from django.test import Client
from django.urls import reverse

from kbpo.accounts.models import Audit
from kbpo.evaluation import correction
from kbpo.evaluation.run import score_track
from kbpo.instances.models import Label
from kbpo.sampling.models import ExpertCheck, ExpertRound
from kbpo.submissions.models import Submission
from tests.conftest import ALONE, Toy
from tests.test.evaluation.test_expert_checks import Crowd

pytestmark = pytest.mark.django_db
DESK, NEXT = "/desk/tracks/toy/experts/", "/annotate/expert/toy/"
ANSWER = {"a": "other", "b": "other", "none": "1"}


@pytest.fixture
def crowd(toy: Toy) -> Crowd:
    return Crowd(toy)


@pytest.fixture
def admin(toy: Toy) -> Client:
    client = Client()
    client.force_login(toy.users["Admin"])
    return client


def opened(client: Client) -> str:
    """The address of the check that is open."""
    response = client.get(NEXT)
    assert response.status_code == 302
    return str(response["Location"])


def test_draw_answer_read(crowd: Crowd, admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "scoring.corrected.WIDEST", 2.0
    )  # few checks, and an expert who contradicts most
    assert f'{DESK}">Experts</a>' in admin.get("/desk/tracks/toy/").content.decode()
    assert "Draw a round" in admin.get(DESK).content.decode()
    unsaid = admin.post(DESK, {"verb": "draw", "budget": "45"})
    assert unsaid.status_code == 409 and "give a reason" in unsaid.content.decode()
    assert (
        admin.post(DESK, {"verb": "draw", "budget": "45", "why": "To correct scores."}).status_code
        == 302
    )
    assert "A round is being drawn" in admin.get(DESK).content.decode()
    assert not ExpertCheck.objects.exists()
    assert correction.tick() == 1
    assert Audit.objects.get(what="draw checks").why == "To correct scores."
    page = admin.get(DESK).content.decode()
    n = ExpertCheck.objects.count()
    assert f"0 of {n}" in page and "Answer the next" in page
    for _ in range(3):
        address = opened(admin)
        assert admin.get(address).status_code == 200
        assert admin.post(address, ANSWER).status_code == 302
    assert crowd.check() == n - 3
    said = admin.get(NEXT, follow=True)
    assert said.redirect_chain[-1][0] == DESK
    assert "No judgment of this track is waiting for an expert." in said.content.decode()
    assert ExpertRound.objects.get().status == "ended"
    score_track(crowd.track)
    Submission.objects.update(status="scored")
    page = admin.get(DESK).content.decode()
    assert "Crowd" in page and f"{n} judgments checked" in page and "crowd and corrected" in page
    row = crowd.rows[1]
    line = f"Experts checked {n} of these judgments, chosen at random. Corrected precision"
    shown = Client().get(reverse("submission", args=[row.pk])).content.decode()
    assert line in " ".join(shown.split())
    rows = list(
        csv.DictReader(
            io.StringIO(Client().get("/tracks/toy/board.csv?criterion=relation").content.decode())
        )
    )
    assert {one["expert_value"] != "" for one in rows} == {True}
    assert {one["expert_recall_value"] for one in rows} == {""}  # no document was read
    board = json.loads(Client().get("/api/tracks/toy/board/?criterion=relation").content)
    assert board["systems"][0]["expert"]["low80"] is not None
    assert board["evaluation"]["expert"]["relation"]["checked"] == n


def test_the_page_says_nothing_of_what_the_crowd_or_a_system_says(
    crowd: Crowd, admin: Client
) -> None:
    crowd.draw(25)
    page = admin.get(opened(admin)).content.decode()
    assert "checked>" not in ALONE.sub("", page).replace('name="problem" value="" checked>', "")
    assert not any(word in page for word in ("Patterns", "Neural", "votes", "majority"))
    check = ExpertCheck.objects.get(holder__isnull=False)
    assert set(check.payload) == {
        "meanings",
        "document",
        "text",
        "begin",
        "length",
        "sentences",
        "lit",
        "a",
        "b",
        "others",
        "predicates",
    }
    other = Label.objects.filter(target=check.target_id)
    before = page
    other.update(value={"shown": ["per:place_of_birth>"], "holds": [], "votes": {}})
    assert _body(admin.get(opened(admin)).content.decode()) == _body(before)


def _body(page: str) -> str:
    """A page without its token."""
    import re

    return re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", page)


def test_whoever_answered_as_one_of_the_crowd_does_not_check_it(
    crowd: Crowd, admin: Client, monkeypatch: Any
) -> None:
    crowd.draw(25)
    first = ExpertCheck.objects.order_by("order").first()
    assert first is not None
    page = "kbpo.web.desk.expert.judged_by_filter"
    monkeypatch.setattr(page, lambda user: Q(target=first.target_id))
    assert opened(admin) != reverse("expert-question", args=["toy", first.pk])
    monkeypatch.setattr(page, lambda user: Q(pk__isnull=False))
    assert "is for you" in admin.get(NEXT, follow=True).content.decode()


def test_no_request_reads_the_whole_track(
    crowd: Crowd, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(correction, "load_data", lambda track: pytest.fail("within the request"))
    admin.post(DESK, {"verb": "draw", "budget": "25", "why": "x"})
    assert admin.get(DESK).status_code == 200
