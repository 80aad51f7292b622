"""Pilot batches: many workers on the same few items, to learn how hard a track's questions are
before much is spent.

Relations: k workers on n pairs that systems predict and nobody was asked about, drawn at random.
Names: k workers who each mark all names of n documents that nobody has read, drawn at random; the
marks are held against those of an expert (or an import), or else against what most of them marked.
The labels that a pilot makes are labels like any others.
"""

from __future__ import annotations

import random
import secrets
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from itertools import combinations
from math import comb
from statistics import fmean as mean
from typing import Any

from django.db import transaction

from annotation.interfaces.base import units_paid
from annotation.interfaces.registry import interface_of, reading
from annotation.models import Pilot, Question, Response
from annotation.quality.agreement import Measured, measure
from annotation.quality.fewer import OfSoMany, by_number
from annotation.questions.ask import terms_of
from annotation.questions.order import PER_TOKEN, fee_of, price_of, reward_of
from estimators.votes import token_majority
from kbpo.accounts.audit import note
from kbpo.accounts.models import User
from kbpo.corpus.fetch import fetch
from kbpo.corpus.models import Document
from kbpo.instances.models import Label, Target
from kbpo.money.models import Ledger
from kbpo.money.purpose import Purpose
from kbpo.money.spend import reserve
from kbpo.queue import nudge, one_at_a_time
from kbpo.sampling.models import DocumentSample
from kbpo.submissions.models import Submission
from kbpo.tracks.base import QuestionDraft
from kbpo.tracks.models import Track
from kbpo.tracks.recall import NAME, kind_with_recall
from kbpo.tracks.registry import kind_of

Span = tuple[int, int]

WORKERS, ITEMS, DOCUMENTS = 5, 200, 20
MOST_WORKERS, MOST_ITEMS = 9, 2_000
PUBLISHED_RECALL = {3: 0.92, 7: 0.96}
"""Of an expert's spans, the share that the union of so many workers found."""
PUBLISHED_MAJORITY = {3: 0.78}
"""The same of the spans made of words that most of so many workers marked."""
SETS = 20
"""Sets of so many workers that a mean is taken over, where there are more."""


class CannotPilot(ValueError):
    """A pilot that cannot be launched; the text is a sentence for the admin."""


@dataclass(frozen=True)
class SpanRecall:
    """The share of the reference's spans that so many workers find together, and the published
    one.
    """

    workers: int
    union: float
    documents: int
    published: float | None
    majority: float | None
    """Of an odd number from three on: the share that is among the spans of their majority, word by
    word"""
    published_majority: float | None


@dataclass(frozen=True)
class PilotReport:
    """What a pilot, or a track's answers as they are, tell."""

    agreement: list[Measured]
    fewer: list[OfSoMany]
    """κ had 2 … k of them judged"""
    recall: list[SpanRecall]
    reference: str
    """What spans were held against"""


@dataclass(frozen=True)
class Priced:
    """A question to be asked, and what each answer to it costs."""

    draft: QuestionDraft
    price: Decimal
    reward: Decimal
    seconds: int
    extra: Decimal = Decimal("0.00")
    extra_price: Decimal = Decimal("0.00")


@dataclass(frozen=True)
class PilotPlan:
    """What a pilot would ask, and what it costs."""

    interface: str
    workers: int
    asked: list[Priced]

    @property
    def items(self) -> int:
        return len(self.asked)

    @property
    def cost(self) -> Decimal:
        return sum((question.price for question in self.asked), Decimal(0)) * self.workers


def pilotable(track: Track) -> list[str]:
    """Return the interfaces that can be piloted on a track: the one through which it asks about
    targets alone, then those of all names of a document.
    """
    return [kind_of(track).asking[0].interface, *reading(NAME)]


def is_of_documents(interface: str) -> bool:
    """Return whether the items of a pilot are documents, and not what systems predict."""
    return bool(interface_of(interface).reads)


def default_items(interface: str) -> int:
    """On how many items a pilot is if nobody says."""
    return DOCUMENTS if is_of_documents(interface) else ITEMS


def seed_of(key: str) -> int:
    """Return the seed that belongs to a form's key: what its price was shown for is what is
    asked.
    """
    return int.from_bytes(sha256(f"pilot:{key}".encode()).digest()[:7])


