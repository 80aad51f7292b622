"""Pays somebody who could not send their work in: a HIT for one worker alone, approved as soon as they take it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from django.conf import settings
from django.utils import timezone

from annotation.platforms.base import Refused
from annotation.platforms.mturk import kinds
from annotation.platforms.mturk.amounts import written
from annotation.platforms.mturk.client import call, pages
from annotation.platforms.mturk.question import HIT_ID_IN_TEXT, KEYWORDS, SCHEMA
from annotation.proof import thanks_path

if TYPE_CHECKING:
    from annotation.models import Bonus

WEEK = 7 * 86400
DAY = timedelta(days=1)
MARK = "kbpo-compensation:"


def reason_of(bonus: Bonus) -> str:
    """The reason that a worker reads; with the number by which we find the payment again."""
    return f"{bonus.why.strip()[:900]} (payment {bonus.token[:12]})"


def step(bonus: Bonus) -> bool:
    """Whether the worker has been paid. Each step can be repeated: nothing is made twice, nobody is paid twice."""
    if not bonus.external_id:
        bonus.external_id = _found(bonus) or _made(bonus)
        bonus.save(update_fields=["external_id"])
    for one in pages("ListAssignmentsForHIT", "Assignments", HITId=bonus.external_id):
        if one["AssignmentStatus"] == "Submitted":
            _approve(str(one["AssignmentId"]))
        return True
    _offer_longer(bonus)
    return False


def _approve(assignment: str) -> None:
    """Approved already is done: the platform approves by itself what nobody looked at."""
    try:
        call("ApproveAssignment", AssignmentId=assignment)
    except Refused:
        told = call("GetAssignment", AssignmentId=assignment)["Assignment"]
        if told["AssignmentStatus"] != "Approved":
            raise


def _offer_longer(bonus: Bonus) -> None:
    """Nobody took it yet: what is owed is owed longer than a week. A HIT that is gone needs a person: its own list can
    tell no more whether its worker was paid."""
    hit = call("GetHIT", HITId=bonus.external_id)["HIT"]
    if hit["HITStatus"] == "Disposed":
        raise Refused(f"The HIT {bonus.external_id} of this payment is gone. Look there whether it was paid.")
    if hit["Expiration"] <= timezone.now() + DAY:
        call("UpdateExpirationForHIT", HITId=bonus.external_id, ExpireAt=timezone.now() + timedelta(seconds=WEEK))


def _found(bonus: Bonus) -> str:
    mark = MARK + bonus.token
    rows = pages("ListHITs", "HITs")
    return next((str(one["HITId"]) for one in rows if one.get("RequesterAnnotation") == mark), "")


def _made(bonus: Bonus) -> str:
    kind = kinds.qualification(f"payment {bonus.token[:12]}", "You are owed a payment by us.")
    who = bonus.worker.identity.external_id
    call("AssociateQualificationWithWorker", QualificationTypeId=kind, WorkerId=who, IntegerValue=1,
         SendNotification=True)  # fmt: skip
    need = {"QualificationTypeId": kind, "Comparator": "Exists", "ActionsGuarded": "DiscoverPreviewAndAccept"}
    hit_type = kinds.hit_type(
        "A payment that we owe you", reason_of(bonus), written(bonus.amount), 3600, KEYWORDS, [need]
    )
    address = escape(settings.SITE_URL.rstrip("/") + thanks_path(bonus))
    question = (
        f'<ExternalQuestion xmlns="{SCHEMA}"><ExternalURL>{address}</ExternalURL><FrameHeight>0</FrameHeight>'
        "</ExternalQuestion>"
    )
    try:
        made = call(
            "CreateHITWithHITType", HITTypeId=hit_type, MaxAssignments=1, LifetimeInSeconds=WEEK, Question=question,
            RequesterAnnotation=MARK + bonus.token, UniqueRequestToken=bonus.token,
        )  # fmt: skip
    except Refused as no:
        named = HIT_ID_IN_TEXT.search(str(no).partition(":")[2]) if no.code == "HitAlreadyExists" else None
        if named is None:
            raise
        return named.group(0)
    return str(made["HIT"]["HITId"])
