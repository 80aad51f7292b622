"""Step 6: waiting questions go out as HITs, in order, as far as the money that was reserved for
them reaches.

Intent first: the HIT's row is committed before its platform is called, the call carries the row's
token, and its outcome is recorded in a transaction of its own. The platform is never called inside
a transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from decimal import Decimal

from django.db import connection, transaction
from django.db.models import F, QuerySet, Sum, Value
from django.db.models.functions import Least

from annotation.budget.halts import halt_of, halted_hits
from annotation.budget.promises import committed, one_publisher, payers_of, room_on
from annotation.interfaces.registry import interface_of
from annotation.models import HIT, MOST_PRICE, Question
from annotation.platforms.base import Advert, PlatformDown, Refused, UnknownOutcome, usable_account
from annotation.platforms.registry import local_names, platform_of
from annotation.quality.gold import gold_among
from annotation.workers.intake import tutorial_reward_on
from annotation.workers.teach import tutorial_notice, tutorials
from kbpo import clock
from kbpo.money.purpose import Purpose
from kbpo.money.spend import ZERO, balance
from kbpo.queue import BACKOFF, MAX_ATTEMPTS, nudge
from kbpo.tracks.models import Track

log = logging.getLogger(__name__)

BATCH = 500
MOST_COUNTED, MOST_DOUBLINGS = 1000, 9
"""How far attempts of a HIT whose platform does not answer are counted, and how often the pause
between them doubles: to about forty minutes."""

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
"""Questions whose payer is gone and that nobody has begun to answer; whoever else needs them
asks anew. Those that somebody holds wait for the next look."""
STEP, SLACK, TO_LEARN = 600, 15, 3
"""At a marketplace a worker has so many times the expected time, and a tutorial's, in steps of ten
minutes: few types of HIT"""


def tick() -> int:
    """Return how many questions were cancelled, and HITs made or put up."""
    with connection.cursor() as cursor:
        cursor.execute(CANCEL)
        cancelled = int(cursor.rowcount)
    made = sum(_make_hits(payer) for payer in _payers())
    return cancelled + made + _put_up()


def _payers() -> list[Purpose]:
    waiting = Question.objects.filter(status="waiting", next_try_at__lte=clock.now())
    return payers_of(waiting)


def _make_hits(payer: Purpose) -> int:
    made = 0
    while batch := _make_batch(payer):
        made += batch
    return made


@transaction.atomic
def _make_batch(payer: Purpose) -> int:
    """Return how many intents were committed for the payer's next questions in order."""
    if not one_publisher(payer, wait=False):
        return 0
    due = Question.objects.filter(
        status="waiting", next_try_at__lte=clock.now(), **payer.at("payer")
    )
    if (halt := halt_of(due, payer)) is not None:
        _wait(payer, f"Publishing is stopped: {halt.why}")
        return 0
    if (foremost := due.order_by("order", "pk").select_related("track").first()) is None:
        return 0
    room = room_on(foremost.track)
    promised = committed(payer)
    left = balance(purpose=payer).open - promised
    spare = left - _firsts(due, foremost.track)
    chosen: list[Question] = []
    for question in _locked(due):
        spare -= _cost_of_extra_people(question, spare)
        question.asked_again = False  # it goes out as at first, with money for a third person
        cost = question.price * question.answers_most
        if room is not None and cost > room:
            _wait(payer, f"${max(room, ZERO)} is left under the track's cap, which was lowered.")
            break
        if cost > left:
            why = f"${max(left, ZERO)} of the reservation is left; the next question needs ${cost}."
            if not chosen and not promised and payer.kind == "submission":
                return _forgo(due, why)
            _wait(payer, why)
            break
        left -= cost
        room = room - cost if room is not None else None
        chosen.append(question)
    _intend(chosen)
    return len(chosen)


def _firsts(due: QuerySet[Question], track: Track) -> Decimal:
    """Return what these questions cost at most if nobody beyond what is usual on their track is
    asked.
    """
    most = Least(MOST_PRICE, F("price") * Value(track.workers_per_question))
    cost: Decimal | None = due.aggregate(sum=Sum(most))["sum"]
    return cost or ZERO


def _cost_of_extra_people(question: Question, spare: Decimal) -> Decimal:
    """Return what a question costs more than one with as many people as its track usually asks.
    Where that is more than `spare`, these people are left out: what others need for the usual comes
    first.
    """
    usual = question.track.workers_per_question
    more = question.price * max(0, question.answers_wanted - usual)
    if more <= max(spare, ZERO):
        return more
    question.answers_wanted = usual
    question.save(update_fields=["answers_wanted"])
    return ZERO


