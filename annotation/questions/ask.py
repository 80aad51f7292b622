"""Step 5: turns samples of confirmed submissions into questions, in the order of u/π; no target is
asked about twice.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction
from django.db.models import Q, QuerySet

from annotation.interfaces.registry import can_ask_third_after_disagreement, interface_by_name
from annotation.interfaces.shared.payload import mentions_of_pair
from annotation.models import FIRST, UNSETTLED, Considered, Question
from annotation.questions.limits import THREE
from kbpo import clock
from kbpo.instances.merge import merged_values
from kbpo.instances.models import Label, Target
from kbpo.instances.targets import independent_random_number
from kbpo.money.models import Price, Purpose
from kbpo.queue import wake_step
from kbpo.sampling.designs.base import agreed_price
from kbpo.submissions.models import Submission
from kbpo.tracks.base import QuestionDraft
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of

log = logging.getLogger(__name__)

BATCH = 500
ASKED = ("settled", "unanswered")

CANDIDATES = """
    SELECT s.id, s.target_id, b.submission_id, t.u / CASE WHEN b.design = 'iid' THEN 1.0 ELSE
               coalesce((SELECT max(h.pi) FROM sampling_threshold h
                   WHERE h.target_id = s.target_id), s.probability) END
    FROM sampling_sample s
    JOIN sampling_samplebatch b ON b.id = s.batch_id
    JOIN submissions_submission sub ON sub.id = b.submission_id
    JOIN instances_target t ON t.id = s.target_id
    LEFT JOIN annotation_considered c ON c.sample_id = s.id
    WHERE sub.status = 'judging' AND sub.track_id = %(track)s
      AND (c.sample_id IS NULL
           OR EXISTS (SELECT 1 FROM instances_label l WHERE l.target_id = s.target_id
               AND l.created_at > c.at))
      AND NOT EXISTS (SELECT 1 FROM annotation_question q WHERE q.target_id = s.target_id
          AND q.status = ANY(%(open)s))
    ORDER BY s.pays DESC, sub.confirmed_at, s.id
    LIMIT %(limit)s
"""
"""Selects samples to consider: new ones, and those whose target got a label since, unless the
target is being asked about now. If several samples need the same target, the one of the payer comes
first."""
SURE = ("expert", "import")


@dataclass(frozen=True)
class Candidate:
    """A drawn sample about whose target a question may be asked."""

    sample: int
    target: int
    submission: int
    order: float

    @property
    def terms(self) -> tuple[Purpose, float]:
        """Return who pays for a question about the target, and the number by which questions are
        sorted.
        """
        return Purpose("submission", self.submission), self.order


def tick() -> int:
    """Ask questions for new samples; return their number."""
    asked = 0
    for track in Track.objects.filter(submissions__status="judging").distinct():
        try:
            while (made := _ask_batch(track)) is not None:
                asked += made
        except Exception:  # one track's bug must not keep the others waiting
            log.exception("Questions of track %s could not be asked", track.pk)
    return asked


@transaction.atomic
def _ask_batch(track: Track) -> int | None:
    """Ask about a batch of samples and return the number of questions; None if nothing is left, or
    another process is asking.
    """
    if not got_asking_lock():
        return None
    with connection.cursor() as cursor:
        cursor.execute(CANDIDATES, {"track": track.pk, "open": list(UNSETTLED), "limit": BATCH})
        candidates = [Candidate(*row) for row in cursor.fetchall()]
    if not candidates:
        return None
    first = _first_candidates(track, candidates)
    by_submission: dict[int, list[int]] = defaultdict(list)
    for one in first.values():
        by_submission[one.submission].append(one.target)
    kind = kind_of(track)
    drafts: list[QuestionDraft] = []
    for owner, targets in by_submission.items():
        drafts += kind.draft_questions(targets, [owner])
    payers = {target: one.terms for target, one in first.items()}
    questions = list(new_questions(track, payers, drafts, agreed=_agreed_prices(by_submission)))
    Question.objects.bulk_create(questions)
    now = clock.now()
    Considered.objects.bulk_create(
        [Considered(sample_id=candidate.sample, at=now) for candidate in candidates],
        update_conflicts=True,
        unique_fields=["sample"],
        update_fields=["at"],
    )
    if questions:
        wake_step("publish")
    return len(questions)


def _agreed_prices(submissions: Iterable[int]) -> dict[tuple[Purpose, str], Price]:
    """Return (payer, interface) -> the price of an answer in the confirmed plans of these runs."""
    agreed = {}
    for submission in Submission.objects.filter(pk__in=list(submissions)).select_related("track"):
        price = agreed_price(submission)
        if price is not None:
            agreed[submission.purpose, price.interface] = price
    return agreed


def got_asking_lock() -> bool:
    """Return whether this transaction got the lock for asking. Only one transaction may ask at a
    time, since it must see all earlier questions.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtext('annotation.questions.ask'))")
        return bool(cursor.fetchone()[0])


