"""How often a question may be asked."""

from __future__ import annotations

from annotation.interfaces.registry import interface_of
from annotation.models import Question

MOST_ANSWERS = 9
"""To one question, in all: beyond, a marketplace's fee doubles."""
MOST_IF_UNSURE = 5
"""To one question, however divided people are."""
MOST_BESIDE_READERS = 2
"""To one about what readers of a document were divided about: people beside them."""


def most_asked(question: Question) -> int:
    """How many people are asked a question at most, however divided they are."""
    return MOST_BESIDE_READERS if joins_readers(question) else MOST_IF_UNSURE


def promised(question: Question) -> int:
    """How many answers a question is to have: as many as its track says, or one that joins those of
    a document's readers.
    """
    return 1 if joins_readers(question) else question.track.workers_per_question


def joins_readers(question: Question) -> bool:
    """Whether a question asks alone what its document's readers were divided about."""
    return interface_of(question.interface).joins_readers(question.payload)
