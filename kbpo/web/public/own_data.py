"""All that is known of one person, as JSON, or as a zip with the files that they uploaded."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import QuerySet

from annotation.models import Assignment, Payment, Worker
from annotation.workers.models import Appeal, Consent, Feedback, Message, Payout, PayoutAddress
from kbpo.accounts.models import Audit, User
from kbpo.submissions.models import Submission

MOST_BYTES = 2_000_000_000
"""Bytes of uploaded files in a zip; what does not fit is named in it"""
PART = 1 << 20
"""Bytes that are packed before they are sent"""
ACCOUNT = ("username", "email", "first_name", "last_name", "date_joined", "last_login")
ROLES = ("is_researcher", "is_annotator", "is_volunteer", "is_staff")
TOKEN = ("name", "prefix", "scope", "created_at", "last_used_at", "expires_at", "revoked_at")
RUN = ("id", "track__slug", "team__name", "name", "description", "status", "reason", "file_name")
DATES = ("received_at", "confirmed_at", "scored_at", "withdrawn_at")
LOG = ("at", "what", "about", "track", "before", "after", "why")
ANSWER = ("id", "status", "submitted_at", "seconds", "raw")


def data_of(user: User) -> dict[str, Any]:
    """Return what is known of a person, by what it is about."""
    uploaded = Submission.objects.filter(user=user).order_by("pk")
    return {
        "account": {name: getattr(user, name) for name in (*ACCOUNT, *ROLES)},
        "teams": [
            {"name": team.name, "owner": team.owners.filter(pk=user.pk).exists()}
            for team in user.teams.order_by("pk")
        ],
        "former_teams": list(user.former_teams.order_by("pk").values_list("name", flat=True)),
        "tokens": _rows(user.tokens.order_by("pk"), *TOKEN),
        "notices": _rows(user.preferences.order_by("pk"), "event", "by_mail", "by_call"),
        "webhooks": _rows(user.webhooks.order_by("pk"), "url", "made_at"),
        "runs": _rows(uploaded, *RUN, *DATES, "file_size", "file_digest"),
        "log": _rows(Audit.objects.filter(who=user).order_by("pk"), *LOG),
        "annotator": [_of_worker(row) for row in Worker.objects.filter(user=user)],
    }


def _of_worker(worker: Worker) -> dict[str, Any]:
    mine = {"worker": worker}
    answers = Assignment.objects.filter(raw__isnull=False, **mine).order_by("pk")
    return {
        "handle": worker.handle,
        "left_out": worker.excluded_reason,
        "consents": _rows(Consent.objects.filter(**mine), "version", "at"),
        "answers": _rows(answers, *ANSWER),
        "payments": _rows(Payment.objects.filter(**mine), "amount", "status", "created_at"),
        "payouts": _rows(Payout.objects.filter(**mine), "amount", "paid_at", "number", "sent_to"),
        "pay_to": _rows(PayoutAddress.objects.filter(**mine), "address", "changed_at"),
        "messages": _rows(Message.objects.filter(**mine), "subject", "text", "at", "read_at"),
        "feedback": _rows(Feedback.objects.filter(**mine), "interface", "comment", "at"),
        "appeals": _rows(Appeal.objects.filter(**mine), "text", "made_at", "answer", "answered_at"),
    }


def _rows(rows: QuerySet[Any], *names: str) -> list[dict[str, Any]]:
    return list(rows.values(*names))


def as_json(user: User) -> str:
    """Return it as text, indented for people."""
    return json.dumps(data_of(user), cls=DjangoJSONEncoder, indent=2, ensure_ascii=False) + "\n"


class _Sent(io.RawIOBase):
    """What a zip file is written to whose beginning is sent before its end is made."""

    def __init__(self) -> None:
        self.waiting = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.waiting += data
        return len(data)

    def taken(self) -> bytes:
        """What was written since it was last taken."""
        part = bytes(self.waiting)
        self.waiting.clear()
        return part


def zip_of(user: User) -> Iterator[bytes]:
    """Yields a zip file as it is made: data.json, the uploads as they came, and which of them are
    missing.
    """
    sent, left, missing = _Sent(), MOST_BYTES, []
    with zipfile.ZipFile(sent, "w", zipfile.ZIP_DEFLATED) as folder:
        folder.writestr("data.json", as_json(user))
        yield sent.taken()
        for row in Submission.objects.filter(user=user).order_by("pk"):
            name = f"runs/{row.pk}-{row.file_name.replace('/', '_')}"
            try:
                if row.file_size > left:
                    raise OSError
                source = row.file.open("rb")
            except (OSError, ValueError):  # too large, or deleted with what was refused
                missing.append(name)
                continue
            with source, folder.open(name, "w", force_zip64=True) as target:
                while block := source.read(PART):
                    target.write(block)
                    yield sent.taken()
            left -= row.file_size
        if missing:
            folder.writestr("missing.txt", "\n".join(missing) + "\n")
    yield sent.taken()
