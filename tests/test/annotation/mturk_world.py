"""The local endpoint over real HTTP, and workers who use its pages and ours as a browser would,
step by step.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from annotation_world import GOOD
from django.db.models import F, Sum
from django.test import Client

from annotation.hits import collect, publish
from annotation.labels import settle
from annotation.marketplace import pay_out, reconcile
from annotation.models import (
    HIT,
    Assignment,
    Bonus,
    ExternalType,
    Payment,
    PlatformBooks,
    Qualification,
    Question,
)
from annotation.platforms.mturk.platform import MTurk, form_fields
from kbpo import clock
from kbpo.instances.models import Label
from kbpo.money.models import Ledger
from rehearsal.mturk.store import DEPOSIT_CENTS, Store

BOOKS = (
    "hit_type",
    "hit",
    "assignment",
    "token",
    "bonus",
    "qualification_type",
    "qualification",
    "qualification_request",
    "blocked",
    "letter",
    "notice",
    "fault",
    "call",
)
TOO_LATE = Decimal("1.5")
"""How long we wait for an answer that is to come too late, in seconds"""
LATE = 2.0
"""When such an answer comes"""
NONSENSE = "nonsense"
"""An answer that cannot be used"""

FAULTS = [
    "error_after",
    "timeout",
    *(pytest.param(one, marks=pytest.mark.soak) for one in ("throttle", "error", "hang")),
]
"""How a call goes wrong. What leaves open whether it was done runs before anything is published,
what says that it was not in a soak."""


@dataclass
class Turk:
    """The endpoint, from all sides."""

    url: str
    store: Store

    def wipe(self) -> None:
        with self.store.begin_call() as books:
            for table in ("fault", "token", "bonus", "assignment", "hit", "hit_type", *BOOKS):
                books.run(f"DELETE FROM {table}")
            books.run("UPDATE fact SET value = ? WHERE name = 'deposit'", DEPOSIT_CENTS)

    def fault(
        self, operation: str, kind: str, times: int = 1, seconds: float | None = None
    ) -> None:
        wait = (LATE if kind == "timeout" else 0.1) if seconds is None else seconds
        self._post(
            "/control/faults",
            json.dumps(
                {"operation": operation, "kind": kind, "times": times, "seconds": wait}
            ).encode(),
        )

    def forgive(self) -> None:
        """Takes back the faults that are switched on."""
        self._post("/control/faults", b"{}")

    def advance(self, **time: float) -> None:
        """Puts the platform's clock forward; what we noted of time is put back by as much."""
        by = timedelta(**time)
        self._post("/control/clock", json.dumps({"advance": by.total_seconds()}).encode())
        shift_our_clock(by)

    def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        with self.store.begin_call() as books:
            return [dict(row) for row in books.all(sql, *values)]

    def calls(self, operation: str, outcome: str = "done") -> int:
        return self.rows(
            "SELECT count(*) AS n FROM call WHERE operation = ? AND outcome = ?", operation, outcome
        )[0]["n"]

    def hits(self) -> list[str]:
        return [row["id"] for row in self.rows("SELECT id FROM hit ORDER BY number")]

    # -- the worker
    # ------------------------------------------------------------------------------
    def offered(self, worker: str) -> list[str]:
        return re.findall(r'class="hit" href="[^"]*hitId=(\w+)', self._get(f"/?workerId={worker}"))

    def preview(self, worker: str, hit: str) -> str:
        return _src(self._get(f"/preview?workerId={worker}&hitId={hit}"))

    def accept(self, worker: str, hit: str) -> tuple[str, str]:
        """The assignment, and the address in the frame."""
        where, text = self._post("/accept", urlencode({"workerId": worker, "hitId": hit}).encode())
        return parse_qs(urlsplit(where).query)["assignmentId"][0], _src(text)

    def give_back(self, worker: str, assignment: str) -> None:
        self._post("/return", urlencode({"workerId": worker, "assignmentId": assignment}).encode())

    def send(self, fields: dict[str, Any]) -> None:
        self._post("/mturk/externalSubmit", urlencode(fields, doseq=True).encode())

    def do(self, worker: str, hit: str, answer: dict[str, Any] | None = None) -> str:
        """One worker does one HIT, whole; the assignment."""
        assignment, src = self.accept(worker, hit)
        self.send(self.fill_in(src, answer))
        return assignment

    def fill_in(self, src: str, answer: dict[str, Any] | None = None) -> dict[str, Any]:
        """The fields of the last form of our task pages, every question answered the same way."""
        client, path = Client(), src.partition("//")[2].partition("/")[2]
        page = client.get("/" + path)
        if (terms := form_of(page.content.decode(), "consent")) is not None:
            page = client.post("/" + path, terms | {"agree": "yes"})
        while (form := form_of(page.content.decode(), "answer")) is not None:
            page = client.post("/" + path, form | (answer or GOOD))
            assert page.status_code == 200, page.content.decode()
        assert not client.cookies
        found = form_of(page.content.decode(), "send")
        assert found is not None, page.content.decode()
        return found

    def all_do(self, *workers: str, answer: dict[str, Any] | None = None) -> int:
        """How many assignments were done until nothing was offered to any of these workers."""
        done = 0
        for worker in workers:
            while hits := self.offered(worker):
                for hit in hits:
                    self.do(worker, hit, answer)
                    done += 1
        return done

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            return str(answer.read().decode())

    def _post(self, path: str, body: bytes) -> tuple[str, str]:
        try:
            with urllib.request.urlopen(self.url + path, body, timeout=60) as answer:
                return answer.url, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            raise Refusal(re.sub(r"<[^>]*>", " ", refusal.read().decode())) from refusal


