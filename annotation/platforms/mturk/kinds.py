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
from annotation.platforms.mturk.client import call, list_items, usable_endpoint

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


def subscribe(hit_type: str, topic: str) -> bool:
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
        call(
            "UpdateNotificationSettings", HITTypeId=hit_type, Notification=notification, Active=True
        )
    except (PlatformDown, UnknownOutcome, Refused) as trouble:
        log.warning("The platform will not tell us of HITs of type %s yet: %s", hit_type, trouble)
        return False
    return True


def type_of_hit(
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


def hit_type(
    title: str, description: str, reward: str, duration: int, keywords: str, needs: list[Any]
) -> str:
    """Return the id of the type with these properties."""
    request = type_of_hit(title, description, reward, duration, keywords, needs)
    digest = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
    known = _stored_external_id("hit_type", digest)
    made = known or _keep("hit_type", digest, call("CreateHITType", **request)["HITTypeId"])
    # The platform is asked once to tell our topic of this type's HITs; what fails is tried with the
    # next HIT.
    topic = settings.MTURK_NOTIFY_TOPIC
    digest = hashlib.sha256(f"{made} {topic}".encode()).hexdigest()
    if topic and not _stored_external_id("notification", digest) and subscribe(made, topic):
        _keep("notification", digest, made)
    return made


def qualification(name: str, description: str = "") -> str:
    """Return the id of one of our qualifications; one that already exists on this account is
    reused.
    """
    known = _stored_external_id("qualification", name)
    return known or _keep(
        "qualification", name, _make_qualification(name, description or DESCRIPTIONS[name])
    )


def delete_qualification(name: str) -> None:
    """Delete one of our qualifications that is no longer needed; a missing one counts as
    deleted.
    """
    full = _platform_name(name)
    kind = _stored_external_id("qualification", name) or _qualification_named(full)
    if kind is None:
        return
    try:
        call("DeleteQualificationType", QualificationTypeId=kind)
    except Refused as no:
        if _qualification_named(full) is not None:
            raise no
    forget(kind)


def _platform_name(name: str) -> str:
    """Return the platform's name for one of our qualifications."""
    return f"{settings.MTURK_NAME}: {name}"


def _make_qualification(name: str, description: str) -> str:
    full = _platform_name(name)
    if (found := _qualification_named(full)) is not None:
        return found
    try:
        made = call(
            "CreateQualificationType",
            Name=full,
            Description=description,
            QualificationTypeStatus="Active",
        )
    except Refused as no:
        if (found := _qualification_named(full)) is not None:
            return found
        raise no
    return str(made["QualificationType"]["QualificationTypeId"])


def _qualification_named(full: str) -> str | None:
    request = {"Query": full, "MustBeRequestable": False, "MustBeOwnedByCaller": True}
    for page in list_items("ListQualificationTypes", "QualificationTypes", **request):
        if page["Name"] == full:
            return str(page["QualificationTypeId"])
    return None


def requirements() -> list[dict[str, Any]]:
    """Return the requirements on workers who accept our HITs: not excluded, and those in the
    settings.
    """
    needs: list[dict[str, Any]] = [
        _requirement(qualification(EXCLUDED), "DoesNotExist", "DiscoverPreviewAndAccept")
    ]
    if settings.MTURK_REQUIRE_TUTORIAL:
        needs.append(_requirement(qualification(TUTORIAL), "Exists", "Accept"))
    if settings.MTURK_LEAST_APPROVED_PERCENT:
        needs.append(_requirement_at_least(APPROVED_PERCENT, settings.MTURK_LEAST_APPROVED_PERCENT))
    if settings.MTURK_LEAST_APPROVED_HITS:
        needs.append(_requirement_at_least(APPROVED_HITS, settings.MTURK_LEAST_APPROVED_HITS))
    if settings.MTURK_COUNTRIES:
        places = [{"Country": country} for country in settings.MTURK_COUNTRIES]
        needs.append(_requirement(LOCALE, "In", "Accept") | {"LocaleValues": places})
    return needs


def _requirement(kind: str, comparator: str, guarded: str) -> dict[str, Any]:
    return {"QualificationTypeId": kind, "Comparator": comparator, "ActionsGuarded": guarded}


def _requirement_at_least(kind: str, number: int) -> dict[str, Any]:
    return _requirement(kind, "GreaterThanOrEqualTo", "Accept") | {"IntegerValues": [number]}


def forget(external_id: str = "") -> None:
    """Delete our record of a type that the endpoint no longer has; without an id, of all types."""
    external_types = ExternalType.objects.filter(platform=NAME, endpoint=usable_endpoint().endpoint)
    (external_types.filter(external_id=external_id) if external_id else external_types).delete()


def _stored_external_id(kind: str, digest: str) -> str:
    external_types = ExternalType.objects.filter(
        platform=NAME, endpoint=usable_endpoint().endpoint, kind=kind, digest=digest
    )
    return external_types.values_list("external_id", flat=True).first() or ""


def _keep(kind: str, digest: str, external_id: str) -> str:
    row, _ = ExternalType.objects.update_or_create(
        platform=NAME,
        endpoint=usable_endpoint().endpoint,
        kind=kind,
        digest=digest,
        defaults={"external_id": external_id},
    )
    return row.external_id
