"""What people said about targets, counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from annotation.models import Response


@dataclass
class Tally:
    """What people said about one target. Of a pair: how many said that each directed predicate
    holds, and what was shown; of a mention: how many chose each span ("begin-end", or "other").
    `flags` said that it cannot be answered.
    """

    n: int = 0
    holds: Counter[str] = field(default_factory=Counter)
    shown: set[str] = field(default_factory=set)
    choices: Counter[str] = field(default_factory=Counter)
    flags: int = 0


def tallies(targets: Iterable[int]) -> dict[int, Tally]:
    """The tally of each of these targets that anybody answered; excluded answers do not count."""
    found: dict[int, Tally] = defaultdict(Tally)
    responses = Response.objects.filter(
        target__in=list(targets), excluded_reason="", question__gold=None
    )
    for target, criterion, value, shown in responses.values_list(
        "target", "criterion", "value", "question__shown"
    ):
        tally = found[target]
        tally.n += 1
        if criterion == "relation":
            tally.holds.update(value["holds"])
            tally.shown.update(shown)
        elif criterion == "linking":
            tally.choices[value["choice"]] += 1
        else:
            tally.flags += 1
    return dict(found)
