"""Step 7 on other platforms: compares the platform's HITs with ours, and updates ours.

A platform's own lists are authoritative; notifications and our own pages only hint that it is time
to read them. Calls are made outside of transactions, and each can be repeated.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Count, Q

from annotation.budget.halts import halted_hits
from annotation.budget.promises import lock_payer, unpromised_money
from annotation.hits.lease import lease_time
from annotation.hits.parts import read_json
from annotation.labels.settle import count_usable_answers, repeated_judgments
from annotation.marketplace import books
from annotation.marketplace.admit import answer_requests
from annotation.models import (
    HIT,
    PUT_AWAY,
    UNPROVEN,
    Assignment,
    Halt,
    PlatformBooks,
    Worker,
    WorkerIdentity,
)
from annotation.platforms.base import (
    Platform,
    PlatformDown,
    Refused,
    Seen,
    UnknownOutcome,
    configured_endpoint,
)
from annotation.platforms.proof import is_form_signature_valid
from annotation.platforms.registry import marketplace_names, platform_by_name
from annotation.workers.teach import qualify_after_listed_assignment
from annotation.workers.worker import worker_handle
from kbpo import clock
from kbpo.money.models import Purpose
from kbpo.queue import wake_step

log = logging.getLogger(__name__)

DECIDED = ("approved", "rejected")
"""Statuses on a platform of answers that are paid or rejected"""
ENDED = ("done", "gone")
"""Statuses on a platform of HITs that nobody can answer any more"""
SENT_IN = ("submitted", "accepted", "approved", "paid", "rejected", "failed")
CHECK_ANYWAY = timedelta(minutes=15)
"""Time after which a HIT's answers are listed even if the platform's counts show nothing new"""
MOST_LOOKUPS = 100
HITS_A_HOLD = 10
"""Number of HITs after which the lock is extended, since each takes some seconds"""
NOBODY = "Nobody on the platform answered it in time."


@dataclass(frozen=True)
class Rows:
    """The HITs that a platform has with one of our tokens: our own, and duplicates (`twins`)."""

    own: Seen | None = None
    twins: Sequence[Seen] = ()


def rows_by_token(hits: Iterable[HIT], seen: Iterable[Seen]) -> dict[str, Rows]:
    """Return token -> the platform's HITs with this token. Our HIT is the one with the known id,
    else the oldest.
    """
    ours = {hit.token: hit.external_id for hit in hits}
    seens: dict[str, dict[str, Seen]] = defaultdict(dict)
    for row in seen:
        if row.token in ours:
            seens[row.token][row.external_id] = row
    rows = {}
    for token, by_id in seens.items():
        oldest = min(by_id.values(), key=lambda row: row.created_at)
        own = by_id.get(ours[token]) if ours[token] else oldest
        rows[token] = Rows(own, [row for row in by_id.values() if row is not own])
    return rows


def take_down_duplicate(platform: Platform, hit: HIT, seen: Seen) -> int:
    """Take down a second HIT with the same token, import its answers, delete it at its end, and
    return the number of changes.
    """
    twin = HIT(external_id=seen.external_id, platform=hit.platform, endpoint=hit.endpoint)
    if seen.status in ("open", "busy") and seen.expires_at > clock.now():
        log.error("HIT %s is there twice; %s is taken down", hit.external_id, seen.external_id)
        platform.take_down(twin)
    answers = list(platform.collect(twin))
    moved = sum(import_answer(hit, answer) for answer in answers if not _has_answered(hit, answer))
    if seen.status == "done" and all(answer["status"] in DECIDED for answer in answers):
        platform.take_down(twin, delete=True)
    return moved


def _has_answered(hit: HIT, answer: dict[str, Any]) -> bool:
    """Return whether the worker has another answer to this HIT. Only one answer of a worker counts;
    the platform approves and pays the other one automatically.
    """
    same_worker = hit.assignments.filter(
        worker__handle=worker_handle(hit.platform, answer["worker_id"])
    )
    return (
        same_worker.exclude(status__in=["leased", "returned"])
        .exclude(external_id=answer["external_id"])
        .exists()
    )


def tick() -> int:
    """Reconcile all platforms except our own pages; return the number of changed rows."""
    return sum(_reconcile_platform(name) for name in marketplace_names())


def make_hits_due(platform: str, external_ids: list[str] | None = None) -> int:
    """Make HITs due for reconciliation after a notification, and return their number."""
    PlatformBooks.objects.filter(platform=platform).update(hinted_at=clock.now())
    hits = HIT.objects.filter(platform=platform, external_id__in=external_ids or [])
    marked = hits.update(checked_at=None)
    wake_step("reconcile")
    return marked


def _reconcile_platform(name: str) -> int:
    """Reconcile one platform if it is due and no other process does so. Return the number of
    changes.
    """
    platform = platform_by_name(name)
    # HITs that are or may be on the platform
    hits = HIT.objects.filter(platform=name, endpoint=configured_endpoint(platform))
    hits = hits.exclude(platform_status="gone").exclude(status="failed", external_id="")
    hits = hits.exclude(called_at=None).select_related("track")
    if not hits.exists() or not books.claim_platform(name):
        return 0
    try:
        seen = list(platform.survey())
        moved = _reconcile_hits(platform, list(hits), seen) + _answer_requests(platform)
        books.read_balance(platform, seen)
    except (PlatformDown, UnknownOutcome, Refused) as trouble:
        books.note_error(name, str(trouble))
        return 0
    finally:
        books.release_claim(name)
    if moved:
        wake_step("settle")
    return moved


def _answer_requests(platform: Platform) -> int:
    try:
        return answer_requests(platform)
    except (PlatformDown, UnknownOutcome, Refused) as trouble:
        # They are listed until they are answered.
        log.warning("Qualification requests were not answered on %s: %s", platform.name, trouble)
        return 0


def _reconcile_hits(platform: Platform, hits: list[HIT], seen: list[Seen]) -> int:
    """Compare each of our HITs with the platform's record of it, and return the number of
    changes.
    """
    # The answers that we have or know to be decided
    known = Count(
        "assignments", filter=Q(assignments__status__in=SENT_IN) & ~Q(assignments__external_id="")
    )
    ours = HIT.objects.filter(pk__in=[hit.pk for hit in hits])
    answers_of = dict(ours.annotate(known=known).values_list("pk", "known"))
    halted = set(halted_hits(Halt.Scope.ALL).values_list("pk", flat=True))
    by_token = rows_by_token(hits, seen)
    moved = lookups = 0
    for number, hit in enumerate(hits, start=1):
        if number % HITS_A_HOLD == 0:
            books.extend_claim(platform.name)
        try:
            seen_rows = by_token.get(hit.token, Rows())
            row = seen_rows.own
            moved += sum(take_down_duplicate(platform, hit, twin) for twin in seen_rows.twins)
            if row is None and hit.external_id and lookups < MOST_LOOKUPS:
                lookups += 1
                # A list may be short; only a HIT that cannot be found is gone.
                row = next(iter(platform.survey(hit)), None)
                if row is None or row.status == "gone":
                    moved += _record_missing_hit(hit)
            if row is not None and row.status != "gone":
                moved += _reconcile_hit(
                    platform,
                    hit,
                    row,
                    answers_of.get(hit.pk, 0),
                    hit.pk in halted,
                    alone=not seen_rows.twins,
                )
        except (PlatformDown, UnknownOutcome) as trouble:
            books.note_error(hit.platform, str(trouble))
            break  # the next call would fail too; the next tick retries
        except Exception as error:
            log.exception("HIT %s could not be looked after", hit.pk)
            HIT.objects.filter(pk=hit.pk).update(
                reason=f"It could not be looked after ({type(error).__name__})."
            )
    return moved


def _reconcile_hit(
    platform: Platform, hit: HIT, seen: Seen, n_known: int, halted: bool, *, alone: bool
) -> int:
    """Bring one HIT and the platform's record of it into agreement (adopt, collect, take down,
    offer again, settle, delete). Return the number of changes.
    """
    moved = _adopt_unrecorded_hit(hit, seen)
    now = clock.now()
    if _may_have_news(hit, seen, n_known, now):
        moved += _import_answers(hit, platform.collect(hit))
        HIT.objects.filter(pk=hit.pk).update(checked_at=now, platform_status=seen.status)
    offered = hit.status == "open" and not halted
    runs = seen.expires_at > now
    if runs and not offered:
        if hit.status == "open":
            # Noted before the call: whoever is killed after it has taken it down.
            HIT.objects.filter(pk=hit.pk).update(
                taken_down_at=now, reason="Taken down: everything is stopped."
            )
        platform.take_down(hit)
        HIT.objects.filter(pk=hit.pk).update(checked_at=None)
        return moved + 1
    if runs and hit.taken_down_at is not None:
        # The stop was lifted before the call that would have taken it down.
        HIT.objects.filter(pk=hit.pk).update(taken_down_at=None)
    if offered and not runs and seen.status in ("open", "busy", "done"):
        return moved + _offer_again(platform, hit, seen)
    if seen.status == "done" and not halted:
        moved += finish_hit_short_of_answers(platform, hit)
    sent = hit.assignments.filter(status__in=SENT_IN)
    if (
        alone
        and seen.status == "done"
        and hit.status != "open"
        and not sent.exclude(platform_status__in=DECIDED).exists()
    ):
        platform.take_down(hit, delete=True)
        moved += _record_missing_hit(hit)
    return moved


def _may_have_news(hit: HIT, seen: Seen, n_known: int, now: datetime) -> bool:
    """Return whether answers are to be fetched: the platform has more answers than we do, or the
    last fetch was long ago.
    """
    if seen.sent > n_known and not hit.unread:
        return True
    if seen.status == "gone":
        return False
    if hit.checked_at is None or hit.platform_status != seen.status:
        return True
    return now - hit.checked_at > CHECK_ANYWAY


def _import_answers(hit: HIT, answers: Iterable[dict[str, Any]]) -> int:
    """Import all answers of a HIT, and return the number of new ones. An answer that cannot be
    imported does not stop the others: it appears on the desk, and is retried with the HIT.
    """
    new, unread = 0, ""
    for answer in answers:
        try:
            new += import_answer(hit, answer)
        except Exception as error:
            unread = type(error).__name__[:60]
            if unread != hit.unread:
                log.exception("An answer to HIT %s could not be taken in", hit.pk)
    if unread != hit.unread:
        why = f"One of its answers could not be taken in ({unread})." if unread else ""
        HIT.objects.filter(pk=hit.pk).update(unread=unread, reason=why)
        hit.unread, hit.reason = unread, why
    return new


def _adopt_unrecorded_hit(hit: HIT, seen: Seen) -> int:
    """Store the platform's id of a HIT whose publishing call had no recorded outcome. Return 1 if
    the platform has the HIT.
    """
    changed: dict[str, Any] = {}
    if not hit.external_id:
        changed["external_id"] = hit.external_id = seen.external_id
    if hit.max_assignments != seen.max_assignments:
        changed["max_assignments"] = hit.max_assignments = seen.max_assignments
    if hit.expires_at != seen.expires_at:
        hit.expires_at = changed["expires_at"] = seen.expires_at
    if changed:
        HIT.objects.filter(pk=hit.pk).update(**changed)
    if hit.status == "intent" and HIT.objects.filter(pk=hit.pk, status="intent").update(
        status="open", status_since=clock.now(), attempts=0, reason=""
    ):
        hit.status = "open"
        return 1
    return int("external_id" in changed)


def _offer_again(platform: Platform, hit: HIT, seen: Seen) -> int:
    """Offer a HIT again that ended early: after a halt, and once after it expired unfinished."""
    if seen.sent >= seen.max_assignments:
        return finish_hit_short_of_answers(platform, hit)
    if hit.renewed_at is not None and hit.taken_down_at is None:
        return finish_hit_short_of_answers(platform, hit) if seen.status == "done" else 0
    until = clock.now() + platform.capabilities.offered_for
    platform.offer(hit, until)
    fields: dict[str, Any] = {
        "checked_at": None,
        "expires_at": until,
        "taken_down_at": None,
        "reason": "",
    }
    if hit.taken_down_at is None:
        fields["renewed_at"] = clock.now()
    HIT.objects.filter(pk=hit.pk).update(**fields)
    return 1


def _record_missing_hit(hit: HIT) -> int:
    """Record that the platform no longer has the HIT, and settle its questions without further
    answers.
    """
    HIT.objects.filter(pk=hit.pk).update(platform_status="gone", checked_at=clock.now())
    hit.platform_status = "gone"
    moved = finish_hit_short_of_answers(None, hit)
    HIT.objects.filter(pk=hit.pk, status__in=["closed", "expired"]).update(
        status="disposed", status_since=clock.now()
    )
    return moved + 1


def import_answer(hit: HIT, answer: dict[str, Any]) -> int:
    """Store an answer, and return 1 if it was new."""
    status = answer.get("status", "submitted")
    assignments = Assignment.objects.filter(
        hit=hit,
        external_id=answer["external_id"],
        worker__handle=worker_handle(hit.platform, answer["worker_id"]),
        worker__identity__isnull=False,
    ).exclude(status__in=["leased", "returned"])
    if (row := assignments.first()) is not None:
        if row.platform_status != status:
            Assignment.objects.filter(pk=row.pk).update(platform_status=status)
        return 0
    return _store_imported_answer(hit, answer, status)


@transaction.atomic
def _store_imported_answer(hit: HIT, answer: dict[str, Any], status: str) -> int:
    handle = worker_handle(hit.platform, answer["worker_id"])
    worker, _ = Worker.objects.get_or_create(handle=handle, defaults={"platform": hit.platform})
    worker = Worker.objects.select_for_update(of=("self",), no_key=True).get(pk=worker.pk)
    WorkerIdentity.objects.get_or_create(
        worker=worker, defaults={"external_id": answer["worker_id"]}
    )
    now = clock.now()
    Worker.objects.filter(pk=worker.pk).update(last_seen_at=now)
    key = {"hit": hit, "worker": worker, "external_id": answer["external_id"]}
    row = Assignment.objects.select_for_update(of=("self",)).filter(**key).first()
    if row is not None and row.status not in ("leased", "returned"):
        return 0  # stored by another process meanwhile
    # Leases that the platform ended without notice: others of this worker, and those of other
    # workers to this assignment
    leased = hit.assignments.filter(status="leased").exclude(pk=row.pk if row else 0)
    leased.filter(Q(worker=worker) | Q(external_id=answer["external_id"])).update(
        status="returned", status_since=now, returned_by=Assignment.ReturnedBy.PLATFORM
    )
    if row is None:
        row = Assignment(
            status="leased",
            leased_until=now + lease_time(),
            accepted_at=answer["accepted_at"],
            **key,
        )
        row.save()
    sent = answer["submitted_at"]
    seconds = (sent - answer["accepted_at"]).total_seconds()
    fields: dict[str, str] = answer["fields"]
    # Answers not composed by our page are stored unchanged, and cannot be used.
    raw: dict[str, Any] = {UNPROVEN: fields}
    if is_form_signature_valid(fields.get("proof", ""), hit.pk, answer["external_id"], handle):
        raw = dict(read_json(fields.get("answer", "")))
    row.move(
        "submitted",
        raw=raw,
        draft=None,
        submitted_at=sent,
        seconds=seconds,
        platform_status=status,
        returned_by="",
    )
    qualify_after_listed_assignment(worker, answer["external_id"])
    return 1


def finish_hit_short_of_answers(platform: Platform | None, hit: HIT) -> int:
    """Buy more places for an ended HIT, or settle its questions with the answers that they have.
    Return the number of changes.
    """
    places = _places_to_replace(hit)
    if places is None:
        return 0
    if platform is None or places <= 0 or not _reserve_places(platform, hit, places):
        return _close_published_questions(hit)
    total = hit.max_assignments + places
    try:
        until = clock.now() + platform.capabilities.offered_for
        platform.offer(hit, until, additional_assignments=places, key=f"{hit.token}:{total}")
    except Refused:
        HIT.objects.filter(pk=hit.pk).update(max_assignments=hit.max_assignments)
        return _close_published_questions(hit)
    # Other HITs wait for its lock.
    HIT.objects.filter(pk=hit.pk).update(checked_at=None, platform_status="open")
    return 1


def _places_to_replace(hit: HIT) -> int | None:
    """Return the number of places to buy in place of unusable answers; None if no question waits
    for this HIT, answers are still being parsed, or another HIT of the same questions may bring
    more.

    The other HITs have ended too, so an additional place here replaces an unusable answer there. A
    place that nobody took is not bought again: it was offered twice, and the question is settled
    with fewer answers.
    """
    questions = list(hit.questions.filter(status="published"))
    if not questions or hit.assignments.filter(status="submitted").exists():
        return None
    siblings = HIT.objects.filter(questions__in=questions).exclude(pk=hit.pk).distinct()
    if siblings.filter(status__in=["intent", "open"]).exclude(platform_status__in=ENDED).exists():
        return None
    answers = count_usable_answers(questions)
    missing = max(question.answers_wanted - answers[question.pk] for question in questions)
    hits = HIT.objects.filter(questions__in=questions).exclude(status__in=PUT_AWAY).distinct()
    twice = repeated_judgments(questions).values("assignment").distinct().count()
    unusable = Assignment.objects.filter(hit__in=hits, status="failed").count() + twice
    sent = Assignment.objects.filter(hit__in=hits, status__in=SENT_IN).count()
    free = max(0, sum(hit.max_assignments for hit in hits) - sent)
    return min(missing, unusable) - free


@transaction.atomic
def _reserve_places(platform: Platform, hit: HIT, places: int) -> bool:
    """Return whether the platform's limit and every payer's reservation allow more places, and
    store the new number before the platform is called. If the call never arrives,
    `_adopt_unrecorded_hit` restores the platform's own number.
    """
    if hit.max_assignments + places > platform.capabilities.max_assignments or hit.status != "open":
        return False
    prices: dict[Purpose, Decimal] = defaultdict(Decimal)
    for question in hit.questions.all():
        prices[question.payer] += question.price
    for payer in sorted(prices):
        lock_payer(payer)
    # A failed answer that was paid is promised twice, as a payment and as an open place.
    paid = hit.assignments.filter(status="failed", payment__isnull=False).count()
    if any(
        unpromised_money(payer) + price * paid < price * places for payer, price in prices.items()
    ):
        return False
    HIT.objects.filter(pk=hit.pk).update(max_assignments=hit.max_assignments + places)
    return True


@transaction.atomic
def _close_published_questions(hit: HIT) -> int:
    published = hit.questions.select_for_update(of=("self",)).filter(status="published")
    questions = list(published.order_by("pk"))
    for question in questions:
        if question.responses.filter(counts=True).exists():
            question.move("answered")
        else:
            question.move("unanswered", NOBODY)
    if questions:
        wake_step("settle")
    return len(questions)
