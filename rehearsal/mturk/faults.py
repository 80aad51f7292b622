"""Faults that can be switched on: what the endpoint does wrong at its next calls of an operation,
and how often.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rehearsal.mturk.store import Books

KINDS = {
    "throttle": "says that calls come too fast, and does nothing",
    "refuse": "says that the request makes no sense, and does nothing",
    "error": "answers 500, and does nothing",
    "error_after": "does it, and answers 500",
    "timeout": "does it, and answers only after some seconds",
    "hang": "does nothing for some seconds, and answers 500",
    "duplicate": "lists everything twice",
    "lose": "lists nothing; loses an answer that a worker sends in, without a word",
}


@dataclass(frozen=True)
class Fault:
    """What goes wrong now."""

    kind: str
    seconds: float


def switch_on(
    books: Books, operation: str, kind: str, times: int = 1, seconds: float = 5.0
) -> None:
    """Lets the next calls of an operation ("*": of any) go wrong. Raises ValueError for a kind that
    there is not.
    """
    if kind not in KINDS:
        raise ValueError(f"There is no fault {kind}; there are {', '.join(KINDS)}.")
    books.insert("fault", operation=operation, kind=kind, remaining=times, seconds=seconds)


def switch_off(books: Books) -> int:
    """Return how many faults were taken back."""
    return books.run("DELETE FROM fault")


def next_fault(books: Books, operation: str) -> Fault | None:
    """Return the fault of this call, if there is one; it is used up."""
    row = books.find(
        "SELECT * FROM fault WHERE operation IN (?, '*') AND remaining > 0 ORDER BY number LIMIT 1",
        operation,
    )
    if row is None:
        return None
    books.run("UPDATE fault SET remaining = remaining - 1 WHERE number = ?", row["number"])
    return Fault(row["kind"], row["seconds"])


def distort(fault: Fault | None, answer: dict[str, Any]) -> dict[str, Any]:
    """Return a list as a faulty endpoint tells it."""
    if fault is None or fault.kind not in ("duplicate", "lose"):
        return answer
    changed = dict(answer)
    for name, value in answer.items():
        if isinstance(value, list):
            changed[name] = value * 2 if fault.kind == "duplicate" else []
            changed["NumResults"] = len(changed[name])
    return changed
