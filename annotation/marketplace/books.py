"""Compares a platform's own records (balance, HITs, decided assignments) with ours."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from django.conf import settings
from django.db import transaction
from django.db.models import Count, F, Q, Sum

from annotation.models import HIT, Assignment, Bonus, Payment, PlatformBooks
from annotation.platforms.base import (
    Account,
    Platform,
    PlatformDown,
    Refused,
    Seen,
    UnknownOutcome,
    configured_endpoint,
)
from annotation.platforms.proof import notification_path
from annotation.platforms.registry import marketplace_names, platform_by_name
from kbpo import clock
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.models import User

ZERO = Decimal("0.00")
GRACE = timedelta(minutes=10)
MOST_SENTENCES = 20
UNPAID = ("owed", "sent", "unknown")
HELD = timedelta(minutes=5)
"""Time after which the lock of a reconciliation expires"""


@dataclass(frozen=True)
class Other:
    """The number of open HITs and the debts at an endpoint that is not configured now. They are
    left unchanged until it is configured again.
    """

    endpoint: str
    hits: int
    owed: Decimal


@dataclass(frozen=True)
class PlatformOverview:
    """The records of one platform and ours, as the desk shows them."""

    platform: str
    account: Account | None
    row: PlatformBooks
    paid: Decimal
    owed: Decimal
    open_hits: int
    hits: dict[str, int]
    others: list[Other]

    @property
    def title(self) -> str:
        """Return the name of the platform for pages."""
        return platform_by_name(self.platform).capabilities.title

    @property
    def hook(self) -> str:
        """Return the secret address for the platform's notifications."""
        return settings.SITE_URL.rstrip("/") + notification_path(self.platform)

    @property
    def balance_gap(self) -> Decimal | None:
        """Return the platform's balance minus the one that our records imply; None if it was never
        read.
        """
        return balance_difference(self.row, self.paid)


def balance_difference(books: PlatformBooks, paid: Decimal) -> Decimal | None:
    """Return a platform's balance minus the one that our records imply, given what was paid there;
    None if the balance was never read.
    """
    if books.available is None or books.on_hold is None or books.baseline is None:
        return None
    return books.available + books.on_hold + paid - books.baseline


def load_books(platform: str) -> PlatformBooks:
    """Return our record of a platform at the configured endpoint; created if missing."""
    row, _ = PlatformBooks.objects.get_or_create(
        platform=platform, endpoint=configured_endpoint(platform_by_name(platform))
    )
    return row


def claim_platform(platform: str) -> bool:
    """Lock a platform for one reconciliation if one is due, and return whether it was locked. The
    lock of a process that dies expires after some minutes.
    """
    row, now = load_books(platform), clock.now()
    wait = platform_by_name(platform).capabilities.looked_at_every
    due = Q(polled_at=None) | Q(polled_at__lte=now - wait) | Q(hinted_at__gt=F("polled_at"))
    free = Q(held_until=None) | Q(held_until__lte=now)
    claimable = PlatformBooks.objects.filter(due & free, pk=row.pk)
    return bool(claimable.update(polled_at=now, held_until=now + HELD))


def extend_claim(platform: str) -> None:
    """Extend the lock of the process that reconciles a platform."""
    PlatformBooks.objects.filter(pk=load_books(platform).pk).update(held_until=clock.now() + HELD)


def release_claim(platform: str) -> None:
    """Release the lock on reconciling a platform."""
    PlatformBooks.objects.filter(pk=load_books(platform).pk).update(held_until=None)


def note_confirmation(platform: str, address: str) -> None:
    """Store the address at which an admin confirms the platform's notifications."""
    PlatformBooks.objects.filter(pk=load_books(platform).pk).update(confirm_url=address)


def note_error(platform: str, sentence: str) -> None:
    """Store why a platform could not be called."""
    PlatformBooks.objects.filter(pk=load_books(platform).pk).update(trouble=sentence)


def read_balance(platform: Platform, seen: Iterable[Seen]) -> None:
    """Read the balance, and store the differences between the platform's records and ours."""
    row = load_books(platform.name)
    try:
        balance = platform.balance()
    except (PlatformDown, UnknownOutcome, Refused) as trouble:
        note_error(platform.name, str(trouble))
        return
    row.available, row.on_hold = balance.get("available"), balance.get("on_hold")
    paid = total_paid_there(platform.name)
    if row.baseline is None and row.available is not None and row.on_hold is not None:
        row.baseline = row.available + row.on_hold + paid
    row.differences = list(_differences(platform.name, list(seen)))[:MOST_SENTENCES]
    row.trouble, row.read_at = "", clock.now()
    row.save()


