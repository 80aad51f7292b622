"""Models of human annotation: questions, HITs, workers, answers and payments; quality control; the
records of platforms.
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from decimal import Decimal

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Case, F, Q, When

from kbpo import clock
from kbpo.accounts.models import User
from kbpo.instances.models import Target
from kbpo.money.models import KINDS, Purpose, purpose_or_none
from kbpo.queue import Moving
from kbpo.sampling.models import Sample
from kbpo.tracks.models import Track

COUNTED = ("leased", "submitted", "accepted", "approved", "paid")
"""Statuses of assignments that take one of a HIT's places."""
ANSWERED = ("submitted", "accepted", "approved", "paid")
"""Statuses of assignments that hold an answer which is or may be used."""


ANSWERABLE = ("waiting", "published")
"""Statuses of questions that people may still answer, or will be able to."""
UNSETTLED = (*ANSWERABLE, "answered")
"""Statuses of questions whose labels are still to come."""
FIRST = 2
"""Number of people who are asked first, where a third person is asked only if the two disagree"""
MOST_PRICE = F("price") * (
    F("answers_wanted") + Case(When(staged=True, answers_wanted=FIRST, then=1), default=0)
)
"""The maximal cost of a pending question: its price times `max_paid_answers`"""
PUT_AWAY = ("disposed", "failed")
"""Statuses of HITs that were never offered, or are no longer offered"""
UNPROVEN = "unproven"
"""Field of a raw answer that did not come from our page; such an answer is stored but never used.
"""
UNLISTED = ("leased", "returned")
"""Statuses of assignments that their platform has not listed yet"""


class Considered(models.Model):
    """Marks a sample as processed: a question was asked about its target, or existing labels
    sufficed.
    """

    sample = models.OneToOneField(
        Sample, primary_key=True, on_delete=models.CASCADE, related_name="considered"
    )
    at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table_comment = "Samples that were considered for questions, and when"

    def __str__(self) -> str:
        return f"sample {self.sample_id}"


class Halt(models.Model):
    """A stop by an admin of one batch (a payer), of one track, or of everything, until it is
    lifted.
    """

    class Scope(models.TextChoices):
        PUBLISHING = "publishing"  # nothing new is published; published questions continue
        ALL = "all"  # nothing is offered; started work may be finished

    track = models.ForeignKey(Track, null=True, on_delete=models.CASCADE, related_name="halts")
    payer_kind = models.CharField(
        max_length=12, null=True, help_text="Who pays for the batch that is stopped; none: all"
    )
    payer_number = models.PositiveBigIntegerField(null=True)
    scope = models.CharField(max_length=12, choices=Scope.choices)
    why = models.TextField()
    who = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    since = models.DateTimeField(default=clock.now)
    lifted_at = models.DateTimeField(null=True)
    lifted_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        db_table_comment = "Stops of publishing or of all work, by administrators"
        constraints = [
            models.CheckConstraint(
                condition=Q(payer_kind=None, payer_number=None)
                | Q(payer_kind__in=KINDS, payer_number__isnull=False),
                name="halt_payer_is_whole",
            )
        ]

    def __str__(self) -> str:
        return f"{self.scope} stopped since {self.since:%Y-%m-%d %H:%M} UTC"

    @property
    def payer(self) -> Purpose | None:
        """Return the payer of the halted batch; None if a track or everything is halted."""
        return purpose_or_none(self.payer_kind, self.payer_number)

    @payer.setter
    def payer(self, payer: Purpose | None) -> None:
        """Set the payer of the halted batch; None for a track or everything."""
        self.payer_kind, self.payer_number = payer or (None, None)


