"""Payouts to annotators of our own pages: their addresses, what they are owed, and the record that
it was paid, exactly once.

The money itself moves outside of this service (a bank, vouchers): an admin pays from the list and
then records the payout here.
"""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from django.conf import settings
from django.db import transaction
from django.db.models import Count, F, Max, Min, Q, Sum

from annotation.models import Assignment, Payment, Worker, WorkerIdentity
from annotation.platforms.registry import local_platform_names
from annotation.workers.intake import intake_rules
from annotation.workers.models import Payout, PayoutItem
from annotation.workers.speak import send_message
from kbpo import clock
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.models import User

LONGEST_REFERENCE = 120
SHORTEST_ADDRESS, LONGEST_ADDRESS = 4, 300
SHOWN = 4
"""Digits of an address that are shown on a receipt"""
ZERO = Decimal("0.00")


class CannotPay(Exception):
    """Raised for a payout that was not stored; the text is a sentence for the admin."""


@dataclass(frozen=True)
class Owed:
    """The debt to one annotator: its sum, and whether it can be paid now. `upto` is the last
    included payment.
    """

    worker: Worker
    amount: Decimal
    n: int
    since: datetime
    upto: int
    enough: bool
    leaving: bool
    address: str
    """Where the money is sent; empty if the annotator gave no address"""

    @property
    def due(self) -> bool:
        """Return whether the debt is to be paid now: an address is known, and the sum is large
        enough or the annotator is leaving.
        """
        return bool(self.address) and (self.enough or self.leaving)


def list_debts() -> list[Owed]:
    """Return the local annotators who are owed money, the largest sums first."""
    by_worker = (
        Payment.objects.filter(status="owed", worker__platform__in=local_platform_names())
        .values("worker")
        .annotate(amount=Sum("amount"), n=Count("pk"), since=Min("created_at"), upto=Max("pk"))
        .order_by("-amount", "worker")
    )
    totals = list(by_worker)
    workers = Worker.objects.select_related("user").in_bulk([row["worker"] for row in totals])
    minimum = intake_rules().payout_minimum
    address_of = payout_addresses([row["worker"] for row in totals])
    return [
        Owed(
            workers[row["worker"]],
            row["amount"],
            row["n"],
            row["since"],
            row["upto"],
            row["amount"] >= minimum,
            workers[row["worker"]].leaves_at is not None,
            address_of.get(row["worker"], ""),
        )
        for row in totals
    ]


def debt_to_worker(worker: Worker) -> Decimal:
    """Return the sum that is owed to a local annotator."""
    payments = Payment.objects.filter(worker=worker, status="owed")
    return payments.aggregate(sum=Sum("amount"))["sum"] or ZERO


@transaction.atomic
def record_payout(
    worker: Worker, *, upto: int, amount: Decimal, reference: str, key: str, who: User
) -> Payout:
    """Mark all payments of a worker up to `upto` as paid, and return the payout; a repeated form
    returns the first one. The worker is notified, with the number of the receipt.

    Raises CannotPay if the sum is no longer `amount`, or without an address.
    """
    Worker.objects.select_for_update(of=("self",), no_key=True).get(pk=worker.pk)
    if (made := Payout.objects.filter(key=key).first()) is not None:
        return made
    reference = " ".join(reference.replace("\x00", "").split())
    if not 1 <= len(reference) <= LONGEST_REFERENCE:
        raise CannotPay(
            f"Give a reference of 1 to {LONGEST_REFERENCE} characters, by which the payment can"
            " be found again."
        )
    if not (address := payout_address(worker)):
        raise CannotPay("Nothing was marked: this annotator has no payout address. Write to them.")
    here = {"status": "owed", "pk__lte": upto}
    assignments = Assignment.objects.select_for_update(of=("self",)).filter(
        worker=worker, **{f"payment__{name}": value for name, value in here.items()}
    )
    answers = list(assignments.order_by("pk"))  # before the payments: everybody locks in this order
    unpaid = Payment.objects.select_for_update(of=("self",)).filter(worker=worker, **here)
    payments = list(unpaid.order_by("pk"))
    total = sum((payment.amount for payment in payments), ZERO)
    if not payments:
        raise CannotPay(f"Nothing was marked: {_last_payout_text(worker)}")
    if total != amount:
        raise CannotPay(
            f"Nothing was marked: ${total} are owed, and the form said ${amount}. Look at"
            " the list again."
        )
    payout = Payout.objects.create(
        worker=worker,
        amount=total,
        reference=reference,
        sent_to=mask_address(address),
        key=key,
        paid_by=who,
    )
    PayoutItem.objects.bulk_create(
        PayoutItem(payout=payout, payment=payment) for payment in payments
    )
    for payment in payments:
        payment.move("paid")
    for assignment in answers:
        if assignment.status == "approved":
            assignment.move("paid")
    write_audit_entry(
        "payout", f"payout:{payout.number}", who=who, why=reference, after=f"${total}"
    )
    receipt = f"{settings.SITE_URL.rstrip('/')}/annotate/receipts/{payout.number}/"
    text = f"${total} went to {payout.sent_to} (reference {reference}). Receipt {payout.number}:"
    send_message(worker, f"You were paid ${total}", f"{text} {receipt}")
    return payout


