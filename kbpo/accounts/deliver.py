"""Sends what people are told: posts their mails (`tick`) and calls their webhooks (`tick_calls`),
at least once each, until one is taken or we give up.

Nothing is sent inside a transaction: a short one claims the row and says when it is due again, the
call or the mail follows, a second one notes what came of it. A process that dies in between leaves
a row that is due again; whoever is told twice knows it by the delivery's number.
"""

from __future__ import annotations

import json
import logging
import time
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q

from kbpo import clock
from kbpo.accounts.close import delete_old_requests
from kbpo.accounts.mail import CannotSend, goes_out, post
from kbpo.accounts.models import Delivery, Webhook
from kbpo.accounts.webhooks import CannotCall, call

log = logging.getLogger(__name__)

MOST_TRIES = 8
FIRST_WAIT = timedelta(seconds=30)
"""After the first try; each later wait is three times as long: the last try is nine hours on"""
A_ROUND, A_ROUND_SECONDS = 50, 15.0
"""Tries of one round, and when it ends: slow ones do not hold a worker for minutes"""
SLOW_SECONDS, MOST_SLOW = 3.0, 3
"""A call that takes longer is slow; after so many slow ones in a row a webhook is paused"""
PAUSE = timedelta(hours=1)
"""How long a slow webhook is not called; a test by its owner ends the pause"""
KEEP_DELIVERED = timedelta(days=30)
NOT_SENT = "Not sent: this site sends no mail. It was written to its log."


def tick() -> int:
    """Send due mails and delete old ones; return the number of attempts. If the mail server is
    away, only one mail is tried.
    """
    tried, is_up, end = 0, True, time.monotonic() + A_ROUND_SECONDS
    while is_up and tried < A_ROUND and time.monotonic() < end and (row := _claim_mail()):
        is_up = _try_delivery(row)
        tried += 1
    old = Delivery.objects.filter(made_at__lt=clock.now() - KEEP_DELIVERED).exclude(
        status="waiting"
    )
    old.delete()
    delete_old_requests()
    return tried


def tick_calls() -> int:
    """Call due webhooks that are not paused; return the number of calls."""
    tried, end = 0, time.monotonic() + A_ROUND_SECONDS
    while tried < A_ROUND and time.monotonic() < end and (row := _claim_call()):
        began = time.monotonic()
        _try_delivery(row)
        _note_speed(row, time.monotonic() - began)
        tried += 1
    return tried


def _claim_mail() -> Delivery | None:
    return _claim(Q(hook=None))


def _claim_call() -> Delivery | None:
    paused = Q(hook__paused_until__gt=clock.now())
    return _claim(Q(hook__isnull=False) & ~paused)


@transaction.atomic
def _claim(which: Q) -> Delivery | None:
    """Return the next due row that no other process is handling."""
    deliveries = Delivery.objects.select_for_update(skip_locked=True, of=("self",), no_key=True)
    row = deliveries.due("waiting").filter(which).select_related("hook").first()
    if row is not None:
        row.attempts += 1
        row.next_try_at = clock.now() + FIRST_WAIT * 3 ** (row.attempts - 1)
        row.save(update_fields=["attempts", "next_try_at"])
    return row


def _try_delivery(row: Delivery) -> bool:
    """Send a row, and return whether the mail server could be reached."""
    trouble, is_up = "", True
    try:
        if row.hook is None:
            post(row)
        else:
            row.answered = call(row.hook.url, row.hook.secret, row.event, _text_of(row), row.pk)
            trouble = "" if 200 <= row.answered < 300 else f"It answered {row.answered}."
    except CannotCall as problem:
        row.answered, trouble = None, str(problem)
    except CannotSend as problem:
        row.answered, trouble, is_up = problem.code, str(problem), problem.code is not None
        log.warning("Mail %s was not sent: %r", row.pk, problem.__cause__)
    gives_up = bool(trouble) and row.attempts >= MOST_TRIES
    status = "failed" if gives_up else "waiting" if trouble else _final_status(row)
    mine = Delivery.objects.filter(pk=row.pk, status="waiting", attempts=row.attempts)
    mine.update(
        status=status,
        status_since=clock.now(),
        reason=trouble[:300] or (NOT_SENT if status == "printed" else ""),
        answered=row.answered,
        body=_body_to_keep(row, status),
    )
    return is_up


def _note_speed(row: Delivery, seconds: float) -> None:
    """Pause the webhook after `MOST_SLOW` slow calls in a row."""
    hooks = Webhook.objects.filter(deliveries=row)
    if seconds <= SLOW_SECONDS:
        hooks.exclude(slow_calls=0).update(slow_calls=0)
        return
    hooks.update(slow_calls=F("slow_calls") + 1)
    hooks.filter(slow_calls__gte=MOST_SLOW).update(paused_until=clock.now() + PAUSE)


def _final_status(row: Delivery) -> str:
    """Return the status of a row that was sent: mails are only printed if the site sends none."""
    return "sent" if row.hook is not None or goes_out() else "printed"


def _body_to_keep(row: Delivery, status: str) -> dict[str, Any]:
    """Return the body to keep: of a mail only its subject, since its text may have a
    log-in link.
    """
    is_over = row.hook is None and status in ("sent", "printed")
    return {"subject": row.body["subject"]} if is_over else row.body


def _text_of(row: Delivery) -> bytes:
    record = {"id": row.pk, "event": row.event, "at": row.made_at.isoformat(), **row.body}
    return json.dumps(record, ensure_ascii=False).encode()
