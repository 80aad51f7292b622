"""Types of HITs and of qualifications: created once on an endpoint, stored, and created again if
the endpoint has lost them.
"""

from __future__ import annotations

import hashlib
import json
import logging
from typing import Any

from django.conf import settings

from annotation.models import ExternalType
from annotation.platforms.base import PlatformDown, Refused, UnknownOutcome
from annotation.platforms.mturk.client import call_operation, list_items, usable_endpoint

log = logging.getLogger(__name__)
EVENTS = ["AssignmentSubmitted", "AssignmentReturned", "AssignmentAbandoned", "HITReviewable"]
VERSION = "2006-05-05"
NAME = "mturk"
EXCLUDED, TUTORIAL = "excluded", "tutorial"
DESCRIPTIONS = {
    EXCLUDED: "You will not be offered further questions of ours.",
    TUTORIAL: (
        "You have passed our tutorial. Ask for it: you are told where the tutorial is, and get it"
        " by passing."
    ),
}
APPROVED_PERCENT, APPROVED_HITS, LOCALE = (
    "000000000000000000L0",
    "00000000000000000040",
    "00000000000000000071",
)
DAY = 86400


def subscribe_to_hit_type(hit_type: str, topic: str) -> bool:
    """Subscribe our topic to a type's HITs, and return whether the platform accepted. HITs are
    published even if it did not.
    """
    notification = {
        "Destination": topic,
        "Transport": "SNS",
        "Version": VERSION,
        "EventTypes": EVENTS,
    }
    try:
        call_operation(
            "UpdateNotificationSettings", HITTypeId=hit_type, Notification=notification, Active=True
        )
    except (PlatformDown, UnknownOutcome, Refused) as trouble:
        log.warning("The platform will not tell us of HITs of type %s yet: %s", hit_type, trouble)
        return False
    return True


def hit_type_parameters(
    title: str, description: str, reward: str, duration: int, keywords: str, needs: list[Any]
) -> dict[str, Any]:
    """Return the properties of a type of HIT as parameters of a request to Mechanical Turk."""
    return {
        "Title": title,
        "Description": description,
        "Reward": reward,
        "Keywords": keywords,
        "AssignmentDurationInSeconds": duration,
        "QualificationRequirements": needs,
        "AutoApprovalDelayInSeconds": settings.MTURK_AUTO_APPROVAL_DAYS * DAY,
    }


def hit_type_id(
    title: str, description: str, reward: str, duration: int, keywords: str, needs: list[Any]
) -> str:
    """Return the id of the type with these properties."""
    request = hit_type_parameters(title, description, reward, duration, keywords, needs)
    digest = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
    known = _stored_external_id("hit_type", digest)
    made = known or _store_external_id(
        "hit_type", digest, call_operation("CreateHITType", **request)["HITTypeId"]
    )
    # The platform is asked once to tell our topic of this type's HITs; what fails is tried with the
    # next HIT.
    topic = settings.MTURK_NOTIFY_TOPIC
    digest = hashlib.sha256(f"{made} {topic}".encode()).hexdigest()
    if (
        topic
        and not _stored_external_id("notification", digest)
        and subscribe_to_hit_type(made, topic)
    ):
        _store_external_id("notification", digest, made)
    return made


def qualification_id(name: str, description: str = "") -> str:
    """Return the id of one of our qualifications; one that already exists on this account is
    reused.
    """
    known = _stored_external_id("qualification", name)
    return known or _store_external_id(
        "qualification", name, _make_qualification(name, description or DESCRIPTIONS[name])
    )


def delete_qualification(name: str) -> None:
    """Delete one of our qualifications that is no longer needed; a missing one counts as
    deleted.
    """
    full = _platform_name(name)
    kind = _stored_external_id("qualification", name) or _find_qualification(full)
    if kind is None:
        return
    try:
        call_operation("DeleteQualificationType", QualificationTypeId=kind)
    except Refused as no:
        if _find_qualification(full) is not None:
            raise no
    forget_hit_type(kind)


def _platform_name(name: str) -> str:
    """Return the platform's name for one of our qualifications."""
    return f"{settings.MTURK_NAME}: {name}"


def _make_qualification(name: str, description: str) -> str:
    full = _platform_name(name)
    if (found := _find_qualification(full)) is not None:
        return found
    try:
        made = call_operation(
            "CreateQualificationType",
            Name=full,
            Description=description,
            QualificationTypeStatus="Active",
        )
    except Refused as no:
        if (found := _find_qualification(full)) is not None:
            return found
        raise no
    return str(made["QualificationType"]["QualificationTypeId"])


def _find_qualification(full: str) -> str | None:
    request = {"Query": full, "MustBeRequestable": False, "MustBeOwnedByCaller": True}
    for page in list_items("ListQualificationTypes", "QualificationTypes", **request):
        if page["Name"] == full:
            return str(page["QualificationTypeId"])
    return None


def worker_requirements() -> list[dict[str, Any]]:
    """Return the requirements on workers who accept our HITs: not excluded, and those in the
    settings.
    """
    needs: list[dict[str, Any]] = [
        _requirement_parameters(
            qualification_id(EXCLUDED), "DoesNotExist", "DiscoverPreviewAndAccept"
        )
    ]
    if settings.MTURK_REQUIRE_TUTORIAL:
        needs.append(_requirement_parameters(qualification_id(TUTORIAL), "Exists", "Accept"))
    if settings.MTURK_LEAST_APPROVED_PERCENT:
        needs.append(_requirement_at_least(APPROVED_PERCENT, settings.MTURK_LEAST_APPROVED_PERCENT))
    if settings.MTURK_LEAST_APPROVED_HITS:
        needs.append(_requirement_at_least(APPROVED_HITS, settings.MTURK_LEAST_APPROVED_HITS))
    if settings.MTURK_COUNTRIES:
        places = [{"Country": country} for country in settings.MTURK_COUNTRIES]
        needs.append(_requirement_parameters(LOCALE, "In", "Accept") | {"LocaleValues": places})
    return needs


def _requirement_parameters(kind: str, comparator: str, guarded: str) -> dict[str, Any]:
    return {"QualificationTypeId": kind, "Comparator": comparator, "ActionsGuarded": guarded}


def _requirement_at_least(kind: str, number: int) -> dict[str, Any]:
    return _requirement_parameters(kind, "GreaterThanOrEqualTo", "Accept") | {
        "IntegerValues": [number]
    }


def forget_hit_type(external_id: str = "") -> None:
    """Delete our record of a type that the endpoint no longer has; without an id, of all types."""
    external_types = ExternalType.objects.filter(platform=NAME, endpoint=usable_endpoint().endpoint)
    (external_types.filter(external_id=external_id) if external_id else external_types).delete()


def _stored_external_id(kind: str, digest: str) -> str:
    external_types = ExternalType.objects.filter(
        platform=NAME, endpoint=usable_endpoint().endpoint, kind=kind, digest=digest
    )
    return external_types.values_list("external_id", flat=True).first() or ""


def _store_external_id(kind: str, digest: str, external_id: str) -> str:
    row, _ = ExternalType.objects.update_or_create(
        platform=NAME,
        endpoint=usable_endpoint().endpoint,
        kind=kind,
        digest=digest,
        defaults={"external_id": external_id},
    )
    return row.external_id
