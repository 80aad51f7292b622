"""The contract of a platform: where questions meet people. Every call carries an idempotency key of ours."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from annotation.models import HIT, Assignment, Payment, Worker


class PlatformDown(Exception):
    """The platform did not answer; the outcome is known to be 'nothing happened'. Try again later."""


class UnknownOutcome(Exception):
    """The platform may or may not have done it: ask `reconcile`, never repeat."""


@dataclass(frozen=True)
class Capabilities:
    """What a platform can do."""

    extends: bool = True
    rejects: bool = True
    pays_bonus: bool = True
    messages: bool = False
    max_assignments: int = 9
    fee_rate: Decimal = Decimal("0")


class Platform(ABC):
    """One place where people work. Raises PlatformDown or UnknownOutcome; anything else is a bug."""

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities] = Capabilities()
    local: ClassVar[bool] = False
    """Whether it is our own web pages: nothing to call, a HIT is up as soon as its row says so."""

    @abstractmethod
    def publish(self, hit: HIT) -> str:
        """Puts a HIT up and returns the platform's id. With `hit.token` a repeat returns the same id."""

    @abstractmethod
    def extend(self, hit: HIT, assignments: int, key: str) -> None:
        """Asks for more assignments on a HIT."""

    @abstractmethod
    def expire(self, hit: HIT) -> None:
        """Takes a HIT down; work in progress may finish."""

    @abstractmethod
    def collect(self, hit: HIT) -> Iterable[dict[str, Any]]:
        """Yields assignments that the platform knows and we may not: external id, worker id, raw answer, times."""

    @abstractmethod
    def approve(self, assignment: Assignment) -> None:
        """Approves an assignment; approved already counts as done."""

    @abstractmethod
    def reject(self, assignment: Assignment, feedback: str) -> None:
        """Rejects an assignment with a reason that its worker reads."""

    @abstractmethod
    def pay_bonus(self, payment: Payment, reason: str) -> None:
        """Pays on top of the reward, once per `payment.token`."""

    @abstractmethod
    def exclude(self, worker: Worker, reason: str) -> None:
        """Offers a worker nothing more."""

    @abstractmethod
    def message(self, worker: Worker, subject: str, text: str) -> None:
        """Writes to a worker."""

    @abstractmethod
    def reconcile(self) -> dict[str, Any]:
        """Returns the platform's own books: balance, open HITs, outcomes of calls in doubt."""
