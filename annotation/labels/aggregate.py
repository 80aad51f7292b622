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
from itertools import chain

from annotation.interfaces.base import AggregatedLabel
from annotation.interfaces.registry import interface_of
from annotation.models import Question, Response
from kbpo.instances.merge import Said, standing, standing_said
from kbpo.instances.models import Label
from kbpo.instances.record import NewLabel
from kbpo.pool.visibility import seen_by_everybody

TAKEN_BACK = "taken_back"


@dataclass(frozen=True)
class Aggregates:
    """What questions aggregate to: labels to be recorded, and whether each says something else than
    before.
    """

    labels: list[NewLabel]
    changes: list[bool]


def aggregated(question: Question, responses: Sequence[Response]) -> list[AggregatedLabel]:
    """The labels that responses aggregate to; none if too few count."""
    return interface_of(question.interface).aggregate(question, responses)


def counting(questions: Iterable[Question]) -> dict[int, list[Response]]:
    """The responses that count, by question."""
    responses: dict[int, list[Response]] = defaultdict(list)
    rows = Response.objects.filter(question__in=questions, counts=True)
    for response in rows.select_related("assignment__worker").order_by("pk"):
        responses[response.question_id].append(response)
    return responses


def tied_besides(found: Mapping[Question, Sequence[AggregatedLabel]]) -> set[Question]:
    """The questions after which people are divided about something that they settle besides their
    target, all answers to all questions about it taken together.
    """
    besides = [
        (question, label)
        for question, labels in found.items()
        for label in labels
        if label.source == Label.Source.CROWD and label.target_id != question.target_id
    ]
    known: dict[int, list[Label]] = defaultdict(list)
    rows = Label.objects.filter(target__in={label.target_id for _, label in besides})
    for earlier in rows.filter(source=Label.Source.CROWD).order_by("created_at", "pk"):
        known[earlier.target_id].append(earlier)
    tied = set()
    for question, label in besides:
        others = standing_said(Said.of(one) for one in known[label.target_id])
        said = [other for other in others if other.value]
        now = Said(label.value, label.source, label.n, question.pk, None)
        if interface_of(question.interface).is_divided([*said, now]):
            tied.add(question)
    return tied


def to_record(
    found: Mapping[Question, Sequence[AggregatedLabel]], modelled: Collection[int] = ()
) -> Aggregates:
    """The labels that questions aggregate to; of those that had said something before, only what
    differs from it, and for what they do not speak of any more an empty one. On `modelled` tracks
    what holds of a target is for their model to say, as long as people could answer at all. What
    stands in the place of what everybody sees is seen by everybody too. The caller holds the
    questions' locks.
    """
    before = _said_before(found)
    public = seen_by_everybody([(question.track_id, question.target_id) for question in found])
    made = Aggregates([], [])
    for question, some in found.items():
        for_all = (question.track_id, question.target_id) in public
        if question.pk not in before:
            made.labels.extend(_new(question, None, label, public=for_all) for label in some)
            made.changes.extend(False for _ in some)
            continue
        said = before[question.pk]
        earlier = list(chain.from_iterable(said.values()))
        again = 1 + max(label.again or 0 for label in earlier)
        now = {label.target_id: label for label in standing(earlier)}
        spoken_of = {one.target_id for one in some}
        gone = [
            _empty(label)
            for target, label in now.items()
            if target not in spoken_of and label.value
        ]
        for one in [*some, *gone]:
            old = now.get(one.target_id)
            if old is not None and not _differs(old, one):
                continue
            if (
                question.track_id in modelled
                and one.target_id == question.target_id
                and old
                and old.value
                and one.value
            ):
                continue
            was_public = old is not None and old.public_at is not None
            made.labels.append(_new(question, again, one, public=for_all or was_public))
            before_it = old.value if old is not None else {}
            made.changes.append(_told(question, one.value) != _told(question, before_it))
    return made


def _said_before(questions: Iterable[Question]) -> dict[int, dict[int, list[Label]]]:
    """question -> target -> its labels in their order, of questions that were settled before."""
    known = settled_before(questions)
    rows = Label.objects.filter(question__in=known)
    labels: dict[int, dict[int, list[Label]]] = defaultdict(lambda: defaultdict(list))
    for label in rows.order_by("created_at", "pk"):
        labels[label.question or 0][label.target_id].append(label)
    return labels


def settled_before(questions: Iterable[Question]) -> list[int]:
    """Return the numbers of those of these questions whose answers gave a label already."""
    targets = {question.pk: question.target_id for question in questions}
    labels = Label.objects.filter(
        target__in=targets.values(), question__in=targets, again=None
    ).exclude(method="nonresponse")
    return sorted({number for number in labels.values_list("question", flat=True) if number})


def _differs(old: Label, new: AggregatedLabel) -> bool:
    return (old.value, old.n, old.source) != (new.value, new.n, new.source)


def _told(question: Question, value: Mapping[str, object]) -> dict[str, object]:
    telling = interface_of(question.interface).telling
    return {part: value[part] for part in telling if part in value}


def _empty(label: Label) -> AggregatedLabel:
    """What takes back a label of which its question does not speak any more."""
    return AggregatedLabel(label.target_id, {}, TAKEN_BACK, 0, 0.0, label.source)


def _new(
    question: Question, again: int | None, label: AggregatedLabel, *, public: bool
) -> NewLabel:
    return NewLabel(
        target_id=label.target_id,
        value=label.value,
        source=label.source,
        method=label.method,
        n=label.n,
        origin=question.origin if again is None else f"{question.origin}/again-{again}",
        disagreement=label.disagreement,
        public=public,
        question=question.pk,
        again=again,
    )
