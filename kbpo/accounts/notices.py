"""Notices about a user's work by mail and webhook. They are queued in the transaction of the event.
`tick` sends due mails, and `tick_calls` calls due webhooks, each until it succeeds or has failed
`MOST_TRIES` times.

Nothing is sent inside a transaction: one transaction claims the row and sets the time of the next
try, then the call or the mail follows, and a second transaction stores the result. If a process
dies in between, the row is due again; a recipient recognises the second copy by the number of the
delivery.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q

from kbpo import clock
from kbpo.accounts.close import delete_old_requests
from kbpo.accounts.limits import Limit
from kbpo.accounts.mail import CannotSend, build_mail, is_mail_configured, send_to_mail_server
from kbpo.accounts.models import EVENTS, Delivery, User, Webhook
from kbpo.accounts.webhooks import CannotCall, call_webhook, check_new_url
from kbpo.queue import wake_step

TEST = "test"
MOST = 5
"""Greatest number of webhooks of one person"""
LONGEST = 500
"""Greatest number of characters of an address"""
TESTS = Limit("webhook_test", 20, 3600)
"""Greatest number of test calls of one person in an hour"""


def notify(
    people: Iterable[User], event: str, subject: str, text: str, **about: Any
) -> list[Delivery]:
    """Queue the mails and webhook calls about an event, and return them. Inactive users, and users
    who switched them off, get none. `about` is added to the JSON of the call.
    """
    assert event in EVENTS, event
    active = {person.pk: person for person in people if person.is_active}
    mails = [
        build_mail(person.email, subject, text, event=event, user=person)
        for person in active.values()
        if person.email and event not in person.no_mail_about
    ]
    called = [pk for pk, person in active.items() if event not in person.no_call_about]
    hooks = Webhook.objects.filter(user__in=called)
    return _queue_deliveries(
        [*mails, *_queue_calls(hooks, event, {"subject": subject, "text": text, **about})]
    )


def queue_test_call(hook: Webhook) -> Delivery:
    """Queue a test call and return it."""
    body = {"subject": "A test", "text": "Your webhook works."}
    return _queue_deliveries(_queue_calls([hook], TEST, body))[0]


def _queue_calls(hooks: Iterable[Webhook], event: str, body: dict[str, Any]) -> list[Delivery]:
    return [
        Delivery(hook=hook, user_id=hook.user_id, event=event, body=body, status="waiting")
        for hook in hooks
    ]


def _queue_deliveries(unsaved: list[Delivery]) -> list[Delivery]:
    deliveries = Delivery.objects.bulk_create(unsaved)
    if any(row.hook_id is None for row in deliveries):
        wake_step("mail")
    if any(row.hook_id is not None for row in deliveries):
        wake_step("call")
    return deliveries


def notice_choices(user: User) -> list[dict[str, object]]:
    """Return every event with its description, and whether the user is notified by mail and by
    webhook.
    """
    return [
        {
            "name": name,
            "words": words,
            "by_mail": name not in user.no_mail_about,
            "by_call": name not in user.no_call_about,
        }
        for name, words in EVENTS.items()
    ]


def save_notice_choices(user: User, *, by_mail: Collection[str], by_call: Collection[str]) -> None:
    """Store the events of which the user is notified by mail and by webhook."""
    user.no_mail_about = [event for event in EVENTS if event not in by_mail]
    user.no_call_about = [event for event in EVENTS if event not in by_call]
    user.save(update_fields=["no_mail_about", "no_call_about"])


def add_webhook(user: User, url: str) -> Webhook:
    """Return a new webhook. Raises CannotCall. The host is resolved at each call, since its address
    may change.
    """
    if len(url) > LONGEST:
        raise CannotCall(f"The address is longer than {LONGEST} characters.")
    check_new_url(url)
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)  # counts one at a time
        if user.webhooks.count() >= MOST:
            raise CannotCall(f"You have {MOST} webhooks. Remove one that you no longer use.")
        hook, is_new = Webhook.objects.get_or_create(user=user, url=url)
    if not is_new:
        raise CannotCall("This address is called already.")
    return hook


def send_test_call(hook: Webhook) -> Delivery | None:
    """Queue a test call of a webhook and return it; None if its owner sent many within an hour."""
    if not TESTS.count_action(str(hook.user_id)):
        return None
    # It is called at once; one more slow call pauses it again.
    Webhook.objects.filter(pk=hook.pk).exclude(paused_until=None).update(
        paused_until=None, slow_calls=MOST_SLOW - 1
    )
    return queue_test_call(hook)


log = logging.getLogger(__name__)

MOST_TRIES = 8
FIRST_WAIT = timedelta(seconds=30)
"""Wait after the first try. Each later wait is three times as long, so that the last try is after
nine hours
"""
A_ROUND, A_ROUND_SECONDS = 50, 15.0
"""Number of tries in a round, and its longest duration, so that slow calls do not occupy a worker
for minutes
"""
SLOW_SECONDS, MOST_SLOW = 3.0, 3
"""Seconds beyond which a call is slow; a webhook is paused after this many slow calls in a row"""
PAUSE = timedelta(hours=1)
"""How long a slow webhook is paused; a test by its owner ends the pause"""
KEEP_DELIVERED = timedelta(days=30)
NOT_SENT = "Not sent: this site sends no mail. It was written to its log."


def tick() -> int:
    """Send due mails and delete old ones; return the number of attempts. If the mail server cannot
    be reached, only one mail is tried.
    """
    tried, is_up, end = 0, True, time.monotonic() + A_ROUND_SECONDS
    while (
        is_up
        and tried < A_ROUND
        and time.monotonic() < end
        and (row := _claim_delivery(Q(hook=None)))
    ):
        is_up = _try_delivery(row)
        tried += 1
    old = Delivery.objects.filter(made_at__lt=clock.now() - KEEP_DELIVERED)
    old.exclude(status="waiting").delete()
    delete_old_requests()
    return tried


def tick_calls() -> int:
    """Call due webhooks that are not paused; return the number of calls."""
    tried, end = 0, time.monotonic() + A_ROUND_SECONDS
    while tried < A_ROUND and time.monotonic() < end:
        paused = Q(hook__paused_until__gt=clock.now())
        row = _claim_delivery(Q(hook__isnull=False) & ~paused)
        if row is None:
            break
        began = time.monotonic()
        _try_delivery(row)
        _pause_if_slow(row, time.monotonic() - began)
        tried += 1
    return tried


@transaction.atomic
def _claim_delivery(condition: Q) -> Delivery | None:
    """Return the next due row that no other process is handling."""
    deliveries = Delivery.objects.select_for_update(skip_locked=True, of=("self",), no_key=True)
    row = deliveries.due("waiting").filter(condition).select_related("hook").first()
    if row is not None:
        row.attempts += 1
        row.next_try_at = clock.now() + FIRST_WAIT * 3 ** (row.attempts - 1)
        row.save(update_fields=["attempts", "next_try_at"])
    return row


def _try_delivery(delivery: Delivery) -> bool:
    """Send a row, and return whether the mail server could be reached."""
    trouble, is_up = "", True
    try:
        if delivery.hook is None:
            send_to_mail_server(delivery)
        else:
            at = delivery.made_at.isoformat()
            record = {"id": delivery.pk, "event": delivery.event, "at": at, **delivery.body}
            text = json.dumps(record, ensure_ascii=False).encode()
            delivery.answered = call_webhook(
                delivery.hook.url, delivery.hook.secret, delivery.event, text, delivery.pk
            )
            trouble = "" if 200 <= delivery.answered < 300 else f"It answered {delivery.answered}."
    except CannotCall as problem:
        delivery.answered, trouble = None, str(problem)
    except CannotSend as problem:
        delivery.answered, trouble, is_up = problem.code, str(problem), problem.code is not None
        log.warning("Mail %s was not sent: %r", delivery.pk, problem.__cause__)
    if trouble:
        status = "failed" if delivery.attempts >= MOST_TRIES else "waiting"
    else:
        status = "sent" if delivery.hook is not None or is_mail_configured() else "printed"
    # Of a mail that was sent only the subject is kept: its text may have a log-in link.
    is_over = delivery.hook is None and status in ("sent", "printed")
    mine = Delivery.objects.filter(pk=delivery.pk, status="waiting", attempts=delivery.attempts)
    mine.update(
        status=status,
        status_since=clock.now(),
        reason=trouble[:300] or (NOT_SENT if status == "printed" else ""),
        answered=delivery.answered,
        body={"subject": delivery.body["subject"]} if is_over else delivery.body,
    )
    return is_up


def _pause_if_slow(delivery: Delivery, seconds: float) -> None:
    """Pause the webhook after `MOST_SLOW` slow calls in a row."""
    hooks = Webhook.objects.filter(deliveries=delivery)
    if seconds <= SLOW_SECONDS:
        hooks.exclude(slow_calls=0).update(slow_calls=0)
        return
    hooks.update(slow_calls=F("slow_calls") + 1)
    hooks.filter(slow_calls__gte=MOST_SLOW).update(paused_until=clock.now() + PAUSE)
