"""Sends mails: after what they tell of is committed, and never in the way of it."""

from __future__ import annotations

import logging

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction

log = logging.getLogger(__name__)


def goes_out() -> bool:
    """Whether mails reach anybody; without a mail server they are written to the log."""
    return bool(settings.MAIL_URL)


def send(address: str, subject: str, text: str) -> None:
    """Nothing; the mail goes out once the transaction at hand is committed.

    Without an address nothing is sent. A mail that cannot be sent is noted in the log: whatever it
    tells of stands on a page as well.
    """
    if address:
        transaction.on_commit(lambda: _send(address, subject, text))


def _send(address: str, subject: str, text: str) -> None:
    headers = {"Auto-Submitted": "auto-generated"}
    reply_to = [settings.CONTACT] if settings.CONTACT else None
    one_line = " ".join(subject.split())
    mail = EmailMessage(one_line, text, to=[address], headers=headers, reply_to=reply_to)
    try:
        mail.send()
    except OSError:  # also what smtplib raises
        log.exception("A mail was not sent: %s", one_line)
