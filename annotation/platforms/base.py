"""The contract of a platform, where people answer questions. Every call carries an idempotency key
of ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from annotation.models import HIT, Assignment, Bonus, Worker


class PlatformDown(Exception):
    """Raised if the platform did not answer and nothing happened there. The call may be retried
    later.
    """


class UnknownOutcome(Exception):
    """Raised if the platform may or may not have executed the call. Read its lists (`survey`),
    never repeat the call.
    """


class Refused(Exception):
    """Raised if the platform refused and would refuse again; the text is a sentence, `code` the
    platform's error code.
    """

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.code = code


class Lost(Refused):
    """Raised if the object no longer exists and its outcome cannot be known: an admin must look."""


class Offer(StrEnum):
    """The state of a payment that is offered through a HIT of its own."""

    PAID = "paid"
    WAITS = "waits"  # for its worker, who may take it, or has it in hand
    NOBODY = "nobody"  # not accepted, and no longer offered


@dataclass(frozen=True)
class Account:
    """The configured endpoint, as shown to admins."""

    endpoint: str
    real: bool
    """Whether its payments use real money"""
    usable: bool
    sentence: str


@dataclass(frozen=True)
class Capabilities:
    """Name and features of a platform."""

    title: str = ""
    """Name for admins"""
    rejects: bool = True
    messages: bool = False
    worker_id: str = ""
    """Pattern of the platform's own worker ids, which cannot be confused with ours"""
    max_assignments: int = 9
    """Greatest number of assignments of one HIT; more need further HITs"""
    questions_per_hit: int = 1
    """Greatest number of questions of one HIT, all about one document; a HIT costs their sum"""
    fee_rate: Decimal = Decimal("0")
    least_fee: Decimal = Decimal("0.00")
    frame_sites: tuple[str, ...] = ()
    """Sites that show our task pages in a frame, and to which answers are sent"""
    submit_path: str = ""
    """Path at which such a site receives answers"""
    teaches_in_frame: bool = True
    """Whether workers do the tutorial in the frame before they judge"""
    admits: bool = False
    """Whether only workers with the tutorial's qualification may accept a HIT"""
    offered_for: timedelta = timedelta(0)
    """How long a HIT is offered"""
    looked_at_every: timedelta = timedelta(0)
    """How long its lists are considered current"""
    answers_within: timedelta = timedelta(0)
    """How long one of its calls may take"""

    def fee(self, reward: Decimal) -> Decimal:
        """Return the platform's fee for a reward (of all questions of a HIT) or a bonus."""
        rounded = (reward * self.fee_rate).quantize(Decimal("0.01"), rounding=ROUND_CEILING)
        return max(self.least_fee, rounded)


@dataclass(frozen=True)
class Seen:
    """A HIT as the platform's own lists describe it."""

    external_id: str
    token: str
    """Our token; empty for a HIT that is not ours"""
    status: str
    """open, busy (no free place), done (all places ended), gone"""
    max_assignments: int
    sent: int
    """Number of submitted assignments by the platform's counts"""
    expires_at: datetime
    created_at: datetime


@dataclass(frozen=True)
class Advert:
    """The description of HITs on another platform: title, number of questions, and time limits."""

    title: str
    questions: int
    work_seconds: int
    """Expected seconds for all its questions"""
    lease_seconds: int
    """Time limit from acceptance to submission"""
    before: str = ""
    """Sentences on hourly pay and on the tutorial, shown before acceptance"""


@dataclass(frozen=True)
class Request:
    """A worker's request for the qualification of our tutorial."""

    external_id: str
    worker_id: str


class Platform:
    """A place where people work: our own pages, or a marketplace. Methods raise PlatformDown,
    UnknownOutcome or Refused; any other exception is a bug. Each call may be repeated: what is done
    already counts as success. For our own pages no method calls anything, since their HITs and
    workers are rows of the database.
    """

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities] = Capabilities()

    def account(self) -> Account | None:
        """Return the configured endpoint; None if there is none, or the platform has no API."""
        return None

    def publish(self, hit: HIT, advert: Advert) -> str:
        """Publish a HIT with this advert, and return the platform's id. A repeat with the same
        `hit.token` returns the same id.
        """
        raise self._nothing_to_call()

    def offer(
        self, hit: HIT, until: datetime, *, additional_assignments: int = 0, key: str = ""
    ) -> None:
        """Offer a HIT again, or extend its time; add `additional_assignments` places, once per
        `key`.
        """
        raise self._nothing_to_call()

    def take_down(self, hit: HIT, *, delete: bool = False) -> None:
        """Take a HIT down, so that only started work may finish; or delete a HIT that is done and
        decided.
        """
        raise self._nothing_to_call()

    def survey(self, hit: HIT | None = None) -> Iterable[Seen]:
        """Yield every HIT that the platform has, ours or not. With `hit`, yield only its own row,
        found by its id or by our token, if there is one.
        """
        raise self._nothing_to_call()

    def collect(self, hit: HIT) -> Iterable[dict[str, Any]]:
        """Yield assignments that the platform has and we may not: external id, worker id, raw
        answer, times.
        """
        raise self._nothing_to_call()

    def decide(self, assignment: Assignment, refused: str | None = None) -> None:
        """Approve an assignment; or reject it with a reason that its worker reads."""
        raise self._nothing_to_call()

    def pay_bonus(self, bonus: Bonus) -> None:
        """Pay a bonus, once per `bonus.token`."""
        raise self._nothing_to_call()

    def advance_compensation(
        self, bonus: Bonus, *, still_offered: bool = True, is_finished: bool = False
    ) -> Offer:
        """Do the next step of paying a worker who has no assignment: a HIT of its own is offered to
        them, which they submit. A payment that is no longer offered is taken down; a worker who has
        accepted it may still submit it, and is paid. At the end the HIT and its qualification are
        deleted. Raises Lost if the outcome cannot be known any more.
        """
        raise self._nothing_to_call()

    def message(self, worker: Worker, subject: str, text: str) -> None:
        """Send a message to a worker."""
        raise self._nothing_to_call()

    def balance(self) -> dict[str, Decimal]:
        """Return the platform's own balance: the money that is `available`, and the money
        `on_hold`, if the platform holds money.
        """
        raise self._nothing_to_call()

    def set_qualification(self, worker: Worker, name: str, has_qualification: bool) -> None:
        """Grant a worker one of our qualifications, or revoke it."""
        raise self._nothing_to_call()

    def requests(self) -> Iterable[Request]:
        """Yield the open requests for the qualification of our tutorial."""
        raise self._nothing_to_call()

    def answer(self, request: Request, refused: str = "") -> None:
        """Grant a request for the qualification, or refuse it with a reason. Raises Refused if the
        request was answered already.
        """
        raise self._nothing_to_call()

    def _nothing_to_call(self) -> Refused:
        return Refused(
            f"There is nothing to call at {self.name}: its HITs and workers are rows of ours."
        )


def configured_endpoint(platform: Platform) -> str:
    """Return the configured endpoint; empty if there is none."""
    account = platform.account()
    return account.endpoint if account is not None else ""


def usable_account(account: Account | None) -> Account:
    """Return the endpoint. Raises PlatformDown with a sentence if it cannot be used."""
    if account is None:
        raise PlatformDown("No endpoint of a marketplace is set.")
    if not account.usable:
        raise PlatformDown(account.sentence)
    return account
