"""Accounts: logging in, tokens, teams, invitations."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from kbpo.accounts import backend
from kbpo.accounts.models import Invitation, Token, User
from kbpo.web.public.people import LOGINS_OF_NAME
from tests.conftest import PASSWORD, Toy

As = Callable[[str], Client]
pytestmark = pytest.mark.django_db
NEW = {
    "username": "nina",
    "password1": "a long new secret",
    "password2": "a long new secret",
    "terms": "on",
}
NEW_PASSWORD = {"new_password1": "an even longer one", "new_password2": "an even longer one"}


def log_in(client: Client, name: str, password: str):
    return client.post(
        reverse("login"), {"username": name, "password": password, "next": reverse("submit")}
    )


def test_one_is_led_to_where_one_wanted_to_go(toy: Toy, client: Client) -> None:
    asked = client.get(reverse("submit"))
    assert asked["Location"] == f"{reverse('login')}?next={reverse('submit')}"
    assert log_in(client, "rosa", PASSWORD)["Location"] == reverse("submit")
    assert client.get(reverse("account")).status_code == 200
    assert client.get(reverse("login"))["Location"] == reverse("runs")
    client.post(reverse("logout"))
    assert client.get(reverse("account")).status_code == 302


def test_a_session_ends_with_the_account_that_it_is_of(toy: Toy, client: Client) -> None:
    log_in(client, "rosa", PASSWORD)
    for change in ({"is_active": False}, {"is_active": True, "password": "another"}):
        assert client.get(reverse("account")).status_code == 200
        User.objects.filter(username="rosa").update(**change)
        assert client.get(reverse("account")).status_code == 302
        User.objects.filter(username="rosa").update(is_active=True)
        log_in(client, "rosa", PASSWORD)


def test_a_way_out_of_the_site_is_not_followed(toy: Toy, client: Client) -> None:
    answer = client.post(
        reverse("login"),
        {"username": "rosa", "password": PASSWORD, "next": "https://example.org/evil"},
    )
    assert answer["Location"] == reverse("runs")


def test_a_wrong_password_is_a_sentence_and_too_many_are_a_pause(toy: Toy, client: Client) -> None:
    wrong = log_in(client, "rosa", "nonsense")
    assert wrong.status_code == 422 and "do not match" in wrong.content.decode()
    for _ in range(LOGINS_OF_NAME.most):
        log_in(client, "rosa", "nonsense")
    paused = log_in(client, "Rosa", PASSWORD)
    assert paused.status_code == 429 and "Wait a quarter of an hour" in paused.content.decode()
    assert log_in(client, "tim", PASSWORD).status_code == 302, "another name is not held up"


def test_a_token_is_shown_once_works_and_can_be_revoked(toy: Toy, as_user: As) -> None:
    rosa = as_user("Rosa")
    page = rosa.post(reverse("tokens"), {"name": "laptop", "scope": "all", "days": "365"})
    secret = page.context["secret"]
    assert secret in page.content.decode() and "no-store" in page["Cache-Control"]
    again = rosa.get(reverse("account")).content.decode()
    assert secret not in again and "laptop" in again
    ask = {"Authorization": f"Token {secret}"}
    assert Client().get("/api/submissions/", headers=ask).status_code == 200
    assert '<a href="/api/">API documentation</a>' in page.content.decode(), "no file of YAML"
    token = Token.objects.get()
    assert as_user("Tim").post(reverse("token-revoke", args=[token.pk])).status_code == 404
    rosa.post(reverse("token-revoke", args=[token.pk]))
    refused = Client().get("/api/submissions/", headers=ask)
    assert refused.status_code == 401 and "revoked" in refused.json()["detail"]


def test_a_link_makes_a_researcher_of_the_team_once(toy: Toy, as_user: As) -> None:
    rosa = as_user("Rosa")
    rosa.post(reverse("team", args=["patterns"]), {"action": "invite"})
    invitation = Invitation.objects.get()
    address = reverse("join", args=[invitation.code])
    assert address in rosa.get(reverse("team", args=["patterns"])).content.decode()
    visitor = Client()
    assert "You are invited to Patterns" in visitor.get(address).content.decode()
    assert visitor.post(address, NEW)["Location"] == f"{reverse('runs')}?team=patterns"
    nina = User.objects.get(username="nina")
    assert nina.is_researcher and not nina.is_staff and nina.team() == toy.teams["Patterns"]
    assert visitor.get(reverse("submit")).status_code == 200
    assert Client().get(address).status_code == 410
    assert Client().post(address, NEW | {"username": "otto"}).status_code == 410


def test_a_link_makes_an_annotator_of_an_account_that_exists(toy: Toy, as_user: As) -> None:
    invitation = Invitation.objects.create(role="annotator", uses_left=2)
    tim = as_user("Tim")
    assert (
        "This account will be used"
        in tim.get(reverse("join", args=[invitation.code])).content.decode()
    )
    assert tim.post(reverse("join", args=[invitation.code])).status_code == 302
    user = User.objects.get(username="tim")
    assert user.is_annotator and user.is_researcher


WRONG = [
    ({"password2": "something else"}, "match"),
    ({"password1": "short", "password2": "short"}, "short"),
    ({"username": "rosa"}, "already exists"),
    ({"terms": ""}, "Please agree"),
]


def test_a_sign_up_that_is_wrong_says_what(toy: Toy) -> None:
    for wrong, says in WRONG:
        invitation = Invitation.objects.create(role="researcher", uses_left=1)
        page = Client().post(reverse("join", args=[invitation.code]), NEW | wrong)
        assert page.status_code == 422 and says in page.content.decode()
        invitation.refresh_from_db()
        assert invitation.uses_left == 1


@pytest.mark.parametrize(
    "change", [{"expires_at": timezone.now() - timedelta(days=1)}, {"uses_left": 0}]
)
def test_a_link_that_ran_out_does_not_work(toy: Toy, change: dict[str, object]) -> None:
    invitation = Invitation.objects.create(**{"role": "annotator", **change})
    page = Client().get(reverse("join", args=[invitation.code]))
    assert page.status_code == 410 and "Ask for a new one" in page.content.decode()
    assert Client().get(reverse("join", args=["nonsense"])).status_code == 410


def test_a_link_can_be_taken_back_by_the_team(toy: Toy, as_user: As) -> None:
    rosa = as_user("Rosa")
    rosa.post(reverse("team", args=["patterns"]), {"action": "invite"})
    invitation = Invitation.objects.get()
    rosa.post(reverse("team", args=["patterns"]), {"action": "take-back", "pk": invitation.pk})
    assert Client().get(reverse("join", args=[invitation.code])).status_code == 410


def test_the_password_is_changed_with_the_old_one(toy: Toy, client: Client) -> None:
    log_in(client, "rosa", PASSWORD)
    page = reverse("password")
    assert client.post(page, NEW_PASSWORD | {"old_password": "wrong"}).status_code == 422
    assert client.post(page, NEW_PASSWORD | {"old_password": PASSWORD}).status_code == 302
    assert client.get(reverse("account")).status_code == 200, "this browser stays logged in"
    assert log_in(Client(), "rosa", "an even longer one").status_code == 302


def test_who_finds_a_page_open_guesses_no_password_on_any_page(toy: Toy, as_user: As) -> None:
    tries: list[tuple[str, dict[str, str]]] = [
        (reverse("password"), {"old_password": "guess", **NEW_PASSWORD}),
        (reverse("account-close"), {"word": "close", "password": "guess"}),
        (reverse("notices"), {"verb": "email", "email": "x@example.org", "password": "guess"}),
    ]
    client = as_user("Rosa")
    for number in range(backend.TRIES.most):
        address, said = tries[number % len(tries)]
        answer = client.post(address, said)
        assert answer.status_code == 422 and backend.WRONG in answer.content.decode()
    for address, said in tries:
        right = {name: PASSWORD if value == "guess" else value for name, value in said.items()}
        answer = client.post(address, right)
        assert answer.status_code == 422 and backend.TOO_MANY in answer.content.decode()
    backend.TRIES.reset_count(str(toy.users["Rosa"].pk))
    assert client.post(tries[0][0], tries[0][1] | {"old_password": PASSWORD}).status_code == 302
