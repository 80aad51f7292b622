"""Pays a worker who could not submit their work: by a HIT for this worker only, approved as soon as
they take it.

The HIT is offered again each week, taken down when the payment is withdrawn, and deleted when all
is decided.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from annotation.platforms.base import Lost, Offer, Refused
from annotation.platforms.mturk import kinds
from annotation.platforms.mturk.client import (
    KEYWORDS,
    amount_text,
    call_operation,
    existing_hit_id,
    external_question_xml,
    list_items,
)
from annotation.platforms.proof import thanks_path
from kbpo import clock

if TYPE_CHECKING:
    from annotation.models import Bonus

WEEK = 7 * 86400
DAY = timedelta(days=1)
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
ENDED = ("Reviewable", "Reviewing")
MARK = "kbpo-compensation:"


def payment_reason(bonus: Bonus) -> str:
    """Return the reason that a worker reads, with the number by which we find the payment again."""
    return f"{bonus.why.strip()[:900]} (payment {bonus.token[:12]})"


def advance_payment(bonus: Bonus, still_offered: bool) -> Offer:
    """Advance a payment by one step and return its state. Each step can be repeated: nothing is
    created twice, nobody is paid twice.

    The state of its HIT is read before its answers are listed, so that the list of a HIT that
    nobody holds any more is complete.
    """
    if not bonus.external_id:
        mark = MARK + _current_hit_token(bonus)
        for row in list_items("ListHITs", "HITs"):
            if row.get("RequesterAnnotation") == mark:
                bonus.external_id = str(row["HITId"])
                break
        if not bonus.external_id and still_offered:
            bonus.external_id = _create_hit(bonus)
        if not bonus.external_id:
            return Offer.NOBODY
        bonus.offered_at = clock.now()
        bonus.save(update_fields=["external_id", "offered_at"])
    hit = _fetch_hit(bonus) if still_offered else _expire_hit(bonus)
    for page in list_items("ListAssignmentsForHIT", "Assignments", HITId=bonus.external_id):
        if page["AssignmentStatus"] != "Approved":
            _approve_if_undecided(page)
        return Offer.PAID
    if hit["HITStatus"] == "Disposed":
        raise Lost(
            f"The HIT {bonus.external_id} of this payment is gone. Look there whether it was paid."
        )
    if still_offered:
        if hit["Expiration"] <= clock.now() + DAY:  # a debt does not expire with its HIT
            until = clock.now() + timedelta(seconds=WEEK)
            call_operation("UpdateExpirationForHIT", HITId=bonus.external_id, ExpireAt=until)
        return Offer.WAITS
    return Offer.NOBODY if hit["HITStatus"] in ENDED else Offer.WAITS


def delete_ended_hits(bonus: Bonus) -> None:
    """Delete the HIT of a payment, then the qualification that restricted the HIT to its worker."""
    if bonus.external_id:
        try:
            call_operation("DeleteHIT", HITId=bonus.external_id)
        except Refused as no:
            try:
                is_gone = _fetch_hit(bonus)["HITStatus"] == "Disposed"
            except Lost:
                is_gone = True
            if not is_gone:
                raise no
    kinds.delete_qualification(_qualification_name(bonus))


def _fetch_hit(bonus: Bonus) -> dict[str, Any]:
    try:
        found: dict[str, Any] = call_operation("GetHIT", HITId=bonus.external_id)["HIT"]
    except Refused as no:
        if no.code == "HITDoesNotExist":
            raise Lost(
                f"The platform does not know the HIT {bonus.external_id} of this payment any more."
            ) from no
        raise
    return found


def _expire_hit(bonus: Bonus) -> dict[str, Any]:
    """Expire the HIT and return it: nobody can take it any more; a worker who holds it may submit
    it.
    """
    hit = _fetch_hit(bonus)
    if hit["HITStatus"] == "Disposed" or hit["Expiration"] <= clock.now():
        return hit
    call_operation("UpdateExpirationForHIT", HITId=bonus.external_id, ExpireAt=LONG_AGO)
    return _fetch_hit(bonus)


def _approve_if_undecided(one: dict[str, Any]) -> None:
    """Approve an assignment unless the platform has approved it automatically."""
    assignment = str(one["AssignmentId"])
    override = {"OverrideRejection": True} if one["AssignmentStatus"] == "Rejected" else {}
    try:
        call_operation("ApproveAssignment", AssignmentId=assignment, **override)
    except Refused:
        current = call_operation("GetAssignment", AssignmentId=assignment)["Assignment"]
        if current["AssignmentStatus"] != "Approved":
            raise


def _current_hit_token(bonus: Bonus) -> str:
    """Return the token of the current HIT of a payment. Each HIT has another token, since the
    platform remembers the token of a deleted HIT for a day.
    """
    if bonus.offers == 1:
        return bonus.token
    return sha256(f"{bonus.token}:{bonus.offers}".encode()).hexdigest()


def _qualification_name(bonus: Bonus) -> str:
    return f"payment {_current_hit_token(bonus)[:12]}"


def _create_hit(bonus: Bonus) -> str:
    kind = kinds.qualification_id(_qualification_name(bonus), "You are owed a payment by us.")
    need = {
        "QualificationTypeId": kind,
        "Comparator": "Exists",
        "ActionsGuarded": "DiscoverPreviewAndAccept",
    }
    properties = kinds.hit_type_parameters(
        "A payment that we owe you",
        payment_reason(bonus),
        amount_text(bonus.amount),
        3600,
        KEYWORDS,
        [need],
    )
    try:
        call_operation(
            "AssociateQualificationWithWorker",
            QualificationTypeId=kind,
            IntegerValue=1,
            SendNotification=True,
            WorkerId=bonus.worker.identity.external_id,
        )
        # Not remembered like the types of questions: it is used once, and goes with its
        # qualification.
        hit_type = call_operation("CreateHITType", **properties)["HITTypeId"]
        made = call_operation(
            "CreateHITWithHITType",
            HITTypeId=hit_type,
            MaxAssignments=1,
            LifetimeInSeconds=WEEK,
            Question=external_question_xml(thanks_path(bonus)),
            RequesterAnnotation=MARK + _current_hit_token(bonus),
            UniqueRequestToken=_current_hit_token(bonus),
        )
    except Refused as no:
        if no.code in ("QualificationTypeDoesNotExist", "HITTypeDoesNotExist"):
            kinds.forget_hit_type(kind)  # created again on the next attempt
        if no.code != "HitAlreadyExists" or not (existing := existing_hit_id(no)):
            raise
        return existing
    return str(made["HIT"]["HITId"])
