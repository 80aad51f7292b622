"""People are told what became of their work, as they prefer; calls are signed, repeated, and never
lead into a network of ours.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from smtplib import SMTPRecipientsRefused
from typing import Any, ClassVar

import pytest
from django.conf import settings as site
from django.core import mail
from django.core.cache import cache
from django.db import connection
from django.db.models import QuerySet
from django.test import Client
from django.urls import reverse

from annotation.desk import experts
from annotation.workers import speak
from annotation.workers.worker import worker_of_user
from kbpo import clock
from kbpo.accounts import notices, webhooks
from kbpo.accounts.models import EVENTS, Delivery, Webhook
from kbpo.accounts.notices import save_notice_choices
from kbpo.submissions.models import Submission
from kbpo.web.research.judged import dispute
from tests.conftest import Toy
from tests.test.web.scored import make_study

As = Callable[[str], Client]
Draft = Callable[..., Submission]
pytestmark = pytest.mark.django_db(transaction=True)


class Ear(BaseHTTPRequestHandler):
    """Answers as it is told, and keeps what it heard."""

    heard: ClassVar[list[tuple[dict[str, str], bytes]]] = []
    answers: ClassVar[list[int]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.heard.append((dict(self.headers), body))
        status = self.answers.pop(0) if self.answers else 200
        self.send_response(status)
        self.send_header("Location", "http://127.0.0.1:1/")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def ear() -> Iterator[str]:
    """The address of a server that hears calls."""
    Ear.heard.clear()
    Ear.answers.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Ear)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/heard?by=us"
    server.shutdown()
    server.server_close()


@pytest.fixture
def hook(toy: Toy, ear: str, settings: Any) -> Webhook:
    settings.WEBHOOKS_TO_PRIVATE = True
    cache.clear()
    return Webhook.objects.create(user=toy.users["Rosa"], url=ear)


def calls() -> QuerySet[Delivery]:
    """What is told by webhooks; mails stand in the same queue."""
    return Delivery.objects.exclude(hook=None)


def send() -> int:
    """How many mails and calls were tried in one round of both workers."""
    return notices.tick() + notices.tick_calls()


def test_each_end_of_a_run_is_told_once_with_a_signature_that_holds(
    hook: Webhook, draft: Draft
) -> None:
    row = draft()
    row.move("expired", "You did not confirm it within seven days.")
    assert send() == 2 and send() == 0, "a call and a mail"
    headers, body = Ear.heard[0]
    told = signed(hook, headers, body)
    assert told["event"] == headers["X-KBPO-Event"] == "expired"
    assert told["submission"]["id"] == row.pk and "seven days" in told["text"]
    delivery = calls().get()
    assert (delivery.status, delivery.answered, delivery.attempts) == ("sent", 200, 1)
    assert str(delivery.pk) == headers["X-KBPO-Delivery"]
    assert [letter.to for letter in mail.outbox] == [[hook.user.email]]


def signed(hook: Webhook, headers: dict[str, str], body: bytes) -> dict[str, Any]:
    """What a call said, whose signature holds."""
    parts = dict(part.split("=") for part in headers["X-KBPO-Signature"].split(","))
    ours = hmac.new(hook.secret.encode(), f"{parts['t']}.".encode() + body, hashlib.sha256)
    assert hmac.compare_digest(parts["v1"], ours.hexdigest())
    assert abs(int(parts["t"]) - time.time()) < 60
    told: dict[str, Any] = json.loads(body)
    return told


def _is_disputed(toy: Toy, row: Submission, n: int) -> None:
    """The n-th judgment of a run is doubted, and looked at or put aside."""
    make_study(toy.track, toy.teams["Patterns"])
    prediction = row.predictions.order_by("pk")[n].pk
    check = dispute(toy.users["Rosa"], row, prediction, "The text says the opposite.")
    if n % 2:
        experts.drop_dispute(check, toy.users["Admin"], "It says so twice.")
    else:
        experts.parse_and_store_answer(check, {"none": ["1"]}, toy.users["Admin"])


ENDS: dict[str, tuple[str, Callable[[Toy, Submission, int], object]]] = {
    "scored": ("Rosa", lambda toy, row, n: row.move("scored")),
    "refused": ("Rosa", lambda toy, row, n: row.move("refused", "No line can be read.")),
    "expired": ("Rosa", lambda toy, row, n: row.move("expired", "You did not confirm it.")),
    "release": ("Rosa", lambda toy, row, n: row.notify_of_release()),
    "dispute": ("Rosa", _is_disputed),
    "decision": (
        "Ada",
        lambda toy, row, n: speak.send_decision(
            worker_of_user(toy.users["Ada"]), "Refused", "Why."
        ),
    ),
}
"""event -> who is told of it, and how it comes about"""


@pytest.mark.parametrize("event", EVENTS)
def test_every_event_is_told_by_mail_and_signed_call_as_each_is_chosen(
    toy: Toy, hook: Webhook, judged: Submission, event: str
) -> None:
    who, happens = ENDS[event]
    hook.user = toy.users[who]
    hook.save()
    hook.user.email = "who@example.org"
    hook.user.save()
    Delivery.objects.all().delete()
    for n, (by_mail, by_call) in enumerate([(True, True), (True, False), (False, True)]):
        others = [name for name in EVENTS if name != event]  # what is chosen of these is not asked
        mailed, called = (others[:2], others[2:])
        save_notice_choices(
            hook.user,
            by_mail=[*mailed, *([event] if by_mail else [])],
            by_call=[*called, *([event] if by_call else [])],
        )
        mail.outbox.clear()
        Ear.heard.clear()
        happens(toy, judged, n)
        send()
        assert [letter.to for letter in mail.outbox] == [["who@example.org"]] * by_mail
        told = [signed(hook, *heard) for heard in Ear.heard]
        assert [said["event"] for said in told] == [event] * by_call
        for said in told:
            assert said["text"] and said["subject"]
        judged.move("judging")


def test_a_call_is_repeated_later_and_given_up_in_words(hook: Webhook) -> None:
    Ear.answers += [500, 302, *[503] * notices.MOST_TRIES]
    delivery = notices.queue_test_call(hook)
    waits = []
    for tries in range(1, notices.MOST_TRIES + 1):
        assert send() == 1
        assert send() == 0, "not before it is due again"
        delivery.refresh_from_db()
        assert delivery.attempts == tries
        waits.append((delivery.next_try_at - clock.now()).total_seconds())
        Delivery.objects.update(next_try_at=clock.now())
    assert (delivery.status, delivery.answered) == ("failed", 503)
    assert delivery.reason == "It answered 503." and send() == 0
    assert waits[1] > 2 * waits[0], "each wait is longer"
    assert len(Ear.heard) == notices.MOST_TRIES, "a redirect is not followed"
    assert len({headers["X-KBPO-Delivery"] for headers, _ in Ear.heard}) == 1


class Post:
    """A mail server that answers as it is told, and keeps what it took."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.troubles: list[Exception] = []
        self.taken: list[Any] = []
        monkeypatch.setattr(f"{site.EMAIL_BACKEND}.send_messages", self.take)

    def take(self, letters: list[Any]) -> int:
        if self.troubles:
            raise self.troubles.pop(0)
        self.taken += letters
        return len(letters)


