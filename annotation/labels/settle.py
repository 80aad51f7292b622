"""Steps 8 and 9: raw answers become responses, responses become labels, and every worker is paid,
each exactly once.

Rows are handled many at a time, in one transaction that holds their locks (`handle_rows_in_batch`
in `kbpo.queue`). A killed process has done all or nothing, and the rows are then handled again,
each by itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

from django.db.models import QuerySet

from annotation.budget.accrue import spend_and_owe, total_extra_pay
from annotation.hits.ask_again import make_given_up_questions_due
from annotation.hits.parts import answer_to_question, has_answer_to
from annotation.interfaces.base import BadAnswer, Doubt, ParsedResponse
from annotation.interfaces.registry import interface_by_name
from annotation.labels.exclude import exclude_flagged
from annotation.labels.recount import settle_given_up_question, settle_questions
from annotation.labels.revise import tick as revise
from annotation.models import HIT, PUT_AWAY, Assignment, Policy, Question, Response, Worker
from annotation.platforms.registry import local_platform_names
from annotation.quality.gold import grade_answer, is_gold, questions_in_shown_order
from annotation.quality.signals import (
    note_answer_speed,
    note_interface_doubts,
    note_reading_speed,
)
from kbpo.clock.served import record_beat
from kbpo.queue import handle_rows, handle_rows_in_batch

BATCH = 200
MET_BEFORE = "This worker had judged it before."
DONE = ("accepted", "approved", "paid")
Parsed = list[tuple[Question, ParsedResponse]]
"""Question -> the responses of one answer"""
Meeting = tuple[int, int, str, int]
"""Worker, target of a question, interface, round: a worker who answers the same combination twice
counts once. What an answer about a pair says about its mentions does not count as answering a
question about one of these mentions."""


def tick() -> int:
    """Process submitted answers; return how many assignments and questions changed."""
    record_beat()
    moved = handle_rows_in_batch(Assignment, "submitted", parse_accepted_answers, limit=BATCH)
    moved += handle_rows_in_batch(Question, "answered", settle_questions, limit=BATCH)
    last = BATCH
    while last == BATCH:
        last = handle_rows(Question, "unanswered", settle_given_up_question, limit=BATCH)
        moved += last
    moved += handle_rows_in_batch(Assignment, "accepted", spend_and_owe, limit=BATCH)
    if moved:
        exclude_flagged()
    return moved + revise()


def parse_accepted_answers(assignments: Sequence[Assignment]) -> None:
    """Parse raw answers into responses. The caller holds the locks of the assignments. Locks the
    questions in primary-key order, and no HIT (annotation/README.md). An answer that cannot be used
    fails alone. Answered questions are settled in the same tick.
    """
    asked = _lock_questions({assignment.hit_id for assignment in assignments})
    parsed: dict[Assignment, Parsed] = {}
    for assignment in assignments:
        questions = _questions_to_answer(assignment, asked[assignment.hit_id])
        raw = assignment.raw or {}
        try:
            parsed[assignment] = [
                (question, each)
                for question in questions
                for each in interface_by_name(question.interface).parse(
                    question, answer_to_question(question, raw)
                )
            ]
        except BadAnswer as bad:
            assignment.move("failed", f"The answer cannot be used: {bad}")
    Response.objects.bulk_create(unsaved_responses(parsed))
    _store_extra_and_doubts(parsed)
    # Tracks whose policy ignores answer times
    tracks = {question.track_id for questions in asked.values() for question in questions}
    policies = Policy.objects.filter(track__in=tracks, timed=False)
    untimed = set(policies.values_list("track", flat=True))
    expected: dict[Assignment, int] = {}
    read: dict[Assignment, list[Question]] = {}
    answered: set[Question] = set()
    for answer in parsed:
        questions = asked[answer.hit_id]
        answered.update(questions)
        if questions[0].track_id not in untimed:
            expected[answer] = sum(question.seconds for question in questions)
            read[answer] = questions
    note_answer_speed(expected)
    note_reading_speed(read)
    for answer in parsed:
        if any(is_gold(question) for question in asked[answer.hit_id]):
            grade_answer(answer)
    Assignment.objects.filter(pk__in=[answer.pk for answer in parsed]).move("accepted")
    _mark_answered({question for question in answered if question.status == "published"})
    # `settle_given_up_question` waits for the answers of those who had a question in hand
    make_given_up_questions_due(
        [question for question in answered if question.status == "unanswered"]
    )


def _lock_questions(hits: Collection[int]) -> dict[int, list[Question]]:
    """Return HIT -> its questions, locked."""
    through = HIT.questions.through.objects.filter(hit__in=hits).order_by("question_id")
    pairs = through.values_list("hit", "question")
    locked = Question.objects.select_for_update(of=("self",)).filter(
        pk__in={question for _, question in pairs}
    )
    questions = {row.pk: row for row in locked.select_related("target").order_by("pk")}
    questions_of: dict[int, list[Question]] = defaultdict(list)
    for hit, question in pairs:
        questions_of[hit].append(questions[question])
    return questions_of


def _questions_to_answer(assignment: Assignment, questions: list[Question]) -> list[Question]:
    """Return the questions of a HIT that its answer must contain. Gold questions that the worker
    has met in an earlier HIT are left out if the HIT has other questions too and the answer does
    not contain the gold.
    """
    if len(questions) == 1 or not any(is_gold(question) for question in questions):
        return questions
    known = {
        question.pk for question in questions_in_shown_order(assignment.hit, assignment.worker)
    }
    return [one for one in questions if one.pk in known or has_answer_to(one, assignment.raw or {})]


def _store_extra_and_doubts(parsed: dict[Assignment, Parsed]) -> None:
    """Store what these answers earned in addition to their rewards, and which of them look
    careless.
    """
    doubts: dict[Assignment, list[Doubt]] = {}
    for assignment, answers in parsed.items():
        by_question: dict[Question, list[ParsedResponse]] = defaultdict(list)
        for question, each in answers:
            by_question[question].append(each)
        assignment.extra = total_extra_pay(by_question.items())
        doubts[assignment] = [
            doubt
            for question, judgments in by_question.items()
            for doubt in interface_by_name(question.interface).doubts(judgments)
        ]
    Assignment.objects.bulk_update([one for one in parsed if one.extra], ["extra"])
    note_interface_doubts(doubts)


def unsaved_responses(parsed: dict[Assignment, Parsed]) -> list[Response]:
    """Return unsaved responses. A response does not count, with a stored reason, if its worker is
    excluded or had judged the question before, which can happen on marketplaces. Such answers are
    paid.
    """
    excluded = Worker.objects.filter(
        pk__in={one.worker_id for one in parsed}, excluded_at__isnull=False
    )
    reasons = dict(excluded.values_list("pk", "excluded_reason"))
    met = _earlier_judged_questions(parsed)
    responses = []
    for assignment, answers in parsed.items():
        before = set(met)
        for question, each in answers:
            repeats = _meeting(assignment.worker_id, question.target_id, question) in before
            why = MET_BEFORE if repeats else reasons.get(assignment.worker_id, "")
            met.add(_meeting(assignment.worker_id, question.target_id, question))
            responses.append(
                Response(
                    assignment=assignment,
                    question=question,
                    target_id=each.target_id,
                    criterion=each.criterion,
                    value=each.value,
                    counts=not why,
                    excluded_reason=why,
                    met_before=repeats,
                )
            )
    return responses


def _earlier_judged_questions(parsed: dict[Assignment, Parsed]) -> set[Meeting]:
    """Return the combinations that the workers of these answers judged in other answers."""
    targets = set()
    for answers in parsed.values():
        for question, _ in answers:
            targets.add(question.target_id)
    responses = Response.objects.filter(
        assignment__worker__in={answer.worker_id for answer in parsed},
        question__target__in=targets,
    )
    responses = responses.exclude(assignment__in=[answer.pk for answer in parsed])
    of_question = ("question__target", "question__interface", "question__round")
    return set(responses.values_list("assignment__worker", *of_question))


def _meeting(worker: int, target: int, question: Question) -> Meeting:
    return worker, target, question.interface, question.round


def _mark_answered(questions: Collection[Question]) -> None:
    """Mark those locked questions as answered that have all wanted answers."""
    if questions:
        # How many answers each question can get, over all of its HITs
        pairs = HIT.questions.through.objects.filter(question__in=questions)
        pairs = pairs.exclude(hit__status__in=PUT_AWAY)
        places: Counter[int] = Counter()
        for question, n in pairs.values_list("question", "hit__max_assignments"):
            places[question] += n
        done = count_usable_answers(questions)
        full = [
            question.pk
            for question in questions
            if done[question.pk] >= min(places[question.pk], question.answers_wanted)
        ]
        Question.objects.filter(pk__in=full).move("answered")


def count_usable_answers(questions: Collection[Question]) -> Counter[int]:
    """Return how many answers each question has that may count. On a marketplace, a second answer
    by the same person does not count; another one is bought instead (`reconcile.py`).
    """
    pairs = HIT.questions.through.objects.filter(
        question__in=questions, hit__assignments__status__in=DONE
    )
    pairs = pairs.exclude(hit__status__in=PUT_AWAY)
    twice = set(repeated_judgments(questions).values_list("question", "assignment"))
    rows = set(pairs.values_list("question", "hit__assignments")) - twice
    return Counter(question for question, _ in rows)


def repeated_judgments(questions: Collection[Question] | QuerySet[Question]) -> QuerySet[Response]:
    """Return the responses of marketplace workers who had judged the question before."""
    responses = Response.objects.filter(question__in=questions, met_before=True)
    return responses.exclude(assignment__hit__platform__in=local_platform_names())
