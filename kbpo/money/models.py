"""Models of money: purposes, prices, budgets, and the ledger."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple

from django.db import models

from kbpo import clock
from kbpo.accounts.models import Team, User
from kbpo.tracks.models import Track

KINDS = ("submission", "documents", "gold", "tutorial", "bonus", "experts")
"""Kinds of purposes: a submission, an order of documents, the gold questions of a track, a promised
tutorial reward, a bonus; and the expert checks of a track, which cost nothing.
"""
SPENT_ON = (*KINDS, "late")
"""An additional kind in the ledger: an answer that came too late to be used."""


class Purpose(NamedTuple):
    """What money is for: the kind and the id of a row, stored in two columns, since `money` must
    not import the models. Id 0: no row yet.
    """

    kind: str
    number: int = 0

    def __str__(self) -> str:
        """Return the name of the purpose in the log, in keys of movements and in addresses, e.g.
        ``submission:12``.
        """
        return f"{self.kind}:{self.number}"

    @classmethod
    def parse(cls, name: str) -> Purpose:
        """Parse the name of a purpose. Raises ValueError."""
        kind, _, number = name.partition(":")
        if kind not in KINDS or not (number.isascii() and number.isdecimal()) or len(number) > 18:
            raise ValueError(f"{name[:40]!r} is no purpose: a kind, a colon and a number")
        return cls(kind, int(number))

    def filter_condition(self, column: str) -> dict[str, Any]:
        """Return the arguments of a filter:
        ``Ledger.objects.filter(**purpose.filter_condition("purpose"))``.
        """
        return {f"{column}_kind": self.kind, f"{column}_number": self.number}


def purpose_or_none(kind: str | None, number: int | None) -> Purpose | None:
    """Return the purpose in two columns; None if both are empty."""
    return None if kind is None or number is None else Purpose(kind, number)


class Price(models.Model):
    """The price of one answer on a track: the worker's reward, the platform's fee, the expected
    time.
    """

    track = models.ForeignKey(Track, on_delete=models.CASCADE, related_name="prices")
    interface = models.CharField(max_length=32)
    reward = models.DecimalField(
        max_digits=8, decimal_places=2, help_text="Dollars for one answer of one worker"
    )
    extra = models.DecimalField(
        max_digits=8,
        decimal_places=2,
        default=Decimal("0.00"),
        help_text="Dollars besides, for an answer that took more work",
    )
    fee_rate = models.DecimalField(max_digits=4, decimal_places=3, default=Decimal("0"))
    seconds = models.PositiveIntegerField(default=20, help_text="Expected seconds for one answer")

    class Meta:
        db_table_comment = "Price of one answer per track and interface"
        constraints = [
            models.UniqueConstraint(fields=["track", "interface"], name="price_once_an_interface"),
            models.CheckConstraint(
                condition=models.Q(reward__gt=0, extra__gte=0), name="price_positive"
            ),
        ]

    def __str__(self) -> str:
        return f"${self.reward} for {self.interface}"

    @property
    def per_answer(self) -> Decimal:
        """Return the most that one answer costs: reward and extra, each with the fee and rounded up
        to the cent, since a marketplace charges them separately.
        """
        return self._add_fee(self.reward) + self.extra_price

    @property
    def extra_price(self) -> Decimal:
        """Return the part of `per_answer` that is due only if the extra was earned."""
        return self._add_fee(self.extra)

    def _add_fee(self, amount: Decimal) -> Decimal:
        return (amount * (1 + self.fee_rate)).quantize(Decimal("0.01"), rounding="ROUND_CEILING")


class Budget(models.Model):
    """A limit on the spending of a track: in total, per day, for one submission, or for one
    team.
    """

    class Scope(models.TextChoices):
        TRACK = "track"
        DAY = "day"
        SUBMISSION = "submission"
        TEAM = "team"

    track = models.ForeignKey(Track, on_delete=models.CASCADE, related_name="budgets")
    scope = models.CharField(max_length=12, choices=Scope.choices)
    team = models.ForeignKey(Team, null=True, blank=True, on_delete=models.CASCADE)
    cap = models.DecimalField(max_digits=12, decimal_places=2)

    class Meta:
        db_table_comment = "Caps on spending"
        constraints = [
            models.UniqueConstraint(
                fields=["track", "scope", "team"], name="budget_once", nulls_distinct=False
            ),
            models.CheckConstraint(condition=models.Q(cap__gte=0), name="budget_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.scope} cap ${self.cap}"


class Ledger(models.Model):
    """One movement of money. Append-only, except for its state; `key` ensures that a movement
    happens once.

    reserve: money set aside for a purpose. release: part of a reservation given back. spend: part
    of a reservation owed to a worker. Open reservation of a purpose = Σ reserve − Σ release − Σ
    spend, never below 0.
    """

    class Kind(models.TextChoices):
        RESERVE = "reserve"
        RELEASE = "release"
        SPEND = "spend"

    class State(models.TextChoices):
        INTENT = "intent"
        SENT = "sent"
        CONFIRMED = "confirmed"
        FAILED = "failed"
        UNKNOWN = "unknown"

    track = models.ForeignKey(Track, on_delete=models.PROTECT, related_name="ledger")
    team = models.ForeignKey(Team, null=True, on_delete=models.PROTECT, related_name="ledger")
    purpose_kind = models.CharField(
        max_length=12, choices=[(kind, kind) for kind in SPENT_ON], help_text="What it is for …"
    )
    purpose_number = models.PositiveBigIntegerField(help_text="… and the number of that")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    amount = models.DecimalField(max_digits=12, decimal_places=2)
    state = models.CharField(max_length=10, choices=State.choices, default=State.CONFIRMED)
    key = models.CharField(max_length=64, unique=True, help_text="Idempotency key")
    why = models.TextField(blank=True)
    who = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=clock.now)
    closed_at = models.DateTimeField(
        null=True,
        help_text="Of a reservation: since when its purpose has ended, and nothing of it is open",
    )

    class Meta:
        db_table_comment = "Every movement of money"
        constraints = [
            models.CheckConstraint(condition=models.Q(amount__gte=0), name="ledger_not_negative"),
            models.CheckConstraint(
                condition=models.Q(purpose_kind__in=SPENT_ON), name="ledger_purpose_is_one"
            ),
        ]
        indexes = [
            models.Index(fields=["purpose_kind", "purpose_number"], name="ledger_by_purpose"),
            models.Index(fields=["track", "kind", "created_at"]),
            models.Index(
                fields=["purpose_kind", "purpose_number"],
                condition=models.Q(kind="reserve", closed_at=None),
                name="ledger_open_reservations",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} ${self.amount} {self.purpose}"

    @property
    def purpose(self) -> Purpose:
        """Return the purpose of the movement."""
        return Purpose(self.purpose_kind, self.purpose_number)

    @purpose.setter
    def purpose(self, purpose: Purpose) -> None:
        """The purpose of the movement."""
        self.purpose_kind, self.purpose_number = purpose


class BooksCheck(models.Model):
    """One comparison of the money records with each other: finished, or queued if it has no end
    time.
    """

    who = models.ForeignKey(
        User, null=True, on_delete=models.SET_NULL, related_name="+", help_text="None: the clock"
    )
    asked_at = models.DateTimeField(default=clock.now)
    finished_at = models.DateTimeField(null=True, db_index=True)
    seconds = models.FloatField(null=True, help_text="How long it took")
    findings = models.JSONField(
        default=list, help_text="Each the name of a check and a sentence: where books disagree"
    )
    trouble = models.TextField(blank=True, help_text="Why the books could not be read")

    class Meta:
        db_table_comment = "When our books were held against each other, and what disagreed"
        constraints = [
            models.UniqueConstraint(
                fields=["finished_at"],
                condition=models.Q(finished_at__isnull=True),
                nulls_distinct=False,
                name="books_check_queued_once",
            )
        ]

    def __str__(self) -> str:
        return f"check of the books, asked {self.asked_at:%Y-%m-%d %H:%M} UTC"
