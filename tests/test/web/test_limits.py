"""Limits by address and by name, and who is slowed down by them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.tokens import default_token_generator
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from annotation.workers import volunteer
from annotation.workers.models import Application, Intake
from kbpo import clock
from kbpo.accounts.limits import Limit
from kbpo.accounts.models import LimitCount
from kbpo.web.http import client_address
from kbpo.web.public import ask, people
from tests.conftest import PASSWORD, Toy

pytestmark = pytest.mark.django_db
WAIT = "Wait a quarter of an hour"


def ends_in(seconds: float) -> None:
    """All counts end in so many seconds."""
    LimitCount.objects.update(ends_at=clock.now() + timedelta(seconds=seconds))


def test_a_limit_counts_each_key_until_its_end() -> None:
    guesses = Limit("guesses", 2, 60)
    assert [guesses.count_action("Ada", "1") for _ in range(3)] == [True, True, False]
    assert guesses.count_action("bo", "1") and guesses.seconds_until_allowed("bo", "1") == 0
    assert 59 <= guesses.seconds_until_allowed("ada ", "1") <= 60
    ends_in(6.5)
    assert guesses.seconds_until_retry("ada", "1") == 7
    ends_in(-1)
    assert (
        guesses.seconds_until_allowed("ada", "1") == 0
        and guesses.seconds_until_retry("ada", "1") == 1
    )
    assert guesses.count_action("ada", "1") and guesses.seconds_until_allowed("ada", "1") == 0
    assert guesses.count_action("ada", "1") and guesses.seconds_until_allowed("ada", "1") > 59
    guesses.reset_count("ada", "1")
    assert guesses.seconds_until_allowed("ada", "1") == 0


def log_in(client: Client, name: str, password: str, address: str = "203.0.113.7") -> Any:
    said = {"username": name, "password": password}
    return client.post(reverse("login"), said, headers={"X-Forwarded-For": address})


@pytest.mark.parametrize(
    ("proxies", "header", "address"),
    [
        (0, "203.0.113.7", "127.0.0.1"),
        (1, "203.0.113.7", "203.0.113.7"),
        (1, "10.9.9.9, 203.0.113.7", "203.0.113.7"),
        (2, "10.9.9.9, 203.0.113.7, 192.0.2.1", "203.0.113.7"),
        (2, "203.0.113.7", "127.0.0.1"),
        (1, "nonsense\x00", "127.0.0.1"),
        (1, "", "127.0.0.1"),
        (1, "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        (1, "::ffff:203.0.113.7", "203.0.113.7"),
    ],
)
def test_the_address_is_what_our_own_proxy_says(
    proxies: int, header: str, address: str, settings: Any
) -> None:
    settings.PROXIES = proxies
    request = RequestFactory().get("/", headers={"X-Forwarded-For": header})
    assert client_address(request) == address


def test_one_address_does_not_try_many_names(toy: Toy, settings: Any) -> None:
    settings.PROXIES = 1
    for number in range(people.LOGINS_OF_ADDRESS.most):
        log_in(Client(), f"name{number}", "nonsense")
    assert WAIT in log_in(Client(), "rosa", PASSWORD).content.decode()
    assert log_in(Client(), "rosa", PASSWORD, "198.51.100.9").status_code == 302


def test_many_addresses_do_not_try_one_name_and_its_owner_gets_in_by_a_new_password(
    toy: Toy, settings: Any
) -> None:
    settings.PROXIES = 1
    for number in range(people.LOGINS_OF_NAME.most):
        log_in(Client(), "rosa", "nonsense", f"198.51.0.{number + 1}")
    owner = Client()
    assert WAIT in log_in(owner, "rosa", PASSWORD, "198.51.0.200").content.decode()
    rosa = toy.users["Rosa"]
    address = reverse(
        "password_reset_confirm",
        args=[
            urlsafe_base64_encode(force_bytes(rosa.pk)),
            default_token_generator.make_token(rosa),
        ],
    )
    form = owner.get(address)["Location"]
    said = {"new_password1": "a long new secret", "new_password2": "a long new secret"}
    assert owner.post(form, said).status_code == 302
    assert log_in(owner, "rosa", "a long new secret").status_code == 302


def test_the_right_password_forgets_what_was_tried_for_a_name(toy: Toy) -> None:
    for _ in range(2):
        for _ in range(people.LOGINS_OF_NAME.most - 1):
            log_in(Client(), "rosa", "nonsense")
        assert log_in(Client(), "rosa", PASSWORD).status_code == 302


def test_the_api_and_the_log_in_say_when_the_next_try_is_let_in(
    toy: Toy, client: Client, settings: Any
) -> None:
    settings.API_RATE_OF_STRANGERS = 1
    assert Client().get("/api/tracks/", REMOTE_ADDR="192.0.2.77").status_code == 200
    ends_in(6.5)
    refused = Client().get("/api/tracks/", REMOTE_ADDR="192.0.2.77")
    assert refused.status_code == 429 and refused["Retry-After"] == "7"
    assert refused.json()["detail"].endswith("Come again in 7 seconds.")
    wrong = {"username": "Rosa", "password": "wrong"}
    tries = [client.post(reverse("login"), wrong) for _ in range(people.LOGINS_OF_NAME.most)]
    assert all("Retry-After" not in one for one in tries)
    ends_in(6.5)
    paused = client.post(reverse("login"), wrong)
    assert paused.status_code == 429 and paused["Retry-After"] == "7"


def sign_up(name: str, address: str) -> Any:
    said = {"username": name, "password1": "a long new secret", "password2": "a long new secret"}
    headers = {"X-Forwarded-For": address}
    return Client().post(reverse("annotate_volunteer"), said, headers=headers)


def test_volunteers_of_one_address_do_not_hold_up_the_rest_of_the_world(
    toy: Toy, settings: Any
) -> None:
    settings.PROXIES = 1
    Intake.objects.create(volunteers=Intake.Volunteers.QUEUE)
    for number in range(volunteer.SIGN_UPS.most):
        assert sign_up(f"first{number}", "203.0.113.7").status_code == 302
    refused = sign_up("eleventh", "203.0.113.7")
    assert refused.status_code == 429 and "from your network" in refused.content.decode()
    assert 3590 <= int(refused["Retry-After"]) <= 3600
    assert sign_up("other", "198.51.100.9").status_code == 302
    assert Application.objects.count() == volunteer.SIGN_UPS.most + 1


def test_requests_for_accounts_are_counted_by_address(toy: Toy, settings: Any) -> None:
    settings.PROXIES = 1
    said = {"email": "rosa@example.org"}
    for _ in range(ask.RESETS_OF_ADDRESS.most):
        Client().post(reverse("forgotten"), said, headers={"X-Forwarded-For": "203.0.113.7"})
    again = {"X-Forwarded-For": "203.0.113.7"}
    other = {"X-Forwarded-For": "198.51.100.9"}
    refused = Client().post(reverse("forgotten"), said, headers=again)
    assert refused.status_code == 429 and 3590 <= int(refused["Retry-After"]) <= 3600
    assert Client().post(reverse("forgotten"), said, headers=other).status_code == 302
