"""Step 6: waiting questions go out as HITs, in order, as far as the money that was reserved for them reaches.

Intent first: the HIT's row is committed before its platform is called, the call carries the row's token, and its
outcome is recorded in a transaction of its own. The platform is never called inside a transaction.
"""

from __future__ import annotations

import logging
from decimal import Decimal

from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from annotation.models import HIT, Halt, Question
from annotation.platforms.base import PlatformDown, UnknownOutcome
from annotation.platforms.registry import platform_of
from kbpo.money.spend import ZERO, balance
from kbpo.queue import BACKOFF, MAX_ATTEMPTS, nudge
from kbpo.tracks.models import Track

log = logging.getLogger(__name__)

BATCH = 500

COMMITTED = """
    SELECT coalesce(sum(price * wanted), 0) FROM (
        SELECT q.price,
               CASE WHEN q.status = 'published' AND h.status IN ('intent', 'open', 'closed') THEN greatest(
                   h.max_assignments - count(a.id) FILTER (WHERE a.status IN ('approved', 'paid')),
                   count(a.id) FILTER (WHERE a.status IN ('submitted', 'accepted')))
               ELSE count(a.id) FILTER (WHERE a.status IN ('leased', 'submitted', 'accepted')) END AS wanted
        FROM annotation_question q
        JOIN annotation_hit_questions hq ON hq.question_id = q.id
        JOIN annotation_hit h ON h.id = hq.hit_id
        LEFT JOIN annotation_assignment a ON a.hit_id = h.id
        WHERE q.payer = %s
        GROUP BY q.id, h.id
    ) AS each_hit
"""
"""What published questions of a payer may still cost: their open places, and the answers that are not yet paid for."""


CANCEL = """
    UPDATE annotation_question q
    SET status = 'cancelled', status_since = now(), reason = 'The submission that would have paid for it was withdrawn.'
    FROM submissions_submission s
    WHERE q.payer = 'submission:' || s.id AND s.status IN ('withdrawn', 'expired', 'refused')
      AND q.status IN ('waiting', 'published')
      AND NOT EXISTS (SELECT 1 FROM annotation_hit_questions hq JOIN annotation_assignment a ON a.hit_id = hq.hit_id
                      WHERE hq.question_id = q.id
                        AND a.status IN ('leased', 'submitted', 'accepted', 'approved', 'paid'))
"""
"""Questions whose payer is gone and that nobody has begun to answer; whoever else needs them asks anew."""


def tick() -> int:
    """How many questions were cancelled, and HITs made or put up."""
    with connection.cursor() as cursor:
        cursor.execute(CANCEL)
        cancelled = int(cursor.rowcount)
    made = sum(_make_hits(payer) for payer in _payers())
    return cancelled + made + _put_up()


def committed(payer: str) -> Decimal:
    """What a payer's published questions may still cost; that much of its reservation must be kept."""
    with connection.cursor() as cursor:
        cursor.execute(COMMITTED, [payer])
        return Decimal(cursor.fetchone()[0])


def _payers() -> list[str]:
    waiting = Question.objects.filter(status="waiting", next_try_at__lte=timezone.now())
    return sorted(waiting.values_list("payer", flat=True).distinct())


def _make_hits(payer: str) -> int:
    made = 0
    while batch := _make_batch(payer):
        made += batch
    return made


@transaction.atomic
def _make_batch(payer: str) -> int:
    """How many intents were committed for the payer's next questions in order."""
    with connection.cursor() as cursor:  # one at a time for each payer, so that no two batches pass its reservation
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtext('annotation.publish'), hashtext(%s))", [payer])
        if not cursor.fetchone()[0]:
            return 0
    due = Question.objects.filter(payer=payer, status="waiting", next_try_at__lte=timezone.now())
    if (halt := halt_of(due, payer)) is not None:
        _wait(payer, f"Publishing is stopped: {halt.why}")
        return 0
    left = balance(purpose=payer).open - committed(payer)
    chosen: list[Question] = []
    rows = due.select_for_update(of=("self",)).select_related("track").order_by("order", "pk")
    for question in rows[:BATCH]:
        cost = question.price * question.answers_wanted
        if cost > left:
            why = f"${max(left, ZERO)} of the reservation is left; the next question needs ${cost}."
            if not chosen and not committed(payer) and payer.startswith("submission:"):
                return _forgo(due, why)
            _wait(payer, why)
            break
        left -= cost
        chosen.append(question)
    _intend(chosen)
    return len(chosen)