class Question(Moving):
    """A question about one target through one interface. A target is asked about again only for
    predicates that no earlier question showed.
    """

    class Status(models.TextChoices):
        WAITING = "waiting"  # for budget and platform
        PUBLISHED = "published"  # workers may answer
        ANSWERED = "answered"  # enough answers; to be settled
        SETTLED = "settled"  # its labels are written
        UNANSWERED = "unanswered"  # nobody answered; the label says so
        CANCELLED = "cancelled"
        GOLD = "gold"  # a gold question: mixed with the others, makes no label

    class EndedBy(models.TextChoices):
        STOP = "stop"  # its batch was stopped
        TAKE_DOWN = "take_down"  # there was no money to publish its HIT again

    DEADLINES = {
        "waiting": (
            timedelta(days=60),
            "unanswered",
            "It could not be published within sixty days.",
        ),
        "published": (
            timedelta(days=14),
            "unanswered",
            "Too few people answered it within fourteen days.",
        ),
    }
    GIVEN_UP = "unanswered"

    track = models.ForeignKey(Track, on_delete=models.CASCADE, related_name="questions")
    target = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="questions")
    interface = models.CharField(max_length=32)
    round = models.PositiveSmallIntegerField(
        default=1, help_text="Asked again for what was not shown before"
    )
    shown = models.JSONField(
        default=list, help_text="What is shown: for pairs the directed predicates"
    )
    payload = models.JSONField(
        default=dict, help_text="All that the page needs; never who claimed what"
    )
    payer_kind = models.CharField(
        max_length=12, choices=[(kind, kind) for kind in KINDS], help_text="What pays for it …"
    )
    payer_number = models.PositiveBigIntegerField(help_text="… and the number of that")
    order = models.FloatField(
        help_text="u/π: questions go out in this order, not in order of arrival"
    )
    answers_wanted = models.PositiveSmallIntegerField(default=3)
    staged = models.BooleanField(
        default=False, help_text="Two people are asked first, and a third only where they differ"
    )
    price = models.DecimalField(
        max_digits=8, decimal_places=2, help_text="For one answer at most, with fees"
    )
    reward = models.DecimalField(max_digits=8, decimal_places=2, help_text="What one worker gets")
    extra = models.DecimalField(
        max_digits=8,
        decimal_places=2,
        default=Decimal("0.00"),
        help_text="What one worker gets besides, for an answer that took more work",
    )
    extra_price = models.DecimalField(
        max_digits=8,
        decimal_places=2,
        default=Decimal("0.00"),
        help_text="The part of the price that is due only with the extra",
    )
    seconds = models.PositiveIntegerField(default=20, help_text="Expected seconds for one answer")
    asked_at = models.DateTimeField(default=clock.now)
    asked_again = models.BooleanField(
        default=False, help_text="Published once more, since answers to it were excluded"
    )
    ended_by = models.CharField(
        max_length=10,
        choices=EndedBy.choices,
        blank=True,
        help_text="Which click of an admin gave it up; empty if none did",
    )

    class Meta:
        db_table_comment = "Questions about targets"
        constraints = [
            models.UniqueConstraint(
                fields=["track", "target", "interface", "round"], name="question_once_a_round"
            ),
            models.CheckConstraint(condition=Q(payer_kind__in=KINDS), name="question_payer_is_one"),
        ]
        indexes = [
            models.Index(fields=["status", "order"]),
            models.Index(fields=["status", "next_try_at"]),
            models.Index(fields=["payer_kind", "payer_number", "status"], name="question_by_payer"),
        ]

    def __str__(self) -> str:
        return f"question {self.pk}"

    @property
    def payer(self) -> Purpose:
        """Return the purpose whose reservation pays the question."""
        return Purpose(self.payer_kind, self.payer_number)

    @payer.setter
    def payer(self, payer: Purpose) -> None:
        """Set the purpose whose reservation pays the question."""
        self.payer_kind, self.payer_number = payer

    @property
    def origin(self) -> str:
        """Return the name of this question as the origin of labels."""
        return f"question:{self.pk}"

    @property
    def max_paid_answers(self) -> int:
        """Return the number of answers that money is reserved for, including the third where two
        people are asked first. A question that is asked again after exclusions has money for its
        additional answers only.
        """
        has_third = self.staged and self.answers_wanted == FIRST and not self.asked_again
        return self.answers_wanted + has_third

    @property
    def most(self) -> Decimal:
        """Return the most that one worker gets."""
        return self.reward + self.extra


