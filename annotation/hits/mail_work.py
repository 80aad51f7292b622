"""Writes to annotators who asked for it that there is work again: once a day at most, and not again
before they have come.
"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q

from annotation.hits.lease import open_to
from annotation.models import Worker
from annotation.workers.models import WorkMail
from annotation.workers.teach import learnable, taught
from kbpo import clock
from kbpo.accounts.mail import send

MOST_OFTEN = timedelta(days=1)
AWAY = timedelta(hours=1)
"""Who was here within this time knows what is open"""
MOST = 50
MANY = 200
SUBJECT = "There is work for you"


def tick() -> int:
    """Return how many annotators were written to."""
    now = clock.now()
    work_mails = WorkMail.objects.filter(
        worker__excluded_at=None, worker__user__is_active=True, worker__user__is_annotator=True
    ).exclude(worker__user__email="")
    is_away = Q(worker__last_seen_at=None) | Q(worker__last_seen_at__lt=now - AWAY)
    has_come_since = Q(mailed_at__lt=F("worker__last_seen_at"), worker__last_seen_at__isnull=False)
    may_be_written = Q(mailed_at=None) | Q(mailed_at__lt=now - MOST_OFTEN) & has_come_since
    due = work_mails.filter(is_away, may_be_written).select_related("worker__user")
    return sum(_write(row) for row in due.order_by(F("mailed_at").asc(nulls_first=True))[:MOST])


def _write(row: WorkMail) -> bool:
    """Return whether a mail went out: the row is claimed before, so that nobody is written to
    twice.
    """
    n = waiting_for(row.worker)
    if not n or row.worker.user is None:
        return False
    with transaction.atomic():
        claimed = WorkMail.objects.filter(pk=row.pk, mailed_at=row.mailed_at)
        if not claimed.update(mailed_at=clock.now()):
            return False
        send(row.worker.user.email, SUBJECT, _text(n), user=row.worker.user)
    return True


def waiting_for(worker: Worker) -> int:
    """Return how many questions wait for a worker, those behind a tutorial that they can do
    included.
    """
    return open_to(worker, MANY, [*taught(worker), *learnable(worker)])


def _text(n: int) -> str:
    here = settings.SITE_URL.rstrip("/")
    many = " or more" if n >= MANY else ""
    wait = f"{n}{many} question{'' if n == 1 else 's'} wait{'s' if n == 1 else ''} for you"
    return (
        f"{wait}: {here}/annotate/\n\nYou asked for this mail. It comes once a day at most, and not"
        f" again before you have come. Switch it off: {here}/annotate/payee/"
    )


def ask_for_mail(worker: Worker, *, wanted: bool) -> bool:
    """Return whether a worker is written to from now on, when there is work; it takes an
    address.
    """
    if wanted and worker.user is not None and worker.user.email:
        WorkMail.objects.get_or_create(worker=worker)
        return True
    WorkMail.objects.filter(worker=worker).delete()
    return False
