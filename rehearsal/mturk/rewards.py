"""Amounts as the platform takes them, its fees, and what it holds back: all in whole cents."""

from __future__ import annotations

import re

from rehearsal.mturk.refuse import RequestError
from rehearsal.mturk.store import Books

MANY = 10
"""From so many assignments on a HIT costs twice the fee."""


def cents(amount: str) -> int:
    """Cents of a string with at most two decimals. Raises RequestError."""
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,2})?", amount):
        raise RequestError(
            "ParameterValidationError", f"{amount!r} is no amount with at most two decimals."
        )
    dollars, _, decimals = amount.partition(".")
    return 100 * int(dollars) + int(decimals.ljust(2, "0"))


def dollars(amount: int) -> str:
    """Cents as the platform writes them."""
    sign = "-" if amount < 0 else ""
    return f"{sign}{abs(amount) // 100}.{abs(amount) % 100:02d}"


def fee(amount: int, assignments: int = 1) -> int:
    """Return the platform's fee on a reward or bonus in cents, rounded up to the cent."""
    percent = 40 if assignments >= MANY else 20
    return max(1, -(-amount * percent // 100))


def held(books: Books) -> int:
    """Return what open places and undecided work may still cost."""
    row = books.one(
        """SELECT coalesce(sum((t.reward + h.fee) * (
               CASE WHEN h.disposed THEN 0
                    WHEN h.expiration > ? THEN h.most - (SELECT count(*) FROM assignment a
                        WHERE a.hit = h.id
                                                         AND a.status IN ('Approved', 'Rejected'))
                    ELSE (SELECT count(*) FROM assignment a WHERE a.hit = h.id
                          AND a.status IN ('Accepted', 'Submitted')) END)), 0) AS cents
           FROM hit h JOIN hit_type t ON t.id = h.type""",
        books.now,
    )
    return int(row["cents"])


def paid(books: Books) -> int:
    """Return what was paid until now, with fees."""
    rewards = books.one(
        "SELECT coalesce(sum(t.reward + h.fee), 0) AS cents FROM assignment a JOIN hit h ON h.id ="
        " a.hit JOIN hit_type t ON t.id = h.type WHERE a.status = 'Approved'"
    )
    bonuses = books.one("SELECT coalesce(sum(cents + fee), 0) AS cents FROM bonus")
    return int(rewards["cents"]) + int(bonuses["cents"])


def available(books: Books) -> int:
    """Return what is neither held nor paid."""
    deposit = books.one("SELECT value FROM fact WHERE name = 'deposit'")["value"]
    return int(deposit) - held(books) - paid(books)


def afford(books: Books, amount: int) -> None:
    """Raise RequestError if the balance is too low."""
    if amount > (left := available(books)):
        raise RequestError(
            "InsufficientFunds", f"The account has ${dollars(left)}; ${dollars(amount)} is needed."
        )
