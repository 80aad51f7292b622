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
    """The platform did not answer, and nothing happened there. Try again later."""


class UnknownOutcome(Exception):
    """The platform may or may not have done it: read its lists (`survey`), never repeat."""


class Refused(Exception):
    """The platform refused, and will refuse again; the text is a sentence, `code` the platform's
    error code.
    """

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.code = code


class Lost(Refused):
    """The object no longer exists and its outcome cannot be known: an admin must look."""


class Offer(StrEnum):
    """The state of a payment that is offered through a HIT of its own."""

    PAID = "paid"
    WAITS = "waits"  # for its worker, who may take it, or has it in hand
    NOBODY = "nobody"  # nobody has taken it, and nobody can any more


@dataclass(frozen=True)
class Account:
    """The configured endpoint, as admins see it."""

    endpoint: str
    real: bool
    """Whether money would move there"""
    usable: bool
    sentence: str


@dataclass(frozen=True)
class Capabilities:
    """Name and abilities of a platform."""

    title: str = ""
    """Name for admins"""
    rejects: bool = True
    messages: bool = False
    worker_id: str = ""
    """Pattern of the platform's own ids of workers; they cannot be taken for ours"""
    max_assignments: int = 9
    """Assignments of one HIT; more need further HITs"""
    questions_per_hit: int = 1
    """Questions of one HIT about one document; a HIT costs their sum"""
    fee_rate: Decimal = Decimal("0")
    least_fee: Decimal = Decimal("0.00")
    frame_sites: tuple[str, ...] = ()
    """Sites that show our task pages in a frame, and that answers are sent to."""
    submit_path: str = ""
    """Where such a site takes answers."""
    teaches_in_frame: bool = True
    """Workers do the tutorial in the frame before they judge."""
    admits: bool = False
    """Only workers with the qualification of the tutorial may accept a HIT."""
    offered_for: timedelta = timedelta(0)
    """How long a HIT is offered."""
    looked_at_every: timedelta = timedelta(0)
    """How long its lists are taken as current"""
    answers_within: timedelta = timedelta(0)
    """How long one of its calls may take."""

    def fee(self, reward: Decimal) -> Decimal:
        """Return the platform's fee for a reward (of all questions of a HIT) or a bonus."""
        rounded = (reward * self.fee_rate).quantize(Decimal("0.01"), rounding=ROUND_CEILING)
        return max(self.least_fee, rounded)


@dataclass(frozen=True)
class Seen:
    """A HIT in the platform's own records."""

    external_id: str
    token: str
    """Our token; empty for a HIT of others"""
    status: str
    """open, busy (no free place), done (nobody works on it any more), gone"""
    max_assignments: int
    sent: int
    """Number of submitted assignments by the platform's counts"""
    expires_at: datetime
    created_at: datetime


@dataclass(frozen=True)
class Advert:
    """Title, description and time limit of HITs on another platform."""

    title: str
    questions: int
    work_seconds: int
    """For all its questions, as expected"""
    lease_seconds: int
    """Time limit from acceptance to submission"""
    before: str = ""
    """Sentences on hourly pay and on the tutorial"""


@dataclass(frozen=True)
class Request:
    """A worker's request for our qualification of the tutorial."""

    external_id: str
    worker_id: str


class Platform:
    """One place where people work. Raises PlatformDown, UnknownOutcome or Refused; anything else is
    a bug. Each call may be repeated: what is done already counts as done. At our own pages there is
    nothing to call, since their HITs and workers are rows of the database.
    """

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities] = Capabilities()

    def account(self) -> Account | None:
        """Return the endpoint that is set; None where none is, or there is nothing to call."""
        return None

    def publish(self, hit: HIT, advert: Advert) -> str:
        """Return the platform's id of the HIT, which is put up and advertised like this. With
        `hit.token` a repeat returns the same id.
        """
        raise self._nothing_to_call()

    def offer(self, hit: HIT, until: datetime, *, more: int = 0, key: str = "") -> None:
        """Offer a HIT again, or longer; with `more` assignments, once per `key`."""
        raise self._nothing_to_call()

    def take_down(self, hit: HIT, *, delete: bool = False) -> None:
        """Take a HIT down, work in progress may finish; or delete one that is done and decided."""
        raise self._nothing_to_call()

    def survey(self, hit: HIT | None = None) -> Iterable[Seen]:
        """Yield every HIT that the platform has, ours or not; or its row of one HIT, by its id or
        by our token, if it has one.
        """
        raise self._nothing_to_call()

    def collect(self, hit: HIT) -> Iterable[dict[str, Any]]:
        """Yield assignments that the platform knows and we may not: external id, worker id, raw
        answer, times.
        """
        raise self._nothing_to_call()

    def decide(self, assignment: Assignment, refused: str | None = None) -> None:
        """Approve an assignment; or reject it, with a reason that its worker reads."""
        raise self._nothing_to_call()

    def pay_bonus(self, bonus: Bonus) -> None:
        """Pay on top of the reward, once per `bonus.token`."""
        raise self._nothing_to_call()

    def compensate(self, bonus: Bonus, *, offered: bool = True, over: bool = False) -> Offer:
        """Pay somebody who has no assignment to be paid for, step by step. What is not offered any
        more is taken down; who has it in hand may still send it in, and is paid. Once it is over
        what was made for it is deleted. Raises Lost if nobody can say any more.
        """
        raise self._nothing_to_call()

    def message(self, worker: Worker, subject: str, text: str) -> None:
        """Send a message to a worker."""
        raise self._nothing_to_call()

    def balance(self) -> dict[str, Decimal]:
        """Return the platform's own books: what is `available`, and what is `on_hold`, where it
        keeps money.
        """
        raise self._nothing_to_call()

    def qualify(self, worker: Worker, name: str, held: bool) -> None:
        """Give a worker a qualification of ours, or take it back."""
        raise self._nothing_to_call()

    def requests(self) -> Iterable[Request]:
        """Yield the open requests for our qualification of the tutorial."""
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


def endpoint_of(platform: Platform) -> str:
    """Return the endpoint that is set; empty where there is none."""
    account = platform.account()
    return account.endpoint if account is not None else ""


def usable_account(account: Account | None) -> Account:
    """Return the endpoint, if it can be used. Raises PlatformDown with a sentence."""
    if account is None:
        raise PlatformDown("No endpoint of a marketplace is set.")
    if not account.usable:
        raise PlatformDown(account.sentence)
    return account
