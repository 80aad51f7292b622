"""Models of annotators: terms, tutorials, messages and payouts."""

from __future__ import annotations

import secrets
from decimal import Decimal

from django.db import models
from django.db.models import Q

from annotation.models import Payment, Worker
from kbpo import clock
from kbpo.accounts.models import User, Waiting
from kbpo.money.models import Purpose
from kbpo.tracks.models import Track


class Intake(models.Model):
    """The rules for annotators: of one track, or without a track of the service. A track's rules
    take precedence.
    """

    class Volunteers(models.TextChoices):
        CLOSED = "closed"  # by invitation only
        QUEUE = "queue"  # anybody may ask; an admin admits them
        OPEN = "open"  # anybody may begin at once

    track = models.OneToOneField(Track, null=True, on_delete=models.CASCADE, related_name="intake")
    volunteers = models.CharField(
        max_length=8, choices=Volunteers.choices, default=Volunteers.CLOSED
    )
    tutorial_reward = models.DecimalField(
        max_digits=6,
        decimal_places=2,
        default=Decimal("0.75"),
        help_text="For passing an interface's tutorial, once",
    )
    payout_minimum = models.DecimalField(max_digits=8, decimal_places=2, default=Decimal("5.00"))
    payout_day = models.PositiveSmallIntegerField(
        default=1, help_text="Day of the month on which payouts are made"
    )
    payout_ways = models.CharField(
        max_length=300, blank=True, help_text="How money can be sent, in words for annotators"
    )

    class Meta:
        db_table_comment = "How the service and its tracks take annotators in"
        constraints = [
            models.UniqueConstraint(
                fields=["track"], name="intake_one_of_the_service", nulls_distinct=False
            ),
            models.CheckConstraint(
                condition=Q(tutorial_reward__gte=0, payout_minimum__gte=0), name="intake_amounts"
            ),
            models.CheckConstraint(
                condition=Q(payout_day__gte=1, payout_day__lte=31), name="intake_payout_day"
            ),
        ]

    def __str__(self) -> str:
        return f"policy of {self.track or 'the service'}"


class Terms(models.Model):
    """A version of the terms; the latest is current. Without a row, the version that ships with the
    service is current.
    """

    version = models.PositiveIntegerField(unique=True)
    text = models.TextField()
    made_at = models.DateTimeField(default=clock.now)
    made_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        db_table_comment = "Versions of the terms for annotators"

    def __str__(self) -> str:
        return f"terms {self.version}"


IN_FRAME = "What was in hand in a marketplace's frame; empty on pages of our own"


class Consent(models.Model):
    """An annotator's agreement to a version of the terms."""

    worker = models.ForeignKey(Worker, on_delete=models.CASCADE, related_name="consents")
    version = models.PositiveIntegerField()
    assignment = models.CharField(max_length=120, blank=True, default="", help_text=IN_FRAME)
    at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table_comment = "Who agreed to which version of the terms"
        constraints = [
            models.UniqueConstraint(fields=["worker", "version", "assignment"], name="consent_once")
        ]

    def __str__(self) -> str:
        return f"{self.worker} to terms {self.version}"


class TutorialRun(models.Model):
    """One attempt at a version of an interface's tutorial; `answers` grows by one with each
    question.
    """

    worker = models.ForeignKey(Worker, on_delete=models.CASCADE, related_name="tutorials")
    interface = models.CharField(max_length=32)
    version = models.PositiveSmallIntegerField()
    attempt = models.PositiveSmallIntegerField()
    assignment = models.CharField(max_length=120, blank=True, default="", help_text=IN_FRAME)
    answers = models.JSONField(default=list, help_text="For each question: right, what was missed")
    passed = models.BooleanField(
        null=True, help_text="Not known until the last question is answered"
    )
    started_at = models.DateTimeField(default=clock.now)
    ended_at = models.DateTimeField(null=True)
    promised = models.DecimalField(max_digits=6, decimal_places=2, default=Decimal("0.00"))
    track = models.ForeignKey(
        Track, null=True, on_delete=models.PROTECT, help_text="Who pays what is promised"
    )
    promise = models.ForeignKey(
        "self",
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="The attempt for which money was reserved; none once a bonus pays it",
    )

    class Meta:
        db_table_comment = "Attempts at tutorials"
        constraints = [
            models.UniqueConstraint(
                fields=["worker", "interface", "version", "assignment", "attempt"],
                name="tutorial_attempt_once",
            ),
            models.CheckConstraint(
                condition=Q(passed=None) | Q(ended_at__isnull=False), name="tutorial_result_at_end"
            ),
            models.CheckConstraint(
                condition=Q(promised=0) | Q(track__isnull=False), name="tutorial_promise_has_payer"
            ),
        ]

    def __str__(self) -> str:
        return f"tutorial {self.interface} {self.version}, attempt {self.attempt}"

    @property
    def purpose(self) -> Purpose:
        """Return the purpose of the attempt's promised money."""
        return Purpose("tutorial", self.promise_id or 0)


