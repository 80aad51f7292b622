"""Checks answers by speed, by the majority and by gold. Each failed check is a signal on one
answer; together they flag a worker, who may be excluded (`exclude.py`).
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Count

from annotation.interfaces.base import Doubt, Unit
from annotation.interfaces.registry import interface_by_name
from annotation.models import (
    FIRST,
    Assignment,
    Question,
    Response,
    Signal,
    signals_that_exclude,
)

TOO_FAST = 0.15
"""Share of the expected time"""
FASTEST = 15.0
"""Greatest plausible words a second: people read four and skim eight, and also press buttons"""
FEWEST_WORDS = 10
"""Texts with fewer words are not checked"""

FLAGS = """
    SELECT a.worker_id, s.kind, count(*) FILTER (WHERE s.against), count(*)
    FROM annotation_signal s
    JOIN annotation_assignment a ON a.id = s.assignment_id
    JOIN annotation_worker w ON w.id = a.worker_id
    JOIN annotation_hit h ON h.id = a.hit_id
    LEFT JOIN annotation_policy p ON p.track_id = h.track_id
    WHERE w.id = ANY(%(workers)s) AND (w.reinstated_at IS NULL OR s.created_at > w.reinstated_at)
      AND (NOT %(excluding)s OR jsonb_exists(coalesce(p.exclude_for, %(default)s::jsonb), s.kind))
    GROUP BY a.worker_id, s.kind
    ORDER BY 1, 2