class Refusal(Exception):
    """The marketplace refused a worker."""


def _src(text: str) -> str:
    found = re.search(r'<iframe[^>]*src="([^"]*)"', text)
    assert found, text
    return unescape(found.group(1))


def form_of(text: str, id: str) -> dict[str, Any] | None:
    """The hidden fields of a form of ours."""
    found = re.search(rf'<form[^>]*id="{id}".*?</form>', text, re.S)
    if found is None:
        return None
    hidden = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', found.group(0))
    return {name: unescape(value) for name, value in hidden}


def shift_our_clock(by: timedelta) -> None:
    """Lets as much time pass in our own rows."""
    moving = {
        HIT: ["called_at", "renewed_at", "checked_at"],
        Assignment: ["leased_until"],
        Payment: [],
        Bonus: [],
        Question: [],
    }
    for model, more in moving.items():
        model.objects.update(
            **{name: F(name) - by for name in ("status_since", "next_try_at", *more)}
        )
    PlatformBooks.objects.update(polled_at=F("polled_at") - by)


def due() -> None:
    """Whatever waits for its next try may be tried now, and the platform may be asked again."""
    for model in (HIT, Payment, Bonus, Assignment):
        model.objects.update(next_try_at=clock.now())
    Question.objects.filter(status="waiting").update(next_try_at=clock.now())
    PlatformBooks.objects.update(polled_at=None, held_until=None)
    HIT.objects.update(checked_at=None)


def bury() -> None:
    """What somebody dead had in hand is free: rows that are being paid were begun long enough ago
    that the next one takes them up, and nobody looks at the platform.
    """
    PlatformBooks.objects.update(held_until=None)
    for model in (Payment, Bonus):
        model.objects.filter(status="sent").update(status_since="2026-01-01T00:00:00Z")


def collect_and_reconcile() -> int:
    """How many rows moved as time went by, here and on other platforms."""
    return collect.tick() + reconcile.tick()


def round_() -> int:
    """One round of the crowd's part of the pipeline, as the clock brings it."""
    return publish.tick() + collect_and_reconcile() + settle.tick() + pay_out.tick()


def rounds(most: int = 12) -> None:
    """Rounds until nothing moves any more."""
    for _ in range(most):
        due()
        if not round_():
            return
    raise AssertionError(f"Something still moves after {most} rounds.")


def settle_down(most: int = 8) -> None:
    """The clock comes round until everything moved; whoever was "sent" is dead.

    It ends after three rounds in which nothing moved: a call that failed moves nothing either, and
    its row is tried again in the next.
    """
    still = 0
    for _ in range(most):
        bury()
        due()
        still = 0 if round_() else still + 1
        if still == 3:
            return


def check_books(turk: Turk) -> None:
    """Our books and the endpoint's own say the same, and nothing is there twice."""
    theirs = turk.rows(
        "SELECT annotation, id, most, disposed FROM hit WHERE annotation LIKE 'kbpo:%'"
    )
    assert max(Counter(row["annotation"] for row in theirs).values(), default=1) == 1, "a HIT twice"
    ours = {
        f"kbpo:{hit.token}": hit
        for hit in HIT.objects.filter(platform="mturk", endpoint__in=["", turk.url])
    }
    assert {row["annotation"] for row in theirs} <= set(ours)
    for row in theirs:
        assert ours[row["annotation"]].external_id in ("", row["id"])
    check_hits(ours, {row["annotation"]: row for row in theirs})
    sent = turk.rows(
        "SELECT a.id, a.worker, a.status, t.reward FROM assignment a JOIN hit h ON h.id = a.hit"
        " JOIN hit_type t ON t.id = h.type WHERE a.status IN ('Submitted', 'Approved', 'Rejected')"
        " AND h.annotation LIKE 'kbpo:%'"
    )
    mine = {
        (a.external_id, a.worker.identity.external_id): a
        for a in Assignment.objects.exclude(raw=None).select_related("worker__identity")
    }
    assert set(mine) == {(row["id"], row["worker"]) for row in sent}, (
        "an answer lost, or one too many"
    )
    for row in sent:
        answer = mine[row["id"], row["worker"]]
        assert Payment.objects.filter(assignment=answer, status="paid").exists() == (
            row["status"] == "Approved"
        )
        if row["status"] == "Approved":
            assert answer.payment.amount == Decimal(row["reward"]) / 100
    spent = Ledger.objects.filter(kind="spend", key__startswith="assignment:").exclude(
        state="failed"
    )
    keys = [row.key.split("/")[0] for row in spent]
    assert set(keys) == {f"assignment:{p.assignment_id}" for p in Payment.objects.all()}
    for origin, n in Counter(
        Label.objects.filter(target__kind="pair").values_list("origin", flat=True)
    ).items():
        assert n == 1, f"two labels of {origin}"