def plan_pilot(track: Track, *, workers: int, items: int, interface: str, seed: int) -> PilotPlan:
    """Return what a pilot with this seed would ask now, and its price. Raises CannotPilot; nothing
    is changed.
    """
    if not 2 <= workers <= MOST_WORKERS or not 1 <= items <= MOST_ITEMS:
        raise CannotPilot(f"A pilot has 2 to {MOST_WORKERS} workers on 1 to {MOST_ITEMS:,} items.")
    draw = _documents if is_of_documents(interface) else _pairs
    return PilotPlan(interface, workers, draw(track, items, interface, seed))


@transaction.atomic
def launch_pilot(
    track: Track,
    who: User | None,
    *,
    workers: int = WORKERS,
    items: int | None = None,
    seed: int | None = None,
    key: str = "",
    interface: str = "",
    at_most: Decimal | None = None,
    why: str = "",
) -> Pilot:
    """Return the pilot, asked and paid for. Raises CannotPilot or OverBudget, and nothing was
    asked.

    `at_most` is the price that was shown for the seed: if it would be more by now, that is refused.

    It is of what the track asks about targets alone unless an interface is named (`pilotable`).
    Whoever launches one says what for. A form's key is good for one of them: sent again, it gives
    the first.
    """
    if who is not None and not why.strip():
        raise CannotPilot("Nothing was launched: say what the pilot is for. It stands in the log.")
    one_at_a_time("annotation.questions.pilot", track.pk)
    if (
        key
        and (paid := Ledger.objects.filter(key=f"launch:{key}", kind="reserve").first()) is not None
    ):
        return Pilot.objects.get(pk=paid.purpose_number)
    interface = interface or pilotable(track)[0]
    items = default_items(interface) if items is None else items
    seed = secrets.randbits(62) if seed is None else seed
    plan = plan_pilot(track, workers=workers, items=items, interface=interface, seed=seed)
    asked, cost = plan.asked, plan.cost
    if at_most is not None and cost > at_most:
        raise CannotPilot(
            f"This pilot would cost ${cost} by now, not ${at_most}. Look at the price again."
        )
    pilot = Pilot.objects.create(
        track=track, interface=interface, workers=workers, items=len(asked), seed=seed, made_by=who
    )
    things = "documents" if is_of_documents(interface) else "items"
    extent = f"{workers} workers on {len(asked)} {things}"
    reserve(
        track,
        None,
        pilot.payer,
        cost,
        who=who,
        key=f"launch:{key}" if key else str(pilot.payer),
        why=extent,
    )
    Question.objects.bulk_create(
        Question(
            status="waiting",
            track=track,
            target_id=question.draft.target_id,
            interface=question.draft.interface,
            shown=question.draft.shown,
            payload=question.draft.payload,
            **pilot.payer.at("payer"),
            order=place / len(asked),
            answers_wanted=workers,
            price=question.price,
            reward=question.reward,
            extra=question.extra,
            extra_price=question.extra_price,
            seconds=question.seconds,
        )
        for place, question in enumerate(asked)
    )
    note("launch", pilot.payer, who=who, why=why.strip(), after=extent, track=track.slug)
    nudge("publish")
    return pilot


def _pairs(track: Track, items: int, interface: str, seed: int) -> list[Priced]:
    """Questions about pairs that systems predict and nobody was asked about, drawn at random.
    Raises CannotPilot.
    """
    submissions = list(
        Submission.objects.filter(track=track).confirmed().values_list("pk", flat=True)
    )
    targets = _unasked(track, submissions)
    random.Random(seed).shuffle(targets)
    drafts = list(kind_of(track).questions(targets[:items], submissions)) if targets else []
    if not drafts:
        raise CannotPilot(
            "There is nothing to ask about: a pilot takes pairs that confirmed submissions predict"
            " and nobody was asked."
        )
    price = terms_of(track, drafts[0].interface)
    return [
        Priced(draft, price.per_answer, price.reward, price.seconds, price.extra, price.extra_price)
        for draft in drafts
    ]