"""
"""For each worker and kind of signal: number of answers with the signal, and number of checked
answers; with `excluding` only on tracks whose policy excludes for that kind."""


@dataclass(frozen=True)
class Limit:
    """The limits above which a worker is flagged: a number of answers, and their share of the
    checked ones; both must be exceeded.
    """

    answers: int
    share: float


LIMITS = {
    "majority": Limit(10, 0.20),
    "gold": Limit(3, 0.30),
    "too_fast": Limit(10, 0.50),
    "unread": Limit(10, 0.50),
    "short_edit": Limit(10, 0.50),
}
NAMES = {
    "majority": "Against most of the others",
    "gold": "Wrong on gold",
    "too_fast": "Too fast",
    "unread": "Faster than reading",
    "short_edit": "Almost nothing corrected",
}
WORDS = {
    "majority": "differ from what most of the others said",
    "gold": "to questions with a known answer are wrong",
    "too_fast": "took less than a sixth of the expected time",
    "unread": "to texts that were new to them came faster than anybody reads",
    "short_edit": "that had to correct a text changed fewer than five characters",
}


@dataclass(frozen=True)
class Flag:
    """The signals of one kind against a worker."""

    kind: str
    against: int
    of: int

    @property
    def share(self) -> float:
        return self.against / self.of if self.of else 0.0

    @property
    def agreement_share(self) -> float:
        return 1.0 - self.share

    @property
    def limit(self) -> Limit:
        return LIMITS[self.kind]

    @property
    def name(self) -> str:
        return NAMES[self.kind]

    @property
    def is_past_limit(self) -> bool:
        """Return whether the flag exceeds the limits of its kind."""
        limit = LIMITS[self.kind]
        return self.against > limit.answers and self.share > limit.share

    @property
    def is_past_half_limit(self) -> bool:
        """Return whether the flag exceeds half of the limits, which causes a warning."""
        limit = LIMITS[self.kind]
        return 2 * self.against > limit.answers and 2 * self.share > limit.share

    @property
    def sentence(self) -> str:
        return (
            f"{self.against} of {self.of} answers {WORDS[self.kind]}"
            f" ({100 * self.share:.0f}\u00a0%)."
        )


def note_answer_speed(expected: Mapping[Assignment, int]) -> None:
    """Store for each of these answers whether it took less than a share of the expected seconds."""
    signals = []
    for answer, seconds in expected.items():
        if answer.seconds is not None:
            detail = f"Answered in {answer.seconds:.1f} s; about {seconds} s were expected."
            is_fast = answer.seconds < TOO_FAST * seconds
            signals.append(_new_signal(answer.pk, "too_fast", is_fast, detail))
    Signal.objects.bulk_create(signals, ignore_conflicts=True)


def _new_signal(answer: int, kind: str, against: bool, detail: str) -> Signal:
    return Signal(
        assignment_id=answer, kind=kind, against=against, detail=detail if against else ""
    )


def note_reading_speed(questions_by_answer: Mapping[Assignment, Sequence[Question]]) -> None:
    """Store for these answers whether they were faster than anybody reads. Sentences with several
    questions count once. Only answers about documents that were new to the worker are checked.
    """
    words: dict[Assignment, int] = {}
    for answer, questions in questions_by_answer.items():
        if answer.seconds is None:
            continue
        n_words = _count_words(questions)
        if n_words >= FEWEST_WORDS:
            words[answer] = n_words
    signals = []
    for answer in words.keys() - _answers_on_known_documents(words.keys(), questions_by_answer):
        seconds = answer.seconds or 0.0
        detail = f"{words[answer]} words, answered in {seconds:.1f} s."
        is_unread = seconds < words[answer] / FASTEST
        signals.append(_new_signal(answer.pk, "unread", is_unread, detail))
    Signal.objects.bulk_create(signals, ignore_conflicts=True)


def note_interface_doubts(doubts: Mapping[Assignment, Iterable[Doubt]]) -> None:
    """Store for these answers whether they look careless by the rules of their interface: one
    signal for each kind, with the worst case.
    """
    worst: dict[tuple[Assignment, str], Doubt] = {}
    for answer, doubts_of_it in doubts.items():
        for doubt in doubts_of_it:
            if (answer, doubt.kind) not in worst or doubt.against:
                worst[answer, doubt.kind] = doubt
    signals = [
        _new_signal(answer.pk, kind, doubt.against, doubt.detail)
        for (answer, kind), doubt in worst.items()
    ]
    Signal.objects.bulk_create(signals, ignore_conflicts=True)


def _count_words(questions: Iterable[Question]) -> int:
    """Return the number of words to read for these questions: the sentences of a pair, else the
    whole text. Words that several questions share count once.
    """
    places = set()
    for question in questions:
        payload = question.payload
        begin, text = payload.get("begin", 0), payload["text"]
        start, end = payload.get("lit") or (begin, begin + len(text))
        for word in re.finditer(r"\S+", text[start - begin : end - begin]):
            places.add((question.target.document_id, start + word.start()))
    return len(places)


def _answers_on_known_documents(
    answers: Collection[Assignment], questions_by_answer: Mapping[Assignment, Sequence[Question]]
) -> set[Assignment]:
    """Return the answers whose worker had a question about one of their documents before."""
    documents: dict[Assignment, set[int]] = {assignment: set() for assignment in answers}
    for answer in answers:
        places = {question.target.document_id for question in questions_by_answer[answer]}
        documents[answer] = {place for place in places if place is not None}
    assignments = Assignment.objects.filter(
        worker__in={answer.worker_id for answer in answers},
        hit__questions__target__document__in=set().union(*documents.values()) if documents else (),
    )
    had_since: dict[tuple[int, int], datetime] = {}
    columns = ("worker", "hit__questions__target__document", "accepted_at")
    for worker, document, accepted_at in assignments.values_list(*columns):
        earliest = had_since.get((worker, document), accepted_at)
        had_since[worker, document] = min(accepted_at, earliest)
    known = set()
    for answer in answers:
        for document in documents[answer]:
            if had_since[answer.worker_id, document] < answer.accepted_at:
                known.add(answer)
    return known


def compare_with_majority(counting: Mapping[Question, Sequence[Response]]) -> None:
    """Store for the answers to settled questions whether they differ from the majority of the
    others.
    """
    signals = [
        _new_signal(answer, "majority", bool(units), _difference_text(points, units))
        for answer, (points, units) in _differing_units_by_assignment(counting).items()
    ]
    Signal.objects.bulk_create(signals, ignore_conflicts=True)


def _difference_text(points: int, units: Sequence[Unit]) -> str:
    return f"Differs from most of the others in {len(units)} of {points} points."


def compare_with_majority_again(counting: Mapping[Question, Sequence[Response]]) -> None:
    """Update the comparisons with the majority after answers were excluded or count again. Where
    too few other answers remain, the comparison does not count against an answer.
    """
    held = _differing_units_by_assignment(counting)
    answers = {one.assignment_id for responses in counting.values() for one in responses}
    turned = []
    for signal in Signal.objects.filter(kind="majority", assignment__in=answers):
        points, units = held.get(signal.assignment_id, (0, []))
        if signal.against != bool(units):
            signal.against, signal.reviewed = bool(units), False
            signal.detail = _difference_text(points, units) if units else ""
            turned.append(signal)
    Signal.objects.bulk_update(turned, ["against", "reviewed", "detail"])


def _differing_units_by_assignment(
    counting: Mapping[Question, Sequence[Response]],
) -> dict[int, tuple[int, list[Unit]]]:
    """Return assignment -> number of its units, and those that differ from the others, by the first
    question of the answer.
    """
    held: dict[int, tuple[int, list[Unit]]] = {}
    for question, responses in counting.items():
        for answer, compared in _compare_with_others(question, responses).items():
            held.setdefault(answer, compared)
    return held


def _compare_with_others(
    question: Question, responses: Sequence[Response]
) -> dict[int, tuple[int, list[Unit]]]:
    """Return assignment -> (number of its units, those units that differ from the other answers
    by more than the tolerance).
    """
    tolerance = interface_by_name(question.interface).agreement.tolerance
    if tolerance is None:
        return {}
    units_of = units_by_assignment(question, responses)
    compared = {}
    for place, (answer, own) in enumerate(units_of.items()):
        if question.staged:
            # A third person always agrees with the majority, so the first two are compared
            # with all answers, including their own.
            if place == FIRST:
                break
            others = list(units_of.values())
        else:
            others = [units for other, units in units_of.items() if other != answer]
        against = differing_units(own, others)
        if against is not None:
            marked = sum(value not in ("no", "") for value in own.values())
            is_tolerated = len(against) <= tolerance * marked
            compared[answer] = len(own), [] if is_tolerated else against
    return compared


def units_by_assignment(
    question: Question, responses: Sequence[Response]
) -> dict[int, dict[Unit, str]]:
    """Return assignment -> unit -> value."""
    interface = interface_by_name(question.interface)
    units_of: dict[int, dict[Unit, str]] = defaultdict(dict)
    for response in responses:
        units_of[response.assignment_id].update(interface.agreement_units(question, response))
    return dict(units_of)


def differing_units(
    own_units: Mapping[Unit, str], other_units: Sequence[Mapping[Unit, str]]
) -> list[Unit] | None:
    """Return the units in which an answer differs from a majority of at least two others; None if
    the others agree on none of its units.
    """
    against, compared = [], 0
    for unit, value in own_units.items():
        votes = Counter(other[unit] for other in other_units if unit in other)
        most, n = votes.most_common(1)[0] if votes else ("", 0)
        if n >= 2 and 2 * n > votes.total():
            compared += 1
            if value != most:
                against.append(unit)
    return against if compared else None


def flags_by_worker(workers: Sequence[int], *, excluding: bool = False) -> dict[int, list[Flag]]:
    """Return worker -> flags since the last reinstatement; with `excluding`, only on tracks whose
    policy excludes for that kind of signal.
    """
    default = json.dumps(signals_that_exclude())
    values: dict[str, Any] = {"workers": list(workers), "excluding": excluding, "default": default}
    flags: dict[int, list[Flag]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(FLAGS, values)
        for worker, kind, against, n in cursor.fetchall():
            flags[worker].append(Flag(kind, against, n))
    return dict(flags)


def signals_to_review() -> dict[int, list[int]]:
    """Return worker -> unreviewed signals against them; excluded workers are left out."""
    signals = Signal.objects.filter(
        against=True, reviewed=False, assignment__worker__excluded_at=None
    )
    due: dict[int, list[int]] = defaultdict(list)
    signals = signals.order_by("assignment__worker")
    for worker, pk in signals.values_list("assignment__worker", "pk"):
        due[worker].append(pk)
    return dict(due)


def doubtful_workers() -> list[int]:
    """Return the workers with enough signals that a flag may exceed its limit; excluded workers are
    left out.
    """
    signals = Signal.objects.filter(against=True, assignment__worker__excluded_at=None)
    counts = signals.values_list("assignment__worker", "kind").annotate(n=Count("pk")).order_by()
    return sorted({worker for worker, kind, n in counts if n > LIMITS[kind].answers})
