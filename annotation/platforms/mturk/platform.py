"""The platform `mturk`: implements the contract of `annotation` with the requester's API."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn
from xml.parsers import expat

from django.conf import settings

from annotation.platforms.base import (
    Account,
    Advert,
    Capabilities,
    Offer,
    Platform,
    Refused,
    Request,
    Seen,
    UnknownOutcome,
)
from annotation.platforms.mturk import compensate, kinds
from annotation.platforms.mturk.client import (
    CENT,
    FEE,
    KEYWORDS,
    account,
    amount_text,
    call_operation,
    existing_hit_id,
    external_question_xml,
    hit_annotation,
    list_items,
    refuse_other_endpoint,
    title_and_description,
    token_in_annotation,
)
from annotation.platforms.proof import task_path
from kbpo import clock

if TYPE_CHECKING:
    from annotation.models import HIT, Assignment, Bonus, Worker

MOST_CHARACTERS = 2_000_000
FORGETS = timedelta(hours=23)
"""Period for which we rely on tokens: the platform forgets them after a day, this is an hour less.
"""
STATUS = {
    "Assignable": "open",
    "Unassignable": "busy",
    "Reviewable": "done",
    "Reviewing": "done",
    "Disposed": "gone",
}


class Unreadable(ValueError):
    """Raised for an answer that is not in the platform's format."""


def form_fields(xml: str) -> dict[str, str]:
    """Return the fields of the form: name → value. Raises Unreadable."""
    if len(xml) > MOST_CHARACTERS:
        raise Unreadable("The answer is too long.")
    reader = _Reader()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse_xml
    parser.EntityDeclHandler = _refuse_xml
    parser.ExternalEntityRefHandler = _refuse_xml
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    try:
        parser.Parse(xml, True)
    except expat.ExpatError as error:
        raise Unreadable(f"The answer is no XML: {error}") from error
    return reader.fields


def _refuse_xml(*_: object) -> NoReturn:
    raise Unreadable("The answer declares a document type or an entity.")


class _Reader:
    """Collects QuestionIdentifier and FreeText of every Answer."""

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}
        self.name = ""
        self.value = ""
        self.inside = ""

    def start(self, name: str, _: dict[str, str]) -> None:
        self.inside = name.rpartition(" ")[2]
        if self.inside == "Answer":
            self.name = self.value = ""

    def text(self, data: str) -> None:
        if self.inside == "QuestionIdentifier":
            self.name += data
        elif self.inside == "FreeText":
            self.value += data

    def end(self, name: str) -> None:
        if name.rpartition(" ")[2] == "Answer" and self.name:
            self.fields[self.name] = self.value
        self.inside = ""


