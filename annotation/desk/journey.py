"""Reads how long the oldest row has waited in each stage of the crowd's pipeline, and where the
books of other platforms disagree with ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Count, Exists, Min, OuterRef, Q, QuerySet, Sum

from annotation.marketplace.books import balance_difference, total_paid_there
from annotation.models import (
    HIT,
    Assignment,
    Bonus,
    DocumentOrder,
    Payment,
    PlatformBooks,
    Qualification,
    Question,
)
from annotation.platforms.base import configured_endpoint
from annotation.platforms.registry import local_platform_names, marketplace_names, platform_by_name
from annotation.questions.order import missing_money
from kbpo import clock
from kbpo.sampling.models import DocumentSample

ZERO = Decimal("0.00")
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
LISTED = 14 * DAY
IN_DOUBT = ("sent", "unknown")


@dataclass(frozen=True)
class Stage:
    """A status in which rows wait: their number, the time since which the oldest waits, and the
    longest normal waiting time (None: no limit). `step` moves them on: a step of the clock,
    "people", or "an admin".
    """

    name: str
    step: str
    waiting: int
    since: datetime | None
    limit: timedelta | None

    @property
    def oldest(self) -> timedelta | None:
        """Return how long the oldest row has waited."""
        return clock.now() - self.since if self.since else None

    @property
    def is_late(self) -> bool:
        return self.limit is not None and self.oldest is not None and self.oldest > self.limit


def crowd_stages() -> list[Stage]:
    """Return the stages from pending questions to paid answers, in this order."""
    stages = [_reading_stage(), _underfunded_stage()]
    for name, step, queued, column, limit in _stage_queues():
        waiting = queued.aggregate(n=Count("pk"), oldest=Min(column))
        stages.append(Stage(name, step, waiting["n"], waiting["oldest"], limit))
    return stages


def _stage_queues() -> Iterator[tuple[str, str, QuerySet[Any], str, timedelta | None]]:
    """Yield the name, step, rows, column of the waiting time and limit of each stage. Payments wait
    since they were created, since an attempt to pay resets `status_since`; leases are late once
    they have run out.
    """
    local, since = local_platform_names(), "status_since"
    # A HIT that expires is offered once more.
    twice_up = (
        2 * max(platform_by_name(name).capabilities.offered_for for name in marketplace_names())
        + HOUR
    )
    published = Question.objects.filter(status="published")
    leased = Assignment.objects.filter(status="leased")
    owed, bonuses = Payment.objects.filter(status="owed"), Bonus.objects.filter(status="owed")
    yield "Publish", "publish", Question.objects.filter(status="waiting"), since, HOUR
    yield "Put up", "publish", HIT.objects.filter(status="intent"), since, 10 * MINUTE
    yield "Judge", "people", published.filter(track__platform__in=local), since, 2 * DAY
    elsewhere = published.exclude(track__platform__in=local)
    yield "Judge elsewhere", "people", elsewhere, since, twice_up
    yield "Answer", "people", leased, since, None
    late = leased.filter(leased_until__lte=clock.now())
    yield "Take back", "collect", late, "leased_until", 10 * MINUTE
    submitted = Assignment.objects.filter(status="submitted")
    yield "Read answers", "settle", submitted, since, 5 * MINUTE
    yield "Approve", "settle", Assignment.objects.filter(status="accepted"), since, 15 * MINUTE
    yield "Settle", "settle", Question.objects.filter(status="answered"), since, 5 * MINUTE
    yield "Pay answers", "an admin", owed.filter(worker__platform__in=local), "created_at", 30 * DAY
    yield "Pay elsewhere", "pay_out", owed.exclude(worker__platform__in=local), "created_at", HOUR
    in_doubt = Payment.objects.filter(status__in=IN_DOUBT)
    yield "Learn what was paid", "pay_out", in_doubt, "created_at", HOUR
    yield "Pay bonuses", "pay_out", bonuses.exclude(assignment=None), "created_at", HOUR
    # Such a one waits until its worker takes the HIT that pays it.
    yield "Compensate", "people", bonuses.filter(assignment=None), "created_at", LISTED
    doubtful = Bonus.objects.filter(status__in=IN_DOUBT)
    yield "Learn what bonuses were paid", "pay_out", doubtful, "created_at", HOUR
    refusals = Assignment.objects.filter(status="rejected", platform_status="submitted")
    refusals = refusals.exclude(hit__platform__in=local)
    yield "Tell refusals", "pay_out", refusals, since, HOUR
    untold = Qualification.objects.filter(Qualification.UNTOLD, worker__identity__isnull=False)
    untold = untold.filter(worker__platform__in=marketplace_names())
    yield "Tell qualifications", "pay_out", untold, "wanted_at", HOUR
    ended = HIT.objects.filter(status__in=["closed", "expired"], called_at__isnull=False)
    ended = ended.exclude(platform__in=local).exclude(platform_status="gone")
    yield "Delete HITs", "reconcile", ended, since, 2 * DAY
    paid_by_hits = Bonus.objects.filter(
        assignment=None, status__in=["paid", "failed"], cleared_at=None
    )
    yield "Delete HITs of payments", "pay_out", paid_by_hits, since, DAY


def _reading_stage() -> Stage:
    """Return the stage of ordered documents for which no question was asked yet."""
    n, since = 0, []
    for order in DocumentOrder.objects.filter(closed_at=None):
        asked = Question.objects.filter(
            track=order.track_id, target__document=OuterRef("document"), target__kind="document"
        )
        samples = DocumentSample.objects.filter(pk__in=order.samples, settled_at=None)
        if waiting := samples.exclude(Exists(asked)).count():
            n += waiting
            since.append(order.created_at)
    return Stage("Ask about documents", "read", n, min(since, default=None), HOUR)


def _underfunded_stage() -> Stage:
    """Return the stage of document orders whose questions cost more than their reservation."""
    since = []
    for order in DocumentOrder.objects.filter(closed_at=None):
        if missing_money(order) > 0:
            waiting = Question.objects.filter(
                status="waiting", **order.purpose.filter_condition("payer")
            )
            since.append(waiting.aggregate(oldest=Min("status_since"))["oldest"])
    return Stage("Add money to orders", "an admin", len(since), min(since, default=None), HOUR)


@dataclass(frozen=True)
class UnknownPayments:
    """Payments and bonuses that were sent to a platform and whose outcome is unknown."""

    n: int
    amount: Decimal


def unknown_payments() -> UnknownPayments:
    """Return the number and sum of the payments and bonuses whose outcome is unknown."""
    n, amount = 0, ZERO
    for model in (Payment, Bonus):
        in_doubt = model._default_manager.filter(status__in=IN_DOUBT)
        sums = in_doubt.aggregate(n=Count("pk"), sum=Sum("amount"))
        n, amount = n + sums["n"], amount + (sums["sum"] or ZERO)
    return UnknownPayments(n, amount)


@dataclass(frozen=True)
class BookDisagreement:
    """A platform that cannot be reached, or whose books disagree with ours."""

    platform: str
    trouble: str
    """Why its records could not be read; empty if they could"""
    differences: list[str]
    off: Decimal
    """Its balance minus the balance that our payments imply"""


def book_disagreements() -> list[BookDisagreement]:
    """Return the platforms that cannot be reached, or whose books disagree with ours, at the
    current endpoint.
    """
    at_set_endpoint = Q()
    for name in marketplace_names():
        at_set_endpoint |= Q(platform=name, endpoint=configured_endpoint(platform_by_name(name)))
    disagreements = []
    for row in PlatformBooks.objects.filter(at_set_endpoint).order_by("platform"):
        off = balance_difference(row, total_paid_there(row.platform)) or ZERO
        if row.trouble or row.differences or off:
            disagreements.append(BookDisagreement(row.platform, row.trouble, row.differences, off))
    return disagreements
