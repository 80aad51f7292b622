"""Mails annotators who asked for it when there is work: at most once a day, and only once until
they return.
"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q

from annotation.hits.lease import count_open_hits
from annotation.models import Worker
from annotation.workers.teach import interfaces_worker_may_answer, learnable_interfaces
from kbpo import clock
from kbpo.accounts.mail import queue_mail

MOST_OFTEN = timedelta(days=1)
AWAY = timedelta(hours=1)
"""Workers seen within this time need no mail"""
MOST = 50
MANY = 200
SUBJECT = "There is work for you"


def tick() -> int:
    """Mail annotators for whom there is work, and return how many were mailed."""
    now = clock.now()
    workers = Worker.objects.filter(
        wants_mail=True, excluded_at=None, user__is_active=True, user__is_annotator=True
    ).exclude(user__email="")
    is_away = Q(last_seen_at=None) | Q(last_seen_at__lt=now - AWAY)
    has_come_since = Q(mailed_at__lt=F("last_seen_at"), last_seen_at__isnull=False)
    may_be_written = Q(mailed_at=None) | Q(mailed_at__lt=now - MOST_OFTEN) & has_come_since
    due = workers.filter(is_away, may_be_written).select_related("user")
    return sum(map(_mail_worker, due.order_by(F("mailed_at").asc(nulls_first=True))[:MOST]))


def _mail_worker(worker: Worker) -> bool:
    """Mail a worker if there is work, and return whether there was any. The row is claimed first,
    so that nobody gets two mails.
    """
    # Questions behind tutorials that the worker may do are counted too.
    n = count_open_hits(
        worker, MANY, [*interfaces_worker_may_answer(worker), *learnable_interfaces(worker)]
    )
    if not n or worker.user is None:
        return False
    here = settings.SITE_URL.rstrip("/")
    many = " or more" if n >= MANY else ""
    wait = f"{n}{many} question{'' if n == 1 else 's'} wait{'s' if n == 1 else ''} for you"
    text = (
        f"{wait}: {here}/annotate/\n\nYou asked for this mail. It comes once a day at most, and not"
        f" again before you have come. Switch it off: {here}/annotate/payee/"
    )
    with transaction.atomic():
        claimed = Worker.objects.filter(pk=worker.pk, mailed_at=worker.mailed_at)
        if not claimed.update(mailed_at=clock.now()):
            return False
        queue_mail(worker.user.email, SUBJECT, text, user=worker.user)
    return True


def set_mail_wanted(worker: Worker, *, wanted: bool) -> bool:
    """Switch mails about work on or off for a worker, and return whether they are on. They need a
    mail address.
    """
    wants_mail = wanted and worker.user is not None and bool(worker.user.email)
    Worker.objects.filter(pk=worker.pk).update(wants_mail=wants_mail)
    return wants_mail
