"""The platforms' desk: real money in colour everywhere, the kill switch, money for workers."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from annotation.models import HIT, Bonus, Halt, PlatformBooks, Question, Worker, WorkerIdentity
from kbpo.accounts.models import Audit
from kbpo.instances.models import Target
from kbpo.money.models import Purpose
from tests.conftest import Toy

pytestmark = pytest.mark.django_db
REAL = "https://mturk-requester.us-east-1.amazonaws.com"


@pytest.mark.parametrize(
    ("endpoint", "real", "told", "colour"),
    [
        (REAL, True, "Real money moves at mturk-requester.us-east-1.amazonaws.com", "notice bad"),
        (REAL, False, "but REAL_MONEY is not true", "notice warn"),
        pytest.param(
            "https://mturk-requester-sandbox.us-east-1.amazonaws.com",
            True,
            "is a place for trials",
            "notice warn",
            marks=pytest.mark.soak,
        ),
        ("http://127.0.0.1:8010", False, "Play money", "notice quiet-money"),
    ],
)
def test_every_admin_page_says_in_colour_whether_money_is_real(
    admin: Client, settings: Any, endpoint: str, real: bool, told: str, colour: str
) -> None:
    settings.MTURK_ENDPOINT_URL, settings.REAL_MONEY = endpoint, real
    for path in ("/desk/", "/desk/tracks/", "/desk/people/", "/desk/platforms/"):
        page = admin.get(path).content.decode()
        assert told in page, path
        assert f'class="{colour}" id="real-money"' in page, path


def test_the_kill_switch_needs_a_word_and_a_reason(admin: Client) -> None:
    page = admin.get("/desk/platforms/").content.decode()
    assert 'name="action" value="stop"' in page and 'value="all" checked' in page, (
        "the desk's own stop, the wider one chosen"
    )
    assert 'value="publishing" checked' in admin.get("/desk/").content.decode()
    for said in ({"why": "Fire", "word": ""}, {"why": " ", "word": "stop"}, {}):
        told = admin.post(
            "/desk/",
            said | {"action": "stop", "scope": "all", "back": "desk-platforms"},
            follow=True,
        )
        assert (
            told.redirect_chain == [("/desk/platforms/", 302)]
            and "Nothing was stopped" in told.content.decode()
        )
        assert not Halt.objects.exists()
    admin.post(
        "/desk/",
        {
            "action": "stop",
            "why": "Fire",
            "word": "Stop",
            "scope": "all",
            "back": "//elsewhere.example",
        },
    )
    halt = Halt.objects.get()
    assert (halt.scope, halt.track, halt.why) == ("all", None, "Fire")


def test_the_kill_switch_expires_what_is_open_on_our_own_pages(admin: Client, toy: Toy) -> None:
    target = Target.objects.create(
        corpus=toy.corpus,
        document=next(iter(toy.documents.values())),
        kind="mention",
        a_begin=0,
        a_end=3,
        key="0" * 32,
        u=0.5,
    )
    question = Question.objects.create(
        status="published",
        track=toy.track,
        target=target,
        interface="relation",
        payer=Purpose("submission", 1),
        order=1.0,
        price="0.06",
        reward="0.05",
    )
    hit = HIT.objects.create(status="open", track=toy.track, platform="pool", reward="0.05")
    hit.questions.add(question)
    admin.post("/desk/", {"action": "stop", "why": "Fire", "word": "stop", "scope": "all"})
    hit.refresh_from_db()
    assert hit.status == "expired"


@pytest.fixture
def turker(toy: Toy) -> Worker:
    worker = Worker.objects.create(platform="mturk", handle="abcdef0123456789")
    WorkerIdentity.objects.create(worker=worker, external_id="AWORKER")
    return worker


def test_a_compensation_is_granted_once_and_its_money_is_set_aside(
    admin: Client, toy: Toy, turker: Worker
) -> None:
    said = {"worker": "abcdef", "track": "toy", "amount": "0.50", "why": "Our page failed."}
    assert admin.post("/desk/platforms/", {"action": "grant"} | said).status_code == 302
    bonus = Bonus.objects.get()
    assert (str(bonus.amount), str(bonus.fee), bonus.why, bonus.who) == (
        "0.50",
        "0.10",
        "Our page failed.",
        toy.users["Admin"],
    )
    page = admin.get("/desk/platforms/").content.decode()
    assert "Our page failed." in page
    found = re.search(r'name="key" value="(\w{32})"', page)
    assert found is not None
    for _ in range(2):  # a double click
        assert (
            admin.post(
                "/desk/platforms/", {"action": "grant"} | said | {"key": found.group(1)}
            ).status_code
            == 302
        )
    assert Bonus.objects.count() == 2


def test_a_worker_is_admitted_and_no_more(admin: Client, turker: Worker) -> None:
    admin.post(
        "/desk/platforms/",
        {"action": "admit", "worker": "abcdef", "held": "yes", "why": "Known to us."},
    )
    assert turker.qualifications.get().wanted is True
    admin.post(
        "/desk/platforms/",
        {"action": "admit", "worker": "abcdef", "held": "no", "why": "A mistake."},
    )
    assert turker.qualifications.get().wanted is False
    page = admin.post(
        "/desk/platforms/",
        {"action": "admit", "worker": "nobody", "held": "yes", "why": "Known to us."},
        follow=True,
    )
    assert "Give the hash of one worker" in page.content.decode()


def test_a_difference_in_the_balance_is_shown_and_explained_by_name(
    admin: Client, settings: Any
) -> None:
    settings.MTURK_ENDPOINT_URL = "http://127.0.0.1:8010"
    PlatformBooks.objects.create(
        platform="mturk",
        endpoint="http://127.0.0.1:8010",
        available="90.00",
        on_hold="0.00",
        baseline="100.00",
        read_at="2026-11-21T10:00:00Z",
    )
    assert "from our records" in admin.get("/desk/platforms/").content.decode()
    admin.post("/desk/platforms/", {"action": "explain", "name": "mturk", "why": " "})
    assert not Audit.objects.filter(what="explain balance").exists()
    admin.post(
        "/desk/platforms/",
        {"action": "explain", "name": "mturk", "why": "We took ten dollars out."},
    )
    assert Audit.objects.get(what="explain balance").why == "We took ten dollars out."
    assert "HITs and assignments agree" in admin.get("/desk/platforms/").content.decode()