def test_a_mail_that_the_server_does_not_take_is_tried_again_and_not_lost(
    hook: Webhook,
    draft: Draft,
    as_user: As,
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
) -> None:
    settings.MAIL_URL = "smtp://mail.example.org"
    post = Post(monkeypatch)
    post.troubles += [ConnectionRefusedError(), SMTPRecipientsRefused({"r": (451, b"Later.")})]
    hook.delete()
    draft().move("scored")
    row = Delivery.objects.get()
    for code in (None, 451):
        assert send() == 1 and send() == 0, "not before it is due again"
        row.refresh_from_db()
        assert (row.status, row.answered) == ("waiting", code)
        assert "server" in row.reason if code else "could not be sent" in row.reason
        Delivery.objects.update(next_try_at=clock.now())
    assert "waits" in as_user("Rosa").get(reverse("notices")).content.decode()
    assert send() == 1
    row.refresh_from_db()
    [letter] = post.taken
    assert (row.status, row.attempts, letter.to) == ("sent", 3, ["rosa@example.org"])
    assert row.body == {"subject": letter.subject} and "scored" in letter.body
    assert letter.extra_headers["Message-ID"].startswith(f"<{row.pk}.")
    page = as_user("Rosa").get(reverse("notices")).content.decode()
    assert letter.subject in page
    assert letter.subject not in as_user("Tim").get(reverse("notices")).content.decode()


