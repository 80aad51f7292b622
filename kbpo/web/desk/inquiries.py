"""What admins ask of all of a track's data: who works it out, a step of the clock that does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from kbpo import clock
from kbpo.evaluation.models import Inquiry
from kbpo.queue import work
from kbpo.web.desk import pooling
from kbpo.web.desk.quality import aggregation, checks

ANSWERS: dict[str, Callable[[Inquiry], dict[str, Any]]] = {
    pooling.WHAT: pooling.answer,
    checks.WHAT: checks.answer,
    aggregation.WHAT: aggregation.answer,
}


def tick() -> int:
    """How many inquiries were answered."""
    return work(Inquiry, "asked", _answer)


def _answer(inquiry: Inquiry) -> None:
    began = time.monotonic()
    answer = ANSWERS[inquiry.what](inquiry)
    seconds = time.monotonic() - began
    inquiry.move("answered", answer=answer, made_at=clock.now(), seconds=seconds)
