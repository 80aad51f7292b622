"""Draws the expert rounds that admins asked for: a step of the clock."""

from __future__ import annotations

import time

from kbpo import clock
from kbpo.evaluation.models import Inquiry
from kbpo.queue import work
from kbpo.web.desk.quality import experts


def tick() -> int:
    """Return how many requests were answered."""
    return work(Inquiry, "asked", _answer)


def _answer(inquiry: Inquiry) -> None:
    began = time.monotonic()
    answer = experts.draw(inquiry)
    seconds = time.monotonic() - began
    inquiry.move("answered", answer=answer, made_at=clock.now(), seconds=seconds)
