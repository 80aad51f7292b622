"""The contract of a platform: where questions meet people. Every call carries an idempotency key of
ours.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from annotation.models import HIT, Assignment, Bonus, Worker


class PlatformDown(Exception):
    """The platform did not answer; the outcome is known to be 'nothing happened'. Try again
    later.
    """


class UnknownOutcome(Exception):
    """The platform may or may not have done it: ask `reconcile`, never repeat."""


class Refused(Exception):
    """The platform said no, and will say so again; the text is a sentence, `code` is the platform's
    word for it.
    """

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.code = code


class Lost(Refused):
    """What was there is not there any more, and nobody can say what became of it: a person must
    look.
    """


class Offer(StrEnum):
    """What has become of a payment that is offered through a HIT of its own."""

    PAID = "paid"
    WAITS = "waits"  # for its worker, who may take it, or has it in hand
    NOBODY = "nobody"  # nobody has taken it, and nobody can any more


@dataclass(frozen=True)
class Capabilities:
    """What a platform can do."""

    extends: bool = True
    rejects: bool = True
    pays_bonus: bool = True
    messages: bool = False
    max_assignments: int = 9
    """On one HIT; who wants more gets sibling HITs."""
    questions_per_hit: int = 1
    """Of one document; a HIT is priced by their sum."""
    fee_rate: Decimal = Decimal("0")
    frame_sites: tuple[str, ...] = ()
    """Sites that show our task pages in a frame, and that answers are sent to."""
    teaches_in_frame: bool = True
    """Workers do the tutorial in the frame before they judge."""
    admits: bool = False
    """Only whom we gave the qualification of the tutorial may accept a HIT."""
    offered_for: timedelta = timedelta(0)
    """How long a HIT is offered."""
    looked_at_every: timedelta = timedelta(0)
    """How long its lists are believed."""
    answers_within: timedelta = timedelta(0)
    """How long one of its calls may take."""


@dataclass(frozen=True)
class Seen:
    """A HIT in a platform's own books."""

    external_id: str
    token: str
    """Ours, as it was published with; empty for a HIT that is not from here."""
    status: str
    """open, busy (no free place), done (nobody works on it any more), gone"""
    max_assignments: int
    sent: int
    """Assignments that were sent in, decided or not, as far as the platform's counts tell."""
    expires_at: datetime
    created_at: datetime


@dataclass(frozen=True)
class Advert:
    """What workers of another platform choose a HIT by, and how long they need for it."""

    title: str
    questions: int
    work_seconds: int
    """For all its questions, as expected"""
    tutorial_seconds: int
    """For the tutorial of its interface; none if there is no tutorial"""
    before: str = ""
    """What is said of an hour's pay, and of the tutorial: how long it is, and what it pays"""


@dataclass(frozen=True)
class Request:
    """Somebody asks to be let in: for our qualification of the tutorial."""

    external_id: str
    worker_id: str