def _locked(due: QuerySet[Question]) -> list[Question]:
    """Return the next of these questions in their order, locked in that of their numbers
    (annotation/README.md).
    """
    foremost = list(due.order_by("order", "pk").values_list("pk", flat=True)[:BATCH])
    locked = (
        due.filter(pk__in=foremost)
        .select_for_update(of=("self",))
        .select_related("track", "target")
    )
    return sorted(locked.order_by("pk"), key=lambda row: (row.order, row.pk))


def _forgo(questions: QuerySet[Question], why: str) -> int:
    """Gives questions up that no money can come for any more: else their submission would wait for
    them for ever.
    """
    for question in questions.select_for_update(of=("self",)).order_by("pk"):
        question.move("unanswered", why)
    nudge("settle")
    return 0


def _wait(payer: Purpose, reason: str) -> None:
    waiting = Question.objects.filter(status="waiting", **payer.at("payer"))
    waiting.exclude(reason=reason).update(reason=reason)


def _intend(questions: list[Question]) -> None:
    """HITs as intents; the questions are published from here on: their money is committed."""
    made = [(hit, group) for group in _groups(questions) for hit in _hits(group)]
    HIT.objects.bulk_create([hit for hit, _ in made])
    through = HIT.questions.through
    through.objects.bulk_create(
        [
            through(hit_id=hit.pk, question_id=question.pk)
            for hit, group in made
            for question in group
        ]
    )
    _mix_gold_in(made)
    _put_refused_away(questions)
    Question.objects.filter(pk__in=[question.pk for question in questions]).update(
        status="published",
        status_since=clock.now(),
        attempts=0,
        reason="",
        asked_again=False,
        ended_by="",
    )


def _mix_gold_in(made: list[tuple[HIT, list[Question]]]) -> None:
    """Adds gold to HITs that go out on a marketplace, and its reward; our own pages deal it out one
    by one.
    """
    for hit, group in made:
        if hit.platform in local_names():
            continue
        if (gold := gold_among(group, hit.max_assignments)) is None:
            continue
        hit.questions.add(gold)
        hit.reward += gold.reward
        hit.save(update_fields=["reward"])


def _put_refused_away(questions: list[Question]) -> None:
    """HITs that their platform refused are put away once their questions go out in others. One that
    somebody holds is left: whoever retries it sees that its questions do not wait any more.
    """
    refused = HIT.objects.filter(
        status="failed", pk__in=HIT.objects.filter(questions__in=questions).values("pk")
    )
    pks = list(
        refused.select_for_update(skip_locked=True, of=("self",)).values_list("pk", flat=True)
    )
    HIT.objects.filter(pk__in=pks, external_id="").update(
        platform_status="gone"
    )  # it never was there
    HIT.objects.filter(pk__in=pks).update(status="disposed", status_since=clock.now())


def _groups(questions: list[Question]) -> list[list[Question]]:
    """Return what goes out together: as many of one document and interface as the platform takes,
    in their order.
    """
    groups: list[list[Question]] = []
    filling: dict[tuple[object, ...], list[Question]] = {}
    for question in questions:
        most = platform_of(question.track.platform).capabilities.questions_per_hit
        like = (
            question.track_id,
            question.target.document_id,
            question.interface,
            question.answers_wanted,
        )
        group = filling.get(like)
        if group is None or len(group) >= most:
            group = filling[like] = []
            groups.append(group)
        group.append(question)
    return groups


def _hits(group: list[Question]) -> list[HIT]:
    """Return the HIT of these questions, priced by their sum, and siblings if more answers are
    wanted than one may take.
    """
    foremost, name = group[0], group[0].track.platform
    most, left = platform_of(name).capabilities.max_assignments, group[0].answers_wanted
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


def _put_up() -> int:
    """Return how many HITs were put up: all at once on a platform of our own, one call at a time on
    another's.
    """
    up = 0
    for name in HIT.objects.filter(status="intent").values_list("platform", flat=True).distinct():
        if name in local_names():
            up += HIT.objects.filter(status="intent", platform=name).update(
                status="open", status_since=clock.now()
            )
        else:
            up += _put_up_elsewhere(name)
    return up


