"""Asks the platform to tell us when something happens to HITs of a type: a hint when to look, never
what to believe.
"""

from __future__ import annotations

import logging

from annotation.platforms.base import PlatformDown, Refused, UnknownOutcome
from annotation.platforms.mturk.client import call

log = logging.getLogger(__name__)
EVENTS = ["AssignmentSubmitted", "AssignmentReturned", "AssignmentAbandoned", "HITReviewable"]
VERSION = "2006-05-05"


def subscribe(hit_type: str, topic: str) -> bool:
    """Return whether the platform will tell our topic of a type's HITs. That it does not keeps
    nothing from being put up.
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
