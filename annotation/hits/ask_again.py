"""Asks settled questions again whose answers were excluded, as far as the money reaches; and takes
that back.

All is done for many questions at once: an admin waits for it, and their locks are held meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal

from django.db.models import F, QuerySet

from annotation.budget.promises import committed, one_publisher
from annotation.models import ANSWERED, HIT, Assignment, Question, Response
from annotation.platforms.registry import local_names
from annotation.questions.limits import (
    MOST_IF_UNSURE,
    most_asked,
    most_given,
    promised,
    somebody_else,
)
from kbpo import clock
from kbpo.money.purpose import Purpose
from kbpo.money.spend import balance
from kbpo.queue import nudge
from kbpo.tracks.models import Track


def ask_again(questions: Sequence[Question], left: Mapping[int, Sequence[Response]]) -> int:
    """Return how many of these locked questions went back to people, in their order, as far as the
    money reaches; `left` are each one's responses that still count.
    """
    money: dict[Purpose, Decimal] = {}
    answers_of = answers_to(questions)
    offered: dict[Question, int] = {}
    for question in sorted(questions, key=lambda question: (question.order, question.pk)):
        if question.payer not in money:
            money[question.payer] = _free(question.payer)
        counting = len({response.assignment_id for response in left.get(question.pk, ())})
        if places := _places(question, counting, answers_of[question.pk], money[question.payer]):
            offered[question] = places
            money[question.payer] -= question.price * places
    if offered:
        _offer(offered, answers_of)
        nudge("publish")
    return len(offered)


class LockHeld(Exception):
    """Somebody else is promising a payer's money at this moment: whoever holds questions must not
    wait for that.
    """


def ask_one_more(question: Question, free: dict[Purpose, Decimal]) -> bool:
    """Return whether an answered question goes back to one more person. The money of a third person
    is kept for it; beyond that fewer than five answered, somebody else may, and the money reaches.
    The caller holds the question's lock, and keeps for each payer what is `free` of its money: that
    is counted once in a transaction. Raises LockHeld.
    """
    if question.answers_most == question.answers_wanted:
        if question.answers_wanted >= most_asked(question) or not somebody_else(question):
            return False
        if question.payer not in free:
            if not one_publisher(question.payer, wait=False):
                raise LockHeld
            free[question.payer] = _free(question.payer)
        if free[question.payer] < question.price:
            return False
        free[question.payer] -= question.price
    _ask_for_one(question)
    question.move("published", "People are divided: one more is asked.", asked_again=False)
    nudge("publish")
    return True


def _ask_for_one(question: Question) -> None:
    """Ask for one more answer to a locked question, in a HIT of its own, which is published like
    any other: a platform may already have closed the first.
    """
    question.answers_wanted += 1
    question.save(update_fields=["answers_wanted"])
    hit = HIT.objects.create(
        status="intent",
        track=question.track,
        platform=question.track.platform,
        order=question.order,
        max_assignments=1,
        reward=question.reward,
    )
    hit.questions.add(question)


def unreplaced(worker: int) -> int:
    """Return how many questions would be left with fewer answers than their track promises, for
    want of money, if a worker's answers did not count; what nobody can be asked again is not
    counted.
    """
    answered = Question.objects.filter(
        status="settled", responses__assignment__worker=worker, responses__counts=True
    )
    questions = list(answered.select_related("track", "target").distinct().order_by("order", "pk"))
    responses = Response.objects.filter(question__in=questions, counts=True)
    of_others = responses.exclude(assignment__worker=worker).values_list("question", "assignment")
    left = Counter(question for question, _ in set(of_others))
    answers_of = answers_to(questions)
    money: dict[Purpose, Decimal] = {}
    lacking = 0
    for question in questions:
        wanted = _promised(question, left[question.pk], answers_of[question.pk])
        if question.payer not in money:
            money[question.payer] = _free(question.payer)
        if question.price * wanted > money[question.payer]:
            lacking += 1
        else:
            money[question.payer] -= question.price * wanted
    return lacking


def _free(payer: Purpose) -> Decimal:
    """Return what a payer has set aside and not promised yet."""
    return balance(purpose=payer).open - committed(payer)


def answers_to(questions: Collection[Question]) -> Counter[int]:
    """Return how many answers each question was given, whether or not they count; not those whose
    pay was refused.
    """
    pairs = HIT.questions.through.objects.filter(
        question__in=questions, hit__assignments__status__in=ANSWERED
    )
    return Counter(pk for pk, _ in set(pairs.values_list("question", "hit__assignments")))


def first_places(questions: Collection[Question]) -> dict[int, int]:
    """Return how many answers each question was to have when it first went out: the places of its
    first HIT.
    """
    pairs = HIT.questions.through.objects.filter(question__in=questions).order_by("-hit_id")
    return dict(pairs.values_list("question", "hit__max_assignments"))


def _places(question: Question, left: int, n_answers: int, money: Decimal) -> int:
    """Return how many more may answer a question: as many as it lacks of what its track promises,
    and one where people are divided; none of a whole document, on a closed track, beyond the cap,
    or without the money.
    """
    wanted = _promised(question, left, n_answers, least=1)
    return min(wanted, int(money / question.price)) if question.price else wanted


def _promised(question: Question, left: int, n_answers: int, *, least: int = 0) -> int:
    """Return how many answers a question lacks of what its track promises, if it can be asked."""
    if (
        question.target.kind == "document"
        or question.track.status == Track.Status.CLOSED
        or left >= MOST_IF_UNSURE
    ):
        return 0
    lacks = max(least, promised(question) - left)
    return max(0, min(lacks, most_given(question) - n_answers))


def _offer(offered: Mapping[Question, int], answers_of: Mapping[int, int]) -> None:
    """Publish locked questions again with so many places, each in a HIT of its own. Free places of
    their old HITs stay closed.
    """
    old = HIT.objects.filter(
        questions__in=list(offered), status="closed", platform__in=local_names()
    )
    HIT.objects.filter(pk__in=_locked(old)).update(status="expired")
    made = HIT.objects.bulk_create(
        HIT(
            status="intent",
            track=question.track,
            platform=question.track.platform,
            order=question.order,
            max_assignments=places,
            reward=question.reward,
        )
        for question, places in offered.items()
    )
    through = HIT.questions.through
    through.objects.bulk_create(
        through(hit_id=hit.pk, question_id=question.pk)
        for hit, question in zip(made, offered, strict=True)
    )
    for question, places in offered.items():
        question.answers_wanted = answers_of[question.pk] + places
    Question.objects.bulk_update(offered, ["answers_wanted"])
    Question.objects.filter(pk__in=[question.pk for question in offered]).move(
        "published", "Answers to it were excluded: more are asked for.", asked_again=True
    )


def want_one_less(questions: Collection[Question], hit: HIT) -> None:
    """Lower by one the answers wanted of those locked questions that were asked again and lost an
    answer of an old HIT to a rejection. Its place stays closed, so the old number could never be
    reached.
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


