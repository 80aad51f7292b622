"""Models of human annotation."""

from __future__ import annotations

from annotation.models.evidence import (
    SIGNALS,
    Gold,
    Policy,
    Rejection,
    signals_that_exclude,
)
from annotation.models.platforms import Bonus, ExternalType, PlatformBooks, Qualification
from annotation.models.questions import (
    ANSWERABLE,
    ANSWERED,
    COUNTED,
    FIRST,
    HIT,
    MOST_PRICE,
    UNLISTED,
    UNPROVEN,
    UNSETTLED,
    Assignment,
    Considered,
    DocumentOrder,
    Halt,
    Payment,
    Question,
    Response,
    Signal,
    Worker,
    WorkerIdentity,
)

__all__ = [
    "ANSWERABLE",
    "ANSWERED",
    "COUNTED",
    "FIRST",
    "HIT",
    "MOST_PRICE",
    "SIGNALS",
    "UNLISTED",
    "UNPROVEN",
    "UNSETTLED",
    "Assignment",
    "Bonus",
    "Considered",
    "DocumentOrder",
    "ExternalType",
    "Gold",
    "Halt",
    "Payment",
    "PlatformBooks",
    "Policy",
    "Qualification",
    "Question",
    "Rejection",
    "Response",
    "Signal",
    "Worker",
    "WorkerIdentity",
    "signals_that_exclude",
]