class HIT(Moving):
    """Questions that a worker accepts together on a platform. `token` is the idempotency key."""

    class Status(models.TextChoices):
        INTENT = "intent"  # saved before the platform is called
        OPEN = "open"
        CLOSED = "closed"  # no more assignments wanted
        EXPIRED = "expired"
        DISPOSED = "disposed"
        FAILED = "failed"

    track = models.ForeignKey(Track, on_delete=models.CASCADE, related_name="hits")
    platform = models.CharField(max_length=16)
    questions = models.ManyToManyField(Question, related_name="hits")
    external_id = models.CharField(max_length=120, blank=True, db_index=True)
    token = models.CharField(max_length=64, unique=True, default=secrets.token_hex)
    order = models.FloatField(default=0.0, help_text="Smallest order of its questions")
    max_assignments = models.PositiveSmallIntegerField(default=3)
    reward = models.DecimalField(max_digits=8, decimal_places=2)
    expires_at = models.DateTimeField(null=True)
    called_at = models.DateTimeField(
        null=True, help_text="When its platform was first asked to put it up"
    )
    endpoint = models.CharField(
        max_length=200, blank=True, help_text="Where its platform was asked: sandbox, real …"
    )
    platform_status = models.CharField(
        max_length=8, blank=True, help_text="What its platform last said: open, gone …"
    )
    renewed_at = models.DateTimeField(
        null=True, help_text="It is offered again once after it expired"
    )
    checked_at = models.DateTimeField(null=True, help_text="When its answers were last listed")
    taken_down_at = models.DateTimeField(
        null=True, help_text="By a stop: it is offered again when that is lifted"
    )
    unread = models.CharField(
        max_length=60, blank=True, help_text="The error by which an answer could not be taken in"
    )

    class Meta:
        db_table_comment = "Questions as published on a platform"
        # With the number, so that the first of a thousand is found without sorting any.
        indexes = [models.Index(fields=["platform", "status", "order", "id"], name="hit_in_order")]

    def __str__(self) -> str:
        return f"HIT {self.pk}"


class Worker(models.Model):
    """A person who answers. Identities are stored in `WorkerIdentity` only; this table and exports
    have a keyed hash.
    """

    platform = models.CharField(max_length=16)
    handle = models.CharField(
        max_length=32, unique=True, help_text="HMAC of the platform's worker id"
    )
    user = models.OneToOneField(User, null=True, on_delete=models.SET_NULL, related_name="worker")
    excluded_at = models.DateTimeField(null=True)
    excluded_reason = models.TextField(blank=True)
    reinstated_at = models.DateTimeField(
        null=True, help_text="What was noted before does not exclude again"
    )
    created_at = models.DateTimeField(default=clock.now)
    last_seen_at = models.DateTimeField(null=True)
    wants = models.CharField(
        max_length=32, blank=True, help_text="The kind of question they chose; empty for any"
    )
    warned = models.JSONField(
        default=dict,
        help_text="Kind of signal -> answers against them when they were warned of it last",
    )
    wants_mail = models.BooleanField(default=False, help_text="When there is work again")
    mailed_at = models.DateTimeField(null=True, help_text="The last mail about work")
    leaves_at = models.DateTimeField(null=True, help_text="When they asked to be erased")
    waives = models.BooleanField(
        default=False, help_text="Leaving, they give up what is owed; else it is paid first"
    )
    erased_at = models.DateTimeField(null=True)
    keys = models.JSONField(
        default=dict, help_text="Single-key shortcuts: whether they are off, and which are changed"
    )

    class Meta:
        db_table_comment = "Annotators, pseudonymous"

    def __str__(self) -> str:
        return self.handle[:4]


class WorkerIdentity(models.Model):
    """The platform's worker id and the payout address: personal data that payment needs, stored in
    this table only.
    """

    worker = models.OneToOneField(Worker, on_delete=models.CASCADE, related_name="identity")
    external_id = models.CharField(max_length=120)
    pay_to = models.TextField(blank=True, help_text="Where payouts go; empty until they say")

    class Meta:
        db_table_comment = "Personal data: platform worker ids, where annotators are paid"

    def __str__(self) -> str:
        return f"identity of {self.worker_id}"


