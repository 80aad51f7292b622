"""Adds answers up to labels: those of a question that is settled now, or once more, when its
answers have changed.

Labels are only appended. What a question says once more stands in the place of all that it had said
(`in_place` in
`kbpo.instances.merge`): its label counts how often that was.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from annotation.interfaces.base import AggregatedLabel
from annotation.interfaces.registry import interface_of
from annotation.models import Question, Response
from kbpo.instances.merge import Said, standing, standing_statements
from kbpo.instances.models import STAGED, Label
from kbpo.instances.record import NewLabel

TAKEN_BACK = "taken_back"


@dataclass(frozen=True)
class Aggregates:
    """What questions aggregate to: labels to be recorded, and whether each says something else than
    before.
    """

    labels: list[NewLabel]
    changes: list[bool]


def aggregated(question: Question, responses: Sequence[Response]) -> list[AggregatedLabel]:
    """Return the labels that responses aggregate to; none if too few count."""
    return interface_of(question.interface).aggregate(question, responses)


def counting(questions: Iterable[Question]) -> dict[int, list[Response]]:
    """Return the responses that count, by question."""
    responses: dict[int, list[Response]] = defaultdict(list)
    counted = Response.objects.filter(question__in=questions, counts=True)
    for response in counted.select_related("assignment__worker").order_by("pk"):
        responses[response.question_id].append(response)
    return responses


def tied_on_other_targets(found: Mapping[Question, Sequence[AggregatedLabel]]) -> set[Question]:
    """Return the questions after which people are divided about something that they settle besides
    what is asked yes or no, all answers to all questions about it and its readers' taken together.
    """
    besides = [
        (question, label)
        for question, labels in found.items()
        for label in labels
        if label.source == Label.Source.CROWD
        and label.target_id in interface_of(question.interface).besides(question.payload)
    ]
    earlier_of: dict[int, list[Label]] = defaultdict(list)
    targets = {label.target_id for _, label in besides}
    sources = [Label.Source.CROWD, Label.Source.DOCUMENT]
    labels_of_people = Label.objects.filter(target__in=targets, source__in=sources)
    for earlier in labels_of_people.order_by("created_at", "pk"):
        earlier_of[earlier.target_id].append(earlier)
    tied = set()
    for question, label in besides:
        standing_labels = standing_statements(map(Said.of, earlier_of[label.target_id]))
        judgments = [judgment for judgment in standing_labels if judgment.value]
        judgments.append(Said(label.value, label.source, label.n, question.pk, None))
        if interface_of(question.interface).is_divided(judgments):
            tied.add(question)
    return tied


def to_record(
    found: Mapping[Question, Sequence[AggregatedLabel]], modelled: Collection[int] = ()
) -> Aggregates:
    """Return the labels that questions aggregate to; of those that had said something before, only
    what differs from it, and for what they do not speak of any more an empty one. On `modelled`
    tracks what holds of a target is for their model to say, as long as people could answer at all.
    The caller holds the questions' locks.
    """
    before = _labels_before(found)
    made = Aggregates([], [])
    for question, labels in found.items():
        is_modelled = question.track_id in modelled
        if question.pk in before:
            _add_again(made, question, labels, before[question.pk], is_modelled)
            continue
        for label in labels:
            made.labels.append(_new(question, None, label))
            made.changes.append(False)
    return made


def _add_again(
    made: Aggregates,
    question: Question,
    labels: Sequence[AggregatedLabel],
    before: Sequence[Label],
    is_modelled: bool,
) -> None:
    """Adds what a question says otherwise than it did before."""
    again = 1 + max(label.again or 0 for label in before)
    standing_of = {label.target_id: label for label in standing(before)}
    for label in [*labels, *_taken_back(labels, standing_of)]:
        old = standing_of.get(label.target_id)
        if old is not None:
            is_for_model = is_modelled and label.target_id == question.target_id
            if not _differs(old, label) or (is_for_model and old.value and label.value):
                continue
        value_before = old.value if old is not None else {}
        made.labels.append(_new(question, again, label))
        made.changes.append(_telling(question, label.value) != _telling(question, value_before))


def _taken_back(
    labels: Sequence[AggregatedLabel], standing_of: Mapping[int, Label]
) -> list[AggregatedLabel]:
    """Return an empty label for each target of which a question said something, and does not speak
    any more.
    """
    spoken_of = {label.target_id for label in labels}
    return [
        _empty(label)
        for target, label in standing_of.items()
        if target not in spoken_of and label.value
    ]


def _labels_before(questions: Iterable[Question]) -> dict[int, list[Label]]:
    """question -> its labels in their order, of questions that were settled before."""
    labels = Label.objects.filter(question__in=settled_before(questions))
    of_question: dict[int, list[Label]] = defaultdict(list)
    for label in labels.order_by("created_at", "pk"):
        of_question[label.question or 0].append(label)
    return of_question


def settled_before(questions: Iterable[Question]) -> list[int]:
    """Return the numbers of those of these questions whose answers gave a label already."""
    targets = {question.pk: question.target_id for question in questions}
    labels = Label.objects.filter(
        target__in=targets.values(), question__in=targets, again=None
    ).exclude(method="nonresponse")
    return sorted({number for number in labels.values_list("question", flat=True) if number})


def _differs(old: Label, new: AggregatedLabel) -> bool:
    return (old.value, old.n, old.source) != (new.value, new.n, new.source)


def _telling(question: Question, value: Mapping[str, object]) -> dict[str, object]:
    telling = interface_of(question.interface).telling
    return {part: value[part] for part in telling if part in value}


def _empty(label: Label) -> AggregatedLabel:
    """Return what takes back a label of which its question does not speak any more."""
    return AggregatedLabel(label.target_id, {}, TAKEN_BACK, 0, 0.0, label.source)


def _new(question: Question, again: int | None, label: AggregatedLabel) -> NewLabel:
    return NewLabel(
        target_id=label.target_id,
        value=label.value,
        source=label.source,
        method=STAGED if question.staged and label.method == "majority" else label.method,
        n=label.n,
        origin=question.origin if again is None else f"{question.origin}/again-{again}",
        disagreement=label.disagreement,
        question=question.pk,
        again=again,
    )
