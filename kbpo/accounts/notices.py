"""Tells people what became of their work: by mail, and by signed calls of their own addresses, each
as they prefer. What is told is noted in the transaction that it tells of; it goes out afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kbpo.accounts.mail import letter
from kbpo.accounts.models import EVENTS, Delivery, Preference, User, Webhook
from kbpo.queue import nudge

TEST = "test"


def tell(
    people: Iterable[User], event: str, subject: str, text: str, **about: Any
) -> list[Delivery]:
    """Queue the mails and webhook calls about an event, and return them. People who are inactive or
    have switched them off get none.

    `about` says in the call what the event is about, as JSON.
    """
    assert event in EVENTS, event
    active = {person.pk: person for person in people if person.is_active}
    preferences = {
        row.user_id: row for row in Preference.objects.filter(user__in=active, event=event)
    }
    mails = [
        letter(person.email, subject, text, event=event, user=person)
        for pk, person in active.items()
        if person.email and (pk not in preferences or preferences[pk].by_mail)
    ]
    silent = [pk for pk, row in preferences.items() if not row.by_call]
    hooks = Webhook.objects.filter(user__in=active).exclude(user__in=silent)
    return _queue([*mails, *_calls(hooks, event, {"subject": subject, "text": text, **about})])


def test(hook: Webhook) -> Delivery:
    """Return a call that says nothing but that calls arrive."""
    body = {"subject": "A test", "text": "Your webhook works."}
    return _queue(_calls([hook], TEST, body))[0]


def _calls(hooks: Iterable[Webhook], event: str, body: dict[str, Any]) -> list[Delivery]:
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
