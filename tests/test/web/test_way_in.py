"""The way in: a request for an account, its answer, and a way back for a forgotten password."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.urls import reverse

from annotation.workers.models import Intake
from kbpo import clock
from kbpo.accounts import ask as asking
from kbpo.accounts import notices
from kbpo.accounts.models import AccountRequest, Audit, Delivery, Invitation, Team, Token, User
from kbpo.accounts.secret_links import MaskSecretLinks
from kbpo.web.public import ask
from tests.conftest import PASSWORD, Toy

As = Callable[[str], Client]
pytestmark = pytest.mark.django_db(transaction=True)
NEW = {
    "name": "Nina Harbor",
    "email": "nina@example.org",
    "affiliation": "Harbor University",
    "team": "Harbor",
    "system": "A graph model.",
}


@pytest.fixture(autouse=True)
def by_mail(settings: Any) -> None:
    """A mail server is set; Django's tests keep what is sent in `mail.outbox`."""
    settings.MAIL_URL = "smtp://mail.example.org"
    settings.SITE_URL = "http://testserver"
    cache.clear()


def address_in(text: str) -> str:
    found = re.search(r"http://testserver(/[^\s<]+)", text)
    assert found
    return found[1]


def test_a_stranger_asks_is_let_in_with_one_click_and_submits_for_a_new_team(
    client: Client, as_user: As, toy: Toy
) -> None:
    assert reverse("ask") in client.get(reverse("track", args=["toy"])).content.decode()
    assert "a person will read it" in client.post(reverse("ask"), NEW).content.decode().lower()
    request = AccountRequest.objects.get()
    desk = as_user("Admin")
    assert "Harbor University" in desk.get(reverse("desk-people")).content.decode()
    desk.post(reverse("desk-people"), {"action": "answer", "pk": request.pk, "verdict": "accept"})
    notices.tick()
    assert [letter.to for letter in mail.outbox] == [["nina@example.org"]]
    join = address_in(mail.outbox[0].body)
    assert 'value="nina@example.org"' in client.get(join).content.decode()
    common = {"username": "nina", "password1": "password", "password2": "password", "terms": "on"}
    errors = client.post(join, common).context["form"].errors
    assert "too common" in str(errors["password1"]) and "password2" not in errors
    made = client.post(
        join,
        {
            "username": "nina",
            "password1": "a long new secret",
            "password2": "a long new secret",
            "terms": "on",
        },
    )
    assert made.status_code == 302
    nina = User.objects.get(username="nina")
    assert nina.is_researcher and nina.team() == Team.objects.get(name="Harbor")
    assert client.get(reverse("submit")).status_code == 200
    assert Audit.objects.filter(what="accept request").count() == 1


def test_nobody_gets_into_a_team_that_is_there_by_typing_its_name(
    client: Client, as_user: As, toy: Toy
) -> None:
    client.post(reverse("ask"), NEW | {"team": "patterns"})
    address = reverse("desk-people")
    form = {"action": "answer", "pk": AccountRequest.objects.get().pk}
    desk = as_user("Admin")
    page = desk.get(reverse("desk-people")).content.decode()
    assert "exists already, with 1 member." in page and "Add to Patterns" in page
    told = desk.post(address, form | {"verdict": "accept"}, follow=True).content.decode()
    assert "There is a team Patterns already" in told and not Invitation.objects.exists()
    desk.post(address, form | {"verdict": "join"})
    assert Invitation.objects.get().team == toy.teams["Patterns"]


