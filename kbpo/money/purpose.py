"""Defines what money is reserved for, released from and spent on."""

from __future__ import annotations

from typing import Any, NamedTuple

KINDS = ("submission", "documents", "gold", "tutorial", "bonus", "experts")
"""A submission, an order of documents, the gold questions of a track, a
promise to somebody who learns, a bonus; and what experts are asked on a track, which costs nothing.
"""
SPENT_ON = (*KINDS, "late")
"""What the ledger knows besides: an answer that came too late to be used, for which nobody asks."""


class Purpose(NamedTuple):
    """A kind of thing and the id of its row, two columns in tables, since `money` does not know
    these things. Id 0: no row yet.
    """

    kind: str
    number: int = 0

    def __str__(self) -> str:
        """Its name in the log, in keys of movements and in addresses, e.g. ``submission:12``."""
        return f"{self.kind}:{self.number}"

    @classmethod
    def read(cls, name: str) -> Purpose:
        """Parse the name of a purpose. Raises ValueError."""
        kind, _, number = name.partition(":")
        if kind not in KINDS or not (number.isascii() and number.isdecimal()) or len(number) > 18:
            raise ValueError(f"{name[:40]!r} is no purpose: a kind, a colon and a number")
        return cls(kind, int(number))

    def at(self, column: str) -> dict[str, Any]:
        """Return the condition of a filter: ``Ledger.objects.filter(**purpose.at("purpose"))``."""
        return {f"{column}_kind": self.kind, f"{column}_number": self.number}


def whole(kind: str | None, number: int | None) -> Purpose | None:
    """Return the purpose of two columns that are both set or both empty."""
    return None if kind is None or number is None else Purpose(kind, number)
