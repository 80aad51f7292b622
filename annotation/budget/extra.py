"""Computes what an answer earns besides its reward, where a question pays more for more work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from annotation.interfaces.base import Judgment
from annotation.interfaces.registry import interface_of
from annotation.models import Question
from kbpo.money.spend import ZERO


def extra_of(question: Question, judgments: Sequence[Judgment]) -> Decimal:
    """Return what an answer to a question earns besides its reward."""
    if question.extra and interface_of(question.interface).earns_extra(judgments):
        return question.extra
    return ZERO


def extras_of(answers: Iterable[tuple[Question, Sequence[Judgment]]]) -> Decimal:
    """Return what an answer to all questions of a HIT earns besides the reward."""
    return sum((extra_of(question, judgments) for question, judgments in answers), ZERO)