@transaction.atomic
def undo_payout(number: str, who: User, why: str) -> Payout:
    """Undo a payout that was marked by mistake, and return the row of the opposite amount: its
    payments are owed again. A repeat returns the first such row. Raises CannotPay.
    """
    reason = " ".join(why.replace("\x00", "").split())
    payout = Payout.objects.filter(number=number, undoes=None).first()
    if payout is None:
        raise CannotPay("There is no such payout.")
    worker = Worker.objects.select_for_update(of=("self",), no_key=True).get(pk=payout.worker_id)
    if (made := Payout.objects.filter(undoes=payout).first()) is not None:
        return made
    if not 1 <= len(reason) <= LONGEST_REFERENCE:
        raise CannotPay(
            f"Nothing was undone: say why, in 1 to {LONGEST_REFERENCE} characters. It is recorded."
        )
    if worker.user_id is None:
        raise CannotPay(
            "Nothing was undone: this annotator has left and was erased, and cannot be"
            " paid any more."
        )
    items = PayoutItem.objects.filter(payout=payout, undone=False)
    answers = Assignment.objects.select_for_update(of=("self",)).filter(
        payment__payout_items__in=items
    )
    paid = list(answers.order_by("pk"))  # before the payments: everybody locks in this order
    payments = Payment.objects.select_for_update(of=("self",)).filter(payout_items__in=items)
    for payment in payments.order_by("pk"):
        payment.move("owed", "Its payout was undone.")
    for assignment in paid:
        if assignment.status == "paid":
            assignment.move("approved")
    items.update(undone=True)
    undone = Payout.objects.create(
        worker=worker,
        amount=-payout.amount,
        reference=reason,
        key=f"undo:{payout.number}",
        paid_by=who,
        undoes=payout,
    )
    about, before = f"payout:{payout.number}", f"${payout.amount}"
    write_audit_entry("undo payout", about, who=who, why=reason, before=before, after="owed")
    text = f"Receipt {payout.number} was undone: {reason}. If the money did reach you, tell us."
    send_message(worker, f"${payout.amount} are owed to you again", text)
    return undone


def _last_payout_text(worker: Worker) -> str:
    marks = worker.payouts.filter(undoes=None, undone_by=None)
    payout = marks.order_by("-paid_at").select_related("paid_by").first()
    if payout is None:
        return "this annotator is owed nothing."
    name = payout.paid_by.get_username() if payout.paid_by else "somebody"
    return f"{name} has marked ${payout.amount} as paid on {payout.paid_at:%d %B %Y, %H:%M} UTC."


@dataclass(frozen=True)
class Line:
    """A line of a receipt: subject, number, amount."""

    what: str
    n: int
    amount: Decimal


def receipt_lines(payout: Payout) -> list[Line]:
    """Return the lines of a receipt: answers by interface and price, and other payments. They add
    up to the payout.
    """
    payments = Payment.objects.filter(payout_items__payout=payout)
    answers = payments.filter(assignment__isnull=False).annotate(
        interface=Min("assignment__hit__questions__interface")
    )
    others = payments.filter(assignment=None).values_list("why", "amount")
    sums: dict[str, tuple[int, Decimal]] = {}
    for reason, amount in [*answers.values_list("interface", "amount"), *others]:
        n, total = sums.get(reason, (0, ZERO))
        sums[reason] = n + 1, total + amount
    return [Line(reason, n, total) for reason, (n, total) in sorted(sums.items())]


def payout_period(payout: Payout) -> tuple[datetime, datetime]:
    """Return when the first and the last payment of a payout were earned."""
    span = Payment.objects.filter(payout_items__payout=payout).aggregate(
        first=Min("created_at"), last=Max("created_at")
    )
    return span["first"], span["last"]


