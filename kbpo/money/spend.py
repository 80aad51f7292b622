"""Reserves, spends and releases money: each movement once, and never beyond a cap. Reads and sets
caps.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Count, Min, Q, QuerySet, Sum
from django.db.models.functions import TruncDate

from kbpo import clock
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.models import Team, User
from kbpo.money.models import Budget, Ledger, Purpose
from kbpo.prepared import Prepared
from kbpo.tracks.models import Track

ZERO = Decimal("0.00")
SCOPE_NAMES = {
    Budget.Scope.TRACK: "the track's budget",
    Budget.Scope.DAY: "today's cap",
    Budget.Scope.SUBMISSION: "the cap of one submission",
    Budget.Scope.TEAM: "your team's budget",
}


class OverBudget(Exception):
    """Raised for a reservation that would exceed a cap. `left` is the remaining amount under the
    tightest cap; the text is a sentence.
    """

    def __init__(self, left: Decimal, scope: str, wanted: Decimal) -> None:
        super().__init__(
            f"This needs ${wanted}, but ${left} is left under {SCOPE_NAMES[Budget.Scope(scope)]}."
        )
        self.left = left
        self.scope = scope


@dataclass(frozen=True)
class Allowance:
    """The amount that may still be reserved, and the scope of the cap that limits it (None: no
    cap).
    """

    left: Decimal | None
    scope: str | None


@dataclass(frozen=True)
class Balance:
    """The reserved, released and spent sums of a purpose, a track or a team, in dollars."""

    reserved: Decimal
    released: Decimal
    spent: Decimal

    @property
    def open(self) -> Decimal:
        """Return the reserved money that is neither spent nor released."""
        return self.reserved - self.released - self.spent


NOTHING = Balance(ZERO, ZERO, ZERO)


OF_PURPOSE = Prepared("""
    SELECT kind, sum(amount) FROM money_ledger
    WHERE purpose_kind = %(kind)s AND purpose_number = %(number)s AND state <> 'failed'
    GROUP BY kind
""")


def balance(purpose: Purpose | None = None, **where: object) -> Balance:
    """Return the reserved, released and spent sums of the matching ledger rows."""
    if purpose is not None and not where:
        sums = dict(OF_PURPOSE.fetch_all(kind=purpose.kind, number=purpose.number))
    else:
        where |= purpose.filter_condition("purpose") if purpose else {}
        movements = Ledger.objects.filter(**where).exclude(state=Ledger.State.FAILED)
        sums = dict(movements.values_list("kind").annotate(Sum("amount")).order_by())
    return Balance(sums.get("reserve", ZERO), sums.get("release", ZERO), sums.get("spend", ZERO))


def ledger_by_day(kind: str, team: Team, purpose: Purpose | None = None) -> QuerySet[Any, Any]:
    """Return the movements of a team's money summed by day, purpose and direction, the latest
    first: for one purpose or for all of a kind. Each row has the id of its purpose
    (`purpose_number`), `kind`, the day (`on`), the `amount` and the number of movements (`n`).
    """
    where = purpose.filter_condition("purpose") if purpose else {"purpose_kind": kind}
    return (
        Ledger.objects.filter(team=team, **where)
        .exclude(state=Ledger.State.FAILED)
        .values("purpose_number", "kind", on=TruncDate("created_at"))
        .annotate(amount=Sum("amount"), n=Count("pk"), first=Min("pk"))
        .order_by("-on", "-first")
    )


def balances(purposes: Collection[Purpose]) -> dict[Purpose, Balance]:
    """Return purpose -> its reserved, released and spent sums, for purposes with movements."""
    kinds, numbers = ({purpose[place] for purpose in purposes} for place in (0, 1))
    movements = Ledger.objects.filter(purpose_kind__in=kinds, purpose_number__in=numbers)
    sums: dict[Purpose, dict[str, Decimal]] = {}
    moved = movements.exclude(state=Ledger.State.FAILED).order_by()
    for kind, number, movement, amount in moved.values_list(
        "purpose_kind", "purpose_number", "kind"
    ).annotate(Sum("amount")):
        sums.setdefault(Purpose(kind, number), {})[movement] = amount
    return {
        purpose: Balance(
            moved_of.get("reserve", ZERO),
            moved_of.get("release", ZERO),
            moved_of.get("spend", ZERO),
        )
        for purpose in purposes
        if (moved_of := sums.get(purpose)) is not None
    }


def remaining_allowance(track: Track, team: Team | None, purpose: Purpose) -> Allowance:
    """Return what may still be reserved for a purpose under all caps of the track."""
    lefts = [
        (max(ZERO, b.cap - committed_amount(b, team, purpose)), str(b.scope))
        for b in _applicable_budgets(track, team, purpose)
    ]
    return Allowance(*min(lefts)) if lefts else Allowance(None, None)


def over_budget_error(
    track: Track, team: Team | None, purpose: Purpose, amount: Decimal
) -> OverBudget | None:
    """Return the exception that a reservation of this amount would raise; None if it is
    possible.
    """
    room = remaining_allowance(track, team, purpose)
    if room.left is None or room.scope is None or amount <= room.left:
        return None
    return OverBudget(room.left, room.scope, amount)


@transaction.atomic
def reserve_money(
    track: Track,
    team: Team | None,
    purpose: Purpose,
    amount: Decimal,
    *,
    key: str,
    who: User | None = None,
    why: str = "",
) -> Ledger:
    """Reserve money and return the row; an earlier row with the same key is returned unchanged.
    Raises OverBudget, in which case nothing is stored.
    """
    lock_track_money(track)
    if (row := Ledger.objects.filter(key=key).first()) is not None:
        return row
    if refusal := over_budget_error(track, team, purpose, amount):
        raise refusal
    return Ledger.objects.create(
        track=track,
        team=team,
        **purpose.filter_condition("purpose"),
        kind="reserve",
        amount=amount,
        key=key,
        who=who,
        why=why,
    )


@dataclass(frozen=True)
class Bill:
    """An amount to spend from a purpose's reservation, once per key."""

    purpose: Purpose
    amount: Decimal
    key: str
    why: str = ""


