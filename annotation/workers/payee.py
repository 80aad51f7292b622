"""Stores where annotators are paid, and computes when.

An address is personal data: only admins who pay see it, and it is erased with the rest.
"""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from annotation.models import Worker, WorkerIdentity
from annotation.workers.intake import intake_of
from kbpo import clock

LONGEST = 300
SHORTEST = 4
SHOWN = 4


class CannotSet(Exception):
    """An address that was not stored; the text is a sentence for the user."""


@dataclass(frozen=True)
class Schedule:
    """The rules of payouts."""

    minimum: Decimal
    day: int
    """Of the month; in a shorter month its last"""
    ways: str
    """How money can be sent, in the words of the admins"""

    def next_date(self, today: date | None = None) -> date:
        """Return the next day of payouts, today included."""
        today = today or clock.now().date()
        this_month = _day_in_month(today.year, today.month, self.day)
        if today <= this_month:
            return this_month
        year, month = (today.year + 1, 1) if today.month == 12 else (today.year, today.month + 1)
        return _day_in_month(year, month, self.day)

    def sentence(self) -> str:
        """Return the rules in sentences for the terms and the pages."""
        return (
            f"What you are owed is paid on day {self.day} of every month, once it is"
            f" ${self.minimum:.2f} or more; less waits for the next time. {self.ways}"
        ).strip()


def _day_in_month(year: int, month: int, day: int) -> date:
    return date(year, month, min(day, monthrange(year, month)[1]))


def schedule() -> Schedule:
    """Return the current rules."""
    rules = intake_of()
    return Schedule(rules.payout_minimum, rules.payout_day, rules.payout_ways)


def address_of(worker: Worker) -> str:
    """Return the address of a worker; empty if they gave none."""
    return addresses([worker.pk]).get(worker.pk, "")


def addresses(workers: list[int]) -> dict[int, str]:
    """Return worker -> address, of those who gave one."""
    identities = WorkerIdentity.objects.filter(worker__in=workers).exclude(pay_to="")
    return dict(identities.values_list("worker", "pay_to"))


def mask_address(address: str) -> str:
    """Return the last digits of an address, or its end if it has no number."""
    digits = "".join(sign for sign in address if sign.isdigit())
    end = (digits if len(digits) > SHOWN else address)[-SHOWN:]
    return f"… {end}" if len(address) > SHOWN else address


def set_address(worker: Worker, text: str) -> str:
    """Store an address and return it normalized. Raises CannotSet."""
    address = "\n".join(" ".join(line.split()) for line in text.replace("\x00", "").splitlines())
    address = address.strip()
    if not SHORTEST <= len(address) <= LONGEST:
        raise CannotSet(
            f"Say where the money goes, in {SHORTEST} to {LONGEST} characters: an account number"
            " with the name of its holder, or what the admins have agreed with you."
        )
    WorkerIdentity.objects.filter(worker=worker).update(pay_to=address)
    return address


def payment_forecast(worker: Worker, owed: Decimal) -> str:
    """Return when a worker is paid, and what is missing for it, in sentences."""
    rules = schedule()
    when = f"{rules.next_date():%-d %B %Y}"
    if not address_of(worker):
        waiting = f"${owed:.2f} wait for you. " if owed else ""
        return (
            f"{waiting}Say where your money goes, or it cannot be paid: the next payouts are on"
            f" {when}, from ${rules.minimum:.2f} on."
        )
    if owed >= rules.minimum and owed:
        return f"${owed:.2f} are to be paid on {when}."
    short = rules.minimum - owed
    return (
        f"The least payout is ${rules.minimum:.2f}: with ${short:.2f} more you are paid on {when}."
    )
