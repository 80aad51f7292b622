"""Our own annotators, in our own pages. The database is the platform, so nothing here can be in
doubt.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from annotation.platforms.base import Advert, Capabilities, Platform, Refused

if TYPE_CHECKING:
    from annotation.models import HIT, Assignment, Bonus, Worker


class Pool(Platform):
    """Questions are up as soon as their HIT is open; answers arrive through our pages; payment is a
    list to be paid.
    """

    name: ClassVar[str] = "pool"
    capabilities: ClassVar[Capabilities] = Capabilities(max_assignments=100)
    local: ClassVar[bool] = True

    def publish(self, hit: HIT, advert: Advert) -> str:
        return f"{self.name}:{hit.token}"

    def extend(self, hit: HIT, assignments: int, key: str) -> None:
        """Do nothing: the row's `max_assignments` is the truth."""

    def expire(self, hit: HIT) -> None:
        """Do nothing: the row's status is the truth."""

    def collect(self, hit: HIT) -> Iterable[dict[str, Any]]:
        return ()

    def approve(self, assignment: Assignment) -> None:
        """Do nothing: the Payment row says what is owed."""

    def reject(self, assignment: Assignment, feedback: str) -> None:
        """Do nothing: the row says so, and its worker reads it in the history."""

    def pay_bonus(self, bonus: Bonus) -> None:
        """Do nothing: an administrator pays from the list."""

    def message(self, worker: Worker, subject: str, text: str) -> None:
        raise Refused("Annotators of the pool read their messages on their own page.")

    def reconcile(self) -> dict[str, Any]:
        return {}
