"""Sends messages to workers of marketplaces, who have no page with us: each at most once."""

from __future__ import annotations

from django.conf import settings
from django.db import transaction

from annotation.models import Worker
from annotation.platforms.base import Platform, PlatformDown, Refused, UnknownOutcome
from annotation.platforms.proof import feedback_path
from annotation.workers.models import Message
from kbpo import clock

BATCH = 100
DOUBT = "Nobody knows whether the marketplace handed it over; it is not sent twice."


def deliver(platform: Platform) -> int:
    """Send waiting messages and return how many the platform took. A message with an unknown
    outcome is not repeated.
    """
    waiting = Message.objects.filter(
        worker__platform=platform.name, worker__identity__isnull=False, sent_at=None
    )
    done = 0
    for pk in list(
        waiting.filter(tried_at=None, trouble="")
        .order_by("pk")
        .values_list("pk", flat=True)[:BATCH]
    ):
        message = _claim(pk)
        if message is None:
            continue
        try:
            platform.message(
                message.worker, message.subject, f"{message.text}\n\n{closing_text(message.worker)}"
            )
        except PlatformDown:  # nothing happened: it waits
            Message.objects.filter(pk=pk).update(tried_at=None)
            break
        except UnknownOutcome:
            Message.objects.filter(pk=pk).update(trouble=DOUBT)
        except Refused as no:
            Message.objects.filter(pk=pk).update(trouble=str(no))
        else:
            done += Message.objects.filter(pk=pk).update(sent_at=clock.now())
    return done


@transaction.atomic
def _claim(pk: int) -> Message | None:
    """Mark a message as tried before the call and return it; None if another process has it."""
    messages = Message.objects.select_for_update(of=("self",), skip_locked=True).select_related(
        "worker__identity"
    )
    message: Message | None = messages.filter(pk=pk, tried_at=None).first()
    if message is not None:
        message.tried_at = clock.now()
        message.save(update_fields=["tried_at"])
    return message


def closing_text(worker: Worker) -> str:
    """Return the end of each message to a marketplace worker, with the address for answers."""
    address = settings.SITE_URL.rstrip("/") + feedback_path(worker)
    return f"You can answer here, without an account; the address is yours alone: {address}"
