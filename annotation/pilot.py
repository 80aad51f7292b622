"""Pilot batches: many workers on the same few items, to learn how hard a track's questions are before much is spent.

Relations: k workers on n pairs that systems state and nobody was asked about, drawn at random. Names: documents that
were read by several people, whose marks are held against those of an expert (or an import), or else against what most
of them marked. The labels that a pilot makes are labels like any others.
"""

from __future__ import annotations

import random
import secrets
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import comb

from django.db import transaction

from annotation.ask import terms_of
from annotation.measure import Measured, measure
from annotation.models import Pilot, Question, Response
from annotation.publish import committed
from kbpo.accounts.audit import note
from kbpo.accounts.models import User
from kbpo.corpus.fetch import fetch
from kbpo.instances.models import Label
from kbpo.money.models import Ledger
from kbpo.money.spend import balance, release, reserve
from kbpo.queue import nudge, one_at_a_time
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of

Span = tuple[int, int]

WORKERS, ITEMS = 5, 200
MOST_WORKERS, MOST_ITEMS = 9, 2_000
PUBLISHED = {
    ("relation", "relation"): ("κ", 0.61),
    ("entities", "mention"): ("κ", 0.83),
    ("entities", "canonical"): ("κ", 0.75),
    ("entities", "link"): ("κ", 0.75),
}
"""What the literature reached with three workers (Chaganty et al. 2017; Chaganty 2018, section 3.5.3)."""
PUBLISHED_RECALL = {3: 0.92, 7: 0.96}
"""Of an expert's spans, the share that the union of so many workers found."""


class CannotPilot(ValueError):
    """A pilot that cannot be launched; the text is a sentence for the admin."""


@dataclass(frozen=True)
class SpanRecall:
    """The share of the reference's spans that so many workers find together, and the published one."""

    workers: int
    union: float
    documents: int
    published: float | None


@dataclass(frozen=True)
class PilotReport:
    """What a pilot, or a track's answers as they are, tell."""

    agreement: list[Measured]
    recall: list[SpanRecall]
    reference: str
    """What spans were held against"""


def cost_of_pilot(track: Track, workers: int, items: int) -> Decimal:
    """What a pilot costs at most, in dollars."""
    return terms_of(track, "relation").per_answer * workers * items


@transaction.atomic
def launch_pilot(
    track: Track, who: User | None, *, workers: int = WORKERS, items: int = ITEMS, seed: int | None = None,
    key: str = "",
) -> Pilot:  # fmt: skip
    """The pilot, asked and paid for. Raises CannotPilot or OverBudget, and nothing was asked.

    A form's key is good for one of them: sent again, it gives the first."""
    one_at_a_time("annotation.pilot", track.pk)
    if key and (paid := Ledger.objects.filter(key=f"launch:{key}", kind="reserve").first()) is not None:
        return Pilot.objects.get(pk=int(paid.purpose.partition(":")[2]))
    if not 2 <= workers <= MOST_WORKERS or not 1 <= items <= MOST_ITEMS:
        raise CannotPilot(f"A pilot has 2 to {MOST_WORKERS} workers on 1 to {MOST_ITEMS:,} items.")
    submissions = list(Submission.objects.filter(track=track).confirmed().values_list("pk", flat=True))
    seed = secrets.randbits(62) if seed is None else seed
    targets = _unasked(track, submissions)
    random.Random(seed).shuffle(targets)
    drafts = list(kind_of(track).questions(targets[:items], submissions)) if targets else []
    if not drafts:
        raise CannotPilot(
            "There is nothing to ask about: a pilot takes pairs that confirmed submissions state and nobody was asked."
        )
    pilot = Pilot.objects.create(track=track, workers=workers, items=len(drafts), seed=seed, made_by=who)
    price = terms_of(track, drafts[0].interface)
    reserve(track, None, pilot.payer, price.per_answer * workers * len(drafts), who=who,
            key=f"launch:{key}" if key else pilot.payer, why=f"{workers} workers on {len(drafts)} items")  # fmt: skip
    Question.objects.bulk_create(
        Question(
            status="waiting", track=track, target_id=draft.target_id, interface=draft.interface, shown=draft.shown,
            payload=draft.payload, payer=pilot.payer, order=at / len(drafts), answers_wanted=workers,
            price=price.per_answer, reward=price.reward, seconds=price.seconds,
        )
        for at, draft in enumerate(drafts)
    )  # fmt: skip
    note("launch", pilot.payer, who=who, after=f"{workers} workers on {len(drafts)} items", track=track.slug)
    nudge("publish")
    return pilot


