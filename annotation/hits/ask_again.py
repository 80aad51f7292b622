"""Publishes settled questions again whose answers were excluded, as far as the money suffices, and
undoes that.

Many questions are handled at once, since an admin waits for the result and locks are held
meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal

from django.db.models import F, QuerySet

from annotation.budget.promises import lock_payer, unpromised_money
from annotation.models import ANSWERED, HIT, Assignment, Question, Response
from annotation.platforms.registry import local_platform_names
from annotation.questions.limits import (
    MOST_IF_UNSURE,
    has_other_worker,
    max_answers,
    max_people,
    promised_answers,
)
from kbpo import clock
from kbpo.money.models import Purpose
from kbpo.queue import wake_step
from kbpo.tracks.models import Track


def ask_again(
    questions: Sequence[Question], remaining_responses: Mapping[int, Sequence[Response]]
) -> int:
    """Publish locked questions again, in their order, as far as the money suffices, and return
    their number. `remaining_responses` maps each question to its responses that still count.
    """
    money: dict[Purpose, Decimal] = {}
    answers_of = count_answers(questions)
    offered: dict[Question, int] = {}
    for question in sorted(questions, key=lambda question: (question.order, question.pk)):
        if question.payer not in money:
            money[question.payer] = unpromised_money(question.payer)
        counting = len(
            {response.assignment_id for response in remaining_responses.get(question.pk, ())}
        )
        places = _count_missing_answers(question, counting, answers_of[question.pk], minimum=1)
        if question.price:
            places = min(places, int(money[question.payer] / question.price))
        if places:
            offered[question] = places
            money[question.payer] -= question.price * places
    if offered:
        _publish_again(offered, answers_of)
        wake_step("publish")
    return len(offered)


class LockHeld(Exception):
    """Raised when another transaction holds the lock of a payer. A transaction that holds locks of
    questions must not wait for it.
    """


def ask_one_more(question: Question, free: dict[Purpose, Decimal]) -> bool:
    """Publish an answered question for one more person, and return whether that was possible. The
    money of a third person is reserved already. Beyond that, fewer than five people may have
    answered, another worker must be available, and the money must suffice. The caller holds the
    lock of the question; `free` caches the free money of each payer within a transaction. Raises
    LockHeld.
    """
    if question.max_paid_answers == question.answers_wanted:
        if question.answers_wanted >= max_people(question) or not has_other_worker(question):
            return False
        if question.payer not in free:
            if not lock_payer(question.payer, wait=False):
                raise LockHeld
            free[question.payer] = unpromised_money(question.payer)
        if free[question.payer] < question.price:
            return False
        free[question.payer] -= question.price
    # In a HIT of its own: the platform may already have closed the first one.
    _add_hits({question: 1})
    question.answers_wanted += 1
    question.save(update_fields=["answers_wanted"])
    question.move("published", "People are divided: one more is asked.", asked_again=False)
    wake_step("publish")
    return True


def count_questions_left_short(worker: int) -> int:
    """Return how many questions would have fewer answers than their track promises, for lack of
    money to replace them, if a worker's answers did not count.
    """
    answered = Question.objects.filter(
        status="settled", responses__assignment__worker=worker, responses__counts=True
    )
    questions = list(answered.select_related("track", "target").distinct().order_by("order", "pk"))
    responses = Response.objects.filter(question__in=questions, counts=True)
    of_others = responses.exclude(assignment__worker=worker).values_list("question", "assignment")
    left = Counter(question for question, _ in set(of_others))
    answers_of = count_answers(questions)
    money: dict[Purpose, Decimal] = {}
    lacking = 0
    for question in questions:
        wanted = _count_missing_answers(question, left[question.pk], answers_of[question.pk])
        if question.payer not in money:
            money[question.payer] = unpromised_money(question.payer)
        if question.price * wanted > money[question.payer]:
            lacking += 1
        else:
            money[question.payer] -= question.price * wanted
    return lacking


def count_answers(questions: Collection[Question]) -> Counter[int]:
    """Return the number of answers to each question, whether or not they count; rejected ones are
    left out.
    """
    pairs = HIT.questions.through.objects.filter(
        question__in=questions, hit__assignments__status__in=ANSWERED
    )
    return Counter(pk for pk, _ in set(pairs.values_list("question", "hit__assignments")))


def initial_places(questions: Collection[Question]) -> dict[int, int]:
    """Return question -> number of answers wanted when it was first published."""
    pairs = HIT.questions.through.objects.filter(question__in=questions).order_by("-hit_id")
    return dict(pairs.values_list("question", "hit__max_assignments"))


def _count_missing_answers(
    question: Question, n_remaining: int, n_answers: int, *, minimum: int = 0
) -> int:
    """Return how many answers a question lacks; 0 for whole documents, on closed tracks, and if the
    greatest number of answers was reached.
    """
    if (
        question.target.kind == "document"
        or question.track.status == Track.Status.CLOSED
        or n_remaining >= MOST_IF_UNSURE
    ):
        return 0
    lacks = max(minimum, promised_answers(question) - n_remaining)
    return max(0, min(lacks, max_answers(question) - n_answers))


def _publish_again(
    places_by_question: Mapping[Question, int], answers_of: Mapping[int, int]
) -> None:
    """Publish locked questions again with the given numbers of places, each in a HIT of its own.
    Free places of their old HITs stay closed.
    """
    old = HIT.objects.filter(
        questions__in=list(places_by_question), status="closed", platform__in=local_platform_names()
    )
    HIT.objects.filter(pk__in=lock_hits(old)).update(status="expired")
    _add_hits(places_by_question)
    for question, places in places_by_question.items():
        question.answers_wanted = answers_of[question.pk] + places
    Question.objects.bulk_update(places_by_question, ["answers_wanted"])
    Question.objects.filter(pk__in=[question.pk for question in places_by_question]).move(
        "published", "Answers to it were excluded: more are asked for.", asked_again=True
    )


def _add_hits(places_of: Mapping[Question, int]) -> None:
    """Store a HIT with the status intent for each of these questions, to be published with the
    given number of places.
    """
    made = HIT.objects.bulk_create(
        HIT(
            status="intent",
            track=question.track,
            platform=question.track.platform,
            order=question.order,
            max_assignments=places,
            reward=question.reward,
        )
        for question, places in places_of.items()
    )
    through = HIT.questions.through
    through.objects.bulk_create(
        through(hit_id=hit.pk, question_id=question.pk)
        for hit, question in zip(made, places_of, strict=True)
    )


def lower_answers_wanted(questions: Collection[Question], hit: HIT) -> None:
    """Reduce the number of wanted answers of locked questions that were asked again, if an answer
    in their old, closed HIT was rejected.
    """
    if HIT.objects.filter(pk=hit.pk, status__in=["intent", "open"]).exists():
        return
    asked_again = [
        question.pk
        for question in questions
        if question.status == "published" and question.asked_again
    ]
    Question.objects.filter(pk__in=asked_again, answers_wanted__gt=1).update(
        answers_wanted=F("answers_wanted") - 1
    )


def close_surplus_places(questions: Collection[Question]) -> int:
    """Close the places of those locked questions whose answers count again, so that they are
    settled next, and return their number. Questions that are leased stay open.
    """
    hits = lock_hits(
        HIT.objects.filter(questions__in=list(questions), status__in=["intent", "open"])
    )
    in_hand = Assignment.objects.filter(hit__in=hits, status__in=["leased", "submitted"])
    held = set(in_hand.values_list("hit__questions", flat=True))
    free = [question for question in questions if question.pk not in held]
    needed = Question.objects.filter(hits__in=hits, status="published").exclude(
        pk__in=[question.pk for question in free]
    )
    shut = HIT.objects.filter(pk__in=hits).exclude(questions__in=needed)
    HIT.objects.filter(pk__in=list(shut.values_list("pk", flat=True))).update(
        status="closed", status_since=clock.now()
    )
    answers_of = count_answers(free)
    for question in free:
        question.answers_wanted = answers_of[question.pk]
    Question.objects.bulk_update(free, ["answers_wanted"])
    return Question.objects.filter(pk__in=[question.pk for question in free]).move("answered")


def make_given_up_questions_due(questions: Collection[Question]) -> int:
    """Make due, among these locked questions, those that ended unanswered and now have answers that
    count. Return their number.
    """
    answered = Question.objects.filter(
        pk__in=[question.pk for question in questions], responses__counts=True
    )
    due = Question.objects.filter(pk__in=answered.values("pk"), status="unanswered")
    return due.update(next_try_at=clock.now())


def lock_hits(hits: QuerySet[HIT]) -> list[int]:
    """Return the ids of these HITs, locked in primary-key order after their questions."""
    locked = (
        HIT.objects.select_for_update(of=("self",)).filter(pk__in=hits.values("pk")).order_by("pk")
    )
    return list(locked.values_list("pk", flat=True))