class Assignment(Moving):
    """A HIT accepted by one worker. The raw answer is stored unchanged."""

    class ReturnedBy(models.TextChoices):
        WORKER = "worker"  # given back: it is not offered to them again
        STOPPED = "stopped"  # stopped by the worker: open to all, first to that worker
        LEASE = "lease"  # nobody worked on it until the lease ran out
        PLATFORM = "platform"  # the platform gave it to somebody else

    class Status(models.TextChoices):
        LEASED = "leased"
        SUBMITTED = "submitted"  # raw answer stored; to be parsed
        ACCEPTED = "accepted"  # parsed into responses; counts for labels
        APPROVED = "approved"  # the money is owed
        PAID = "paid"
        RETURNED = "returned"  # given back or lease lost
        REJECTED = "rejected"
        FAILED = "failed"

    hit = models.ForeignKey(HIT, on_delete=models.PROTECT, related_name="assignments")
    worker = models.ForeignKey(
        Worker, on_delete=models.PROTECT, related_name="assignments", db_index=False
    )
    external_id = models.CharField(max_length=120, blank=True)
    platform_status = models.CharField(
        max_length=12, blank=True, help_text="What its platform last said of it"
    )
    token = models.CharField(
        max_length=64,
        unique=True,
        default=secrets.token_hex,
        help_text="In the form; makes a submission once",
    )
    leased_until = models.DateTimeField()
    draft = models.JSONField(null=True, help_text="Autosaved, so that a reload loses nothing")
    raw = models.JSONField(null=True, help_text="The answer as sent")
    seconds = models.FloatField(null=True, help_text="Time on the page as the server saw it")
    extra = models.DecimalField(
        max_digits=8,
        decimal_places=2,
        default=Decimal("0.00"),
        help_text="What it earned besides the HIT's reward, because it took more work",
    )
    accepted_at = models.DateTimeField(
        default=clock.now, help_text="Moved by pauses, so that what lies after it is time at work"
    )
    first_accepted_at = models.DateTimeField(
        null=True, help_text="When it was put before its worker; null: when it was accepted"
    )
    submitted_at = models.DateTimeField(null=True)
    returned_by = models.CharField(
        max_length=8, choices=ReturnedBy.choices, blank=True, help_text="How it came back"
    )

    class Meta:
        db_table_comment = "One worker's go at a HIT"
        constraints = [
            models.UniqueConstraint(
                fields=["hit", "worker"],
                condition=~Q(status="returned"),
                name="assignment_once_a_worker",
            ),
            models.UniqueConstraint(
                fields=["hit", "external_id", "worker"],
                condition=~Q(external_id=""),
                name="assignment_once_a_platform",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["leased", "returned"]) | Q(raw__isnull=False),
                name="submitted_has_raw_answer",
            ),
        ]
        indexes = [
            models.Index(fields=["status", "leased_until"]),
            # Of somebody's thousands of answers a page reads today's, and what they have in hand.
            models.Index(fields=["worker", "status", "status_since"], name="assignment_in_hand"),
            models.Index(fields=["worker", "submitted_at"], name="assignment_of_a_day"),
        ]

    def __str__(self) -> str:
        return f"assignment {self.pk}"

    @property
    def earned(self) -> Decimal:
        """Return the worker's pay: the reward of the HIT plus the extra."""
        return self.hit.reward + self.extra


class Response(models.Model):
    """The parsed judgment of one worker about one target under one criterion."""

    assignment = models.ForeignKey(Assignment, on_delete=models.CASCADE, related_name="responses")
    question = models.ForeignKey(Question, on_delete=models.PROTECT, related_name="responses")
    target = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="responses")
    criterion = models.CharField(max_length=24, help_text="relation, linking, flag …")
    value = models.JSONField()
    counts = models.BooleanField(
        default=True, db_default=True, help_text="Whether labels and measures are made of it"
    )
    excluded_reason = models.TextField(
        blank=True, help_text="Why it does not count, for people to read"
    )
    met_before = models.BooleanField(
        default=False, help_text="Its worker had judged the target before: it never counts"
    )
    created_at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table_comment = "Parsed judgments of single workers"
        constraints = [
            models.UniqueConstraint(
                fields=["assignment", "question", "target", "criterion"],
                name="response_once_a_question",
            ),
            models.CheckConstraint(
                condition=Q(counts=True, excluded_reason="")
                | Q(counts=False) & ~Q(excluded_reason=""),
                name="response_says_why_it_does_not_count",
            ),
        ]

    def __str__(self) -> str:
        return f"response {self.pk}"