def total_paid_there(platform: str) -> Decimal:
    """Return the sum that the platform has charged at the configured endpoint: rewards and bonuses,
    with fees.
    """
    here = configured_endpoint(platform_by_name(platform))
    assignments = Assignment.objects.filter(
        hit__platform=platform, hit__endpoint=here, platform_status="approved"
    )
    capabilities = platform_by_name(platform).capabilities
    rewards = assignments.values_list("hit__reward").annotate(n=Count("pk")).order_by()
    paid = sum((n * (reward + capabilities.fee(reward)) for reward, n in rewards), ZERO)
    paid_bonuses = Bonus.objects.filter(worker__platform=platform, endpoint=here, status="paid")
    bonuses = paid_bonuses.aggregate(sum=Sum(F("amount") + F("fee")))
    return paid + (bonuses["sum"] or ZERO)


def compare_books(platform: str) -> PlatformOverview:
    """Return the records of one platform, and ours."""
    here = configured_endpoint(platform_by_name(platform))
    everywhere = Payment.objects.filter(assignment__hit__platform=platform, status__in=UNPAID)
    owed = everywhere.filter(endpoint=here)
    hits = HIT.objects.filter(platform=platform, endpoint__in=["", here])
    return PlatformOverview(
        platform,
        platform_by_name(platform).account(),
        load_books(platform),
        total_paid_there(platform),
        owed.aggregate(sum=Sum("amount"))["sum"] or ZERO,
        hits.filter(platform_status__in=["open", "busy"]).count(),
        hits.counts(),
        _other_endpoints(platform, here),
    )


def _other_endpoints(platform: str, here: str) -> list[Other]:
    """Return open HITs and debts at other endpoints."""
    living = HIT.objects.filter(platform=platform, called_at__isnull=False).exclude(
        platform_status="gone"
    )
    hits = Counter(living.exclude(endpoint=here).values_list("endpoint", flat=True))
    unpaid = (
        Payment.objects.filter(assignment__hit__platform=platform, status__in=UNPAID),
        Bonus.objects.filter(worker__platform=platform, status__in=UNPAID),
    )
    owed: dict[str, Decimal] = defaultdict(Decimal)
    for unpaid_rows in unpaid:
        for endpoint, amount in unpaid_rows.exclude(endpoint=here).values_list(
            "endpoint", "amount"
        ):
            owed[endpoint] += amount
    return [Other(end, hits[end], owed[end]) for end in sorted({*hits, *owed})]


def platforms() -> list[PlatformOverview]:
    """Return the records of every platform except our own pages."""
    return [compare_books(name) for name in marketplace_names()]


def latest_bonuses(limit: int = 50) -> list[Bonus]:
    """Return the latest bonuses and compensations on platforms."""
    return list(Bonus.objects.select_related("worker").order_by("-created_at")[:limit])


def accept_balance(platform: str, who: User, why: str) -> bool:
    """Accept the present balance as correct and log it, after money was paid in or out by hand, and
    return whether there is such a platform.
    """
    if platform not in marketplace_names():
        return False
    before = compare_books(platform).balance_gap
    about = f"platform:{platform}"
    with transaction.atomic():
        row = load_books(platform)
        if row.available is not None and row.on_hold is not None:
            row.baseline = row.available + row.on_hold + total_paid_there(platform)
            row.save(update_fields=["baseline"])
        write_audit_entry(
            "explain balance", about, who=who, why=why, before=str(before), after="0.00"
        )
    return True


def _differences(platform: str, seen: list[Seen]) -> Iterable[str]:
    tokens = set(HIT.objects.filter(platform=platform).values_list("token", flat=True))
    for row in seen:
        if row.token and row.token not in tokens:
            yield f"HIT {row.external_id} carries our mark, but we do not know it."
    late = clock.now() - GRACE
    here = configured_endpoint(platform_by_name(platform))
    paid = Payment.objects.filter(assignment__hit__platform=platform, endpoint=here, status="paid")
    for payment in paid.exclude(assignment__platform_status="approved").select_related(
        "assignment"
    )[:MOST_SENTENCES]:
        if payment.assignment is not None:
            yield (
                f"Assignment {payment.assignment.external_id} is paid here and"
                f" {payment.assignment.platform_status} there."
            )
    unpaid = Assignment.objects.filter(
        hit__platform=platform,
        hit__endpoint=here,
        platform_status="approved",
        status_since__lt=late,
    )
    for answer in unpaid.filter(payment__isnull=True)[:MOST_SENTENCES]:
        yield (
            f"Assignment {answer.external_id} is paid there, and our books owe nothing for it"
            f" ({answer.status})."
        )
