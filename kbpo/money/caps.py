"""Reads and sets caps on spending."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from django.db import transaction

from kbpo.accounts.audit import note
from kbpo.accounts.models import Team, User
from kbpo.money.models import Budget
from kbpo.money.spend import committed_under, lock
from kbpo.tracks.models import Track

HIGHEST = Decimal("9999999999.99")


class BadCap(ValueError):
    """A cap that cannot be set; the text is a sentence for the admin."""


@dataclass(frozen=True)
class Cap:
    """A cap with its used amount; None for caps of single submissions or teams."""

    budget: Budget
    used: Decimal | None

    @property
    def name(self) -> str:
        """What it limits, in words."""
        if self.budget.scope == Budget.Scope.TEAM:
            return f"team {self.budget.team.name}" if self.budget.team else "every team"
        return {"track": "in all", "day": "a day", "submission": "one submission"}[
            self.budget.scope
        ]

    @property
    def full(self) -> bool:
        return self.used is not None and self.used >= self.budget.cap


def caps_of(track: Track) -> list[Cap]:
    """Return the caps of a track, the widest first."""
    order = {"track": 0, "day": 1, "submission": 2, "team": 3}
    budgets = Budget.objects.filter(track=track).select_related("team")
    caps = []
    for row in sorted(budgets, key=lambda budget: (order[budget.scope], budget.team_id or 0)):
        each = row.scope == Budget.Scope.SUBMISSION or (
            row.scope == Budget.Scope.TEAM and row.team is None
        )
        caps.append(Cap(row, None if each else committed_under(row, row.team, None)))
    return caps


@transaction.atomic
def set_cap(
    track: Track,
    scope: str,
    cap: Decimal | None,
    *,
    who: User | None,
    why: str,
    team: Team | None = None,
) -> Budget | None:
    """Set or remove a cap, and return it; None if it was removed. Existing reservations stay.
    Raises BadCap.
    """
    if scope not in Budget.Scope.values:
        raise BadCap("Say what is capped: the track, a day, one submission or a team.")
    if (team is not None) and scope != Budget.Scope.TEAM:
        raise BadCap("Only a team's cap names a team.")
    if not why.strip():
        raise BadCap("Say why: it is logged.")
    if cap is not None and not (
        cap.is_finite() and 0 <= cap <= HIGHEST and cap == cap.quantize(Decimal("0.01"))
    ):
        raise BadCap("A cap is an amount in dollars and whole cents, such as 500.00.")
    lock(track)
    row = Budget.objects.filter(track=track, scope=scope, team=team).first()
    before = f"${row.cap}" if row else "no cap"
    if cap is None:
        Budget.objects.filter(track=track, scope=scope, team=team).delete()
        row = None
    else:
        row, _ = Budget.objects.update_or_create(
            track=track, scope=scope, team=team, defaults={"cap": cap}
        )
    after = f"${cap}" if cap is not None else "no cap"
    note(
        "cap",
        f"cap:{track.slug}/{scope}",
        who=who,
        why=why.strip(),
        before=before,
        after=after,
        track=track.slug,
    )
    return row