class Application(Waiting):
    """An application as a volunteer: admitted at once if the rules are open, else by an admin."""

    user = models.OneToOneField(User, on_delete=models.CASCADE, related_name="application")
    why = models.TextField(blank=True)
    made_at = models.DateTimeField(default=clock.now)
    admitted = models.BooleanField(null=True)
    answered_at = models.DateTimeField(null=True)
    answered_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        db_table_comment = "The queue of volunteers"

    def __str__(self) -> str:
        return f"application {self.pk}"


class Message(models.Model):
    """A message of an admin to an annotator, shown on their page or delivered by the
    marketplace.
    """

    worker = models.ForeignKey(Worker, on_delete=models.CASCADE, related_name="messages")
    subject = models.CharField(max_length=120)
    text = models.TextField()
    by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    at = models.DateTimeField(default=clock.now)
    read_at = models.DateTimeField(null=True)
    tried_at = models.DateTimeField(
        null=True, help_text="When a marketplace was asked to hand it over: at most once"
    )
    sent_at = models.DateTimeField(null=True, help_text="When the marketplace took it")
    trouble = models.TextField(
        blank=True, help_text="Why it was not handed over, or may not have been"
    )

    class Meta:
        db_table_comment = "Messages to annotators"

    def __str__(self) -> str:
        return f"message {self.pk}"


class Feedback(models.Model):
    """An annotator's feedback about the work, for admins only."""

    worker = models.ForeignKey(Worker, on_delete=models.CASCADE, related_name="feedback")
    interface = models.CharField(max_length=32)
    clear = models.BooleanField(help_text="The instructions are clear")
    fair = models.BooleanField(help_text="The pay is fair")
    comment = models.TextField(blank=True)
    at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table_comment = "Feedback of annotators; never public"

    def __str__(self) -> str:
        return f"feedback {self.pk}"


class Appeal(models.Model):
    """An annotator's appeal against an exclusion or a rejected payment, with the answer of an
    admin.
    """

    worker = models.ForeignKey(Worker, on_delete=models.CASCADE, related_name="appeals")
    about_pay = models.BooleanField(
        default=False, help_text="Against refused pay, and not against being excluded"
    )
    excluded_reason = models.TextField(help_text="What was appealed against, as it stood then")
    text = models.TextField()
    made_at = models.DateTimeField(default=clock.now)
    answer = models.TextField(blank=True)
    reinstated = models.BooleanField(null=True)
    answered_at = models.DateTimeField(null=True)
    answered_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        db_table_comment = "Appeals against exclusions"
        constraints = [
            models.UniqueConstraint(
                fields=["worker"], condition=Q(answered_at=None), name="appeal_one_open"
            ),
            models.CheckConstraint(
                condition=Q(answered_at=None) | ~Q(answer=""), name="appeal_answered_in_words"
            ),
        ]

    def __str__(self) -> str:
        return f"appeal {self.pk}"


def _random_receipt_number() -> str:
    """Return a random number for a receipt."""
    return secrets.token_hex(5).upper()


class Payout(models.Model):
    """A payment to an annotator outside of this service, with a receipt. A mistaken payment is
    undone by a second row with the opposite amount: rows are never changed.
    """

    worker = models.ForeignKey(Worker, on_delete=models.PROTECT, related_name="payouts")
    amount = models.DecimalField(max_digits=10, decimal_places=2)
    reference = models.CharField(max_length=120, help_text="How it can be found again at the bank")
    sent_to = models.CharField(
        max_length=12, blank=True, help_text="The end of the address that it went to"
    )
    key = models.CharField(
        max_length=64, unique=True, help_text="Of the form: a second click pays nothing"
    )
    paid_at = models.DateTimeField(default=clock.now)
    paid_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    number = models.CharField(
        max_length=16, unique=True, default=_random_receipt_number, help_text="Of the receipt"
    )
    undoes = models.OneToOneField(
        "self",
        null=True,
        on_delete=models.PROTECT,
        related_name="undone_by",
        help_text="The mark that was a mistake",
    )

    class Meta:
        db_table_comment = "Payouts to annotators of the pool"
        constraints = [
            models.CheckConstraint(
                condition=Q(undoes=None, amount__gt=0) | Q(undoes__isnull=False, amount__lt=0),
                name="payout_signed",
            )
        ]

    def __str__(self) -> str:
        return f"payout {self.number}"


class PayoutItem(models.Model):
    """A payment in a payout. The database ensures that each payment is in one valid payout."""

    payout = models.ForeignKey(Payout, on_delete=models.CASCADE, related_name="items")
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="payout_items")
    undone = models.BooleanField(default=False)

    class Meta:
        db_table_comment = "Which payments a payout settled"
        constraints = [
            models.UniqueConstraint(
                fields=["payment"], condition=Q(undone=False), name="payout_item_once"
            ),
        ]

    def __str__(self) -> str:
        return f"payment {self.payment_id} in payout {self.payout_id}"
