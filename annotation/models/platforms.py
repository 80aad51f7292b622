"""Models of other platforms: bonuses, qualifications, types made there, and the platform's own
records.
"""

from __future__ import annotations

import secrets

from django.db import models
from django.db.models import Q

from kbpo import clock
from kbpo.money.purpose import KINDS, Purpose, whole
from kbpo.queue import Moving


class Bonus(Moving):
    """A payment to a worker of a platform besides rewards, made exactly once: a bonus or a
    compensation.
    """

    class Status(models.TextChoices):
        OWED = "owed"
        SENT = "sent"  # intent: the platform is being called
        UNKNOWN = "unknown"  # its books are asked before anything is repeated
        STOPPED = (  # a compensation that an admin's stop took down: owed again when it is lifted
            "stopped"
        )
        WITHHELD = "withheld"  # what it is earned by was rejected; owed again if that is undone
        PAID = "paid"
        FAILED = "failed"

    asked_before: bool = False
    """Whether an earlier call may have reached the platform (while it is paid)"""

    track = models.ForeignKey("tracks.Track", on_delete=models.PROTECT, related_name="bonuses")
    worker = models.ForeignKey(
        "annotation.Worker", on_delete=models.PROTECT, related_name="bonuses"
    )
    assignment = models.ForeignKey(
        "annotation.Assignment",
        null=True,
        on_delete=models.PROTECT,
        related_name="bonuses",
        help_text=(
            "The work that it is for; without one it is a compensation, paid through a HIT of"
            " its own"
        ),
    )
    payer_kind = models.CharField(
        max_length=12,
        null=True,
        help_text=(
            "Whose reservation it is spent from, under its token, where an answer earned it; none:"
            " one of its own"
        ),
    )
    payer_number = models.PositiveBigIntegerField(null=True)
    amount = models.DecimalField(max_digits=8, decimal_places=2)
    fee = models.DecimalField(max_digits=8, decimal_places=2)
    why = models.TextField(help_text="Its worker reads it")
    who = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    token = models.CharField(max_length=64, unique=True, default=secrets.token_hex)
    external_id = models.CharField(
        max_length=120, blank=True, help_text="The HIT of a compensation"
    )
    endpoint = models.CharField(
        max_length=200, blank=True, help_text="Where it is paid: where its worker works"
    )
    offers = models.PositiveSmallIntegerField(
        default=1,
        help_text=(
            "The HITs of a compensation, one after the other: a new one once the last was deleted"
        ),
    )
    offered_at = models.DateTimeField(
        null=True, help_text="When the HIT of a compensation was made"
    )
    cleared_at = models.DateTimeField(
        null=True, help_text="When that HIT was deleted, and its qualification"
    )
    created_at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table_comment = "Bonuses and compensations on platforms"
        constraints = [
            models.CheckConstraint(condition=Q(amount__gt=0), name="bonus_positive"),
            models.CheckConstraint(
                condition=Q(payer_kind=None, payer_number=None)
                | Q(payer_kind__in=KINDS, payer_number__isnull=False),
                name="bonus_payer_is_whole",
            ),
        ]

    def __str__(self) -> str:
        return f"bonus {self.pk}"

    @property
    def purpose(self) -> Purpose:
        """The purpose of its money, where it has a reservation of its own."""
        return Purpose("bonus", self.pk)

    @property
    def payer(self) -> Purpose | None:
        """The purpose whose reservation pays it; None for its own."""
        return whole(self.payer_kind, self.payer_number)

    @payer.setter
    def payer(self, payer: Purpose | None) -> None:
        """The purpose whose reservation pays it; None for its own."""
        self.payer_kind, self.payer_number = payer or (None, None)


class Qualification(models.Model):
    """A qualification of a worker on their platform: wanted here, and granted there."""

    UNTOLD = Q(told=None, wanted=True) | Q(told=True, wanted=False) | Q(told=False, wanted=True)

    worker = models.ForeignKey(
        "annotation.Worker", on_delete=models.CASCADE, related_name="qualifications"
    )
    name = models.CharField(max_length=32, help_text="excluded, tutorial")
    wanted = models.BooleanField()
    wanted_at = models.DateTimeField(default=clock.now, help_text="Since when it is wanted so")
    told = models.BooleanField(null=True)
    told_at = models.DateTimeField(null=True)
    refusals = models.PositiveSmallIntegerField(default=0, help_text="Since it was last told")
    next_try_at = models.DateTimeField(default=clock.now)
    reason = models.TextField(blank=True, help_text="What the platform said when it refused")

    class Meta:
        db_table_comment = "Qualifications of platform workers, wanted and told"
        constraints = [
            models.UniqueConstraint(fields=["worker", "name"], name="qualification_once")
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.worker_id}"


class ExternalType(models.Model):
    """A type of HIT or of qualification on an endpoint; stored so that it is made once."""

    platform = models.CharField(max_length=16)
    endpoint = models.CharField(max_length=200)
    kind = models.CharField(max_length=16, help_text="hit_type, qualification")
    digest = models.CharField(
        max_length=64, help_text="Of all its properties; a qualification's name"
    )
    external_id = models.CharField(max_length=120)
    created_at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table_comment = "Types of HITs and qualifications on other platforms"
        constraints = [
            models.UniqueConstraint(
                fields=["platform", "endpoint", "kind", "digest"], name="external_type_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.external_id}"


class PlatformBooks(models.Model):
    """The last balance and lists of a platform, one row for each platform and endpoint."""

    platform = models.CharField(max_length=16)
    endpoint = models.CharField(max_length=200, blank=True)
    polled_at = models.DateTimeField(null=True)
    held_until = models.DateTimeField(
        null=True, help_text="Somebody looks at it, and nobody else does until then"
    )
    hinted_at = models.DateTimeField(
        null=True, help_text="Something is said to have happened there"
    )
    confirm_url = models.URLField(
        max_length=1000,
        blank=True,
        help_text="By which an admin confirms that notifications may come here",
    )
    available = models.DecimalField(max_digits=12, decimal_places=2, null=True)
    on_hold = models.DecimalField(max_digits=12, decimal_places=2, null=True)
    baseline = models.DecimalField(
        max_digits=12,
        decimal_places=2,
        null=True,
        help_text="Available, on hold and paid by us, when first read",
    )
    differences = models.JSONField(
        default=list, help_text="Sentences: where the two books disagree"
    )
    read_at = models.DateTimeField(null=True)
    trouble = models.TextField(blank=True, help_text="Why the books could not be read")

    class Meta:
        db_table_comment = "What platforms say of their balance and HITs, beside our books"
        constraints = [models.UniqueConstraint(fields=["platform", "endpoint"], name="books_once")]

    def __str__(self) -> str:
        return f"books of {self.platform}"