@transaction.atomic
def spend_money(
    track: Track, purpose: Purpose, amount: Decimal, *, key: str, why: str = ""
) -> Ledger:
    """Spend from a purpose's reservation, once per key, and return the row. Raises ValueError if
    the reservation is too small.
    """
    refusal = spend_bill_groups(track, [[Bill(purpose, amount, key, why)]])[0]
    if refusal:
        raise ValueError(refusal)
    return Ledger.objects.get(key=key)


@transaction.atomic
def spend_bill_groups(track: Track, groups: Sequence[Sequence[Bill]]) -> list[str]:
    """Spend each group of bills completely or not at all, once per key. Return for each bill why it
    was not spent; empty if it was. A group that exceeds its reservation does not prevent the next
    ones.
    """
    lock_track_money(track)
    bills = [bill for group in groups for bill in group]
    spent = set(
        Ledger.objects.filter(key__in=[bill.key for bill in bills]).values_list("key", flat=True)
    )
    left = {purpose: balance(purpose=purpose).open for purpose in {bill.purpose for bill in bills}}
    teams = {purpose: _team_of_purpose(purpose) for purpose in left}
    movements: list[Ledger] = []
    refusals = []
    for group in groups:
        new = [bill for bill in group if bill.key not in spent]
        refusals.append(_excess_sentence(new, left))
        if refusals[-1]:
            continue
        spent.update(bill.key for bill in new)
        for bill in new:
            left[bill.purpose] -= bill.amount
            movements.append(
                Ledger(
                    track=track,
                    team=teams[bill.purpose],
                    **bill.purpose.filter_condition("purpose"),
                    kind="spend",
                    amount=bill.amount,
                    key=bill.key,
                    why=bill.why,
                )
            )
    Ledger.objects.bulk_create(movements)
    return refusals


def _excess_sentence(group: Sequence[Bill], available: Mapping[Purpose, Decimal]) -> str:
    """Return a sentence on why these bills exceed the rest of a reservation; empty if they
    do not.
    """
    need: dict[Purpose, Decimal] = {}
    for bill in group:
        need[bill.purpose] = need.get(bill.purpose, ZERO) + bill.amount
        if need[bill.purpose] > available[bill.purpose]:
            return (
                f"{bill.purpose} has ${available[bill.purpose]} reserved;"
                f" ${need[bill.purpose]} cannot"
                f" be spent from it ({bill.key})"
            )
    return ""


@transaction.atomic
def release_money(
    track: Track, purpose: Purpose, *, key: str, keep: Decimal = ZERO, why: str = ""
) -> Ledger | None:
    """Release the open money of a purpose beyond `keep`, once per key, and return the row; None if
    there is none.
    """
    lock_track_money(track)
    if (row := Ledger.objects.filter(key=key).first()) is not None:
        return row
    left = balance(purpose=purpose).open - keep
    if left <= 0:
        return None
    return Ledger.objects.create(
        track=track,
        team=_team_of_purpose(purpose),
        **purpose.filter_condition("purpose"),
        kind="release",
        amount=left,
        key=key,
        why=why,
    )


def released_since(purpose: Purpose, moment: datetime) -> Decimal:
    """Return the sum that was released from a purpose since a moment."""
    released = Ledger.objects.filter(
        kind="release", created_at__gte=moment, **purpose.filter_condition("purpose")
    ).exclude(state=Ledger.State.FAILED)
    return Decimal(released.aggregate(all=Sum("amount"))["all"] or ZERO)


def purposes_with_open_money(kind: str) -> list[int]:
    """Return the ids of the purposes of a kind whose reservations are not closed, in order."""
    movements = Ledger.objects.filter(kind="reserve", closed_at=None, purpose_kind=kind)
    return sorted(set(movements.values_list("purpose_number", flat=True)))


def close_reservations(purpose: Purpose) -> None:
    """Mark the reservations of a purpose as closed once all their money is spent or released. A new
    reservation, or a cancelled spending, opens them again.
    """
    movements = Ledger.objects.filter(
        kind="reserve", closed_at=None, **purpose.filter_condition("purpose")
    )
    movements.update(closed_at=clock.now())