def _first_candidates(track: Track, candidates: Sequence[Candidate]) -> dict[int, Candidate]:
    """Return target -> the first candidate whose submission needs an answer about the target. A
    submission never pays for targets that only other submissions predict.
    """
    of: dict[int, list[int]] = defaultdict(list)
    for candidate in candidates:
        of[candidate.submission].append(candidate.target)
    needed = kind_of(track).find_unanswered(of)
    first: dict[int, Candidate] = {}
    for candidate in candidates:
        if candidate.target in needed[candidate.submission]:
            first.setdefault(candidate.target, candidate)
    return first


def new_questions(
    track: Track,
    payers: Mapping[int, tuple[Purpose, float]],
    drafts: Iterable[QuestionDraft],
    *,
    agreed: Mapping[tuple[Purpose, str], Price] | None = None,
) -> Iterator[Question]:
    """Yield an unsaved question for each draft that has a part (directed relation) that was not
    asked before. `payers` has the payer and place of each target. The price is the one agreed with
    the payer, else the track's price.
    """
    drafts = list(drafts)
    rounds = _next_rounds(drafts)
    terms = {name: answer_price(track, name) for name in {draft.interface for draft in drafts}}
    left = []
    for draft in drafts:
        number, shown = rounds[draft.target_id, draft.interface]
        if number == 1 or not set(draft.shown) <= shown:
            left.append(draft)  # the others were asked before; an ended question counts as asked
    seconded = _targets_for_second_opinion(track, left)
    for draft in left:
        number = rounds[draft.target_id, draft.interface][0]
        payer, order = payers[draft.target_id]
        price = (agreed or {}).get((payer, draft.interface), terms[draft.interface])
        people = track.workers_per_question if draft.people is None else draft.people
        staged = people == THREE and can_ask_third_after_disagreement(draft.interface)
        yield Question(
            status="waiting",
            track=track,
            target_id=draft.target_id,
            interface=draft.interface,
            round=number,
            shown=draft.shown,
            payload=draft.payload,
            **payer.filter_condition("payer"),
            order=order,
            answers_wanted=FIRST if staged else people + (draft.target_id in seconded),
            staged=staged,
            price=price.per_answer,
            reward=price.reward,
            extra=price.extra,
            extra_price=price.extra_price,
            seconds=price.seconds,
        )


def _targets_for_second_opinion(track: Track, drafts: Sequence[QuestionDraft]) -> frozenset[int]:
    """Return the targets about which one more person is asked: those with the lowest keyed numbers,
    which are independent of the sample.
    """
    kind = kind_of(track)
    if not kind.count_second_opinions(len(drafts)):
        return frozenset()
    before = Question.objects.filter(
        track=track, gold=None, answers_wanted__gt=track.workers_per_question
    )
    wanted = kind.count_second_opinions(len(drafts), before.count())
    targets = Target.objects.filter(pk__in=[draft.target_id for draft in drafts])
    number = {
        pk: independent_random_number(track.corpus.hash_key, key)
        for pk, key in targets.values_list("pk", "key")
    }
    return frozenset(sorted(number, key=number.__getitem__)[:wanted])


