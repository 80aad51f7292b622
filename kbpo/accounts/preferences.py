"""By which ways somebody wants to be told of what, and their webhooks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.db import transaction

from kbpo.accounts import notices
from kbpo.accounts.deliver import MOST_SLOW
from kbpo.accounts.limits import Limit
from kbpo.accounts.models import EVENTS, Delivery, Preference, User, Webhook
from kbpo.accounts.webhooks import CannotCall, check_new

MOST = 5
"""Webhooks of one person"""
LONGEST = 500
"""Characters of an address"""
TESTS = Limit("webhook_test", 20, 3600)
"""Tests that one person may send in an hour"""


@dataclass(frozen=True)
class Ways:
    """Of one kind of event: its name, when it happens, and by which ways somebody is told."""

    name: str
    words: str
    by_mail: bool
    by_call: bool


def ways_of(user: User) -> list[Ways]:
    """Return by which ways somebody is told of every kind of event."""
    chosen = {row.event: row for row in user.preferences.all()}
    return [
        Ways(
            name,
            words,
            name not in chosen or chosen[name].by_mail,
            name not in chosen or chosen[name].by_call,
        )
        for name, words in EVENTS.items()
    ]


def choose(user: User, *, by_mail: Collection[str], by_call: Collection[str]) -> None:
    """Store of which events the user is told by mail and by webhooks."""
    for event in EVENTS:
        Preference.objects.update_or_create(
            user=user,
            event=event,
            defaults={"by_mail": event in by_mail, "by_call": event in by_call},
        )


def add_webhook(user: User, url: str) -> Webhook:
    """Return a new webhook. Raises CannotCall. Where a name leads is looked up when it is called:
    that may change.
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
    """Return the call that tests a webhook; None where its owner sent many within an hour."""
    if not TESTS.count(str(hook.user_id)):
        return None
    # It is called at once; one more slow call pauses it again.
    Webhook.objects.filter(pk=hook.pk).exclude(paused_until=None).update(
        paused_until=None, slow_calls=MOST_SLOW - 1
    )
    return notices.test(hook)