class MTurk(Platform):
    """Mechanical Turk, or a service with the same protocol."""

    name: ClassVar[str] = kinds.NAME

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        """Return the features; at most nine assignments on a HIT, since from ten on the fee
        doubles.
        """
        return Capabilities(
            "Mechanical Turk",
            messages=True,
            worker_id=r"[A-Z][A-Z0-9]{1,39}",
            max_assignments=9,
            questions_per_hit=settings.MTURK_QUESTIONS_PER_HIT,
            fee_rate=FEE,
            least_fee=CENT,
            frame_sites=tuple(settings.MTURK_WORKER_SITES),
            submit_path="/mturk/externalSubmit",
            teaches_in_frame=settings.MTURK_TUTORIAL,
            admits=settings.MTURK_REQUIRE_TUTORIAL,
            offered_for=timedelta(hours=settings.MTURK_HIT_HOURS),
            looked_at_every=timedelta(seconds=float(settings.MTURK_POLL_SECONDS)),
            answers_within=timedelta(seconds=float(settings.MTURK_TIMEOUT)),
        )

    def account(self) -> Account | None:
        return account()

    # -- HITs
    def publish(self, hit: HIT, advert: Advert) -> str:
        """Publish a HIT once. If it may have been published already, search for it first."""
        refuse_other_endpoint(hit.endpoint, f"HIT {hit.pk}")
        begun = hit.called_at or clock.now()
        if clock.now() - begun > FORGETS and (found := self._find_hit(hit)) is not None:
            return found.external_id
        try:
            return str(self._create_hit(hit, advert)["HIT"]["HITId"])
        except Refused as no:
            if no.code == "HitAlreadyExists":
                if existing := existing_hit_id(no):
                    return existing
                if (found := self._find_hit(hit)) is not None:
                    return found.external_id
                raise UnknownOutcome(
                    "The platform says that this HIT exists, and does not show it."
                ) from no
            if no.code == "HITTypeDoesNotExist":  # another endpoint stands behind the same address
                kinds.forget_hit_type()
                return str(self._create_hit(hit, advert)["HIT"]["HITId"])
            raise

    def _create_hit(self, hit: HIT, advert: Advert) -> dict[str, Any]:
        title, description = title_and_description(advert)
        kind = kinds.hit_type_id(
            title,
            description,
            amount_text(hit.reward),
            advert.lease_seconds,
            KEYWORDS,
            kinds.worker_requirements(),
        )
        return call_operation(
            "CreateHITWithHITType",
            HITTypeId=kind,
            MaxAssignments=hit.max_assignments,
            LifetimeInSeconds=settings.MTURK_HIT_HOURS * 3600,
            Question=external_question_xml(task_path(hit)),
            RequesterAnnotation=hit_annotation(hit),
            UniqueRequestToken=hit.token,
        )

    def survey(self, hit: HIT | None = None) -> Iterator[Seen]:
        if hit is None:
            for page in list_items("ListHITs", "HITs"):
                yield _seen_from_hit(page)
        elif (found := self._find_hit(hit)) is not None:
            yield found

    def _find_hit(self, hit: HIT) -> Seen | None:
        refuse_other_endpoint(hit.endpoint, f"HIT {hit.pk}")
        if hit.external_id:
            try:
                return _seen_from_hit(call_operation("GetHIT", HITId=hit.external_id)["HIT"])
            except Refused as no:
                if no.code == "HITDoesNotExist":
                    return None
                raise
        for page in list_items("ListHITs", "HITs"):
            if page.get("RequesterAnnotation") == hit_annotation(hit):
                return _seen_from_hit(page)
        return None

    def offer(
        self, hit: HIT, until: datetime, *, additional_assignments: int = 0, key: str = ""
    ) -> None:
        refuse_other_endpoint(hit.endpoint, f"HIT {hit.pk}")
        call_operation("UpdateExpirationForHIT", HITId=hit.external_id, ExpireAt=until)
        if not additional_assignments:
            return
        token = hashlib.sha256(key.encode()).hexdigest()
        try:
            call_operation(
                "CreateAdditionalAssignmentsForHIT",
                HITId=hit.external_id,
                UniqueRequestToken=token,
                NumberOfAdditionalAssignments=additional_assignments,
            )
        except Refused as no:
            if no.code != "RequestAlreadyProcessed":
                raise

    def take_down(self, hit: HIT, *, delete: bool = False) -> None:
        refuse_other_endpoint(hit.endpoint, f"HIT {hit.pk or hit.external_id}")
        if not delete:
            call_operation(
                "UpdateExpirationForHIT", HITId=hit.external_id, ExpireAt=compensate.LONG_AGO
            )
            return
        try:
            call_operation("DeleteHIT", HITId=hit.external_id)
        except Refused as no:
            seen = self._find_hit(hit)
            if seen is not None and seen.status != "gone":
                raise no

    # -- Assignments
    def collect(self, hit: HIT) -> Iterable[dict[str, Any]]:
        refuse_other_endpoint(hit.endpoint, f"HIT {hit.pk}")
        for page in list_items("ListAssignmentsForHIT", "Assignments", HITId=hit.external_id):
            try:
                fields = form_fields(page.get("Answer", ""))
            except Unreadable as bad:
                fields = {"unreadable": str(bad)}
            yield {
                "external_id": page["AssignmentId"],
                "worker_id": page["WorkerId"],
                "fields": fields,
                "accepted_at": page.get("AcceptTime") or clock.now(),
                "submitted_at": page.get("SubmitTime") or clock.now(),
                "status": page["AssignmentStatus"].lower(),
            }

    def decide(self, assignment: Assignment, refused: str | None = None) -> None:
        refuse_other_endpoint(assignment.hit.endpoint, f"Answer {assignment.pk}")
        wanted, which = "approved", {"AssignmentId": assignment.external_id}
        try:
            if refused is not None:
                wanted = "rejected"
                call_operation("RejectAssignment", **which, RequesterFeedback=refused[:1024])
            else:
                call_operation("ApproveAssignment", **which)
        except Refused as no:
            if refused is None and assignment.platform_status == wanted:
                return
            status = call_operation("GetAssignment", **which)["Assignment"][
                "AssignmentStatus"
            ].lower()
            if status == "rejected" and refused is None and no.code == "InvalidAssignmentState":
                call_operation("ApproveAssignment", **which, OverrideRejection=True)
            elif status != wanted:
                raise no

    # -- People
    def pay_bonus(self, bonus: Bonus) -> None:
        assert bonus.assignment is not None
        refuse_other_endpoint(bonus.endpoint, f"Bonus {bonus.pk}")
        if bonus.asked_before and self._was_bonus_paid(bonus):
            return
        try:
            call_operation(
                "SendBonus",
                WorkerId=bonus.worker.identity.external_id,
                BonusAmount=amount_text(bonus.amount),
                AssignmentId=bonus.assignment.external_id,
                Reason=compensate.payment_reason(bonus),
                UniqueRequestToken=bonus.token,
            )
        except Refused as no:
            if not self._was_bonus_paid(bonus):
                raise no

    def _was_bonus_paid(self, bonus: Bonus) -> bool:
        assert bonus.assignment is not None
        paid = list_items(
            "ListBonusPayments", "BonusPayments", AssignmentId=bonus.assignment.external_id
        )
        return any(one["Reason"] == compensate.payment_reason(bonus) for one in paid)

    def advance_compensation(
        self, bonus: Bonus, *, still_offered: bool = True, is_finished: bool = False
    ) -> Offer:
        refuse_other_endpoint(bonus.endpoint, f"Payment {bonus.pk}")
        if is_finished:
            compensate.delete_ended_hits(bonus)
            return Offer.NOBODY
        return compensate.advance_payment(bonus, still_offered)

    def set_qualification(self, worker: Worker, name: str, has_qualification: bool) -> None:
        kind, who = kinds.qualification_id(name), worker.identity.external_id
        if has_qualification:
            call_operation(
                "AssociateQualificationWithWorker",
                QualificationTypeId=kind,
                WorkerId=who,
                IntegerValue=1,
                SendNotification=False,
            )
            return
        try:
            call_operation(
                "DisassociateQualificationFromWorker", QualificationTypeId=kind, WorkerId=who
            )
        except Refused as no:
            if no.code != "InvalidQualificationState":  # already absent, as wanted
                raise

    def requests(self) -> Iterator[Request]:
        kind = kinds.qualification_id(kinds.TUTORIAL)
        for page in list_items(
            "ListQualificationRequests", "QualificationRequests", QualificationTypeId=kind
        ):
            yield Request(page["QualificationRequestId"], page["WorkerId"])

    def answer(self, request: Request, refused: str = "") -> None:
        which = {"QualificationRequestId": request.external_id}
        if refused:
            call_operation("RejectQualificationRequest", **which, Reason=refused)
        else:
            call_operation("AcceptQualificationRequest", **which, IntegerValue=1)

    def message(self, worker: Worker, subject: str, text: str) -> None:
        request = {
            "Subject": subject[:200],
            "MessageText": text[:4096],
            "WorkerIds": [worker.identity.external_id],
        }
        for failed in call_operation("NotifyWorkers", **request).get(
            "NotifyWorkersFailureStatuses", []
        ):
            raise Refused(
                failed.get("NotifyWorkersFailureMessage", "The platform did not deliver it.")
            )

    def balance(self) -> dict[str, Decimal]:
        answer = call_operation("GetAccountBalance")
        return {
            "available": Decimal(answer["AvailableBalance"]),
            "on_hold": Decimal(answer.get("OnHoldBalance") or "0.00"),
        }


def _seen_from_hit(one: dict[str, Any]) -> Seen:
    most, free = one["MaxAssignments"], one.get("NumberOfAssignmentsAvailable", 0)
    return Seen(
        external_id=one["HITId"],
        token=token_in_annotation(one.get("RequesterAnnotation", "")),
        status=STATUS[one["HITStatus"]],
        max_assignments=most,
        sent=most - free - one.get("NumberOfAssignmentsPending", 0),
        expires_at=one["Expiration"],
        created_at=one["CreationTime"],
    )