@transaction.atomic
def cancel_payment(key: str) -> int:
    """Cancel the spendings with this key (or ``key/…``), and return their number: the money is open
    again. The rows are kept with the status failed.
    """
    movements = Ledger.objects.filter(
        Q(key=key) | Q(key__startswith=f"{key}/"), kind="spend"
    ).exclude(state="failed")
    for track in Track.objects.filter(ledger__in=movements).distinct().order_by("pk"):
        lock_track_money(track)
    for kind, number in set(movements.values_list("purpose_kind", "purpose_number")):
        reserved = Ledger.objects.filter(
            kind="reserve", **Purpose(kind, number).filter_condition("purpose")
        )
        reserved.update(closed_at=None)
    return movements.update(state=Ledger.State.FAILED)


def lock_track_money(track: Track) -> None:
    """Lock a track, so that movements of its money happen one after the other and never exceed a
    cap together. Rows that refer to the track can be created meanwhile, without waiting, since no
    key of the track changes.
    """
    Track.objects.select_for_update(no_key=True).only("pk").get(pk=track.pk)


def _team_of_purpose(purpose: Purpose) -> Team | None:
    reserved = Ledger.objects.filter(kind="reserve", **purpose.filter_condition("purpose"))
    row = reserved.select_related("team").first()
    return row.team if row else None


def _applicable_budgets(track: Track, team: Team | None, purpose: Purpose) -> list[Budget]:
    """Return the caps that apply to a purpose. Caps of submissions and teams apply to submissions
    only.
    """
    budgets = Budget.objects.filter(track=track).filter(Q(team=None) | Q(team=team))
    if purpose.kind != "submission":
        budgets = budgets.exclude(scope__in=[Budget.Scope.SUBMISSION, Budget.Scope.TEAM])
    return list(budgets)


def committed_amount(budget: Budget, team: Team | None, purpose: Purpose | None) -> Decimal:
    """Return the amount that counts against a cap: reserved and not released."""
    filters: dict[str, Any] = {"track": budget.track_id}
    if budget.scope == Budget.Scope.DAY:
        return _reserved_today(budget.track_id)
    if budget.scope == Budget.Scope.SUBMISSION and purpose is not None:
        filters |= purpose.filter_condition("purpose")
    elif budget.scope == Budget.Scope.TEAM:
        filters["team"] = team
    sums = balance(**filters)
    return sums.reserved - sums.released


def _reserved_today(track_id: int) -> Decimal:
    """Return the amount reserved today, minus releases of it. Releases of earlier reservations do
    not increase today's allowance.
    """
    midnight = clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    movements = Ledger.objects.filter(track=track_id, created_at__gte=midnight).exclude(
        state=Ledger.State.FAILED
    )
    sums: dict[tuple[str, int], dict[str, Decimal]] = {}
    moved = movements.values_list("purpose_kind", "purpose_number", "kind").annotate(Sum("amount"))
    for purpose, number, kind, amount in moved.order_by():
        sums.setdefault((purpose, number), {})[kind] = amount
    return sum(
        (
            max(ZERO, amounts.get("reserve", ZERO) - amounts.get("release", ZERO))
            for amounts in sums.values()
        ),
        ZERO,
    )


def amount_over_cap(track: Track) -> Decimal:
    """Return the amount by which the reservations of a track exceed its cap; 0 if they do not."""
    cap = Budget.objects.filter(track=track, scope=Budget.Scope.TRACK).first()
    return max(ZERO, committed_amount(cap, None, None) - cap.cap) if cap is not None else ZERO


HIGHEST = Decimal("9999999999.99")


class BadCap(ValueError):
    """Raised for a cap that cannot be set; the text is a sentence for the admin."""


@dataclass(frozen=True)
class Cap:
    """A cap with its used amount, which is None for caps of single submissions or teams."""

    budget: Budget
    used: Decimal | None

    @property
    def name(self) -> str:
        """Return the scope of the cap in words."""
        if self.budget.scope == Budget.Scope.TEAM:
            return f"team {self.budget.team.name}" if self.budget.team else "every team"
        return {"track": "in all", "day": "a day", "submission": "one submission"}[
            self.budget.scope
        ]

    @property
    def is_full(self) -> bool:
        return self.used is not None and self.used >= self.budget.cap


def list_caps(track: Track) -> list[Cap]:
    """Return the caps of a track, the widest first."""
    order = {"track": 0, "day": 1, "submission": 2, "team": 3}
    budgets = Budget.objects.filter(track=track).select_related("team")
    caps = []
    for row in sorted(budgets, key=lambda budget: (order[budget.scope], budget.team_id or 0)):
        each = row.scope == Budget.Scope.SUBMISSION or (
            row.scope == Budget.Scope.TEAM and row.team is None
        )
        caps.append(Cap(row, None if each else committed_amount(row, row.team, None)))
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
    """Set or remove a cap, and return it; None if it was removed. Existing reservations are kept.
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
    lock_track_money(track)
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
    write_audit_entry(
        "cap",
        f"cap:{track.slug}/{scope}",
        who=who,
        why=why.strip(),
        before=before,
        after=after,
        track=track.slug,
    )
    return row