class Signal(models.Model):
    """A check of one answer: by speed, by the majority of the others, or by gold. A single signal
    excludes nobody.
    """

    class Kind(models.TextChoices):
        MAJORITY = "majority"
        GOLD = "gold"
        UNREAD = "unread"
        TOO_FAST = "too_fast"
        SHORT_EDIT = "short_edit"

    assignment = models.ForeignKey(Assignment, on_delete=models.CASCADE, related_name="signals")
    kind = models.CharField(max_length=12, choices=Kind.choices)
    against = models.BooleanField(help_text="Whether the check makes one doubt the answer")
    detail = models.TextField(blank=True)
    reviewed = models.BooleanField(
        default=False, help_text="Its worker was looked at since, and may stay"
    )
    created_at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table_comment = "Checks of answers: by speed, by the others' majority, by gold"
        indexes = [
            models.Index(
                fields=["assignment"],
                condition=Q(against=True, reviewed=False),
                name="signal_unreviewed",
            )
        ]
        constraints = [models.UniqueConstraint(fields=["assignment", "kind"], name="signal_once")]

    def __str__(self) -> str:
        return f"{self.kind} of assignment {self.assignment_id}"


SIGNALS = tuple(Signal.Kind.values)
"""Kinds of signals that may count against a worker"""


class Payment(Moving):
    """What one assignment (or a passed tutorial, if `why` says so) is owed, exactly once."""

    class Status(models.TextChoices):
        OWED = "owed"
        SENT = "sent"
        PAID = "paid"
        UNKNOWN = "unknown"
        FAILED = "failed"
        WITHHELD = (  # the answer was rejected; the money stays reserved in case that is undone
            "withheld"
        )
        WAIVED = "waived"  # waived by its worker, who left

    asked_before: bool = False
    """Whether an earlier call may have reached the platform; set while the payment is sent"""

    assignment = models.OneToOneField(
        Assignment, null=True, on_delete=models.PROTECT, related_name="payment"
    )
    worker = models.ForeignKey(Worker, on_delete=models.PROTECT, related_name="payments")
    amount = models.DecimalField(max_digits=8, decimal_places=2)
    token = models.CharField(max_length=64, unique=True, default=secrets.token_hex)
    why = models.CharField(
        max_length=120, blank=True, help_text="What for, if not for an assignment"
    )
    endpoint = models.CharField(
        max_length=200, blank=True, help_text="Where its platform pays it: that of its HIT"
    )
    created_at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table_comment = "What annotators are owed and were paid"
        constraints = [
            models.CheckConstraint(condition=Q(amount__gt=0), name="payment_positive"),
            models.CheckConstraint(
                condition=Q(assignment__isnull=False) | ~Q(why=""), name="payment_for_something"
            ),
        ]

    def __str__(self) -> str:
        return f"payment {self.pk}"


class DocumentOrder(models.Model):
    """An order to have documents annotated completely, with its price and reservation."""

    track = models.ForeignKey(Track, on_delete=models.CASCADE, related_name="document_orders")
    samples = ArrayField(
        models.BigIntegerField(),
        default=list,
        help_text="The drawn documents, each in one order of the track",
    )
    per_token = models.DecimalField(
        max_digits=8, decimal_places=4, help_text="Dollars for one token, to one worker"
    )
    per_pair = models.DecimalField(
        max_digits=8, decimal_places=4, help_text="Dollars for one pair, to one worker"
    )
    fee_rate = models.DecimalField(max_digits=4, decimal_places=3, default=Decimal("0"))
    workers = models.PositiveSmallIntegerField(default=3)
    who = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=clock.now)
    closed_at = models.DateTimeField(
        null=True, help_text="When nothing of it was left to be done, and its money back"
    )

    class Meta:
        db_table_comment = "Orders to annotate documents whole"
        constraints = [
            models.CheckConstraint(
                condition=Q(per_token__gt=0, per_pair__gt=0, fee_rate__gte=0),
                name="document_order_costs",
            )
        ]

    def __str__(self) -> str:
        return f"documents of order {self.pk}"

    @property
    def purpose(self) -> Purpose:
        """Return the purpose of the order's money."""
        return Purpose("documents", self.pk)


def signals_that_exclude() -> list[str]:
    """Return the kinds of signals that exclude automatically by default."""
    return ["majority", "gold", "unread"]