def check_hits(ours: dict[str, HIT], theirs: dict[str, dict[str, Any]]) -> None:
    """Every HIT that we hold for one of theirs is there, and what we call open is."""
    for mark, hit in ours.items():
        if hit.external_id or hit.status in ("open", "closed", "expired"):
            assert mark in theirs, f"{hit} is {hit.status} with us, and they do not have it"
        if hit.status == "open":
            assert not theirs[mark]["disposed"], f"{hit} is open with us, and disposed with them"


def check_labels(turk: Turk) -> None:
    """Every label counts the people who sent a usable answer in, as the endpoint has them; for when
    all is at rest.
    """
    sent: dict[str, set[str]] = defaultdict(set)
    for row in turk.rows(
        "SELECT h.annotation, a.worker, a.answer FROM assignment a JOIN hit h ON h.id = a.hit"
        " WHERE a.status IN ('Submitted', 'Approved', 'Rejected')"
    ):
        if form_fields(row["answer"]).get("answer") != NONSENSE:
            sent[row["annotation"]].add(row["worker"])
    for question in Question.objects.filter(status__in=["settled", "unanswered"]).prefetch_related(
        "hits"
    ):
        people = set().union(*(sent[f"kbpo:{hit.token}"] for hit in question.hits.all()))
        label = Label.objects.filter(
            target=question.target, origin__startswith=question.origin
        ).latest("pk")
        assert label.n == len(people), (
            f"{question}: {label.n} answers are in its label, {len(people)} were sent in"
        )


def check_bonuses(turk: Turk) -> None:
    """Every bonus and every compensation has reached its worker once; for when all of them were
    taken.
    """
    assert set(Bonus.objects.values_list("status", flat=True)) <= {"paid"}
    rows = Bonus.objects.select_related("worker__identity", "assignment")
    ours = Counter(
        (one.worker.identity.external_id, one.assignment.external_id, int(100 * one.amount))
        for one in rows
        if one.assignment is not None
    )
    theirs = turk.rows("SELECT worker, assignment, cents FROM bonus")
    assert ours == Counter((row["worker"], row["assignment"], row["cents"]) for row in theirs)
    owed = Counter(
        (one.external_id, one.worker.identity.external_id, int(100 * one.amount))
        for one in rows
        if one.assignment is None
    )
    taken = turk.rows(
        "SELECT h.id, a.worker, t.reward, a.status FROM hit h JOIN hit_type t ON t.id = h.type"
        " LEFT JOIN assignment a ON a.hit = h.id WHERE h.annotation LIKE 'kbpo-compensation:%'"
    )
    assert owed == Counter((row["id"], row["worker"], row["reward"]) for row in taken)
    assert {row["status"] for row in taken} <= {"Approved"}


def check_money(turk: Turk) -> None:
    """What has left the deposit is what our ledger says was spent, with fees, to the cent; for when
    all is at rest.
    """
    told = MTurk().balance()
    left = told["available"] + told["on_hold"]
    deposit = Decimal(turk.rows("SELECT value FROM fact WHERE name = 'deposit'")[0]["value"]) / 100
    spent = (
        Ledger.objects.filter(kind="spend")
        .exclude(state="failed")
        .aggregate(sum=Sum("amount"))["sum"]
    )
    assert deposit - left == (spent or 0)


def check_cleared(turk: Turk) -> None:
    """Of payments that were made nothing is left there: no HIT, no qualification; for when all of
    them were taken.
    """
    assert not turk.rows(
        "SELECT id FROM hit WHERE annotation LIKE 'kbpo-compensation:%' AND NOT disposed"
    )
    assert not turk.rows("SELECT name FROM qualification_type WHERE name LIKE '%payment%'")
    assert not ExternalType.objects.filter(
        kind="qualification", digest__startswith="payment"
    ).exists()


class Killed(BaseException):
    """The process is gone."""


@contextmanager
def dying(owner: Any, name: str, *, before: bool, at: int = 1):  # type: ignore[no-untyped-def]
    """Kills us at the at-th call of a function: before it does anything, or when it has done it."""
    real, calls = getattr(owner, name), 0

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at and before:
            raise Killed
        result = real(*args, **kwargs)
        if calls == at:
            raise Killed
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, wrapped)
        yield


def put_up(turk: Turk) -> int:
    return turk.rows("SELECT count(*) AS n FROM hit")[0]["n"]


def killed(step: Callable[[], Any]) -> None:
    with pytest.raises(Killed):
        step()


__all__ = [
    "ExternalType",
    "Qualification",
    "Refusal",
    "Turk",
    "check_books",
    "due",
    "form_of",
    "round_",
    "rounds",
]
