"""Whoever guesses is slowed down, by address and by name, with and without Redis; the owner of an
account is not kept out of it.
"""

from __future__ import annotations

import re
import sqlite3
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.tokens import default_token_generator
from django.core import signing
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from annotation.workers import volunteer
from annotation.workers.models import Application, Intake
from kbpo.accounts import counters, limits
from kbpo.accounts.counters import Counters
from kbpo.accounts.models import Delivery, User
from kbpo.web.address import address_of
from kbpo.web.forgiving import ForgivingCache
from kbpo.web.public import ask, throttle
from tests.conftest import PASSWORD, Toy

pytestmark = pytest.mark.django_db
WAIT = "Wait a quarter of an hour"


@pytest.fixture(params=["with Redis", "without Redis"])
def redis(request: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Redis as it is, and one that nobody answers for."""
    if request.param == "without Redis":
        monkeypatch.setattr(limits, "cache", ForgivingCache("redis://127.0.0.1:1/0", {}))
    monkeypatch.setattr(limits, "own", Counters(tmp_path / "limits"))
    monkeypatch.setattr(ForgivingCache, "away_until", 0.0)
    return str(request.param)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Redis is away; where the processes of this machine count."""
    monkeypatch.setattr(limits, "cache", ForgivingCache("redis://127.0.0.1:1/0", {}))
    monkeypatch.setattr(ForgivingCache, "away_until", 0.0)
    monkeypatch.setattr(limits, "own", Counters(tmp_path / "limits"))
    return tmp_path / "limits"


def test_no_more_counters_are_kept_than_may_be(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while none of them has run out; and a flood of one limit costs no other its counts."""
    monkeypatch.setattr(counters, "MOST_KEPT", 10)
    once, later = limits.Limit("once", 1, 60), limits.Limit("later", 1, 3600)
    assert once.count("ada")
    kept = sqlite3.connect(alone)
    for name in range(40):
        assert later.count(str(name))
        assert kept.execute("SELECT count(*) FROM counter").fetchone()[0] <= 1 + 10
    assert not later.count("39") and not once.count("ada")


def test_without_redis_as_many_processes_as_there_are_allow_no_more_than_one(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guesses = limits.Limit("guesses", 3, 60)
    let_in = []
    for number in range(12):
        monkeypatch.setattr(limits, "own", Counters(alone))  # another process
        let_in.append(guesses.count("ada"))
        assert guesses.is_reached("ada") == (number >= 2)
    assert sum(let_in) == 3
    guesses.forget("ada")
    monkeypatch.setattr(limits, "own", Counters(alone))
    assert not guesses.is_reached("ada") and guesses.seconds_left("ada") == 0


def test_what_was_counted_before_the_machine_started_anew_holds_nobody_up(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guesses = limits.Limit("guesses", 1, 60)
    monkeypatch.setattr(time, "monotonic", lambda: 5e6)
    assert guesses.count("ada") and not guesses.count("ada")
    monkeypatch.setattr(time, "monotonic", lambda: 10.0)
    assert not guesses.is_reached("ada") and guesses.seconds_left("ada") == 0
    assert guesses.count("ada") and not guesses.count("ada")


@pytest.mark.parametrize("stands", ["a directory", "nonsense"])
def test_where_the_file_cannot_be_written_each_process_counts(alone: Path, stands: str) -> None:
    if stands == "a directory":
        alone.mkdir()
    else:
        alone.write_bytes(b"no table" * 512)
    guesses = limits.Limit("guesses", 2, 60)
    assert not guesses.is_reached("ada")
    assert [guesses.count("ada") for _ in range(3)] == [True, True, False]


def test_a_lock_that_is_held_for_long_costs_no_count(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is counted meanwhile is added to it, and the file is used again."""
    monkeypatch.setattr(counters, "PATIENCE", 0.01)
    guesses = limits.Limit("guesses", 6, 60)
    assert all(guesses.count("ada") for _ in range(5))
    other = sqlite3.connect(alone, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert guesses.seconds_left("ada") > 0 and not guesses.is_reached("ada"), (
        "whoever reads goes on"
    )
    assert guesses.count("ada") and not guesses.count("ada")
    other.execute("COMMIT")
    assert not guesses.count("ada")
    assert other.execute("SELECT n FROM counter").fetchone()[0] == 6
    guesses.forget("ada")
    assert not guesses.is_reached("ada") and guesses.seconds_left("ada") == 0


@pytest.mark.parametrize("becomes", [b"no table" * 2048, b"", None])
def test_a_file_that_is_damaged_emptied_or_deleted_is_made_anew_once_for_all_processes(
    alone: Path, monkeypatch: pytest.MonkeyPatch, becomes: bytes | None
) -> None:
    guesses = limits.Limit("guesses", 3, 60)
    processes = [Counters(alone), Counters(alone)]
    let_in = []
    for number in range(8):
        monkeypatch.setattr(limits, "own", processes[number % 2])
        if number == 2:
            alone.unlink() if becomes is None else alone.write_bytes(becomes)
        let_in.append(guesses.count("ada"))
    assert let_in == [True] * 2 + [True] * 3 + [False] * 3
    monkeypatch.setattr(limits, "own", Counters(alone))
    assert guesses.is_reached("ada"), "also one that starts later"


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
    assert address_of(request) == address


def test_a_machine_without_a_proxy_takes_nobodys_word_for_tls(client: Client) -> None:
    answer = client.get(reverse("login"), headers={"X-Forwarded-Proto": "https"})
    assert not answer.wsgi_request.is_secure()


def test_one_address_does_not_try_many_names(toy: Toy, settings: Any, redis: str) -> None:
    settings.PROXIES = 1
    for number in range(throttle.ADDRESS.most):
        log_in(Client(), f"name{number}", "nonsense")
    assert WAIT in log_in(Client(), "rosa", PASSWORD).content.decode()
    assert log_in(Client(), "rosa", PASSWORD, "198.51.100.9").status_code == 302


def test_many_addresses_do_not_try_one_name_and_its_owner_gets_in(
    toy: Toy, settings: Any, redis: str
) -> None:
    settings.PROXIES = 1
    owner = Client()
    assert log_in(owner, "rosa", PASSWORD).status_code == 302
    owner.post(reverse("logout"))
    for number in range(throttle.NAME.most):
        log_in(Client(), "rosa", "nonsense", f"198.51.0.{number + 1}")
    assert WAIT in log_in(Client(), "rosa", PASSWORD, "198.51.0.200").content.decode()
    assert log_in(Client(), "rosa", PASSWORD, "203.0.113.9").status_code == 302, "at home"
    assert log_in(owner, "rosa", PASSWORD, "192.0.2.201").status_code == 302
    for number in range(throttle.NEW_NETWORKS.most):
        log_in(Client(), "rosa", "nonsense", f"198.52.{number}.1")
        assert WAIT in log_in(Client(), "rosa", PASSWORD, f"198.52.{number}.2").content.decode()
    assert WAIT in log_in(Client(), "rosa", PASSWORD, "198.53.0.1").content.decode()
    assert log_in(Client(), "rosa", PASSWORD, "203.0.113.10").status_code == 302, "at home"
    assert log_in(owner, "rosa", PASSWORD, "198.52.0.3").status_code == 302


def test_the_owner_gets_into_a_new_browser_in_a_new_network_while_few_networks_guess(
    toy: Toy, settings: Any, redis: str
) -> None:
    settings.PROXIES = 1
    for number in range(throttle.NAME.most + 5):
        log_in(Client(), "rosa", "nonsense", f"198.51.{number % 3}.{number + 1}")
    assert log_in(Client(), "rosa", PASSWORD, "192.0.2.200").status_code == 302


def test_the_owners_network_does_not_guess_without_end(toy: Toy, settings: Any, redis: str) -> None:
    settings.PROXIES = 1
    assert log_in(Client(), "rosa", PASSWORD).status_code == 302
    for number in range(throttle.AT_HOME.most):
        log_in(Client(), "rosa", "nonsense", f"203.0.113.{number + 20}")
    assert WAIT in log_in(Client(), "rosa", PASSWORD, "203.0.113.9").content.decode()
    assert log_in(Client(), "rosa", PASSWORD, "192.0.2.200").status_code == 302


def test_who_takes_the_name_in_other_letters_is_not_at_home_for_the_owner(
    toy: Toy, settings: Any, redis: str
) -> None:
    settings.PROXIES = 1
    User.objects.create_user("ROSA", password=PASSWORD)
    assert log_in(Client(), "ROSA", PASSWORD, "198.51.0.7").status_code == 302
    for number in range(throttle.NAME.most):
        log_in(Client(), "rosa", "nonsense", f"198.51.0.{number + 10}")
    assert WAIT in log_in(Client(), "rosa", PASSWORD, "198.51.0.8").content.decode()


def test_strangers_behind_the_owners_address_do_not_lock_the_owner_out(
    toy: Toy, settings: Any, redis: str
) -> None:
    settings.PROXIES = 1
    owner = Client()
    assert log_in(owner, "rosa", PASSWORD).status_code == 302
    owner.post(reverse("logout"))
    for _ in range(2 * throttle.PAIR.most):
        log_in(Client(), "rosa", "nonsense")
    for number in range(throttle.ADDRESS.most):
        log_in(Client(), f"name{number}", "nonsense")
    assert WAIT in log_in(Client(), "rosa", PASSWORD).content.decode()
    assert log_in(owner, "rosa", PASSWORD).status_code == 302
    assert WAIT in log_in(Client(), "rosa", PASSWORD).content.decode(), "that forgives nobody else"


def test_a_known_browser_may_not_guess_either(toy: Toy, redis: str) -> None:
    """Nor by logging in as somebody else in between, who has used it as well."""
    owner = Client()
    for name in ("tim", "rosa"):
        log_in(owner, name, PASSWORD)
        owner.post(reverse("logout"))
    for number in range(throttle.BROWSER.most):
        log_in(owner, "rosa", "nonsense")
        if number == 3:
            assert log_in(owner, "tim", PASSWORD).status_code == 302
            owner.post(reverse("logout"))
    assert WAIT in log_in(owner, "rosa", PASSWORD).content.decode()
    assert log_in(Client(), "rosa", PASSWORD).status_code == 302, "elsewhere nothing was tried"


def test_who_takes_the_name_in_other_letters_is_not_the_owner(toy: Toy, redis: str) -> None:
    User.objects.create_user("ROSA", password=PASSWORD)
    client = Client()
    assert log_in(client, "ROSA", PASSWORD).status_code == 302
    client.post(reverse("logout"))
    for _ in range(throttle.PAIR.most):
        log_in(Client(), "rosa", "nonsense")
    assert WAIT in log_in(client, "rosa", PASSWORD).content.decode()


def test_who_is_locked_out_gets_in_by_a_link_that_was_sent(toy: Toy, redis: str) -> None:
    rosa = toy.users["Rosa"]
    for _ in range(throttle.PAIR.most):
        log_in(Client(), "rosa", "nonsense")
    owner = Client()
    assert WAIT in log_in(owner, "rosa", PASSWORD).content.decode()
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


def test_the_browser_in_which_an_account_was_made_is_known(
    toy: Toy, settings: Any, redis: str
) -> None:
    Intake.objects.create(volunteers=Intake.Volunteers.QUEUE)
    secret = "a long new secret"
    said = {"username": "vera", "password1": secret, "password2": secret}
    owner = Client()
    assert owner.post(reverse("annotate_volunteer"), said).status_code == 302
    owner.post(reverse("logout"))
    for _ in range(throttle.PAIR.most):
        log_in(Client(), "vera", "nonsense")
    assert log_in(owner, "vera", secret).status_code == 302


def test_nobody_writes_the_cookie_of_a_known_browser(toy: Toy, redis: str) -> None:
    for limit in (throttle.NAME, throttle.NEW_NETWORKS):
        for _ in range(limit.most):
            limit.count("rosa")
    for written in ('["rosa"]', '["1","rosa"]', signing.dumps(["1", "rosa"]), ""):
        client = Client()
        client.cookies[throttle.COOKIE] = written
        assert WAIT in log_in(client, "rosa", PASSWORD).content.decode()


def sign_up(name: str, address: str) -> Any:
    said = {"username": name, "password1": "a long new secret", "password2": "a long new secret"}
    headers = {"X-Forwarded-For": address}
    return Client().post(reverse("annotate_volunteer"), said, headers=headers)


def test_volunteers_of_one_address_do_not_hold_up_the_rest_of_the_world(
    toy: Toy, settings: Any, redis: str
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


def test_requests_for_accounts_are_counted_by_address(toy: Toy, settings: Any, redis: str) -> None:
    settings.PROXIES = 1
    said = {"email": "rosa@example.org"}
    for _ in range(ask.RESETS.most):
        Client().post(reverse("forgotten"), said, headers={"X-Forwarded-For": "203.0.113.7"})
    again = {"X-Forwarded-For": "203.0.113.7"}
    other = {"X-Forwarded-For": "198.51.100.9"}
    refused = Client().post(reverse("forgotten"), said, headers=again)
    assert refused.status_code == 429 and 3590 <= int(refused["Retry-After"]) <= 3600
    assert Client().post(reverse("forgotten"), said, headers=other).status_code == 302


def test_the_api_says_when_the_next_request_is_let_in(
    toy: Toy, settings: Any, redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = ForgivingCache(settings.REDIS, {"KEY_PREFIX": uuid4().hex})
    if redis == "with Redis":
        monkeypatch.setattr(limits, "cache", answers)
    settings.API_RATE_OF_STRANGERS = 1
    of_strangers = limits.Limit("api.address", 1, 60)
    assert Client().get("/api/tracks/", REMOTE_ADDR="192.0.2.77").status_code == 200
    assert 59 < of_strangers.seconds_left("192.0.2.77") <= 60
    key = of_strangers._key(("192.0.2.77",))
    if redis == "without Redis":
        limits.own.forget(key)
        limits.own.add(of_strangers.what, key, 6.5)
    else:
        assert answers.touch(key, 7)
    refused = Client().get("/api/tracks/", REMOTE_ADDR="192.0.2.77")
    assert refused.status_code == 429 and refused["Retry-After"] == "7"
    assert refused.json()["detail"].endswith("Come again in 7 seconds.")


def test_pages_and_the_log_in_say_when_the_next_try_is_let_in(
    toy: Toy, client: Client, settings: Any, redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seconds that are left of the count, as the API's; not the whole of what is counted."""
    answers = ForgivingCache(settings.REDIS, {"KEY_PREFIX": uuid4().hex})
    if redis == "with Redis":
        monkeypatch.setattr(limits, "cache", answers)

    def ends_in(limit: limits.Limit, *who: str) -> None:
        key = limit._key(who)
        if redis == "without Redis":
            limits.own.forget(key)
            for _ in range(limit.most):
                limits.own.add(limit.what, key, 6.5)
        else:
            assert answers.touch(key, 7)

    wrong = {"username": "Rosa", "password": "wrong"}
    assert all(
        "Retry-After" not in client.post(reverse("login"), wrong) for _ in range(throttle.PAIR.most)
    )
    ends_in(throttle.PAIR, "127.0.0.1", "Rosa")
    paused = client.post(reverse("login"), wrong)
    assert paused.status_code == 429 and paused["Retry-After"] == "7"
    monkeypatch.setattr(ask, "RESETS", limits.Limit("ask.reset", 1, 3600))
    said = {"email": "rosa@example.org"}
    assert client.post(reverse("forgotten"), said).status_code == 302
    ends_in(ask.RESETS, "127.0.0.1")
    refused = client.post(reverse("forgotten"), said)
    assert refused.status_code == 429 and refused["Retry-After"] == "7"


def test_every_counter_has_a_name_that_any_cache_takes() -> None:
    named = re.compile(r"\bLimit\(\s*\"([^\"]+)\"")
    found = [
        name for path in Path("kbpo").rglob("*.py") for name in named.findall(path.read_text())
    ]
    assert len(found) > 10 and [name for name in found if not re.fullmatch(r"[\w.]+", name)] == []


def test_no_counter_is_ever_without_its_end(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """Not even one that was left without, as a counter was that ended between two calls."""
    cache = ForgivingCache(settings.REDIS, {"KEY_PREFIX": "of-an-end"})
    monkeypatch.setattr(limits, "cache", cache)
    monkeypatch.setattr(ForgivingCache, "away_until", 0.0)
    limit = limits.Limit("of-an-end", most=1, seconds=60)
    client, name = cache._cache.get_client(write=True), cache.make_key(limit._key(("somebody",)))
    client.delete(name)
    assert limit.count("somebody") and 0 < client.ttl(name) <= 60
    client.expire(name, 30)
    assert not limit.count("somebody") and 0 < client.ttl(name) <= 30, "it ends when it said"
    client.persist(name)
    assert not limit.count("somebody") and 0 < client.ttl(name) <= 60
    assert limit.is_reached("somebody")
    limit.forget("somebody")
    assert not client.exists(name)


def test_nobody_is_sent_mail_after_mail_by_strangers(client: Client, toy: Toy, redis: str) -> None:
    """Whatever addresses the requests come from, and however the name of the mailbox is written."""
    rosa = toy.users["Rosa"]
    User.objects.filter(pk=rosa.pk).update(email="rosa@example.org")
    for number in range(9):
        said = {"email": "Rosa@Example.org" if number % 2 else "rosa@example.org"}
        answer = client.post(
            reverse("forgotten"), said, headers={"X-Forwarded-For": f"203.0.113.{number}"}
        )
        assert answer.status_code == 302 and answer.url == reverse("login")
        text = client.get(answer.url).content.decode()
        assert "If there is an account with this address" in text
    assert Delivery.objects.count() == ask.MAILS.most == 3
    User.objects.filter(pk=toy.users["Tim"].pk).update(email="tim@example.org")
    client.post(reverse("forgotten"), {"email": "tim@example.org"})
    assert Delivery.objects.count() == 4