def _documents(track: Track, items: int, interface: str, seed: int) -> list[Priced]:
    """Questions about all names of documents, drawn at random among those that nobody was asked
    about or will be.

    Raises CannotPilot.
    """
    taken = Question.objects.filter(interface=interface, target__corpus=track.corpus_id).values(
        "target__document"
    )
    drawn = DocumentSample.objects.filter(track=track).values("document")
    free = (
        Document.objects.filter(corpus=track.corpus_id).exclude(pk__in=taken).exclude(pk__in=drawn)
    )
    numbers = list(free.order_by("pk").values_list("pk", flat=True))
    chosen = random.Random(seed).sample(numbers, min(items, len(numbers)))
    documents, kind = Document.objects.in_bulk(chosen), kind_with_recall(track)
    drafts = [kind.mentions_question(documents[pk]) for pk in chosen]
    if not drafts:
        raise CannotPilot(
            "There is nothing to read: all documents were drawn or asked about, or none"
            " can be read."
        )
    fee, page = fee_of(track), interface_of(interface)
    lengths = [units_paid(draft.payload) for draft in drafts]
    return [
        Priced(
            draft,
            price_of(n, PER_TOKEN, fee),
            reward_of(n, PER_TOKEN),
            max(10, round(n * page.terms.seconds_each)),
        )
        for draft, n in zip(drafts, lengths, strict=True)
    ]


def cost_of_as_many(track: Track) -> Decimal:
    """About what a pilot of as many documents as there are pairs by default would cost, by the
    corpus's first ones: why so few are the default.
    """
    documents = Document.objects.filter(corpus=track.corpus_id).order_by("pk")
    fee = fee_of(track)
    prices = []
    for tokens in documents.values_list("token_begin", flat=True)[:200]:
        prices.append(price_of(len(tokens), PER_TOKEN, fee))
    return WORKERS * ITEMS * sum(prices, Decimal(0)) / max(1, len(prices))


def _unasked(track: Track, submissions: Sequence[int]) -> list[int]:
    """Pairs that these submissions predict and that no question was ever about, in the order of
    their numbers.
    """
    rows = fetch(
        "SELECT DISTINCT i.target_id FROM submissions_prediction p JOIN instances_instance i ON"
        " i.id = p.instance_id WHERE p.submission_id = ANY(%s) AND NOT EXISTS (SELECT 1 FROM"
        " annotation_question q WHERE q.target_id = i.target_id) ORDER BY 1",
        [list(submissions)],
    )
    return [target for (target,) in rows]


def pilot_report(track: Track, pilot: Pilot | None = None) -> PilotReport:
    """Return how far people agree, and how much of an expert's names they find: in one pilot, or on
    the whole track.

    A pilot of pairs marks no names: beside its agreement stands what is found on the whole track.
    """
    marks_names = pilot is not None and is_of_documents(pilot.interface)
    recall, reference = span_recall(track, pilot.payer if pilot and marks_names else None)
    if pilot is not None:
        return PilotReport(
            measure(payer=pilot.payer), by_number(payer=pilot.payer), recall, reference
        )
    return PilotReport(measure(track=track), by_number(track=track), recall, reference)


def span_recall(track: Track, payer: Purpose | None = None) -> tuple[list[SpanRecall], str]:
    """Recall of spans by the union of 1 … k workers, over documents (those of a payer), and what it
    was measured against.

    Where some of the documents have spans of an expert or an import, those documents alone are
    looked at: what most workers marked is found by the union of all of them, and would lift the
    mean.
    """
    read = Question.objects.filter(
        track=track, interface__in=reading(NAME), gold=None, responses__isnull=False
    )
    read = read.filter(**payer.at("payer")) if payer else read
    documents = []
    for question in read.distinct().select_related("target")[:500]:
        marked = _marked(question)
        if len(marked) > 1:
            documents.append((question, marked, _expert_spans(question)))
    by_experts = [document for document in documents if document[2]]
    of_union: dict[int, list[float]] = defaultdict(list)
    of_majority: dict[int, list[float]] = defaultdict(list)
    for question, marked, spans in by_experts or documents:
        wanted = spans or _most_marked(marked)
        for k, share in union_recall(marked, wanted).items():
            of_union[k].append(share)
        begins = question.target.its_document.token_begin
        for k, share in majority_recall(marked, wanted, begins).items():
            of_majority[k].append(share)
    recall = []
    for k, shares in sorted(of_union.items()):
        recall.append(
            SpanRecall(
                k,
                union=mean(shares),
                documents=len(shares),
                published=PUBLISHED_RECALL.get(k),
                majority=mean(of_majority[k]) if of_majority[k] else None,
                published_majority=PUBLISHED_MAJORITY.get(k),
            )
        )
    return recall, _held_against(len(by_experts), len(documents))


