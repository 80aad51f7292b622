"""Manages the queue of volunteers: applications and decisions."""

from __future__ import annotations

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from annotation.workers.intake import volunteer_policy
from annotation.workers.models import Application, Intake
from kbpo import clock
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.limits import Limit
from kbpo.accounts.models import FULL, Audit, User, can_one_more_wait
from kbpo.accounts.notices import notify

SIGN_UPS = Limit("volunteer", 10, 3600)
"""Greatest number of accounts that one network may create in an hour"""
CLOSED = (
    "We take no volunteers at the moment. You can try judging without an account, and"
    " come back later."
)
ADMITTED = "You may judge: an admin has admitted you. Your own page has what is open."
TURNED_AWAY = "We cannot take you as an annotator at the moment."
TOO_MANY = "Many accounts were made from your network in the last hour. Try again later."


class CannotVolunteer(Exception):
    """Raised for an application that was not stored; the text is a sentence for the user, `wait`
    the seconds until the next attempt.
    """

    def __init__(self, sentence: str, wait: int = 0) -> None:
        super().__init__(sentence)
        self.wait = wait


def open_applications() -> QuerySet[Application]:
    """Return the open applications of active accounts."""
    return Application.objects.filter(admitted=None, user__is_active=True)


def application_of_user(user: User) -> Application | None:
    """Return the open or declined application of a user; None for annotators."""
    if user.is_annotator:
        return None
    return Application.objects.filter(user=user).exclude(admitted=True).first()


def check_sign_up(address: str, network: str) -> None:
    """Raise CannotVolunteer if nobody at this address and network may sign up now."""
    mode = volunteer_policy()
    if mode == Intake.Volunteers.CLOSED:
        raise CannotVolunteer(CLOSED)
    if not SIGN_UPS.count_action(address):
        raise CannotVolunteer(TOO_MANY, SIGN_UPS.seconds_until_retry(address))
    if mode == Intake.Volunteers.QUEUE and not can_one_more_wait(
        open_applications(), network, "made_at"
    ):
        raise CannotVolunteer(FULL)


@transaction.atomic
def apply_as_volunteer(user: User, why: str = "", network: str = "") -> Application:
    """Store an application and return it; it is accepted at once if the service is open to all."""
    if user.is_annotator:
        raise CannotVolunteer("You are an annotator already.")
    mode = volunteer_policy()
    if mode == Intake.Volunteers.CLOSED:
        raise CannotVolunteer(CLOSED)
    row, _ = Application.objects.get_or_create(
        user=user, defaults={"why": why.replace("\x00", "").strip()[:1000], "network": network}
    )
    if mode == Intake.Volunteers.OPEN and row.admitted is None:
        _admit_volunteer(row, None)
    return row


@transaction.atomic
def decide_application(pk: int, who: User, *, admit: bool, why: str = "") -> Application | None:
    """Decide an application once, tell the applicant, and return it; None if it is not open."""
    applications = open_applications().select_for_update(of=("self",)).select_related("user")
    row = applications.filter(pk=pk).first()
    if row is None:
        return None
    if admit:
        _admit_volunteer(row, who)
    else:
        _store_and_mail_decision(row, who, admitted=False)
    after = "admitted" if admit else "declined"
    write_audit_entry("volunteer", f"user:{row.user_id}", who=who, why=why, after=after)
    page = f"{settings.SITE_URL.rstrip('/')}/annotate/" if admit else ""
    paragraphs = [ADMITTED if admit else TURNED_AWAY, why, page]
    subject = "You are admitted as an annotator" if admit else "Your request to judge"
    notify([row.user], "decision", subject, "\n\n".join(line for line in paragraphs if line))
    return row


def decline_reason(application: Application) -> str:
    """Return the reason of a declined application; empty otherwise."""
    if application.admitted is not False:
        return ""
    log = Audit.objects.filter(what="volunteer", about=f"user:{application.user_id}").order_by(
        "-pk"
    )
    return log.values_list("why", flat=True).first() or ""


def _admit_volunteer(application: Application, who: User | None) -> None:
    _store_and_mail_decision(application, who, admitted=True)
    application.user.is_annotator = application.user.is_volunteer = True
    application.user.save(update_fields=["is_annotator", "is_volunteer"])


def _store_and_mail_decision(application: Application, who: User | None, *, admitted: bool) -> None:
    application.admitted, application.answered_at, application.answered_by, application.network = (
        admitted,
        clock.now(),
        who,
        "",
    )
    application.save(update_fields=["admitted", "answered_at", "answered_by", "network"])
