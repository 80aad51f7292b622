"""Limits how often a question is asked, and finds out whether another worker is available."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from django.contrib.postgres.aggregates import BoolOr
from django.db.models import Exists, OuterRef, Q, QuerySet

from annotation.interfaces.registry import can_ask_third_after_disagreement
from annotation.interfaces.shared.payload import settles_reader_tie
from annotation.models import FIRST, Assignment, Question, Worker
from annotation.platforms.registry import local_platform_names
from kbpo import clock
from kbpo.sampling.models import Sample
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of

MOST_ANSWERS = 9
"""Greatest number of answers to one question; beyond it, a marketplace's fee doubles"""
MOST_IF_UNSURE = 5
"""Greatest number of answers to a question on which people disagree"""
THREE = 3
"""Number of people, of whom the third is asked only if the first two disagree"""
USUAL_SHARE = Decimal("0.15")
"""Share of questions that need a third person if people are right nine times in ten"""
MOST_BESIDE_READERS = 2
"""Greatest number of answers to a question about a tie between readers of a document"""
NOBODY_BESIDE = "Nobody else is there who may answer it and has not read its document."
LATELY = timedelta(days=1)
"""Workers seen within this time are considered available"""


def max_people(question: Question) -> int:
    """Return the greatest number of people who are asked a question after ties."""
    return MOST_BESIDE_READERS if settles_reader_tie(question.payload) else MOST_IF_UNSURE


def max_answers(question: Question) -> int:
    """Return the greatest number of answers to a question, counted or not."""
    return MOST_BESIDE_READERS if settles_reader_tie(question.payload) else MOST_ANSWERS


def promised_answers(question: Question) -> int:
    """Return how many answers a question is promised: as many as its track asks for; two if a third
    is asked only after a disagreement; one if the question settles a tie between readers.
    """
    if question.staged:
        return FIRST
    return 1 if settles_reader_tie(question.payload) else question.track.workers_per_question


def asks_third_after_disagreement(track: Track) -> bool:
    """Return whether a track asks two people first, and a third only after a disagreement."""
    interface = kind_of(track).asking[0].interface
    return track.workers_per_question == THREE and can_ask_third_after_disagreement(interface)


def people_asked_text(track: Track) -> str:
    """Return how many people a track asks, in words."""
    if asks_third_after_disagreement(track):
        return f"{FIRST} people, and a third where they differ"
    n = track.workers_per_question
    return f"{n} {'person' if n == 1 else 'people'}"


def expected_people(track: Track) -> Decimal:
    """Return the expected number of people who answer a question of a track. If a third person is
    asked only where two disagree, this is `FIRST` plus the share of settled questions that needed a
    third person, smoothed by a prior of `USUAL_SHARE` with the weight of 20 questions.
    """
    if not asks_third_after_disagreement(track):
        return Decimal(track.workers_per_question)
    settled = Question.objects.filter(track=track, staged=True, status="settled")
    n, thirds = settled.count(), settled.filter(answers_wanted__gt=FIRST).count()
    return FIRST + (20 * USUAL_SHARE + thirds) / Decimal(20 + n)


def has_other_worker(question: Question) -> bool:
    """Return whether a worker is available who has not met the question. For ties between readers,
    the worker must also not have read its document.
    """
    asked = Question.objects.filter(pk=question.pk)
    if settles_reader_tie(question.payload):
        asked |= reading_questions(question.target.document_id_or_error)
    return has_available_worker(asked, question.track)


def reading_questions(document: int) -> QuerySet[Question]:
    """Return the questions about a whole document."""
    return Question.objects.filter(target__document=document, target__kind="document")


def has_available_worker(questions: QuerySet[Question], track: Track) -> bool:
    """Return whether a worker is available who has met none of these questions. On marketplaces
    this is always true; on our own pages, workers who were seen lately count.
    """
    if track.platform not in local_platform_names():
        return True
    given_back = Q(returned_by=Assignment.ReturnedBy.WORKER)
    met = Assignment.objects.filter(
        ~Q(status="returned") | given_back, hit__questions__in=questions
    )
    here = Worker.objects.filter(platform__in=local_platform_names(), excluded_at=None)
    lately = here.filter(last_seen_at__gt=clock.now() - LATELY)
    return lately.exclude(pk__in=met.values("worker")).exists()


@dataclass(frozen=True)
class TargetsByPayer:
    """Numbers of targets: paid by the submission, paid by others, and paid by the submission and
    used by others.
    """

    own: int
    others: int
    lent: int


def targets_by_payer(submission: Submission) -> TargetsByPayer:
    """Return the numbers of targets for the sample of a submission."""
    targets = Sample.objects.filter(batch__submission=submission).values("target")
    asked = Question.objects.filter(target__in=targets).exclude(status="cancelled")
    elsewhere = Sample.objects.exclude(batch__submission=submission)
    of_target = asked.values("target").annotate(
        own=BoolOr(Q(**submission.purpose.filter_condition("payer"))),
        lent=Exists(elsewhere.filter(target=OuterRef("target"))),
    )
    found = list(of_target.values_list("own", "lent"))
    own = [lent for is_own, lent in found if is_own]
    return TargetsByPayer(own=len(own), others=len(found) - len(own), lent=sum(own))
