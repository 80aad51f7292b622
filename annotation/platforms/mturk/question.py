"""What a HIT says of itself: the address of its page, its title, and the mark by which we know it
again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from django.conf import settings

from annotation.platforms.base import Advert
from annotation.platforms.proof import task_path

if TYPE_CHECKING:
    from annotation.models import HIT

SCHEMA = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2006-07-14/ExternalQuestion.xsd"
MARK = "kbpo:"
"""Before our token in RequesterAnnotation"""
KEYWORDS = "reading, text, judge, relations, names, news"
HIT_ID_IN_TEXT = re.compile(r"\b[A-Z0-9]{20,64}\b")


def external_question(hit: HIT) -> str:
    """Return the question of a HIT: one address, its `&` escaped; the frame takes the height that
    there is.
    """
    address = escape(settings.SITE_URL.rstrip("/") + task_path(hit), {'"': "&quot;"})
    return (
        "<ExternalQuestion"
        f' xmlns="{SCHEMA}"><ExternalURL>{address}</ExternalURL><FrameHeight>0</FrameHeight>'
        "</ExternalQuestion>"
    )


def mark_of(hit: HIT) -> str:
    """Return the annotation that a HIT is published with."""
    return MARK + hit.token


def token_of(annotation: str) -> str:
    """Our token in an annotation; nothing if the HIT is not ours."""
    return annotation.removeprefix(MARK) if annotation.startswith(MARK) else ""


def title_and_description(advert: Advert) -> tuple[str, str]:
    """Title and description, which workers choose by."""
    about = "one question" if advert.questions == 1 else f"{advert.questions} questions"
    minutes = max(1, round(advert.work_seconds / 60))
    description = f"{advert.title}: {about}, about {minutes} min. Flags are paid like answers."
    return advert.title, f"{description} {advert.before}".strip()