def take_back(questions: Collection[Question]) -> int:
    """Return how many of these locked questions nobody need answer any more, since their answers
    count again: their places are shut, and they are settled next. What somebody has in hand stays
    open, and its answers are bought.
    """
    hits = _locked(HIT.objects.filter(questions__in=list(questions), status__in=["intent", "open"]))
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
    answers_of = answers_to(free)
    for question in free:
        question.answers_wanted = answers_of[question.pk]
    Question.objects.bulk_update(free, ["answers_wanted"])
    Question.objects.filter(pk__in=[question.pk for question in free]).move("answered")
    if free:
        nudge("settle")
    return len(free)


def use_again(questions: Collection[Question]) -> int:
    """Return how many of these locked questions, which were given up, have answers that count now:
    they are settled next.
    """
    answered_now = Question.objects.filter(
        pk__in=[question.pk for question in questions], responses__counts=True
    )
    due = Question.objects.filter(
        pk__in=list(answered_now.values_list("pk", flat=True)), status="unanswered"
    )
    n = due.update(next_try_at=clock.now())
    if n:
        nudge("settle")
    return n


def _locked(hits: QuerySet[HIT]) -> list[int]:
    """Return the HITs, locked after their questions in the order of their numbers, as everywhere
    (annotation/README.md).
    """
    locked = (
        HIT.objects.select_for_update(of=("self",)).filter(pk__in=hits.values("pk")).order_by("pk")
    )
    return list(locked.values_list("pk", flat=True))