def _next_rounds(drafts: Sequence[QuestionDraft]) -> dict[tuple[int, str], tuple[int, set[str]]]:
    """Return (target, interface) -> number of the next question about the target, and all parts
    (directed relations) that were asked before, on any track.
    """
    number: dict[tuple[int, str], int] = defaultdict(lambda: 1)
    shown: dict[tuple[int, str], set[str]] = defaultdict(set)
    questions = Question.objects.filter(target__in=[draft.target_id for draft in drafts]).defer(
        "payload"
    )
    for question in questions:
        key = (question.target_id, question.interface)
        number[key] = max(number[key], question.round + 1)
        if question.status in ASKED:
            shown[key].update(question.shown)
    keys = {(draft.target_id, draft.interface) for draft in drafts}
    return {key: (number[key], shown[key]) for key in keys}


def answer_price(track: Track, interface: str) -> Price:
    """Return the terms of one answer on a track; else those of its kind, else those of the
    interface.
    """
    price = Price.objects.filter(track=track, interface=interface).first()
    if price is not None:
        return price
    of_kind = {asking.interface: asking for asking in kind_of(track).asking}.get(interface)
    own = interface_by_name(interface).terms
    return Price(
        track=track,
        interface=interface,
        reward=of_kind.reward if of_kind else own.reward,
        extra=of_kind.extra if of_kind else own.extra,
        seconds=of_kind.seconds if of_kind else own.seconds,
    )


def imported_questions(track: Track, limit: int = 20) -> list[Question]:
    """Return unsaved questions about targets that have imported judgments and were not asked about
    here, in random order.
    """
    judged = Label.objects.filter(source__in=SURE).values("target")
    free = _unasked_targets(track, Target.objects.filter(pk__in=judged)).order_by("?")
    return unsaved_questions_about_targets(
        track, list(free.values_list("pk", flat=True)[:limit]), is_stored=False
    )


def unsaved_questions_about_targets(
    track: Track, targets: Sequence[int], *, is_stored: bool = True
) -> list[Question]:
    """Return unsaved questions about these targets as the track would ask them. With `made=False`
    no target is stored either.
    """
    drafts = [
        draft
        for draft in kind_of(track).draft_questions(targets, None, is_stored=is_stored)
        if draft.shown
    ]
    terms = {name: answer_price(track, name) for name in {draft.interface for draft in drafts}}
    return [
        Question(
            track=track,
            target_id=draft.target_id,
            interface=draft.interface,
            shown=draft.shown,
            payload=draft.payload,
            answers_wanted=track.workers_per_question,
            price=terms[draft.interface].per_answer,
            reward=terms[draft.interface].reward,
            extra=terms[draft.interface].extra,
            extra_price=terms[draft.interface].extra_price,
            seconds=terms[draft.interface].seconds,
        )
        for draft in drafts
    ]


def can_be_gold(track: Track, target: int) -> bool:
    """Return whether gold can be made of a target: it was not asked about on this track."""
    return _unasked_targets(track, Target.objects.filter(pk=target)).exists()


def imported_answer(question: Question) -> dict[str, Any] | None:
    """Return the answer that imported judgments imply, in the fields of the form, with unknown
    steps left open; None if they imply none.
    """
    interface = interface_by_name(question.interface)
    targets = [question.target_id, *mentions_of_pair(question.payload)]
    rule = kind_of(question.track).merge_statements
    values = {target: value for target, value, _ in merged_values(targets, rule) if value}
    return interface.answer_of(question, values)


def _unasked_targets(track: Track, targets: QuerySet[Target]) -> QuerySet[Target]:
    """Return the targets among these that the track can ask about, has not asked about yet, and
    that are not gold.
    """
    asked = Question.objects.filter(
        Q(status__in=[*UNSETTLED, "settled"]) | Q(gold__retired_at=None, status="gold")
    )
    kind = kind_of(track)
    return targets.filter(corpus=track.corpus_id, kind=kind.target_kind).exclude(
        pk__in=asked.filter(track=track).values("target")
    )