class Policy(models.Model):
    """How the answers of a track are checked and aggregated. A track without a row has the
    defaults.
    """

    class Aggregation(models.TextChoices):
        MAJORITY = "majority", "majority"
        DAWID_SKENE = "dawid_skene", "Dawid and Skene’s model"

    track = models.OneToOneField(Track, on_delete=models.CASCADE, related_name="policy")
    gold_rate = models.FloatField(
        default=0.0, help_text="Share of questions that are gold, for each worker"
    )
    aggregation = models.CharField(
        max_length=16, choices=Aggregation.choices, default=Aggregation.MAJORITY
    )
    fitted_at = models.DateTimeField(null=True)
    revision = models.PositiveIntegerField(
        default=0, help_text="Counts the times that labels were re-aggregated"
    )
    exclude_for = models.JSONField(
        default=signals_that_exclude,
        help_text="Kinds of signals from this track's answers that exclude a worker by themselves",
    )

    timed = models.BooleanField(
        default=True,
        help_text="Whether answers that come too fast are noted: programs need no time",
    )

    class Meta:
        db_table_comment = "How a track's answers are checked and added up"
        constraints = [
            models.CheckConstraint(
                condition=Q(gold_rate__gte=0, gold_rate__lte=0.5), name="gold_rate_at_most_half"
            )
        ]

    def __str__(self) -> str:
        return f"policy of {self.track_id}"


class Gold(models.Model):
    """A question with a known answer. It is published among the others and paid like them, and
    never becomes a label.
    """

    question = models.OneToOneField(Question, on_delete=models.CASCADE, related_name="gold")
    source = models.ForeignKey(
        Question, null=True, on_delete=models.SET_NULL, related_name="gold_made"
    )
    expected = models.JSONField(
        help_text="The right answer, parsed: criterion, target and value of each judgment"
    )
    why = models.TextField(blank=True, help_text="Why it is right")
    made_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    made_at = models.DateTimeField(default=clock.now)
    retired_at = models.DateTimeField(null=True)

    class Meta:
        db_table_comment = "Gold questions: their right answers, never shown to workers"

    def __str__(self) -> str:
        return f"gold {self.pk}"


class Rejection(models.Model):
    """A rejected payment, by an admin and with evidence; it can be undone."""

    assignment = models.ForeignKey(Assignment, on_delete=models.PROTECT, related_name="rejections")
    who = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    evidence = models.TextField(help_text="What was wrong with the answer; its worker reads it")
    was = models.CharField(max_length=16, help_text="Status of the assignment before")
    made_at = models.DateTimeField(default=clock.now)
    undone_at = models.DateTimeField(null=True)
    undone_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        db_table_comment = "Refusals of pay, with evidence"
        constraints = [
            models.UniqueConstraint(
                fields=["assignment"],
                condition=Q(undone_at__isnull=True),
                name="rejection_once_at_a_time",
            )
        ]

    def __str__(self) -> str:
        return f"rejection of assignment {self.assignment_id}"


class Bonus(Moving):
    """A bonus or a compensation: a payment to a worker of a platform in addition to rewards, made
    exactly once.
    """

    class Status(models.TextChoices):
        OWED = "owed"
        SENT = "sent"  # intent: the platform is being called
        UNKNOWN = "unknown"  # looked up on the platform before anything is repeated
        STOPPED = (  # a compensation that an admin's stop took down: owed again when it is lifted
            "stopped"
        )
        WITHHELD = "withheld"  # its answer was rejected; owed again if that is undone
        PAID = "paid"
        FAILED = "failed"

    asked_before: bool = False
    """Whether an earlier call may have reached the platform; set while the bonus is sent"""

    track = models.ForeignKey(Track, on_delete=models.PROTECT, related_name="bonuses")
    worker = models.ForeignKey(Worker, on_delete=models.PROTECT, related_name="bonuses")
    assignment = models.ForeignKey(
        Assignment,
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
    who = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
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
        """Return the purpose of the bonus, if it has a reservation of its own."""
        return Purpose("bonus", self.pk)

    @property
    def payer(self) -> Purpose | None:
        """Return the purpose whose reservation pays the bonus; None if the bonus has its own."""
        return purpose_or_none(self.payer_kind, self.payer_number)

    @payer.setter
    def payer(self, payer: Purpose | None) -> None:
        """Set the purpose whose reservation pays the bonus; None if the bonus has its own."""
        self.payer_kind, self.payer_number = payer or (None, None)


class Qualification(models.Model):
    """A qualification of a worker on their platform: whether it is wanted here, and whether it is
    granted there.
    """

    UNTOLD = Q(told=None, wanted=True) | Q(told=True, wanted=False) | Q(told=False, wanted=True)

    worker = models.ForeignKey(Worker, on_delete=models.CASCADE, related_name="qualifications")
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
    """A type of HIT or of qualification at an endpoint; stored so that it is created only once."""

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
    """The last balance and lists of a platform; one row for each platform and endpoint."""

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
