"""Aggregates settled questions again when answers are excluded or count again, and asks more where
too few are left. Where they count again, what was asked more is taken back.

Labels are only appended, and what experts said stands above them as before. A question of which no
answer is left, or whose answers are divided now, goes back to people, as far as its payer's
reservation reaches; what it had said counts until they answer. Where nobody can be asked any more
it stays so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from annotation.budget.promises import one_publisher, payers_of
from annotation.hits.ask_again import ask_again, take_back, use_again
from annotation.interfaces.base import AggregatedLabel
from annotation.interfaces.registry import asking_yes_or_no, interface_of, reading
from annotation.labels.aggregate import Aggregates, aggregated, counting, to_record
from annotation.labels.revise import MODEL, refit
from annotation.models import ANSWERABLE, Policy, Question, Response
from annotation.quality.signals import compare_with_majority_again
from kbpo.accounts.audit import note
from kbpo.accounts.models import User
from kbpo.instances.record import NewLabel, record
from kbpo.tracks.models import Track
from kbpo.tracks.recall import NAME, RELATION, kind_with_recall


@dataclass(frozen=True)
class Again:
    """What became of settled questions whose answers changed."""

    changed: int = 0
    """Labels that say something else now"""
    asked: int = 0
    """Questions that went back to people; their labels stay until somebody answers"""
    stayed: int = 0
    """Labels' questions that stay as they were: too few answers are left, and nobody can be
    asked"""
    back: int = 0
    """Questions that had been asked again or given up, and whose answers count again: they are
    settled next"""

    def __str__(self) -> str:
        found = [f"{self.changed} label{'' if self.changed == 1 else 's'} changed"]
        if self.asked:
            found.append(f"{self.asked} question{'' if self.asked == 1 else 's'} asked again")
        if self.stayed:
            found.append(
                f"{self.stayed} stay{'s' if self.stayed == 1 else ''} as before: nobody can be"
                " asked any more"
            )
        if self.back:
            found.append(
                f"{self.back} question{'' if self.back == 1 else 's'} settled next with"
                " what counts again"
            )
        return ", ".join(found)


def lock(questions: Collection[int]) -> list[Question]:
    """These questions, locked in the order of their numbers; before them the money of whoever pays
    for them, as where they are published: so `reaggregate` can promise it.
    """
    rows = Question.objects.filter(pk__in=questions)
    for payer in payers_of(rows):
        one_publisher(payer)
    return list(
        rows.select_for_update(of=("self",)).select_related("track", "target").order_by("pk")
    )


def reaggregate(
    questions: Sequence[Question], why: str, who: User | None = None, *, back: bool = False
) -> Again:
    """What became of those of these questions that are settled; where answers came `back`, also of
    those that had been asked again or were given up for want of them. The caller holds their locks
    (`lock`).
    """
    settled = [one for one in questions if one.status == "settled"]
    modelled = set(
        Policy.objects.filter(
            aggregation=MODEL, track__in=[one.track_id for one in questions]
        ).values_list("track", flat=True)
    )
    left = counting(settled)
    found = _enough(settled, left, modelled)
    short = [question for question in settled if question not in found]
    made = _without_lost_names(found, to_record(found, modelled))
    record(made.labels)
    _store_facts(found, made.labels)
    changed = sum(made.changes) + _by_model(settled, modelled)
    compare_anew(settled)
    asked = ask_again(short, left)
    asked_more = ask_again(short_of_promise(found, left), left)
    result = Again(
        changed, asked + asked_more, len(short) - asked, _undone(questions, modelled) if back else 0
    )
    _note(questions, result, why, who)
    return result


def _enough(
    questions: Sequence[Question], left: Mapping[int, Sequence[Response]], modelled: Collection[int]
) -> dict[Question, list[AggregatedLabel]]:
    """What those questions aggregate to of which the answers that are left suffice."""
    missed = _with_answers_excluded(questions)
    aggregated_labels: dict[Question, list[AggregatedLabel]] = {}
    for question in questions:
        mine = left.get(question.pk, [])
        labels = aggregated(question, mine)
        weighed = question.track_id in modelled or question.pk not in missed
        if not _too_few(question, mine, labels, weighed=weighed):
            aggregated_labels[question] = labels
    return aggregated_labels


def short_of_promise(
    questions: Iterable[Question], left: Mapping[int, Sequence[Response]]
) -> list[Question]:
    """Return those of these questions that lost answers, and have fewer than their track promises:
    what is left decides until others have answered.
    """
    questions = list(questions)
    missed = _with_answers_excluded(questions)
    found = []
    for question in questions:
        answers = {one.assignment_id for one in left.get(question.pk, ())}
        if question.pk in missed and len(answers) < question.track.workers_per_question:
            found.append(question)
    return found


def _undone(questions: Sequence[Question], modelled: Collection[int]) -> int:
    """How many questions are settled next, since answers to them count again: those that were asked
    again, or wait to be since no answer had counted, and need no more; and those that were given up
    meanwhile.
    """
    open_ones = [question for question in questions if question.status in ANSWERABLE]
    left = counting(open_ones)
    enough = [
        one
        for one in _enough(open_ones, left, modelled)
        if len({row.assignment_id for row in left[one.pk]})
        >= min(one.answers_wanted, one.track.workers_per_question)
    ]
    return take_back(enough) + use_again([one for one in questions if one.status == "unanswered"])


def _with_answers_excluded(questions: Sequence[Question]) -> set[int]:
    """The questions some of whose answers do not count, though they once did."""
    responses = (
        Response.objects.filter(question__in=questions)
        .filter(counts=False)
        .filter(met_before=False)
    )
    return set(responses.values_list("question", flat=True))


def _too_few(
    question: Question,
    left: Sequence[Response],
    labels: Sequence[AggregatedLabel],
    *,
    weighed: bool,
) -> bool:
    """Whether the answers that are left say nothing: there are none, most could not read a whole
    document, or as many say the one as the other; unless that is `weighed`: by a model, or since
    all that were given do count.
    """
    if not labels or (question.target.kind == "document" and not labels[0].value):
        return True
    return not weighed and interface_of(question.interface).is_split(question, left)


def _without_lost_names(
    found: Mapping[Question, Sequence[AggregatedLabel]], made: Aggregates
) -> Aggregates:
    """The labels without those that take names of a document back whose relations were asked:
    people read them.
    """
    of_names = reading(NAME)
    names = [one for one in found if one.interface in of_names]
    questions = Question.objects.filter(
        track__in=[one.track_id for one in names], interface__in=reading(RELATION)
    )
    read = set(
        questions.filter(target__in=[one.target_id for one in names]).values_list("track", "target")
    )
    kept = {name.pk for name in names if (name.track_id, name.target_id) in read}
    pairs = [
        (label, change)
        for label, change in zip(made.labels, made.changes, strict=True)
        if label.value or label.question not in kept
    ]
    return Aggregates([label for label, _ in pairs], [change for _, change in pairs])


def _store_facts(
    found: Mapping[Question, Sequence[AggregatedLabel]], labels: Sequence[NewLabel]
) -> None:
    """Nothing; what is marked now in documents that were read whole are instances."""
    written, of_relations = {label.question for label in labels}, reading(RELATION)
    for question in sorted(found, key=lambda question: question.pk):
        if question.interface in of_relations and question.pk in written:
            kind_with_recall(question.track).store_facts(question.pk)


def _by_model(settled: Sequence[Question], modelled: Collection[int]) -> int:
    """How many labels changed on tracks that aggregate by a model: all answers there weigh
    differently now.
    """
    asked = asking_yes_or_no()
    tracks = {question.track_id for question in settled if question.interface in asked} & set(
        modelled
    )
    return sum(refit(track) for track in Track.objects.filter(pk__in=tracks).order_by("pk"))


def compare_anew(settled: Sequence[Question]) -> None:
    """Nothing; the answers to these questions are held anew against the others that count, each by
    all that it was an answer to.
    """
    answers = Response.objects.filter(question__in=settled, counts=True).values("assignment")
    asked = (
        Question.objects.filter(hits__assignments__in=answers, status="settled")
        .order_by("pk")
        .distinct()
    )
    found = counting(asked)
    compare_with_majority_again({question: found[question.pk] for question in asked})


def _note(questions: Sequence[Question], result: Again, why: str, who: User | None) -> None:
    """Nothing; the log of each track says that its labels were re-aggregated, and what came of it
    in all.
    """
    if result != Again():
        for track in sorted({question.track.slug for question in questions}):
            note("add up again", f"track:{track}", who=who, why=why, after=str(result), track=track)
