"""Aggregates answers to labels, at first and again when answers are excluded or count again.

Labels are only appended, and labels of experts take precedence. A later aggregate of a question
replaces all that the question had said (`kbpo.instances.merge`); `Label.again` counts
them. A question without counted answers, or with a tie, is published again as far as its payer's
reservation reaches; its label stays until somebody answers. Where answers count again, the
additional questions are withdrawn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import QuerySet

from annotation.budget.promises import lock_payer, payers_of
from annotation.hits.ask_again import ask_again, lower_answers_wanted, settle_given_up, stop_asking
from annotation.interfaces.base import AggregatedLabel
from annotation.interfaces.registry import asking_yes_or_no, interface_of, reading
from annotation.interfaces.shared.payload import is_divided, mentions_beside
from annotation.labels.revise import MODEL, refit
from annotation.models import ANSWERABLE, Assignment, Policy, Question, Response
from annotation.quality.signals import compare_with_majority_again
from annotation.questions.limits import promised_answers
from kbpo.accounts.audit import note
from kbpo.accounts.models import User
from kbpo.instances.merge import PEOPLE, Statement, current_labels, current_statements
from kbpo.instances.models import STAGED, Label
from kbpo.instances.record import NewLabel, record
from kbpo.tracks.kbp.merge import CLUSTER, OFFERED, TITLED
from kbpo.tracks.models import Track
from kbpo.tracks.recall import NAME, RELATION, kind_with_recall

HOW = (*("votes", "titles", "asked"), OFFERED, TITLED, CLUSTER, PEOPLE)
"""Parts of a label's value that tell how it came about; a label counts as changed where others
do"""


@dataclass(frozen=True)
class Again:
    """The effect of changed answers on settled questions."""

    changed: int = 0
    """Changed labels"""
    asked: int = 0
    """Questions that are asked again; their labels stay until somebody answers"""
    stayed: int = 0
    """Labels' questions that stay as they were: too few answers are left, and nobody can be
    asked"""
    back: int = 0
    """Questions that had been asked again or given up, and whose answers count again: they are
    settled next"""

    def __str__(self) -> str:
        parts = [f"{_count(self.changed, 'label')} changed"]
        if self.asked:
            parts.append(f"{_count(self.asked, 'question')} asked again")
        if self.stayed:
            parts.append(f"{_count(self.stayed, 'question')} as before: nobody can be asked")
        if self.back:
            parts.append(f"{_count(self.back, 'question')} settled next with what counts again")
        return ", ".join(parts)


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def lock(questions: Collection[int]) -> list[Question]:
    """Return these questions, locked in primary-key order, after the locks of their payers: so
    `recount` can commit money.
    """
    asked = Question.objects.filter(pk__in=questions)
    for payer in payers_of(asked):
        lock_payer(payer)
    locked = asked.select_for_update(of=("self",)).select_related("track", "target")
    return list(locked.order_by("pk"))


def count(
    responses: QuerySet[Response],
    reason: str,
    why: str,
    who: User | None,
    *,
    answer: Assignment | None = None,
) -> tuple[int, Again]:
    """Make responses count, or not for a `reason`, and return their number and the effect on their
    questions. If the `answer` that they belong to is given, all of its questions are locked; if it
    is rejected, one answer less is wanted.
    """
    of = responses if answer is None else answer.responses.all()
    locked = lock(set(of.values_list("question", flat=True)))
    changed = set(responses.values_list("question", flat=True))
    n = responses.update(counts=not reason, excluded_reason=reason)
    if answer is not None and answer.status == "rejected":
        lower_answers_wanted(locked, answer.hit)
    questions = [question for question in locked if question.pk in changed]
    return n, recount(questions, why, who, back=not reason)


def recount(
    questions: Sequence[Question], why: str, who: User | None = None, *, back: bool = False
) -> Again:
    """Aggregate the settled ones of these questions again and return the effect; if answers came
    `back`, also restore questions that were asked again or given up. The caller holds their locks
    (`lock`).
    """
    settled = [question for question in questions if question.status == "settled"]
    policies = Policy.objects.filter(
        aggregation=MODEL, track__in={question.track_id for question in questions}
    )
    modelled = set(policies.values_list("track", flat=True))
    left = counted_responses(settled)
    labels_of = _decided_labels(settled, left, modelled)
    short = [question for question in settled if question not in labels_of]
    changes = _keep_read_names(labels_of, label_changes(labels_of, modelled))
    record(change.label for change in changes)
    _store_facts(labels_of, {change.label.question for change in changes})
    changed = sum(change.is_new for change in changes) + _refit_tracks(settled, modelled)
    recompare_answers(settled)
    asked = ask_again(short, left)
    asked_more = ask_again(lacking_answers(labels_of, left), left)
    n_back = _restore_questions(questions, modelled) if back else 0
    result = Again(changed, asked + asked_more, stayed=len(short) - asked, back=n_back)
    if result != Again():
        for track in sorted({question.track.slug for question in questions}):
            note("add up again", f"track:{track}", who=who, why=why, after=str(result), track=track)
    return result


def _decided_labels(
    questions: Sequence[Question], left: Mapping[int, Sequence[Response]], modelled: Collection[int]
) -> dict[Question, list[AggregatedLabel]]:
    """Return question -> labels, where the remaining answers decide."""
    missed = _questions_with_exclusions(questions)
    aggregated_labels: dict[Question, list[AggregatedLabel]] = {}
    for question in questions:
        mine = left.get(question.pk, [])
        labels = aggregate_labels(question, mine)
        weighed = question.track_id in modelled or question.pk not in missed
        if not _is_undecided(question, mine, labels, weighed=weighed):
            aggregated_labels[question] = labels
    return aggregated_labels


def lacking_answers(
    questions: Iterable[Question], left: Mapping[int, Sequence[Response]]
) -> list[Question]:
    """Return those of these questions that lost answers and have fewer than their track promises.
    The remaining answers decide until others have answered.
    """
    questions = list(questions)
    missed = _questions_with_exclusions(questions)
    short = []
    for question in questions:
        answers = {response.assignment_id for response in left.get(question.pk, ())}
        if question.pk in missed and len(answers) < promised_answers(question):
            short.append(question)
    return short


def _restore_questions(questions: Sequence[Question], modelled: Collection[int]) -> int:
    """Return how many questions are settled next because their answers count again: questions that
    were asked again and need no more answers, and questions that were given up.
    """
    open_ones = [question for question in questions if question.status in ANSWERABLE]
    left = counted_responses(open_ones)
    enough = []
    for question in _decided_labels(open_ones, left, modelled):
        answers = {response.assignment_id for response in left[question.pk]}
        if len(answers) >= min(question.answers_wanted, promised_answers(question)):
            enough.append(question)
    given_up = [question for question in questions if question.status == "unanswered"]
    return stop_asking(enough) + settle_given_up(given_up)


def _questions_with_exclusions(questions: Sequence[Question]) -> set[int]:
    """Return the questions with answers that no longer count."""
    responses = Response.objects.filter(question__in=questions, counts=False, met_before=False)
    return set(responses.values_list("question", flat=True))


def _is_undecided(
    question: Question,
    left: Sequence[Response],
    labels: Sequence[AggregatedLabel],
    *,
    weighed: bool,
) -> bool:
    """Return whether the remaining answers decide nothing: there are none, most flagged a whole
    document, or there is a tie. A tie is accepted if it is `weighed`: by a model, or because no
    answer was excluded.
    """
    if not labels or (question.target.kind == "document" and not labels[0].value):
        return True
    return not weighed and interface_of(question.interface).is_split(question, left)


def _keep_read_names(questions: Iterable[Question], changes: Iterable[Change]) -> list[Change]:
    """Drop changes that take back the names of a document whose relations were asked already."""
    of_names = reading(NAME)
    names = [question for question in questions if question.interface in of_names]
    relations = Question.objects.filter(
        track__in=[question.track_id for question in names],
        target__in=[question.target_id for question in names],
        interface__in=reading(RELATION),
    )
    read = set(relations.values_list("track", "target"))
    lasting = {name.pk for name in names if (name.track_id, name.target_id) in read}
    return [
        change for change in changes if change.label.value or change.label.question not in lasting
    ]


def _store_facts(questions: Iterable[Question], written: Collection[int | None]) -> None:
    """Store the facts of documents that were read in full as instances."""
    of_relations = reading(RELATION)
    for question in sorted(questions, key=lambda question: question.pk):
        if question.interface in of_relations and question.pk in written:
            kind_with_recall(question.track).store_facts(question.pk)


def _refit_tracks(settled: Sequence[Question], modelled: Collection[int]) -> int:
    """Fit the models of tracks with changed answers again, and return how many labels changed."""
    asked, tracks = asking_yes_or_no(), set()
    for question in settled:
        if question.interface in asked and question.track_id in modelled:
            tracks.add(question.track_id)
    return sum(refit(track) for track in Track.objects.filter(pk__in=tracks).order_by("pk"))


def recompare_answers(settled: Sequence[Question]) -> None:
    """Compare the answers to these questions with each other again, each by all that it
    answered.
    """
    answers = Response.objects.filter(question__in=settled, counts=True).values("assignment")
    asked = Question.objects.filter(hits__assignments__in=answers, status="settled")
    asked = asked.order_by("pk").distinct()
    counted = counted_responses(asked)
    compare_with_majority_again({question: counted[question.pk] for question in asked})


# -- Answers to labels

TAKEN_BACK = "taken_back"


@dataclass(frozen=True)
class Change:
    """A label to record; `is_new` if it says something else than the current label of the
    question.
    """

    label: NewLabel
    is_new: bool = False


def aggregate_labels(question: Question, responses: Sequence[Response]) -> list[AggregatedLabel]:
    """Return the labels that responses aggregate to; none if too few count."""
    return interface_of(question.interface).aggregate(question, responses)


def counted_responses(questions: Iterable[Question]) -> dict[int, list[Response]]:
    """Return question -> its counted responses."""
    responses: dict[int, list[Response]] = defaultdict(list)
    counted = Response.objects.filter(question__in=questions, counts=True)
    for response in counted.select_related("assignment__worker").order_by("pk"):
        responses[response.question_id].append(response)
    return responses


def questions_with_tied_targets(
    found: Mapping[Question, Sequence[AggregatedLabel]],
) -> set[Question]:
    """Return the questions after which the answers about a mention are tied, over all questions
    about it and all readers of its document.
    """
    of_others = [
        (question, label)
        for question, labels in found.items()
        for label in labels
        if label.source == Label.Source.CROWD
        and label.target_id in mentions_beside(question.payload)
    ]
    earlier_of: dict[int, list[Label]] = defaultdict(list)
    targets = {label.target_id for _, label in of_others}
    sources = [Label.Source.CROWD, Label.Source.DOCUMENT]
    labels_of_people = Label.objects.filter(target__in=targets, source__in=sources)
    for earlier in labels_of_people.order_by("created_at", "pk"):
        earlier_of[earlier.target_id].append(earlier)
    tied = set()
    for question, label in of_others:
        standing_labels = current_statements(map(Statement.of, earlier_of[label.target_id]))
        judgments = [judgment for judgment in standing_labels if judgment.value]
        judgments.append(Statement(label.value, label.source, label.n, question.pk, None))
        if is_divided(judgments):
            tied.add(question)
    return tied


def label_changes(
    found: Mapping[Question, Sequence[AggregatedLabel]], modelled: Collection[int] = ()
) -> list[Change]:
    """Return the labels to record for these questions: all of a new question; of a settled one only
    those that differ, and an empty label for each target that it no longer labels. On `modelled`
    tracks the model decides about the target itself, as long as people could answer. The caller
    holds the locks of the questions.
    """
    before = _labels_before(found)
    changes: list[Change] = []
    for question, labels in found.items():
        if question.pk in before:
            is_modelled = question.track_id in modelled
            changes += _label_changes(question, labels, before[question.pk], is_modelled)
        else:
            changes += [Change(_new_label(question, None, label)) for label in labels]
    return changes


def _label_changes(
    question: Question,
    labels: Sequence[AggregatedLabel],
    before: Sequence[Label],
    is_modelled: bool,
) -> Iterator[Change]:
    """Yield the differences between the new and the current labels of a question."""
    again = 1 + max(label.again or 0 for label in before)
    standing_of = {label.target_id: label for label in current_labels(before)}
    spoken_of = {label.target_id for label in labels}
    taken_back = [
        AggregatedLabel(target, {}, TAKEN_BACK, 0, 0.0, label.source)
        for target, label in standing_of.items()
        if target not in spoken_of and label.value
    ]
    for label in [*labels, *taken_back]:
        old = standing_of.get(label.target_id)
        if old is not None:
            is_for_model = is_modelled and label.target_id == question.target_id
            is_same = (old.value, old.n, old.source) == (label.value, label.n, label.source)
            if is_same or (is_for_model and old.value and label.value):
                continue
        is_new = _meaning(label.value) != _meaning(old.value if old is not None else {})
        yield Change(_new_label(question, again, label), is_new)


def _labels_before(questions: Iterable[Question]) -> dict[int, list[Label]]:
    """Return question -> its labels in order of creation."""
    labels = Label.objects.filter(question__in=already_labelled(questions))
    of_question: dict[int, list[Label]] = defaultdict(list)
    for label in labels.order_by("created_at", "pk"):
        of_question[label.question or 0].append(label)
    return of_question


def already_labelled(questions: Iterable[Question]) -> list[int]:
    """Return the ids of the questions that have a label; labels for missing answers are ignored."""
    targets = {question.pk: question.target_id for question in questions}
    labels = Label.objects.filter(
        target__in=targets.values(), question__in=targets, again=None
    ).exclude(method="nonresponse")
    return sorted({number for number in labels.values_list("question", flat=True) if number})


def _meaning(value: Mapping[str, object]) -> dict[str, object]:
    return {part: content for part, content in value.items() if part not in HOW}


def _new_label(question: Question, again: int | None, label: AggregatedLabel) -> NewLabel:
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