def halt_of(questions: QuerySet[Question], payer: str) -> Halt | None:
    """The stop that holds for these questions of a payer, or for their track, if there is one."""
    tracks = Track.objects.filter(questions__in=questions)
    held = Halt.objects.filter(lifted_at=None, payer__in=["", payer])
    return held.filter(Q(track=None) | Q(track__in=tracks)).first()


def _forgo(questions: QuerySet[Question], why: str) -> int:
    """Gives questions up that no money can come for any more: else their submission would wait for them for ever."""
    for question in questions.select_for_update(of=("self",)):
        question.move("given_up", why)
    nudge("settle")
    return 0


def _wait(payer: str, reason: str) -> None:
    Question.objects.filter(payer=payer, status="waiting").exclude(reason=reason).update(reason=reason)


def _intend(questions: list[Question]) -> None:
    """One HIT a question, as an intent; the questions are published from here on: their money is committed."""
    hits = HIT.objects.bulk_create([_hit(question) for question in questions])
    through = HIT.questions.through
    through.objects.bulk_create(
        [through(hit_id=hit.pk, question_id=question.pk) for hit, question in zip(hits, questions, strict=True)]
    )
    Question.objects.filter(pk__in=[question.pk for question in questions]).update(
        status="published", status_since=timezone.now(), attempts=0, reason=""
    )


def _hit(question: Question) -> HIT:
    return HIT(
        status="intent",
        track=question.track,
        platform=question.track.platform,
        order=question.order,
        max_assignments=question.answers_wanted,
        reward=question.reward,
    )


def _put_up() -> int:
    """How many HITs were put up: all at once on a platform of our own, one call at a time on another's."""
    up = 0
    for name in HIT.objects.filter(status="intent").values_list("platform", flat=True).distinct():
        if platform_of(name).local:
            up += HIT.objects.filter(status="intent", platform=name).update(status="open", status_since=timezone.now())
        else:
            up += _put_up_elsewhere(name)
    return up


def _put_up_elsewhere(name: str) -> int:
    platform, up = platform_of(name), 0
    while (hit := _claim(name)) is not None:
        try:
            external_id = platform.publish(hit)
        except (PlatformDown, UnknownOutcome) as error:  # the token makes a repeat of publish safe
            _failed(hit, str(error) or type(error).__name__)
        except Exception as error:
            log.exception("HIT %s could not be put up on %s", hit.pk, name)
            _failed(hit, f"An internal error ({type(error).__name__}). We were told.")
        else:
            with transaction.atomic():
                hit.move("open", external_id=external_id)
            up += 1
    return up


@transaction.atomic
def _claim(platform: str) -> HIT | None:
    """A HIT to be put up, its attempt counted and its next one put off, so that no other worker takes it meanwhile."""
    rows = HIT.objects.select_for_update(skip_locked=True, of=("self",))
    hit = rows.filter(status="intent", platform=platform, next_try_at__lte=timezone.now()).order_by("order").first()
    if hit is not None:
        hit.attempts += 1
        hit.next_try_at = timezone.now() + BACKOFF * 2**hit.attempts
        hit.save(update_fields=["attempts", "next_try_at"])
    return hit


@transaction.atomic
def _failed(hit: HIT, sentence: str) -> None:
    if hit.attempts < MAX_ATTEMPTS:
        HIT.objects.filter(pk=hit.pk).update(reason=sentence)
        return
    hit.move("failed", sentence)
    later = timezone.now() + BACKOFF * 2**8  # about twenty minutes: then it waits for a HIT again
    hit.questions.update(status="waiting", status_since=timezone.now(), reason=sentence, next_try_at=later)