def _put_up_elsewhere(name: str) -> int:
    platform, up = platform_of(name), 0
    try:
        endpoint = usable_account(platform.account()).endpoint
    except PlatformDown as down:
        HIT.objects.filter(platform=name, status="intent").exclude(reason=str(down)).update(
            reason=str(down)
        )
        return 0
    while (hit := _claim(name, endpoint)) is not None:
        try:
            external_id = platform.publish(hit, advert_of(hit))
        except (PlatformDown, UnknownOutcome) as error:  # the token makes a repeat of publish safe
            HIT.objects.filter(pk=hit.pk).update(reason=str(error) or type(error).__name__)
        except Refused as no:
            _failed(hit, str(no))
        except Exception as error:
            log.exception("HIT %s could not be put up on %s", hit.pk, name)
            HIT.objects.filter(pk=hit.pk).update(
                reason=f"An internal error ({type(error).__name__}). We were told."
            )
        else:
            up += _is_up(hit, external_id)
    return up


def advert_of(hit: HIT) -> Advert:
    """Return what a HIT says of itself on another platform: its questions share an interface."""
    questions = list(hit.questions.all())
    interface = questions[0].interface
    tutorial = tutorials().get(interface)
    work_seconds = sum(question.seconds for question in questions)
    seconds = SLACK * work_seconds
    if tutorial is not None and platform_of(hit.platform).capabilities.teaches_in_frame:
        seconds += TO_LEARN * tutorial.seconds
    return Advert(
        title=interface_of(interface).terms.offered_as,
        questions=len(questions),
        work_seconds=work_seconds,
        lease_seconds=STEP * max(1, -(-seconds // STEP)),
        before=before_it(hit, questions),
    )


def before_it(hit: HIT, questions: Sequence[Question]) -> str:
    """Return what is said before anybody accepts a HIT: what an hour of it pays, as planned, and
    what its tutorial is and pays, where one is asked there.
    """
    seconds = sum(question.seconds for question in questions)
    hourly = f"About ${hit.reward * 3600 / seconds:.0f} an hour." if seconds else ""
    capabilities = platform_of(hit.platform).capabilities
    if not (capabilities.teaches_in_frame or capabilities.admits):
        return hourly
    tutorial = tutorial_notice(questions[0].interface, tutorial_reward_on(hit.track))
    return f"{hourly} {tutorial}".strip()


@transaction.atomic
def _is_up(hit: HIT, external_id: str) -> int:
    """1 if the HIT is open now; one that is not wanted any more keeps its new id, and is taken down
    by it.
    """
    row = HIT.objects.select_for_update(of=("self",)).get(pk=hit.pk)
    if row.status != "intent":
        HIT.objects.filter(pk=row.pk).update(external_id=external_id)
        return 0
    row.move("open", external_id=external_id)
    return 1


@transaction.atomic
def _claim(platform: str, endpoint: str) -> HIT | None:
    """Return a HIT to be put up, its attempt counted and its next one put off, so that no other
    worker takes it meanwhile. It belongs to the endpoint where it is first called.
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
def _failed(hit: HIT, sentence: str) -> None:
    """A HIT that its platform refuses is given up, and its questions wait again. Only a refusal
    ends a HIT: while nobody knows whether it is up it stays an intent, since a second one would be
    a HIT twice. Questions that a sibling still brings answers to stay with it; those that have
    answers already are settled with them.
    """
    if hit.attempts < MAX_ATTEMPTS:
        HIT.objects.filter(pk=hit.pk).update(reason=sentence)
        return
    asked = list(
        hit.questions.select_for_update(of=("self",)).order_by("pk")
    )  # before the HIT: see annotation/README.md
    row = HIT.objects.select_for_update(of=("self",)).get(pk=hit.pk)
    if row.status != "intent":
        return
    row.move("failed", sentence)
    later = clock.now() + BACKOFF * 2**8  # about twenty minutes: then it waits for a HIT again
    siblings = (
        HIT.objects.filter(status__in=["intent", "open"])
        .exclude(pk=row.pk)
        .exclude(platform_status="gone")
    )
    elsewhere = set(siblings.filter(questions__in=asked).values_list("questions", flat=True))
    for question in asked:
        if question.status != "published" or question.pk in elsewhere:
            continue
        if question.responses.filter(counts=True).exists():
            question.move("answered")
            nudge("settle")
        else:
            question.move("waiting", sentence)
            Question.objects.filter(pk=question.pk).update(next_try_at=later)
