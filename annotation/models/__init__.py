"""Box 3, human annotation: its nouns, as Django and the other rooms import them."""

from __future__ import annotations

from annotation.models.evidence import Adjudication, Comparison, Gold, Pilot, Policy, Rejection
from annotation.models.platforms import Bonus, ExternalType, PlatformBooks, Qualification
from annotation.models.questions import (
    ANSWERABLE,
    ANSWERED,
    COUNTED,
    HIT,
    UNLISTED,
    UNPROVEN,
    UNSETTLED,
    Assignment,
    Considered,
    DocumentOrder,
    Halt,
    OrderedDocument,
    Payment,
    Question,
    Response,
    Signal,
    Title,
    Worker,
    WorkerIdentity,
)

__all__ = [
    "ANSWERABLE",
    "ANSWERED",
    "COUNTED",
    "HIT",
    "UNLISTED",
    "UNPROVEN",
    "UNSETTLED",
    "Adjudication",
    "Assignment",
    "Bonus",
    "Comparison",
    "Considered",
    "DocumentOrder",
    "ExternalType",
    "Gold",
    "Halt",
    "OrderedDocument",
    "Payment",
    "Pilot",
    "PlatformBooks",
    "Policy",
    "Qualification",
    "Question",
    "Rejection",
    "Response",
    "Signal",
    "Title",
    "Worker",
    "WorkerIdentity",
]