def test_a_process_that_dies_in_a_call_leaves_it_due_again(
    hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notices.queue_test_call(hook)
    seen: list[bool] = []

    def dies(*_: Any) -> int:
        seen.append(connection.in_atomic_block)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(notices, "call_webhook", dies)
        with pytest.raises(KeyboardInterrupt):
            send()
    assert seen == [False], "no call is made inside a transaction"
    assert send() == 0
    Delivery.objects.update(next_try_at=clock.now())
    assert send() == 1 and Delivery.objects.get().status == "sent"


PRIVATE = (
    *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0"),
    *("100.64.0.1", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fc00::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "2002:7f00:1::", "64:ff9b::a00:1"),
    # of version 6 nothing but global unicast, and nothing that wraps an address of version 4
    *("::ffff:93.184.216.34", "64:ff9b::5db8:d822", "2002:5db8:d822::1", "2001:0:5db8:d822::1"),
    *("64:ff9b:1::1", "100::1", "1fff::1", "4000::1", "5f00::1", "fec0::1", "ff0e::1"),
    *("2001:db8::1",),
)


def test_no_address_of_a_private_network_is_public() -> None:
    for address in PRIVATE:
        assert not webhooks.is_public(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:4700::1111", "2001:4860:4860::8888"])
def test_addresses_of_the_public_network_are(address: str) -> None:
    assert webhooks.is_public(address)


def test_a_name_that_leads_to_this_machine_is_refused_when_it_is_called(
    hook: Webhook, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.WEBHOOKS_TO_PRIVATE = False
    for url in (hook.url, hook.url.replace("127.0.0.1", "localhost")):
        Webhook.objects.update(url=url)
        notices.queue_test_call(hook)
        send()
    assert not Ear.heard
    assert {row.reason for row in Delivery.objects.all()} == {webhooks.NOT_PUBLIC}
    # one of several addresses is enough to refuse, and a name is looked up once: what it leads to
    # in the next moment does not matter
    family, kind = socket.AF_INET, socket.SOCK_STREAM
    both = [(family, kind, 6, "", (one, 80)) for one in ("93.184.216.34", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
    with pytest.raises(webhooks.CannotCall, match=f"^{webhooks.NOT_PUBLIC}$"):
        webhooks.resolve_host("two.example", 80)
    asked, called = [], []

    def changes(*_: Any, **__: Any) -> Any:
        asked.append(1)
        return both[:1] if len(asked) == 1 else both[1:]

    def connect(address: Any, **_: Any) -> Any:
        called.append(address)
        raise OSError

    monkeypatch.setattr(socket, "getaddrinfo", changes)
    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(webhooks.CannotCall, match="could not be reached"):
        webhooks.call_webhook("http://two.example/", "s", "test", b"{}", 1)
    assert called == [("93.184.216.34", 80)] and len(asked) == 1


def test_a_slow_webhook_is_paused_until_its_owner_tests_it(
    hook: Webhook, as_user: As, toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Webhook.objects.create(user=toy.users["Tim"], url=hook.url)
    monkeypatch.setattr(notices, "SLOW_SECONDS", 0.0)
    for _ in range(notices.MOST_SLOW):
        assert not hook.pause
        notices.queue_test_call(hook)
        assert send() == 1
        hook.refresh_from_db()
    rosa = as_user("Rosa")
    assert "after 3 slow calls" in rosa.get(reverse("notices")).content.decode()
    waiting = notices.queue_test_call(hook)
    notices.queue_test_call(other)
    assert send() == 1, "others are called"
    waiting.refresh_from_db()
    assert (waiting.status, waiting.attempts) == ("waiting", 0)
    monkeypatch.setattr(notices, "SLOW_SECONDS", 60.0)
    rosa.post(reverse("notices-webhook", args=[hook.pk]), {"verb": "test"})
    assert send() == 2, "what waited, and the test"
    hook.refresh_from_db()
    assert (hook.slow_calls, hook.pause) == (0, "")


def test_webhooks_are_tested_removed_and_ones_own(hook: Webhook, as_user: As) -> None:
    rosa, address = as_user("Rosa"), reverse("notices-webhook", args=[hook.pk])
    assert as_user("Tim").post(address, {"verb": "remove"}).status_code == 404
    rosa.post(address, {"verb": "test"})
    send()
    page = rosa.get(reverse("notices")).content.decode()
    assert "arrived" in page and hook.secret in page
    assert hook.secret not in as_user("Tim").get(reverse("notices")).content.decode()
    for n in range(7):
        rosa.post(reverse("notices"), {"verb": "add", "url": f"https://example.org/{n}"})
    assert Webhook.objects.count() == 5
    rosa.post(address, {"verb": "remove"})
    assert not Webhook.objects.filter(pk=hook.pk).exists() and not Delivery.objects.exists()