@dataclass(frozen=True)
class Earnings:
    """The earnings of a worker by state."""

    answered: Decimal
    approved: Decimal
    paid: Decimal

    @property
    def total(self) -> Decimal:
        return self.answered + self.approved + self.paid


def earnings_of_worker(worker: Worker) -> Earnings:
    """Return the sums that a worker earned: for answers still being checked, owed, and paid."""
    being_read = Assignment.objects.filter(worker=worker, status__in=["submitted", "accepted"])
    sums = Payment.objects.filter(worker=worker).aggregate(
        owed=Sum("amount", filter=Q(status__in=["owed", "sent", "unknown"])),
        paid=Sum("amount", filter=Q(status="paid")),
    )
    answered = being_read.aggregate(sum=Sum(F("hit__reward") + F("extra")))["sum"]
    return Earnings(answered or ZERO, sums["owed"] or ZERO, sums["paid"] or ZERO)


class CannotSet(Exception):
    """Raised for an address that was not stored; the text is a sentence for the user."""


@dataclass(frozen=True)
class Schedule:
    """The rules of payouts: the smallest sum, the day of the month, and the ways in which money is
    sent.
    """

    minimum: Decimal
    day: int
    """Day of the month; in a shorter month its last day"""
    ways: str
    """How money can be sent, as the admins wrote it"""

    def next_date(self, today: date | None = None) -> date:
        """Return the next day of payouts, which may be today."""
        today = today or clock.now().date()
        this_month = _day_in_month(today.year, today.month, self.day)
        if today <= this_month:
            return this_month
        year, month = (today.year + 1, 1) if today.month == 12 else (today.year, today.month + 1)
        return _day_in_month(year, month, self.day)

    def sentence(self) -> str:
        """Return the rules in sentences for the terms and the pages."""
        return (
            f"What you are owed is paid on day {self.day} of every month, once it is"
            f" ${self.minimum:.2f} or more; less waits for the next time. {self.ways}"
        ).strip()


def _day_in_month(year: int, month: int, day: int) -> date:
    return date(year, month, min(day, monthrange(year, month)[1]))


def payout_schedule() -> Schedule:
    """Return the current rules of payouts."""
    rules = intake_rules()
    return Schedule(rules.payout_minimum, rules.payout_day, rules.payout_ways)


def payout_address(worker: Worker) -> str:
    """Return the address of a worker; empty if they gave none."""
    return payout_addresses([worker.pk]).get(worker.pk, "")


def payout_addresses(workers: list[int]) -> dict[int, str]:
    """Return worker -> address, of those who gave one."""
    identities = WorkerIdentity.objects.filter(worker__in=workers).exclude(pay_to="")
    return dict(identities.values_list("worker", "pay_to"))


def mask_address(address: str) -> str:
    """Return the last digits of an address, or its end if it has no number."""
    digits = "".join(sign for sign in address if sign.isdigit())
    end = (digits if len(digits) > SHOWN else address)[-SHOWN:]
    return f"… {end}" if len(address) > SHOWN else address


def set_payout_address(worker: Worker, text: str) -> str:
    """Store an address and return it normalized. Raises CannotSet."""
    address = "\n".join(" ".join(line.split()) for line in text.replace("\x00", "").splitlines())
    address = address.strip()
    if not SHORTEST_ADDRESS <= len(address) <= LONGEST_ADDRESS:
        raise CannotSet(
            f"Enter a payout address of {SHORTEST_ADDRESS} to {LONGEST_ADDRESS} characters: an"
            " account number with the name of its holder, or what the admins have agreed with you."
        )
    WorkerIdentity.objects.filter(worker=worker).update(pay_to=address)
    return address


def payment_forecast(worker: Worker, owed: Decimal) -> str:
    """Return sentences about when a worker is paid, and what is missing for that."""
    rules = payout_schedule()
    when = f"{rules.next_date():%-d %B %Y}"
    if not payout_address(worker):
        waiting = f"${owed:.2f} wait for you. " if owed else ""
        return (
            f"{waiting}Enter a payout address, or it cannot be paid: the next payouts are on"
            f" {when}, from ${rules.minimum:.2f} on."
        )
    if owed >= rules.minimum and owed:
        return f"${owed:.2f} are to be paid on {when}."
    short = rules.minimum - owed
    least = f"The minimum payout is ${rules.minimum:.2f}"
    return f"{least}: with ${short:.2f} more you are paid on {when}."
