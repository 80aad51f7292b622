"""Orders documents to be read in full: shows the maximal cost, reserves it, and never
spends more.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal

from django.db import transaction
from django.db.models import F, Func, IntegerField, Sum

from annotation.budget.promises import unpromised_money
from annotation.interfaces.registry import document_interfaces
from annotation.models import MOST_PRICE, DocumentOrder, Question
from kbpo import clock
from kbpo.accounts.audit import COMMAND, write_audit_entry
from kbpo.accounts.models import User
from kbpo.corpus.models import Document
from kbpo.money.models import Price
from kbpo.money.spend import balance, reserve_money
from kbpo.queue import wake_step
from kbpo.sampling.documents import draw as sampling
from kbpo.sampling.models import DocumentBatch, DocumentSample
from kbpo.tracks.models import Track
from kbpo.tracks.recall import RELATION

CENT = Decimal("0.01")
PER_TOKEN = Decimal("0.0075")
"""Dollars for each token of a document whose mentions are marked"""
PER_PAIR = Decimal("0.05")
"""Dollars for each pair that is judged while a document is read in full. Pairs drawn from a run are
asked by `relation`, which has another price"""
PAIRS_A_TOKEN = Decimal("0.2")
"""Pairs per token for which money is reserved while nothing is known: the 45 pairs in 350 tokens of
the literature, plus half."""
SURE = 5  # documents from which on the track's own number of pairs per token is used
SPARE = Decimal("1.25")


class CannotOrder(ValueError):
    """Raised for an order that was not placed; the text is a sentence for the admin."""


@dataclass(frozen=True)
class Plan:
    """The documents of an order, their cost in dollars, and the prices."""

    waiting: list[int]
    """Documents that were drawn and not ordered yet"""
    new: list[int]
    """Documents to draw with the order, using `seed`"""
    seed: int
    tokens: int
    workers: int
    entities: Decimal
    relations: Decimal
    per_token: Decimal
    per_pair: Decimal
    fee_rate: Decimal

    @property
    def documents(self) -> int:
        return len(self.waiting) + len(self.new)

    @property
    def at_most(self) -> Decimal:
        return self.entities + self.relations


def round_up_to_cent(amount: Decimal) -> Decimal:
    """Return an amount rounded up to the cent."""
    return amount.quantize(CENT, rounding=ROUND_CEILING)


def plan_documents(
    track: Track, n: int, *, per_token: Decimal = PER_TOKEN, per_pair: Decimal = PER_PAIR
) -> Plan:
    """Return the cost of the next `n` documents: exact for mentions, a maximum for relations,
    computed from the expected number of pairs. Raises CannotOrder.
    """
    if not per_token > 0 or not per_pair > 0:
        raise CannotOrder("A token and a pair must each cost something.")
    waiting, new, seed = _next_documents(track, n)
    price = Price.objects.filter(track=track).order_by("-interface").first()
    fee = price.fee_rate if price else Decimal(0)
    tokens = list(_token_counts([*waiting, *new]).values())
    ratio = _pairs_per_token(track)
    workers = track.workers_per_question
    entities = sum((assignment_price(one, per_token, fee) for one in tokens), Decimal(0)) * workers
    pairs = [int((token * ratio).to_integral_value(ROUND_CEILING)) for token in tokens]
    relations = sum((assignment_price(pair, per_pair, fee) for pair in pairs), Decimal(0)) * workers
    return Plan(
        waiting, new, seed, sum(tokens), workers, entities, relations, per_token, per_pair, fee
    )


@transaction.atomic
def order_documents(
    track: Track,
    n: int,
    at_most: Decimal,
    *,
    who: User | None = None,
    per_token: Decimal = PER_TOKEN,
    per_pair: Decimal = PER_PAIR,
    why: str = "",
) -> DocumentOrder:
    """Draw documents, reserve their money, and return the order; a later tick asks about them.

    `at_most` is the price that was shown. Raises CannotOrder if the price is higher by now, or
    OverBudget if a cap forbids it; in both cases nothing has changed.
    """
    if who is not None and not why.strip():
        raise CannotOrder("Nothing was ordered: say what they are read for. It is logged.")
    # Two orders must not draw the same documents.
    Track.objects.select_for_update(of=("self",)).get(pk=track.pk)
    plan = plan_documents(track, n, per_token=per_token, per_pair=per_pair)
    if plan.at_most > at_most:
        raise CannotOrder(
            f"These documents would cost up to ${plan.at_most}, not ${at_most}. Look at"
            " the price again."
        )
    order = DocumentOrder.objects.create(
        track=track,
        per_token=per_token,
        per_pair=per_pair,
        fee_rate=plan.fee_rate,
        workers=plan.workers,
        who=who,
    )
    if plan.new:
        sampling.order_documents(
            track, len(plan.new), seed=plan.seed, user=who, why=why.strip() or COMMAND
        )
    samples = DocumentSample.objects.filter(track=track, document__in=[*plan.waiting, *plan.new])
    order.samples = list(samples.order_by("pk").values_list("pk", flat=True))
    order.save(update_fields=["samples"])
    what = f"{plan.documents} documents to be annotated whole"
    reserve_money(
        track, None, order.purpose, plan.at_most, key=str(order.purpose), who=who, why=what
    )
    write_audit_entry(
        "order documents",
        order.purpose,
        who=who,
        why=why.strip(),
        track=track.slug,
        after=f"{plan.documents} documents by {plan.workers} workers, at most ${plan.at_most}",
    )
    wake_step("read")
    return order


def ordered_samples(track: Track) -> list[int]:
    """Return the ids of all ordered document samples of a track."""
    orders = DocumentOrder.objects.filter(track=track).values_list("samples", flat=True)
    return [sample for samples in orders for sample in samples]


def _next_documents(track: Track, n: int) -> tuple[list[int], list[int], int]:
    """Return the next `n` documents that nobody has ordered: first drawn ones, then new ones, drawn
    uniformly with an unpredictable seed. The result stays the same until something is drawn or
    ordered.
    """
    if n < 1:
        raise CannotOrder("Order at least one document.")
    samples = DocumentSample.objects.filter(pk__in=ordered_samples(track))
    ordered = set(samples.values_list("document", flat=True))
    waiting = [pk for pk in sampling.waiting_documents(track) if pk not in ordered][:n]
    missing = n - len(waiting)
    if missing and sampling.has_two_stages(track):
        raise CannotOrder(
            f"{len(waiting):,} drawn documents wait to be ordered. This track draws its documents"
            " in two stages, and the second is drawn once the first is annotated."
        )
    message = f"{track.secret}|documents|{DocumentSample.objects.filter(track=track).count()}"
    seed = int.from_bytes(hashlib.sha256(message.encode()).digest()[:7], "big")
    batch = DocumentBatch(track=track, size=missing, seed=seed, drawn_at=clock.now())
    new = sampling.documents_of_uniform_draw(batch) if missing else []
    if len(new) < missing:
        raise CannotOrder(
            f"Only {len(waiting) + len(new):,} documents are left; {n:,} cannot be ordered."
        )
    return waiting, new, seed


@transaction.atomic
def add_missing_money(order: DocumentOrder, *, who: User | None = None, why: str = "") -> Decimal:
    """Reserve what the pending questions of an order lack, and return the amount; 0.00 if nothing
    is missing. Raises OverBudget, or CannotOrder without a reason.
    """
    if who is not None and not why.strip():
        raise CannotOrder("Nothing was added: say why it may cost more. It is logged.")
    orders = DocumentOrder.objects.select_for_update(of=("self",)).select_related("track")
    order = orders.get(pk=order.pk)
    amount = missing_money(order)
    if amount <= 0:
        return Decimal("0.00")
    track, purpose = order.track, order.purpose
    key = f"{purpose}:more:{balance(purpose=purpose).reserved}"
    lacks = "Its questions cost more than was reserved"
    reserve_money(track, None, purpose, amount, key=key, who=who, why=lacks)
    why = why.strip() or COMMAND
    write_audit_entry("add money", purpose, who=who, after=f"${amount}", why=why, track=track.slug)
    wake_step("publish")
    return amount


def add_missing_money_by_id(
    track: Track, pk: int, *, who: User | None = None, why: str = ""
) -> Decimal:
    """Call `add_missing_money` for an order of a track by its id. Raises OverBudget, or CannotOrder
    if there is no such order.
    """
    order = DocumentOrder.objects.filter(track=track, pk=pk, closed_at=None).first()
    if order is None:
        raise CannotOrder("There is no such order, or it is closed.")
    return add_missing_money(order, who=who, why=why)


def missing_money(order: DocumentOrder) -> Decimal:
    """Return what the pending questions of an order cost beyond its reservation."""
    waiting = Question.objects.filter(status="waiting", **order.purpose.filter_condition("payer"))
    needed = waiting.aggregate(sum=Sum(MOST_PRICE))["sum"] or Decimal(0)
    return max(Decimal("0.00"), needed - unpromised_money(order.purpose))


def assignment_price(units: int, price_per_unit: Decimal, fee_rate: Decimal) -> Decimal:
    """Return the price of one assignment: its reward and the platform's fee, each rounded up to the
    cent.
    """
    return round_up_to_cent(assignment_reward(units, price_per_unit) * (1 + fee_rate))


def assignment_reward(units: int, price_per_unit: Decimal) -> Decimal:
    """Return the reward of one worker for some tokens or pairs, rounded up to the cent."""
    return max(CENT, round_up_to_cent(units * price_per_unit))


def _token_counts(documents: list[int]) -> dict[int, int]:
    length = Func(F("token_begin"), function="cardinality", output_field=IntegerField())
    return dict(Document.objects.filter(pk__in=documents).annotate(n=length).values_list("pk", "n"))


def _pairs_per_token(track: Track) -> Decimal:
    """Return the expected number of mention pairs per token of a document: the ratio in up to 50
    latest questions of the track, increased by a quarter (`SPARE`). With fewer than `SURE` such
    questions, return `PAIRS_A_TOKEN`.
    """
    payloads = Question.objects.filter(
        track=track, interface__in=document_interfaces(RELATION)
    ).order_by("-pk")
    latest = list(payloads.values_list("target__document", "payload__pairs")[:50])
    if len(latest) < SURE:
        return PAIRS_A_TOKEN
    tokens = sum(_token_counts([document for document, _ in latest]).values())
    return SPARE * sum(len(pairs) for _, pairs in latest) / max(1, tokens)
