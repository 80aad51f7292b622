"""Computes the labels of questions from their counted answers: when they are settled, and again
when answers are excluded or count again.

Labels are only appended, and labels of experts take precedence. A later aggregate of a question
replaces all its earlier labels (`kbpo.instances.merge`); `Label.again` counts the aggregates. A
question without counted answers, or with a tie, is published again as far as its payer's
reservation suffices; its label stays until somebody answers. If answers count again, the additional
questions are withdrawn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from django.db.models import QuerySet

from annotation.budget.promises import lock_payer, payers_in_lock_order
from annotation.hits.ask_again import (
    LockHeld,
    ask_again,
    ask_one_more,
    close_surplus_places,
    count_answers,
    initial_places,
    lock_hits,
    lower_answers_wanted,
    make_given_up_questions_due,
)
from annotation.interfaces.base import AggregatedLabel
from annotation.interfaces.registry import document_interfaces, interface_by_name, yes_no_interfaces
from annotation.interfaces.shared.payload import (
    are_people_tied,
    mentions_of_pair,
    settles_reader_tie,
)
from annotation.labels.revise import MODEL, refit_track
from annotation.models import ANSWERABLE, HIT, PUT_AWAY, Assignment, Policy, Question, Response
from annotation.quality.signals import compare_with_majority, compare_with_majority_again
from annotation.questions.limits import (
    MOST_ANSWERS,
    NOBODY_BESIDE,
    has_other_worker,
    max_answers,
    promised_answers,
)
from kbpo import clock
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.models import User
from kbpo.clock.served import latest_due_moment
from kbpo.instances.merge import PEOPLE, Statement, current_labels, unreplaced_statements
from kbpo.instances.models import STAGED, Label
from kbpo.instances.record import NewLabel, record_labels
from kbpo.money.models import Purpose
from kbpo.queue import wake_step
from kbpo.tracks.kbp.merge import CLUSTER, OFFERED, TITLED
from kbpo.tracks.models import Track
from kbpo.tracks.recall import NAME, RELATION, kind_with_recall

ALL_EXCLUDED = "All answers were excluded; it is asked again."
"""Reason of a question that is asked again"""
AT_ITS_END = datetime(9000, 1, 1, tzinfo=UTC)
"""When a question that ended with a label for nonresponse is due again; a late answer or Retry sets
an earlier time"""
LONGEST = timedelta(days=1)
"""How long a question waits for workers who hold a lease before it ends unanswered"""
SOON = timedelta(minutes=1)
AT_ONCE = timedelta(seconds=5)
TAKEN_BACK = "taken_back"
Change = tuple[NewLabel, bool]
"""A label to record, and whether it differs from the current label of the question"""
HOW = (*("votes", "titles", "asked"), OFFERED, TITLED, CLUSTER, PEOPLE)
"""Parts of a label's value that record its provenance; a label counts as changed only if other
parts differ"""


@dataclass(frozen=True)
class RecountResult:
    """How many labelled questions were affected by changed answers."""

    changed: int = 0
    """Changed labels"""
    asked_again: int = 0
    """Questions that are asked again; their labels stay until somebody answers"""
    unchanged: int = 0
    """Questions with too few answers left whose labels stay, since nobody can be asked"""
    restored: int = 0
    """Questions that had been asked again or had ended unanswered, and whose answers count again:
    they are settled next"""

    def __str__(self) -> str:
        parts = [f"{_count_with_noun(self.changed, 'label')} changed"]
        if self.asked_again:
            parts.append(f"{_count_with_noun(self.asked_again, 'question')} asked again")
        if self.unchanged:
            parts.append(
                f"{_count_with_noun(self.unchanged, 'question')} as before: nobody can be asked"
            )
        if self.restored:
            parts.append(
                f"{_count_with_noun(self.restored, 'question')} settled next with what counts again"
            )
        return ", ".join(parts)


def _count_with_noun(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def set_counting(
    responses: QuerySet[Response],
    reason: str,
    why: str,
    who: User | None,
    *,
    answer: Assignment | None = None,
) -> tuple[int, RecountResult]:
    """Count responses, or stop counting them for a `reason`. Return their number and the effect on
    their questions. If the `answer` that they belong to is given, all of its questions are locked;
    if it is rejected, one answer less is wanted.

    Locks the payers of the questions, so that money can be committed, then the questions in
    primary-key order.
    """
    locking = responses if answer is None else answer.responses.all()
    questions = Question.objects.filter(pk__in=set(locking.values_list("question", flat=True)))
    for payer in payers_in_lock_order(questions):
        lock_payer(payer)
    rows = questions.select_for_update(of=("self",)).select_related("track", "target")
    locked = list(rows.order_by("pk"))
    changed = set(responses.values_list("question", flat=True))
    n = responses.update(counts=not reason, excluded_reason=reason)
    if answer is not None and answer.status == "rejected":
        lower_answers_wanted(locked, answer.hit)
    affected = [question for question in locked if question.pk in changed]
    result = aggregate_questions_again(affected, back=not reason)
    if result != RecountResult():
        for track in sorted({question.track.slug for question in affected}):
            write_audit_entry(
                "add up again", f"track:{track}", who=who, why=why, after=str(result), track=track
            )
    return n, result


def aggregate_questions_again(
    questions: Sequence[Question], *, back: bool = False
) -> RecountResult:
    """Aggregate the answers again to those of the locked `questions` that are settled, and return
    the effect. With `back`, also restore questions that were asked again or ended unanswered.
    """
    settled = [question for question in questions if question.status == "settled"]
    policies = Policy.objects.filter(
        aggregation=MODEL, track__in={question.track_id for question in questions}
    )
    modelled = set(policies.values_list("track", flat=True))
    left = counted_responses_by_question(settled)
    labels_of = _labels_already_decided(settled, left, modelled)
    short = [question for question in settled if question not in labels_of]
    changes = _drop_changes_to_read_names(labels_of, label_changes(labels_of, modelled))
    record_labels(label for label, _ in changes)
    written, of_relations = {label.question for label, _ in changes}, document_interfaces(RELATION)
    for question in labels_of:  # in primary-key order
        if question.interface in of_relations and question.pk in written:
            kind_with_recall(question.track).store_facts(question.pk)
    changed = sum(is_new for _, is_new in changes)
    asked = yes_no_interfaces()
    refitted = {one.track_id for one in settled if one.interface in asked} & modelled
    for track in Track.objects.filter(pk__in=refitted).order_by("pk"):
        revision = refit_track(track)
        changed += len(revision.labels) if revision is not None else 0
    recompare_answers(settled)
    n_asked = ask_again(short, left)
    n_more = ask_again(questions_lacking_answers(labels_of, left), left)
    n_back = _restore_questions(questions, modelled) if back else 0
    return RecountResult(changed, n_asked + n_more, len(short) - n_asked, n_back)


def settle_questions(questions: Sequence[Question]) -> None:
    """Record the labels of these locked questions and close them. Questions that have fewer answers
    than their track promises because of exclusions are published again at once. Tied questions are
    labelled only after one more person has answered.
    """
    responses = counted_responses_by_question(questions)
    labels_of: dict[Question, list[AggregatedLabel]] = {}
    unlabelled: list[Question] = []
    free: dict[Purpose, Decimal] = {}
    aggregated = {question: _aggregate_responses(question, responses) for question in questions}
    tied = questions_with_tied_targets(aggregated)
    short = questions_lacking_answers(
        [one for one in questions if one.status == "answered"], responses
    )
    for question, labels in aggregated.items():
        is_split = question.staged and _is_split(question, responses)
        try:
            if labels and question in short and not lock_payer(question.payer, wait=False):
                raise LockHeld
            if not labels:
                unlabelled.append(question)
            elif not (
                question.status == "answered"
                and (question in tied or is_split)
                and ask_one_more(question, free)
            ):
                labels_of[question] = labels
        except LockHeld:
            _postpone_question(question, clock.now() + AT_ONCE)
    before = labelled_question_ids(labels_of)
    record_labels(label for label, _ in label_changes(labels_of))
    compare_with_majority({question: responses[question.pk] for question in labels_of})
    _close_hits(labels_of, "closed")
    Question.objects.filter(pk__in=[question.pk for question in labels_of]).move("settled")
    if before:
        recompare_answers([question for question in labels_of if question.pk in before])
    ask_again([question for question in short if question in labels_of], responses)
    _ask_from_the_start(unlabelled)


def _ask_from_the_start(questions: Sequence[Question]) -> None:
    """Publish questions without counted answers again, for as many people as at first. Questions
    with the maximal number of answers end unanswered, and so do questions about ties between
    readers if no other worker is available.
    """
    places, given = initial_places(questions), count_answers(questions)
    waiting = []
    for question in questions:
        wanted = min(
            question.answers_wanted,
            places.get(question.pk, MOST_ANSWERS),
            max_answers(question) - given[question.pk],
        )
        if wanted <= 0:
            why = f"{given[question.pk]} people answered it, and none of their answers counts."
            question.move("unanswered", why, ended_by="")
        elif settles_reader_tie(question.payload) and not has_other_worker(question):
            question.move("unanswered", NOBODY_BESIDE, ended_by="")
        else:
            question.answers_wanted = wanted
            waiting.append(question)
    _close_hits(waiting, "disposed")
    Question.objects.bulk_update(waiting, ["answers_wanted"])
    due = Question.objects.filter(pk__in=[question.pk for question in waiting])
    due.move("waiting", ALL_EXCLUDED, ended_by="")


def _close_hits(questions: Iterable[Question], status: str) -> None:
    """Close the HITs of `questions`. Locks rows in primary-key order to avoid deadlocks."""
    hits = HIT.objects.filter(questions__in=list(questions)).exclude(status__in=PUT_AWAY)
    HIT.objects.filter(pk__in=lock_hits(hits)).update(status=status, status_since=clock.now())


def settle_given_up_question(question: Question) -> None:
    """Settle a question that ended unanswered with the answers that it has, once nobody holds a
    lease of it; without any, record a label for nonresponse.

    Later answers are used too (`parse_accepted_answers` makes the question due again): they are
    paid, and whether somebody held a lease does not depend on the true answer. The label for
    nonresponse stays; the later one counts, and the response rate of the stratum is recomputed with
    every estimate.
    """
    _close_hits([question], "expired")
    if (until := _next_attempt_time(question)) is not None:
        _postpone_question(question, until)
    elif _aggregate_responses(question, counted_responses_by_question([question])):
        settle_questions([question])
    else:
        missing = NewLabel(
            target_id=question.target_id,
            value={},
            source=Label.Source.CROWD,
            method="nonresponse",
            n=0,
            origin=f"{question.origin}/nonresponse",
            question=question.pk,
        )
        record_labels([missing])
        _postpone_question(question, AT_ITS_END)


def _next_attempt_time(question: Question) -> datetime | None:
    """Return when to try again if somebody holds a lease or an answer is not parsed yet; None
    otherwise.
    """
    now = clock.now()
    if question.status_since < latest_due_moment(LONGEST, now):
        return None
    assignments = Assignment.objects.filter(hit__questions=question)
    if assignments.filter(status="submitted").exists():
        return now + SOON
    leased = assignments.filter(status="leased", leased_until__gt=now).order_by("-leased_until")
    return leased.values_list("leased_until", flat=True).first()


def _postpone_question(question: Question, moment: datetime) -> None:
    question.attempts, question.next_try_at = 0, moment
    question.save(update_fields=["attempts", "next_try_at"])


def _labels_already_decided(
    questions: Sequence[Question],
    remaining_responses: Mapping[int, Sequence[Response]],
    modelled: Collection[int],
) -> dict[Question, list[AggregatedLabel]]:
    """Return question -> labels, for questions whose remaining answers suffice to decide. They do
    not suffice if there are none, if most flagged a whole document, or if a tie remains after
    exclusions and no model resolves it.
    """
    missed = _questions_with_exclusions(questions)
    decided: dict[Question, list[AggregatedLabel]] = {}
    for question in questions:
        labels = _aggregate_responses(question, remaining_responses)
        if not labels or (question.target.kind == "document" and not labels[0].value):
            continue
        weighed = question.track_id in modelled or question.pk not in missed
        if weighed or not _is_split(question, remaining_responses):
            decided[question] = labels
    return decided


def questions_lacking_answers(
    questions: Iterable[Question], remaining_responses: Mapping[int, Sequence[Response]]
) -> list[Question]:
    """Return those questions that lost answers and have fewer than their track promises. The
    remaining answers decide until others have answered.
    """
    questions = list(questions)
    missed = _questions_with_exclusions(questions)
    short = []
    for question in questions:
        answers = {response.assignment_id for response in remaining_responses.get(question.pk, ())}
        if question.pk in missed and len(answers) < promised_answers(question):
            short.append(question)
    return short


def _restore_questions(questions: Sequence[Question], modelled: Collection[int]) -> int:
    """Restore questions that were asked again and need no more answers, and questions that ended
    unanswered, if their answers count again. Return how many of them are settled next.
    """
    open_ones = [question for question in questions if question.status in ANSWERABLE]
    left = counted_responses_by_question(open_ones)
    enough = []
    for question in _labels_already_decided(open_ones, left, modelled):
        answers = {response.assignment_id for response in left[question.pk]}
        if len(answers) >= min(question.answers_wanted, promised_answers(question)):
            enough.append(question)
    given_up = [question for question in questions if question.status == "unanswered"]
    restored = close_surplus_places(enough) + make_given_up_questions_due(given_up)
    if restored:
        wake_step("settle")
    return restored


def _questions_with_exclusions(questions: Sequence[Question]) -> set[int]:
    """Return the questions with answers that no longer count."""
    responses = Response.objects.filter(question__in=questions, counts=False, met_before=False)
    return set(responses.values_list("question", flat=True))


def _drop_changes_to_read_names(
    questions: Iterable[Question], changes: Iterable[Change]
) -> list[Change]:
    """Drop changes that remove names of a document whose relations were already asked about."""
    of_names = document_interfaces(NAME)
    names = [question for question in questions if question.interface in of_names]
    relations = Question.objects.filter(
        track__in=[question.track_id for question in names],
        target__in=[question.target_id for question in names],
        interface__in=document_interfaces(RELATION),
    )
    read = set(relations.values_list("track", "target"))
    lasting = {name.pk for name in names if (name.track_id, name.target_id) in read}
    return [change for change in changes if change[0].value or change[0].question not in lasting]


def recompare_answers(settled_questions: Sequence[Question]) -> None:
    """Compare the answers to these questions with each other again, using all judgments of each
    answer.
    """
    answers = Response.objects.filter(question__in=settled_questions, counts=True).values(
        "assignment"
    )
    asked = Question.objects.filter(hits__assignments__in=answers, status="settled")
    asked = asked.order_by("pk").distinct()
    counted = counted_responses_by_question(asked)
    compare_with_majority_again({question: counted[question.pk] for question in asked})


def _aggregate_responses(
    question: Question, responses: Mapping[int, Sequence[Response]]
) -> list[AggregatedLabel]:
    """Return the labels that the responses to a question aggregate to; none if too few responses
    count.
    """
    return interface_by_name(question.interface).aggregate(question, responses.get(question.pk, []))


def _is_split(question: Question, responses: Mapping[int, Sequence[Response]]) -> bool:
    return interface_by_name(question.interface).is_split(question, responses.get(question.pk, []))


def counted_responses_by_question(questions: Iterable[Question]) -> dict[int, list[Response]]:
    """Return question -> its counted responses."""
    responses: dict[int, list[Response]] = defaultdict(list)
    counted = Response.objects.filter(question__in=questions, counts=True)
    for response in counted.select_related("assignment__worker").order_by("pk"):
        responses[response.question_id].append(response)
    return responses


def questions_with_tied_targets(
    labels_by_question: Mapping[Question, Sequence[AggregatedLabel]],
) -> set[Question]:
    """Return the questions whose answers leave a mention tied, over all questions about the mention
    and all readers of its document.
    """
    of_others = [
        (question, label)
        for question, labels in labels_by_question.items()
        for label in labels
        if label.source == Label.Source.CROWD
        and label.target_id in mentions_of_pair(question.payload)
    ]
    earlier_of: dict[int, list[Label]] = defaultdict(list)
    targets = {label.target_id for _, label in of_others}
    sources = [Label.Source.CROWD, Label.Source.DOCUMENT]
    labels_of_people = Label.objects.filter(target__in=targets, source__in=sources)
    for earlier in labels_of_people.order_by("created_at", "pk"):
        earlier_of[earlier.target_id].append(earlier)
    tied = set()
    for question, label in of_others:
        standing_labels = unreplaced_statements(
            map(Statement.from_label, earlier_of[label.target_id])
        )
        judgments = [judgment for judgment in standing_labels if judgment.value]
        judgments.append(Statement(label.value, label.source, label.n, question.pk, None))
        if are_people_tied(judgments):
            tied.add(question)
    return tied


def label_changes(
    labels_of: Mapping[Question, Sequence[AggregatedLabel]], modelled: Collection[int] = ()
) -> list[Change]:
    """Return the labels to record for these questions: all labels of a new question; for a settled
    one, only labels that differ, and an empty label for each target that is no longer labelled. On
    `modelled` tracks the model decides about the target itself, as long as people could answer. The
    caller holds the locks of the questions.
    """
    before = _labels_before(labels_of)
    changes: list[Change] = []
    for question, labels in labels_of.items():
        if question.pk in before:
            is_modelled = question.track_id in modelled
            changes += _label_changes(question, labels, before[question.pk], is_modelled)
        else:
            changes += [(_new_label(question, None, label), False) for label in labels]
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
        is_new = _value_without_method(label.value) != _value_without_method(
            old.value if old is not None else {}
        )
        yield _new_label(question, again, label), is_new


def _labels_before(questions: Iterable[Question]) -> dict[int, list[Label]]:
    """Return question -> its labels in order of creation."""
    labels = Label.objects.filter(question__in=labelled_question_ids(questions))
    of_question: dict[int, list[Label]] = defaultdict(list)
    for label in labels.order_by("created_at", "pk"):
        of_question[label.question or 0].append(label)
    return of_question


def labelled_question_ids(questions: Iterable[Question]) -> list[int]:
    """Return the ids of the questions that have a label; labels that only record a missing answer
    are ignored.
    """
    targets = {question.pk: question.target_id for question in questions}
    labels = Label.objects.filter(
        target__in=targets.values(), question__in=targets, again=None
    ).exclude(method="nonresponse")
    return sorted({number for number in labels.values_list("question", flat=True) if number})


def _value_without_method(value: Mapping[str, object]) -> dict[str, object]:
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
