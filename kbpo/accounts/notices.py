"""Notices about a user's work by mail and webhook. They are queued in the transaction that they
report, and sent afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from kbpo.accounts.deliver import MOST_SLOW
from kbpo.accounts.limits import Limit
from kbpo.accounts.mail import letter
from kbpo.accounts.models import EVENTS, Delivery, User, Webhook
from kbpo.accounts.webhooks import CannotCall, check_new
from kbpo.queue import nudge

TEST = "test"
MOST = 5
"""Webhooks of one person"""
LONGEST = 500
"""Characters of an address"""
TESTS = Limit("webhook_test", 20, 3600)
"""Tests that one person may send in an hour"""


def tell(
    people: Iterable[User], event: str, subject: str, text: str, **about: Any
) -> list[Delivery]:
    """Queue the mails and webhook calls about an event, and return them. Inactive users and those
    who switched them off get none. `about` is added to the JSON of the call.
    """
    assert event in EVENTS, event
    active = {person.pk: person for person in people if person.is_active}
    mails = [
        letter(person.email, subject, text, event=event, user=person)
        for person in active.values()
        if person.email and event not in person.no_mail_about
    ]
    called = [pk for pk, person in active.items() if event not in person.no_call_about]
    hooks = Webhook.objects.filter(user__in=called)
    return _queue(
        [*mails, *_queue_calls(hooks, event, {"subject": subject, "text": text, **about})]
    )


def test(hook: Webhook) -> Delivery:
    """Queue a test call and return it."""
    body = {"subject": "A test", "text": "Your webhook works."}
    return _queue(_queue_calls([hook], TEST, body))[0]


def _queue_calls(hooks: Iterable[Webhook], event: str, body: dict[str, Any]) -> list[Delivery]:
    return [
        Delivery(hook=hook, user_id=hook.user_id, event=event, body=body, status="waiting")
        for hook in hooks
    ]


def _queue(unsaved: list[Delivery]) -> list[Delivery]:
    deliveries = Delivery.objects.bulk_create(unsaved)
    if any(row.hook_id is None for row in deliveries):
        nudge("mail")
    if any(row.hook_id is not None for row in deliveries):
        nudge("call")
    return deliveries


@dataclass(frozen=True)
class NoticeChoices:
    """An event, and by which ways a user is notified of it."""

    name: str
    words: str
    by_mail: bool
    by_call: bool


def notice_choices(user: User) -> list[NoticeChoices]:
    """Return the choices of a user for every event."""
    return [
        NoticeChoices(name, words, name not in user.no_mail_about, name not in user.no_call_about)
        for name, words in EVENTS.items()
    ]


def save_choices(user: User, *, by_mail: Collection[str], by_call: Collection[str]) -> None:
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
    check_new(url)
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)  # counts one at a time
        if user.webhooks.count() >= MOST:
            raise CannotCall(f"You have {MOST} webhooks. Remove one that is not used any more.")
        hook, is_new = Webhook.objects.get_or_create(user=user, url=url)
    if not is_new:
        raise CannotCall("This address is called already.")
    return hook


def send_test(hook: Webhook) -> Delivery | None:
    """Queue a test call of a webhook and return it; None if its owner sent many within an hour."""
    if not TESTS.count(str(hook.user_id)):
        return None
    # It is called at once; one more slow call pauses it again.
    Webhook.objects.filter(pk=hook.pk).exclude(paused_until=None).update(
        paused_until=None, slow_calls=MOST_SLOW - 1
    )
    return test(hook)