def test_a_double_click_asks_once(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def slowly(*said: Any) -> bool:
        time.sleep(0.1)
        return True

    def click(_: int) -> int:
        with closing(connection):
            return asking.request_account(**NEW, network="").pk

    monkeypatch.setattr(asking, "can_one_more_wait", slowly)
    with ThreadPoolExecutor(2) as pool:
        assert len(set(pool.map(click, range(2)))) == AccountRequest.objects.count() == 1
    assert "data-busy" in client.get(reverse("ask")).content.decode()


def test_whoever_is_declined_reads_why(client: Client, as_user: As, toy: Toy) -> None:
    client.post(reverse("ask"), NEW)
    request = AccountRequest.objects.get()
    as_user("Admin").post(
        reverse("desk-people"),
        {"action": "answer", "pk": request.pk, "verdict": "decline", "why": "The track is full."},
    )
    request.refresh_from_db()
    assert request.accepted is False and request.decided_by == toy.users["Admin"]
    notices.tick()
    assert "The track is full." in mail.outbox[0].body and not Invitation.objects.exists()


WRONG = [{"email": "nobody"}, {"name": ""}, {"team": "???"}, {"name": "a\x00b"}]


def test_what_is_wrong_stands_at_its_field(client: Client, toy: Toy) -> None:
    for wrong in WRONG:
        answer = client.post(reverse("ask"), NEW | wrong)
        assert answer.status_code == 422 and 'class="error"' in answer.content.decode()
        assert not AccountRequest.objects.exists()


def test_one_address_cannot_fill_the_queue(client: Client, toy: Toy) -> None:
    for number in range(ask.REQUESTS_OF_ADDRESS.most):
        client.post(reverse("ask"), NEW | {"email": f"n{number}@example.org"})
    refused = client.post(reverse("ask"), NEW)
    assert refused.status_code == 429 and 3590 <= int(refused["Retry-After"]) <= 3600


def test_a_forgotten_password_is_set_anew_once(client: Client, toy: Toy) -> None:
    answer = client.post(reverse("forgotten"), {"email": "rosa@example.org"}, follow=True)
    assert "we have mailed a link" in answer.content.decode()
    notices.tick()
    link = address_in(mail.outbox[0].body)
    form = client.get(link, follow=True)
    address = form.request["PATH_INFO"]
    weak = client.post(address, {"new_password1": "123", "new_password2": "123"})
    assert weak.status_code == 422 and list(weak.context["form"].errors) == ["new_password1"]
    other = client.post(address, {"new_password1": "a quite new secret", "new_password2": "a"})
    assert list(other.context["form"].errors) == ["new_password2"]
    secret = {"new_password1": "a quite new secret", "new_password2": "a quite new secret"}
    assert client.post(address, secret)["Location"] == reverse("login")
    assert not Client().login(username="rosa", password=PASSWORD)
    assert Client().login(username="rosa", password="a quite new secret")
    again = Client().get(link, follow=True).content.decode()
    assert "This link was used" in again


@pytest.mark.parametrize("made_by", ["mail", "admin"])
def test_a_password_set_by_a_link_ends_every_token_and_session(
    made_by: str, client: Client, as_user: As, toy: Toy
) -> None:
    """Whoever lost a password may have lost more with it."""
    row, secret = Token.create_with_secret(toy.users["Rosa"], "laptop")
    bearer = {"HTTP_AUTHORIZATION": f"Token {secret}"}
    stranger, submissions = as_user("Rosa"), reverse("api-submissions")
    assert client.get(submissions, **bearer).status_code == 200
    assert stranger.get(reverse("account")).status_code == 200
    if made_by == "mail":
        client.post(reverse("forgotten"), {"email": "rosa@example.org"})
        notices.tick()
        link = address_in(mail.outbox[0].body)
    else:
        made = as_user("Admin").post(
            reverse("desk-people"), {"action": "reset-link", "username": "Rosa"}, follow=True
        )
        link = address_in(made.content.decode())
    address = client.get(link, follow=True).request["PATH_INFO"]
    assert client.get(submissions, **bearer).status_code == 200, "a link alone ends nothing"
    client.post(address, dict.fromkeys(("new_password1", "new_password2"), "a quite new secret"))
    row.refresh_from_db()
    assert row.revoked_at is not None
    assert client.get(submissions, **bearer).status_code == 401
    asked = stranger.get(reverse("account"))
    assert asked.status_code == 302 and reverse("login") in asked["Location"]


def test_links_that_let_somebody_in_stay_out_of_logs(
    client: Client, as_user: As, toy: Toy, settings: Any
) -> None:
    settings.MAIL_URL = ""  # mails go to the log
    client.post(reverse("forgotten"), {"email": "rosa@example.org"})
    client.post(reverse("ask"), NEW)
    asked = AccountRequest.objects.get()
    as_user("Admin").post(
        reverse("desk-people"), {"action": "answer", "pk": asked.pk, "verdict": "accept"}
    )
    secrets = [address_in(row.body["text"]) for row in Delivery.objects.all()]
    notices.tick()
    text = "".join(letter.body for letter in mail.outbox)
    assert len(secrets) == 2 and "/reset/" in text and "/join/…" in text
    assert not any(secret in text for secret in secrets)
    for secret in secrets:
        atoms = {"m": "GET", "U": secret}
        record = logging.LogRecord("x", logging.INFO, "", 0, '"%(m)s %(U)s HTTP"', (atoms,), None)
        assert MaskSecretLinks().filter(record)
        assert secret not in record.getMessage() and record.getMessage().endswith('/…/ HTTP"')


def test_decided_requests_are_deleted_after_90_days_with_what_the_log_says_of_them(
    client: Client, as_user: As, toy: Toy
) -> None:
    for name in ("Harbor", "Pier", "Quay"):
        client.post(reverse("ask"), NEW | {"team": name, "email": f"{name}@example.org"})
    old, recent, waiting = AccountRequest.objects.order_by("pk")
    for row in (old, recent):
        address = reverse("desk-people")
        form = {"action": "answer", "pk": row.pk}
        as_user("Admin").post(address, form | {"verdict": "decline", "why": f"No, {row.team}."})
    past = {"asked_at": clock.now() - timedelta(days=100)}
    AccountRequest.objects.filter(pk=waiting.pk).update(**past)
    AccountRequest.objects.filter(pk=old.pk).update(decided_at=clock.now() - timedelta(days=91))
    AccountRequest.objects.filter(pk=recent.pk).update(decided_at=clock.now() - timedelta(days=89))
    notices.tick()
    assert list(AccountRequest.objects.order_by("pk")) == [recent, waiting]
    log = str(list(Audit.objects.values("before", "after", "why")))
    assert "No, Harbor." not in log and "No, Pier." in log


def test_it_is_not_told_who_has_an_account(client: Client, toy: Toy) -> None:
    answer = client.post(reverse("forgotten"), {"email": "nobody@example.org"}, follow=True)
    assert "we have mailed a link" in answer.content.decode() and not Delivery.objects.exists()


@pytest.mark.parametrize("mailed", [True, False])
def test_who_has_an_account_and_no_team_asks_for_one_and_joins_it(
    mailed: bool, as_user: As, toy: Toy, settings: Any
) -> None:
    settings.MAIL_URL = settings.MAIL_URL if mailed else ""
    ro = User.objects.create_user("ro", "ro@example.org", PASSWORD, is_researcher=True)
    client = Client()
    client.force_login(ro)
    doors = [reverse("runs"), reverse("submit"), reverse("account"), reverse("track", args=["toy"])]
    for door in doors:
        assert f'href="{reverse("ask")}"' in client.get(door).content.decode(), door
    form = client.get(reverse("ask")).content.decode()
    assert "<h1>Ask for a team</h1>" in form and 'value="ro@example.org"' in form
    asked = client.post(reverse("ask"), NEW | {"email": "ro@example.org"}).content.decode()
    assert "on your account" in " ".join(re.sub("<[^>]*>", "", asked).split())
    assert ("in a mail to ro@example.org" in asked) == mailed
    assert "You asked for Harbor" in client.get(reverse("account")).content.decode()
    desk = as_user("Admin")
    assert "as ro, who has an account" in desk.get(reverse("desk-people")).content.decode()
    row = AccountRequest.objects.get()
    desk.post(reverse("desk-people"), {"action": "answer", "pk": row.pk, "verdict": "accept"})
    notices.tick()
    written = mail.outbox[0].body
    assert "you can join Harbor as ro:" in written
    page = client.get(reverse("account")).content.decode()
    join = reverse("join", args=[Invitation.objects.get().code])
    assert "You may join Harbor" in page and join in page
    assert (join in written) == mailed
    client.post(join)
    assert ro.teams.get().name == "Harbor" and User.objects.filter(username="ro").count() == 1
    page = client.get(reverse("account")).content.decode()
    assert "You may join" not in page and "Ask for another team" in page


def test_without_mail_an_admin_makes_the_link(
    client: Client, as_user: As, toy: Toy, settings: Any
) -> None:
    settings.MAIL_URL, settings.CONTACT = "", "help@example.org"
    assert "help@example.org" in client.get(reverse("forgotten")).content.decode()
    desk = as_user("Admin")
    shown = desk.post(
        reverse("desk-people"), {"action": "reset-link", "username": "Rosa"}, follow=True
    )
    link = address_in(shown.content.decode())
    assert client.get(link, follow=True).status_code == 200
    assert link not in desk.get(reverse("desk-people")).content.decode(), "it is shown once"
    desk.post(reverse("desk-people"), {"action": "reset-link", "username": "admin"}, follow=True)
    assert Audit.objects.filter(what="make reset link").count() == 1, "not for an admin"


def test_a_link_of_an_accepted_request_runs_out(client: Client, as_user: As, toy: Toy) -> None:
    client.post(reverse("ask"), NEW)
    address = reverse("desk-people")
    form = {"action": "answer", "pk": AccountRequest.objects.get().pk}
    as_user("Admin").post(address, form | {"verdict": "accept"})
    invitation = Invitation.objects.get()
    assert invitation.expires_at is not None
    Invitation.objects.update(expires_at=invitation.expires_at - timedelta(days=15))
    assert client.get(reverse("join", args=[invitation.code])).status_code == 410


@pytest.mark.parametrize("mode", Intake.Volunteers.values)
def test_to_judge_is_offered_only_while_volunteers_are_taken(
    mode: str, client: Client, toy: Toy
) -> None:
    Intake.objects.create(volunteers=mode)
    for page in (reverse("ask"), reverse("login")):
        offered = reverse("annotate_volunteer") in client.get(page).content.decode()
        assert offered == (mode != Intake.Volunteers.CLOSED), page