def _unasked(track: Track, submissions: Sequence[int]) -> list[int]:
    """Pairs that these submissions state and that no question was ever about, in the order of their numbers."""
    rows = fetch(
        "SELECT DISTINCT i.target_id FROM submissions_prediction p JOIN instances_instance i ON i.id = p.instance_id"
        " WHERE p.submission_id = ANY(%s) AND NOT EXISTS"
        " (SELECT 1 FROM annotation_question q WHERE q.target_id = i.target_id) ORDER BY 1",
        [list(submissions)],
    )
    return [target for (target,) in rows]


def pilot_report(track: Track, pilot: Pilot | None = None) -> PilotReport:
    """How far people agree, and how much of an expert's names they find: in one pilot, or on the whole track."""
    found, reference = span_recall(track)
    agreement = measure(payer=pilot.payer) if pilot is not None else measure(track=track)
    return PilotReport(agreement, found, reference)


def span_recall(track: Track) -> tuple[list[SpanRecall], str]:
    """Recall of spans by the union of 1 … k workers, over documents, and what it was measured against."""
    read = Question.objects.filter(track=track, interface="entities", gold=None, responses__isnull=False)
    shares: dict[int, list[float]] = defaultdict(list)
    by_expert = False
    for question in read.distinct().select_related("target")[:500]:
        marked = _marked(question)
        if len(marked) < 2:
            continue
        reference = _expert_spans(question)
        by_expert = by_expert or bool(reference)
        reference = reference or _most_marked(marked)
        for k, share in union_recall(marked, reference).items():
            shares[k].append(share)
    found = [
        SpanRecall(k, sum(some) / len(some), len(some), PUBLISHED_RECALL.get(k)) for k, some in sorted(shares.items())
    ]
    return found, "an expert’s or imported spans" if by_expert else "spans that most of them marked"


def union_recall(marked: Sequence[set[Span]], reference: set[Span]) -> dict[int, float]:
    """number of workers -> mean share of the reference's spans that so many of them found together.

    The mean is over all sets of so many workers. Of a span that f of m workers found, a set of k finds it but for
    C(m − f, k) of C(m, k); so no set needs to be listed.

    >>> union_recall([{(0, 2)}, {(0, 2), (3, 4)}], {(0, 2), (3, 4)})
    {1: 0.75, 2: 1.0}
    """
    m = len(marked)
    if not reference:
        return {}
    finders = [sum(span in one for one in marked) for span in reference]
    return {k: sum(1 - comb(m - f, k) / comb(m, k) for f in finders) / len(finders) for k in range(1, m + 1)}


def _marked(question: Question) -> list[set[Span]]:
    """The spans that each worker marked."""
    rows = Response.objects.filter(question=question, criterion="mentions", excluded_reason="").order_by("pk")
    return [{(one["span"][0], one["span"][1]) for one in row.value["mentions"]} for row in rows]


def _expert_spans(question: Question) -> set[Span]:
    """The names of a document that an expert or an import marked."""
    rows = Label.objects.filter(
        target__document=question.target.document_id, target__kind="mention", source__in=["expert", "import"]
    )
    return set(rows.values_list("target__a_begin", "target__a_end"))


def _most_marked(marked: Sequence[set[Span]]) -> set[Span]:
    """The spans that more than half of the workers marked, exactly so."""
    every = set().union(*marked)
    return {span for span in every if 2 * sum(span in one for one in marked) > len(marked)}


def pilots(track: Track) -> list[Pilot]:
    """The pilots of a track, newest first."""
    return list(track.pilots.order_by("-pk"))


def pilot_of(track: Track, pk: int) -> Pilot | None:
    """One pilot of a track; None if there is none."""
    return track.pilots.filter(pk=pk).first()


def give_back() -> int:
    """How many ended pilots got back what they did not need."""
    done = 0
    for pilot in Pilot.objects.select_related("track"):
        live = Question.objects.filter(payer=pilot.payer, status__in=["waiting", "published", "answered"]).exists()
        sums, keep = balance(purpose=pilot.payer), committed(pilot.payer)
        if not live and sums.open > keep:
            release(pilot.track, pilot.payer, key=f"release:{pilot.payer}:{sums.released}:{sums.spent}", keep=keep,
                    why="The pilot has ended; what is not needed is given back")  # fmt: skip
            done += 1
    return done
