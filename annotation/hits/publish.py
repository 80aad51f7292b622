"""Step 6: publishes pending questions as HITs, in order, as far as their reservations suffice.

The row of a HIT is committed as an intent before its platform is called; the call carries the token
of the row, and its outcome is stored in another transaction. The platform is never called inside a
transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from decimal import Decimal

from django.db import connection, transaction
from django.db.models import F, QuerySet, Sum, Value
from django.db.models.functions import Least

from annotation.budget.halts import halt_of_payer, halted_hits
from annotation.budget.promises import (
    committed_money,
    lock_payer,
    money_left_to_publish,
    payers_in_lock_order,
)
from annotation.interfaces.registry import interface_by_name
from annotation.models import HIT, MOST_PRICE, Question
from annotation.platforms.base import Advert, PlatformDown, Refused, UnknownOutcome, usable_account
from annotation.platforms.registry import local_platform_names, platform_by_name
from annotation.quality.gold import pick_gold_question
from annotation.workers.intake import tutorial_reward
from annotation.workers.teach import tutorial_notice, tutorials
from kbpo import clock
from kbpo.money.models import Purpose
from kbpo.money.spend import ZERO, balance
from kbpo.queue import BACKOFF, MAX_ATTEMPTS, wake_step

log = logging.getLogger(__name__)

BATCH = 500
MOST_COUNTED, MOST_DOUBLINGS = 1000, 9
"""Up to how many attempts are counted to publish a HIT whose platform does not respond, and how
often the pause between them doubles: up to about forty minutes."""

CANCEL = """
    UPDATE annotation_question q
    SET status = 'cancelled', status_since = now(),
        reason = 'The submission that would have paid for it was withdrawn.'
    WHERE q.id IN (
        SELECT o.id FROM annotation_question o JOIN submissions_submission s
            ON o.payer_kind = 'submission' AND o.payer_number = s.id
        WHERE s.status IN ('withdrawn', 'expired', 'refused')
            AND o.status IN ('waiting', 'published')
          AND NOT EXISTS (SELECT 1 FROM annotation_hit_questions hq JOIN annotation_assignment a
              ON a.hit_id = hq.hit_id
                          WHERE hq.question_id = o.id
                            AND a.status IN ('leased', 'submitted', 'accepted', 'approved', 'paid'))
        FOR UPDATE OF o SKIP LOCKED)
