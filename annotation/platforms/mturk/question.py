"""What a HIT says of itself: the address of its page, its title, and the mark by which we know it
again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from django.conf import settings

from annotation.interfaces.registry import interface_of
from annotation.platforms.proof import task_path
from annotation.workers.teach import tutorials

if TYPE_CHECKING:
    from annotation.models import HIT

SCHEMA = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2006-07-14/ExternalQuestion.xsd"
MARK = "kbpo:"
"""Before our token in RequesterAnnotation"""
KEYWORDS = "reading, text, judge, relations, names, news"
HIT_ID_IN_TEXT = re.compile(r"\b[A-Z0-9]{20,64}\b")
STEP = 600
SLACK = 15
TO_LEARN = 3
"""A worker has so many times the expected time, and a tutorial's, in steps of ten minutes: few
types of HIT."""


def external_question(hit: HIT) -> str:
    """The question of a HIT: one address, its `&` escaped; the frame takes the height that there
    is.
    """
    address = escape(settings.SITE_URL.rstrip("/") + task_path(hit), {'"': "&quot;"})
    return (
        "<ExternalQuestion"
        f' xmlns="{SCHEMA}"><ExternalURL>{address}</ExternalURL><FrameHeight>0</FrameHeight>'
        "</ExternalQuestion>"
    )


def mark_of(hit: HIT) -> str:
    """The annotation that a HIT is published with."""
    return MARK + hit.token


def token_of(annotation: str) -> str:
    """Our token in an annotation; nothing if the HIT is not ours."""
    return annotation.removeprefix(MARK) if annotation.startswith(MARK) else ""


def title_of(hit: HIT) -> tuple[str, str]:
    """Title and description, which workers choose by."""
    questions = list(hit.questions.all())
    kind = interface_of(questions[0].interface)
    seconds = sum(question.seconds for question in questions)
    about = "one question" if len(questions) == 1 else f"{len(questions)} questions"
    what = kind.offered_as
    return (
        what,
        f"{what}: {about}, about {max(1, round(seconds / 60))} min. Flags are paid like answers.",
    )


def duration_of(hit: HIT) -> int:
    """Seconds that a worker has from accepting a HIT to sending it in, a tutorial before it
    included.
    """
    questions = list(hit.questions.all())
    expected = SLACK * sum(question.seconds for question in questions)
    lesson = (
        tutorials().get(questions[0].interface) if settings.MTURK_TUTORIAL and questions else None
    )
    return STEP * max(1, -(-(expected + (TO_LEARN * lesson.seconds if lesson else 0)) // STEP))
