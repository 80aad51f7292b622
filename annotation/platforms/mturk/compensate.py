"""Pays somebody who could not send their work in: a HIT for one worker alone, approved as soon as
they take it.

It is offered anew each week, taken down when it is not offered any more, and deleted when all is
decided.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from django.conf import settings

from annotation.platforms.base import Lost, Offer, Refused
from annotation.platforms.mturk import kinds
from annotation.platforms.mturk.client import HIT_ID_IN_TEXT, KEYWORDS, SCHEMA, call, pages, written
from annotation.platforms.proof import thanks_path
from kbpo import clock

if TYPE_CHECKING:
    from annotation.models import Bonus

WEEK = 7 * 86400
DAY = timedelta(days=1)
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
ENDED = ("Reviewable", "Reviewing")
MARK = "kbpo-compensation:"


def reason_of(bonus: Bonus) -> str:
    """Return the reason that a worker reads; with the number by which we find the payment again."""
    return f"{bonus.why.strip()[:900]} (payment {bonus.token[:12]})"


def step(bonus: Bonus, offered: bool) -> Offer:
    """Return what has become of a payment. Each step can be repeated: nothing is made twice, nobody
    is paid twice.

    Its HIT is looked at before its answers are listed: of one that nobody has in hand any more the
    list is complete.
    """
    if not (bonus.external_id or _is_there(bonus, offered)):
        return Offer.NOBODY
    hit = _hit(bonus) if offered else _taken_down(bonus)
    for page in pages("ListAssignmentsForHIT", "Assignments", HITId=bonus.external_id):
        if page["AssignmentStatus"] != "Approved":
            _approve(page)
        return Offer.PAID
    if hit["HITStatus"] == "Disposed":
        raise Lost(
            f"The HIT {bonus.external_id} of this payment is gone. Look there whether it was paid."
        )
    if offered:
        _offer_longer(bonus, hit)
        return Offer.WAITS
    return Offer.NOBODY if hit["HITStatus"] in ENDED else Offer.WAITS


def delete_ended_hits(bonus: Bonus) -> None:
    """Deletes the HIT of a payment, then the qualification that let its worker alone take it."""
    if bonus.external_id:
        try:
            call("DeleteHIT", HITId=bonus.external_id)
        except Refused as no:
            if not _is_gone(bonus):
                raise no
    kinds.delete_qualification(_qualification_of(bonus))


def _is_there(bonus: Bonus, offered: bool) -> bool:
    """Return whether there is a HIT of this payment now; if it is to be offered, it is made where
    there is none.
    """
    bonus.external_id = _found(bonus) or (_made(bonus) if offered else "")
    if bonus.external_id:
        bonus.offered_at = clock.now()
        bonus.save(update_fields=["external_id", "offered_at"])
    return bool(bonus.external_id)


def _hit(bonus: Bonus) -> dict[str, Any]:
    try:
        found: dict[str, Any] = call("GetHIT", HITId=bonus.external_id)["HIT"]
    except Refused as no:
        if no.code == "HITDoesNotExist":
            raise Lost(
                f"The platform does not know the HIT {bonus.external_id} of this payment any more."
            ) from no
        raise
    return found


def _is_gone(bonus: Bonus) -> bool:
    try:
        return bool(_hit(bonus)["HITStatus"] == "Disposed")
    except Lost:
        return True


def _taken_down(bonus: Bonus) -> dict[str, Any]:
    """Return the HIT, expired: nobody can take it any more, and who has it in hand may send
    it in.
    """
    hit = _hit(bonus)
    if hit["HITStatus"] == "Disposed" or hit["Expiration"] <= clock.now():
        return hit
    call("UpdateExpirationForHIT", HITId=bonus.external_id, ExpireAt=LONG_AGO)
    return _hit(bonus)


def _approve(one: dict[str, Any]) -> None:
    """Approved already is done: the platform approves by itself what nobody looked at."""
    assignment = str(one["AssignmentId"])
    override = {"OverrideRejection": True} if one["AssignmentStatus"] == "Rejected" else {}
    try:
        call("ApproveAssignment", AssignmentId=assignment, **override)
    except Refused:
        told = call("GetAssignment", AssignmentId=assignment)["Assignment"]
        if told["AssignmentStatus"] != "Approved":
            raise


def _offer_longer(bonus: Bonus, hit: dict[str, Any]) -> None:
    """Nobody took it yet: what is owed is owed longer than a week."""
    if hit["Expiration"] <= clock.now() + DAY:
        call(
            "UpdateExpirationForHIT",
            HITId=bonus.external_id,
            ExpireAt=clock.now() + timedelta(seconds=WEEK),
        )


def _token(bonus: Bonus) -> str:
    """Return each HIT by which a payment is offered has its own: the platform keeps a deleted one's
    for a day.
    """
    return (
        bonus.token
        if bonus.offers == 1
        else sha256(f"{bonus.token}:{bonus.offers}".encode()).hexdigest()
    )


def _qualification_of(bonus: Bonus) -> str:
    return f"payment {_token(bonus)[:12]}"


def _found(bonus: Bonus) -> str:
    mark = MARK + _token(bonus)
    rows = pages("ListHITs", "HITs")
    return next((str(row["HITId"]) for row in rows if row.get("RequesterAnnotation") == mark), "")


def _made(bonus: Bonus) -> str:
    kind = kinds.qualification(_qualification_of(bonus), "You are owed a payment by us.")
    need = {
        "QualificationTypeId": kind,
        "Comparator": "Exists",
        "ActionsGuarded": "DiscoverPreviewAndAccept",
    }
    address = escape(settings.SITE_URL.rstrip("/") + thanks_path(bonus))
    question = (
        "<ExternalQuestion"
        f' xmlns="{SCHEMA}"><ExternalURL>{address}</ExternalURL><FrameHeight>0</FrameHeight>'
        "</ExternalQuestion>"
    )
    try:
        call(
            "AssociateQualificationWithWorker",
            QualificationTypeId=kind,
            IntegerValue=1,
            SendNotification=True,
            WorkerId=bonus.worker.identity.external_id,
        )
        # Not remembered like the types of questions: it is used once, and goes with its
        # qualification.
        hit_type = call(
            "CreateHITType",
            **kinds.type_of_hit(
                "A payment that we owe you",
                reason_of(bonus),
                written(bonus.amount),
                3600,
                KEYWORDS,
                [need],
            ),
        )["HITTypeId"]
        made = call(
            "CreateHITWithHITType",
            HITTypeId=hit_type,
            MaxAssignments=1,
            LifetimeInSeconds=WEEK,
            Question=question,
            RequesterAnnotation=MARK + _token(bonus),
            UniqueRequestToken=_token(bonus),
        )
    except Refused as no:
        if no.code in ("QualificationTypeDoesNotExist", "HITTypeDoesNotExist"):
            kinds.forget(kind)  # it is made anew with the next try
        named = (
            HIT_ID_IN_TEXT.search(str(no).partition(":")[2])
            if no.code == "HitAlreadyExists"
            else None
        )
        if named is None:
            raise
        return named.group(0)
    return str(made["HIT"]["HITId"])