"""
"""Selects questions whose payer is gone and that nobody has started to answer, to cancel them.
Another payer that needs them asks them again. Leased questions are left to a later tick."""
STEP, SLACK, TO_LEARN = 600, 15, 3
"""A worker at a marketplace gets the expected time multiplied by a slack, plus the time of a
tutorial, rounded up to steps of ten minutes, so that there are few types of HIT"""


def tick() -> int:
    """Cancel questions whose submission was withdrawn, then make HITs and publish them. Return how
    many questions were cancelled, and how many HITs were made or published.
    """
    with connection.cursor() as cursor:
        cursor.execute(CANCEL)
        cancelled = int(cursor.rowcount)
    made = 0
    waiting = Question.objects.filter(status="waiting", next_try_at__lte=clock.now())
    for payer in payers_in_lock_order(waiting):
        while batch := _store_next_intents(payer):
            made += batch
    return cancelled + made + _publish_intents()


@transaction.atomic
def _store_next_intents(payer: Purpose) -> int:
    """Store HITs with the status intent for the payer's next questions, in their order, as far as
    the money suffices. Return the number of questions.
    """
    if not lock_payer(payer, wait=False):
        return 0
    due = Question.objects.filter(
        status="waiting", next_try_at__lte=clock.now(), **payer.filter_condition("payer")
    )
    if (halt := halt_of_payer(due, payer)) is not None:
        _postpone_payer(payer, f"Publishing is stopped: {halt.why}")
        return 0
    if (foremost := due.order_by("order", "pk").select_related("track").first()) is None:
        return 0
    room = money_left_to_publish(foremost.track)
    promised = committed_money(payer)
    left = balance(purpose=payer).open - promised
    # What is left beyond the usual number of people for all of these questions
    usual = Least(MOST_PRICE, F("price") * Value(foremost.track.workers_per_question))
    spare = left - (due.aggregate(sum=Sum(usual))["sum"] or ZERO)
    chosen: list[Question] = []
    for question in _lock_next_questions(due):
        spare -= _cost_of_extra_people(question, spare)
        question.asked_again = False  # as the first time, with money for a third person
        cost = question.price * question.max_paid_answers
        if room is not None and cost > room:
            why = f"${max(room, ZERO)} is left under the track's cap, which was lowered."
            _postpone_payer(payer, why)
            break
        if cost > left:
            why = f"${max(left, ZERO)} of the reservation is left; the next question needs ${cost}."
            if not chosen and not promised and payer.kind == "submission":
                # Otherwise the submission would wait for ever, as its reservation is closed.
                for unpayable in due.select_for_update(of=("self",)).order_by("pk"):
                    unpayable.move("unanswered", why)
                wake_step("settle")
                return 0
            _postpone_payer(payer, why)
            break
        left -= cost
        room = room - cost if room is not None else None
        chosen.append(question)
    _store_intents(chosen)
    return len(chosen)


def _cost_of_extra_people(question: Question, spare: Decimal) -> Decimal:
    """Return what a question costs beyond the usual number of people of its track. If that exceeds
    `spare`, the additional people are not asked, since the usual number for other questions has
    priority.
    """
    usual = question.track.workers_per_question
    more = question.price * max(0, question.answers_wanted - usual)
    if more <= max(spare, ZERO):
        return more
    question.answers_wanted = usual
    question.save(update_fields=["answers_wanted"])
    return ZERO


def _lock_next_questions(due: QuerySet[Question]) -> list[Question]:
    """Return the next of these questions in publishing order, locked in primary-key order."""
    foremost = list(due.order_by("order", "pk").values_list("pk", flat=True)[:BATCH])
    locked = due.filter(pk__in=foremost).select_for_update(of=("self",)).order_by("pk")
    return sorted(locked.select_related("track", "target"), key=lambda row: (row.order, row.pk))


def _postpone_payer(payer: Purpose, reason: str) -> None:
    waiting = Question.objects.filter(status="waiting", **payer.filter_condition("payer"))
    waiting.exclude(reason=reason).update(reason=reason)


def _store_intents(questions: list[Question]) -> None:
    """Store HITs as intents, and mark their questions as published, so that their money is
    committed.
    """
    made = [(hit, group) for group in _group_questions(questions) for hit in _build_hits(group)]
    HIT.objects.bulk_create([hit for hit, _ in made])
    through = HIT.questions.through
    through.objects.bulk_create(
        [
            through(hit_id=hit.pk, question_id=question.pk)
            for hit, group in made
            for question in group
        ]
    )
    for hit, group in made:
        # On our own pages gold is leased by itself; a marketplace gets it among the others.
        gold = None
        if hit.platform not in local_platform_names():
            gold = pick_gold_question(group, hit.max_assignments)
        if gold is not None:
            hit.questions.add(gold)
            hit.reward += gold.reward
            hit.save(update_fields=["reward"])
    _dispose_refused(questions)
    Question.objects.filter(pk__in=[question.pk for question in questions]).update(
        status="published",
        status_since=clock.now(),
        attempts=0,
        reason="",
        asked_again=False,
        ended_by="",
    )


def _dispose_refused(questions: list[Question]) -> None:
    """Mark HITs that their platform refused as disposed, once their questions are published in
    others. A HIT that another transaction holds is skipped: whoever retries it sees that its
    questions are published.
    """
    refused = HIT.objects.filter(
        status="failed", pk__in=HIT.objects.filter(questions__in=questions).values("pk")
    )
    locked = refused.select_for_update(skip_locked=True, of=("self",))
    pks = list(locked.values_list("pk", flat=True))
    never_there = HIT.objects.filter(pk__in=pks, external_id="")
    never_there.update(platform_status="gone")
    HIT.objects.filter(pk__in=pks).update(status="disposed", status_since=clock.now())


def _group_questions(questions: list[Question]) -> list[list[Question]]:
    """Group the questions of one document and interface into HITs, as many in each as the platform
    takes.
    """
    groups: list[list[Question]] = []
    filling: dict[tuple[object, ...], list[Question]] = {}
    for question in questions:
        most = platform_by_name(question.track.platform).capabilities.questions_per_hit
        place = question.track_id, question.target.document_id
        like = (*place, question.interface, question.answers_wanted)
        group = filling.get(like)
        if group is None or len(group) >= most:
            group = filling[like] = []
            groups.append(group)
        group.append(question)
    return groups


def _build_hits(group: list[Question]) -> list[HIT]:
    """Return a HIT with these questions, priced by their sum, and further HITs if more answers are
    wanted than one HIT may have.
    """
    foremost, name = group[0], group[0].track.platform
    most, left = platform_by_name(name).capabilities.max_assignments, group[0].answers_wanted
    hits = []
    while left > 0:
        hits.append(
            HIT(
                status="intent",
                track=foremost.track,
                platform=name,
                order=min(question.order for question in group),
                max_assignments=min(most, left),
                reward=sum((question.reward for question in group), ZERO),
            )
        )
        left -= most
    return hits


def _publish_intents() -> int:
    """Publish the HITs that have the status intent, and return their number. On our own pages all
    are published at once, elsewhere with one call each.
    """
    up = 0
    for name in HIT.objects.filter(status="intent").values_list("platform", flat=True).distinct():
        if name in local_platform_names():
            up += HIT.objects.filter(status="intent", platform=name).update(
                status="open", status_since=clock.now()
            )
        else:
            up += _publish_on_marketplace(name)
    return up


def _publish_on_marketplace(name: str) -> int:
    platform, up = platform_by_name(name), 0
    try:
        endpoint = usable_account(platform.account()).endpoint
    except PlatformDown as down:
        HIT.objects.filter(platform=name, status="intent").exclude(reason=str(down)).update(
            reason=str(down)
        )
        return 0
    while (hit := _claim_hit(name, endpoint)) is not None:
        try:
            external_id = platform.publish(hit, hit_advert(hit))
        except (PlatformDown, UnknownOutcome) as error:  # the token makes a repeat of publish safe
            HIT.objects.filter(pk=hit.pk).update(reason=str(error) or type(error).__name__)
        except Refused as no:
            _give_up_refused_hit(hit, str(no))
        except Exception as error:
            log.exception("HIT %s could not be put up on %s", hit.pk, name)
            HIT.objects.filter(pk=hit.pk).update(
                reason=f"An internal error ({type(error).__name__}). It is logged."
            )
        else:
            up += _store_published_id(hit, external_id)
    return up


def hit_advert(hit: HIT) -> Advert:
    """Return the description of a HIT for another platform; its questions share an interface."""
    questions = list(hit.questions.all())
    interface = questions[0].interface
    tutorial = tutorials().get(interface)
    work_seconds = sum(question.seconds for question in questions)
    seconds = SLACK * work_seconds
    if tutorial is not None and platform_by_name(hit.platform).capabilities.teaches_in_frame:
        seconds += TO_LEARN * tutorial.seconds
    return Advert(
        title=interface_by_name(interface).terms.offered_as,
        questions=len(questions),
        work_seconds=work_seconds,
        lease_seconds=STEP * max(1, -(-seconds // STEP)),
        before=hit_notice(hit, questions),
    )


def hit_notice(hit: HIT, questions: Sequence[Question]) -> str:
    """Return what a worker reads before accepting a HIT: the planned hourly rate, and the tutorial
    and its pay.
    """
    seconds = sum(question.seconds for question in questions)
    hourly = f"About ${hit.reward * 3600 / seconds:.0f} an hour." if seconds else ""
    capabilities = platform_by_name(hit.platform).capabilities
    if not (capabilities.teaches_in_frame or capabilities.admits):
        return hourly
    tutorial = tutorial_notice(questions[0].interface, tutorial_reward(hit.track))
    return f"{hourly} {tutorial}".strip()


@transaction.atomic
def _store_published_id(hit: HIT, external_id: str) -> int:
    """Store the id of a published HIT, and return 1 if the HIT is open now. A HIT that is no longer
    wanted keeps the id, so that it can be taken down.
    """
    row = HIT.objects.select_for_update(of=("self",)).get(pk=hit.pk)
    if row.status != "intent":
        HIT.objects.filter(pk=row.pk).update(external_id=external_id)
        return 0
    row.move("open", external_id=external_id)
    return 1


@transaction.atomic
def _claim_hit(platform: str, endpoint: str) -> HIT | None:
    """Claim a HIT for the next attempt to publish it, so that no other process tries, and return
    it. Its endpoint is that of the first attempt.
    """
    hits = HIT.objects.select_for_update(skip_locked=True, of=("self",))
    now = clock.now()
    due = hits.filter(status="intent", platform=platform, next_try_at__lte=now).exclude(
        pk__in=halted_hits()
    )
    hit = due.order_by("order").first()
    if hit is not None:
        hit.attempts = min(hit.attempts + 1, MOST_COUNTED)
        hit.next_try_at = now + BACKOFF * 2 ** min(hit.attempts, MOST_DOUBLINGS)
        if hit.called_at is None:
            hit.called_at, hit.endpoint = now, endpoint
        hit.save(update_fields=["attempts", "next_try_at", "called_at", "endpoint"])
    return hit


@transaction.atomic
def _give_up_refused_hit(hit: HIT, sentence: str) -> None:
    """End a HIT that its platform refused, and make its questions pending again. Only a refusal
    ends a HIT: while the outcome is unknown the HIT stays an intent, since a second one might
    publish the questions twice. Questions in another HIT stay published.
    """
    if hit.attempts < MAX_ATTEMPTS:
        HIT.objects.filter(pk=hit.pk).update(reason=sentence)
        return
    # Before the HIT: see annotation/README.md.
    asked = list(hit.questions.select_for_update(of=("self",)).order_by("pk"))
    row = HIT.objects.select_for_update(of=("self",)).get(pk=hit.pk)
    if row.status != "intent":
        return
    row.move("failed", sentence)
    later = clock.now() + BACKOFF * 2**8  # after about twenty minutes it waits for a HIT again
    siblings = HIT.objects.filter(status__in=["intent", "open"]).exclude(pk=row.pk)
    siblings = siblings.exclude(platform_status="gone")
    elsewhere = set(siblings.filter(questions__in=asked).values_list("questions", flat=True))
    for question in asked:
        if question.status != "published" or question.pk in elsewhere:
            continue
        if question.responses.filter(counts=True).exists():
            question.move("answered")
            wake_step("settle")
        else:
            question.move("waiting", sentence)
            Question.objects.filter(pk=question.pk).update(next_try_at=later)