def _held_against(known: int, read: int) -> str:
    """Return a phrase that names the reference spans, and says how many of the documents have any
    from an expert or an import.
    """
    if not known:
        return (
            "spans that most of them marked, in want of an expert’s: those they find by themselves"
        )
    if known == read:
        return "an expert’s or imported spans, which all of these documents have"
    return (
        f"an expert’s or imported spans, which {known} of {read} documents have; the others are"
        " left out"
    )


def union_recall(marked: Sequence[set[Span]], reference: set[Span]) -> dict[int, float]:
    """number of workers -> mean share of the reference's spans that so many of them found together.

    The mean is over all sets of so many workers. Of a span that f of m workers found, a set of k
    finds it but for C(m − f, k) of C(m, k); so no set needs to be listed.

    >>> union_recall([{(0, 2)}, {(0, 2), (3, 4)}], {(0, 2), (3, 4)})
    {1: 0.75, 2: 1.0}
    """
    m = len(marked)
    if not reference:
        return {}
    finders = [sum(span in spans for spans in marked) for span in reference]
    recall = {}
    for k in range(1, m + 1):
        recall[k] = mean(1 - comb(m - f, k) / comb(m, k) for f in finders)
    return recall


def majority_recall(
    marked: Sequence[set[Span]], reference: set[Span], token_begin: Sequence[int]
) -> dict[int, float]:
    """number of workers, odd and at least three -> mean share of the reference's spans that are
    among the spans of words that most of so many of them marked.

    >>> three = [{(0, 5)}, {(0, 5), (6, 9)}, {(0, 5)}]
    >>> majority_recall(three, {(0, 5), (6, 9)}, [0, 3, 6])
    {3: 0.5}
    """
    if not reference:
        return {}

    def in_words(spans: set[Span]) -> set[Span]:
        """Return the same spans, by the numbers of their words."""
        return {(bisect_right(token_begin, a) - 1, bisect_left(token_begin, b)) for a, b in spans}

    spans_of, wanted = [sorted(in_words(spans)) for spans in marked], in_words(reference)
    recall = {}
    for k in range(3, len(marked) + 1, 2):
        sets = list(combinations(range(len(marked)), k))
        shares = []
        for chosen in random.Random(k).sample(sets, min(SETS, len(sets))):
            spans, workers = [], []
            for place, worker in enumerate(chosen):
                spans += spans_of[worker]
                workers += [place] * len(spans_of[worker])
            agreed = token_majority(spans, workers, len(token_begin), k).spans.tolist()
            shares.append(len(wanted & {(a, b) for a, b in agreed}) / len(wanted))
        recall[k] = mean(shares)
    return recall


def _marked(question: Question) -> list[set[Span]]:
    """Return the spans that each worker marked."""
    responses = Response.objects.filter(question=question, criterion="mentions", counts=True)
    values = responses.order_by("pk").values_list("value", flat=True)
    return [_spans(value) for value in values]


def _spans(value: Mapping[str, Any]) -> set[Span]:
    """Return the spans of the names in an answer about all names of a document."""
    return {(mention["span"][0], mention["span"][1]) for mention in value["mentions"]}


def _expert_spans(question: Question) -> set[Span]:
    """Return the names of a document that an expert or an import marked."""
    labels = Label.objects.filter(
        target__document=question.target.document_id,
        target__kind=Target.Kind.MENTION,
        source__in=["expert", "import"],
    )
    return set(labels.values_list("target__a_begin", "target__a_end"))


def _most_marked(marked: Sequence[set[Span]]) -> set[Span]:
    """Return the spans that more than half of the workers marked, exactly so."""
    votes = Counter(span for spans in marked for span in spans)
    return {span for span, n in votes.items() if 2 * n > len(marked)}


def pilots_of(track: Track) -> list[Pilot]:
    """Return the pilots of a track, newest first."""
    return list(track.pilots.order_by("-pk"))


def pilot_of(track: Track, pk: int) -> Pilot | None:
    """One pilot of a track; None if there is none."""
    return track.pilots.filter(pk=pk).first()
