"""Queues mails in the transaction of the event that they report; `kbpo.accounts.notices` sends them
afterwards.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage

from kbpo.accounts.models import AccountRequest, Delivery, User
from kbpo.accounts.secret_links import mask_links
from kbpo.queue import wake_step


class CannotSend(Exception):
    """Raised if the mail server refused a mail; the text is a sentence."""

    def __init__(self, sentence: str, code: int | None) -> None:
        super().__init__(sentence)
        self.code = code
        """The server's reply code; None if the server could not be reached"""


def is_mail_configured() -> bool:
    """Return whether the site sends mail; without a mail server mails are written to the log."""
    return bool(settings.MAIL_URL)


def queue_mail(
    address: str,
    subject: str,
    text: str,
    *,
    user: User | None = None,
    request: AccountRequest | None = None,
) -> None:
    """Queue a mail, which is sent soon after the transaction commits; without an address nothing is
    sent. `user` is the recipient, `request` the request that is answered; the mail is deleted
    together with either of them, even unsent.
    """
    if address:
        row = build_mail(address, subject, text, event="mail", user=user)
        row.request = request
        row.save()
        wake_step("mail")


def build_mail(address: str, subject: str, text: str, *, event: str, user: User | None) -> Delivery:
    """Return the mail as an unsaved row."""
    body = {"subject": " ".join(subject.split()), "text": text}
    return Delivery(address=address, user=user, event=event, body=body, status="waiting")


def send_to_mail_server(delivery: Delivery) -> None:
    """Pass a mail to the mail server. If a process dies in between, a recipient may get it twice,
    with the same number. Raises CannotSend.
    """
    host = urlsplit(settings.SITE_URL).hostname or "localhost"
    headers = {
        "Auto-Submitted": "auto-generated",
        "Message-ID": f"<{delivery.pk}.{delivery.made_at:%Y%m%d%H%M%S}@{host}>",
    }
    reply_to = [settings.CONTACT] if settings.CONTACT else None
    subject, text = delivery.body["subject"], delivery.body["text"]
    if not is_mail_configured():  # it goes to the log, which more people read
        text = mask_links(text)
    mail = EmailMessage(subject, text, to=[delivery.address], headers=headers, reply_to=reply_to)
    try:
        mail.send()
    except (OSError, ValueError) as problem:  # OSError is also what smtplib raises
        refused = getattr(problem, "recipients", {}).values()
        codes = [getattr(problem, "smtp_code", None), *(code for code, _ in refused)]
        code = next((code for code in codes if isinstance(code, int) and code > 0), None)
        sentence = f"The mail server answered {code}." if code else "It could not be sent."
        raise CannotSend(sentence, code) from problem