class Platform(ABC):
    """One place where people work. Raises PlatformDown, UnknownOutcome or Refused; anything else is
    a bug.
    """

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities] = Capabilities()
    local: ClassVar[bool] = False
    """Whether it is our own web pages: nothing to call, a HIT is up as soon as its row says so."""

    @property
    def endpoint(self) -> str:
        """The one that is set; empty where there is nothing to call."""
        return ""

    def ready(self) -> str:
        """Return the endpoint, if it may be called as things are set. Raises PlatformDown with a
        sentence.
        """
        return ""

    def fee(self, reward: Decimal) -> Decimal:
        """Return what it takes on top of the reward of a HIT, all its questions together."""
        return (reward * self.capabilities.fee_rate).quantize(
            Decimal("0.01"), rounding=ROUND_CEILING
        )

    def lease_seconds(self, advert: Advert) -> int:
        """Return how long a worker has a HIT in hand, in seconds; 0 where our own pages lease
        it.
        """
        return 0

    @abstractmethod
    def publish(self, hit: HIT, advert: Advert) -> str:
        """Return the platform's id of the HIT, which is put up and advertised like this. With
        `hit.token` a repeat returns the same id.
        """

    @abstractmethod
    def extend(self, hit: HIT, assignments: int, key: str) -> None:
        """Asks for more assignments on a HIT."""

    @abstractmethod
    def expire(self, hit: HIT) -> None:
        """Takes a HIT down; work in progress may finish."""

    @abstractmethod
    def collect(self, hit: HIT) -> Iterable[dict[str, Any]]:
        """Yield assignments that the platform knows and we may not: external id, worker id, raw
        answer, times.
        """

    @abstractmethod
    def approve(self, assignment: Assignment) -> None:
        """Approves an assignment; approved already counts as done."""

    @abstractmethod
    def reject(self, assignment: Assignment, feedback: str) -> None:
        """Rejects an assignment with a reason that its worker reads."""

    @abstractmethod
    def pay_bonus(self, bonus: Bonus) -> None:
        """Pays on top of the reward, once per `bonus.token`."""

    @abstractmethod
    def message(self, worker: Worker, subject: str, text: str) -> None:
        """Writes to a worker."""

    @abstractmethod
    def reconcile(self) -> dict[str, Any]:
        """Return the platform's own books: what is available and what is on hold, where it keeps
        money.
        """

    # -- Only for platforms that are not our own pages; what cannot be done raises Refused
    # -----------------------------
    def survey(self) -> Iterable[Seen]:
        """Yield every HIT that the platform has, ours or not."""
        return ()

    def find(self, hit: HIT) -> Seen | None:
        """Return the platform's row of a HIT, by its id or by our token; None if the platform has
        none.
        """
        return None

    def renew(self, hit: HIT, until: datetime) -> None:
        """Offers a HIT again, or longer."""
        raise Refused(
            f"There is nothing to call at {self.name}: its HITs and workers are rows of ours."
        )

    def dispose(self, hit: HIT) -> None:
        """Deletes a HIT that is done and decided; gone already counts as done."""
        raise Refused(
            f"There is nothing to call at {self.name}: its HITs and workers are rows of ours."
        )

    def outcome(self, assignment: Assignment) -> str:
        """Return what the platform says of an assignment: submitted, approved or rejected."""
        return "submitted"

    def bonus_was_paid(self, bonus: Bonus) -> bool:
        """Return whether the platform's books have a bonus."""
        return False

    def compensate(self, bonus: Bonus, *, offered: bool = True) -> Offer:
        """Pays somebody who has no assignment to be paid for, step by step. What is not offered any
        more is taken down; who has it in hand may still send it in, and is paid. Raises Lost if
        nobody can say any more.
        """
        raise Refused("This platform cannot pay somebody who has sent nothing in.")

    def clear_away(self, bonus: Bonus) -> None:
        """Deletes what was made to pay somebody who had sent nothing in; gone already counts as
        done.
        """
        raise Refused("This platform cannot pay somebody who has sent nothing in.")

    def qualify(self, worker: Worker, name: str, held: bool) -> None:
        """Gives a worker a qualification of ours, or takes it back."""
        raise Refused(
            f"There is nothing to call at {self.name}: its HITs and workers are rows of ours."
        )

    def requests(self) -> Iterable[Request]:
        """Yield who asks for our qualification of the tutorial and has had no answer."""
        return ()

    def grant_request(self, request: Request) -> None:
        """Gives somebody the qualification that they ask for. Raises Refused if the request was
        answered already.
        """
        raise Refused(
            f"There is nothing to call at {self.name}: its HITs and workers are rows of ours."
        )

    def refuse_request(self, request: Request, why: str) -> None:
        """Tells somebody why they do not have the qualification yet. Raises Refused if it was
        answered already.
        """
        raise Refused(
            f"There is nothing to call at {self.name}: its HITs and workers are rows of ours."
        )
