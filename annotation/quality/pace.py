"""Measures how long people take for an answer on a track.

If a page has several questions, its time is divided equally among them.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.core.cache import cache

from annotation.models import ANSWERED
from annotation.quality.signals import TOO_FAST
from kbpo.corpus.fetch import fetch
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of

LATEST = 2000
"""Number of latest answers that are measured"""
FEWEST = 20
"""Least number of answers for a pace"""
KEPT_SECONDS = 60
"""Seconds for which a pace is cached"""
MEASURE = """
    WITH latest AS MATERIALIZED (
        SELECT a.hit_id, a.seconds FROM annotation_assignment a
        JOIN annotation_hit h ON h.id = a.hit_id
        WHERE h.track_id = %s AND a.status = ANY(%s) ORDER BY a.id DESC LIMIT %s)
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY latest.seconds / page.questions), count(*),
        coalesce(bool_or(page.questions > 1), false)
    FROM latest CROSS JOIN LATERAL (
        SELECT count(*) AS questions, sum(q.seconds) AS expected, min(q.interface) AS interface
        FROM annotation_hit_questions hq JOIN annotation_question q ON q.id = hq.question_id
        WHERE hq.hit_id = latest.hit_id) page
    WHERE page.interface = %s AND latest.seconds >= %s * page.expected
"""
"""The median for one question, of how many answers, and whether any had several on its page; all
questions of a page go through one interface
"""


@dataclass(frozen=True)
class Pace:
    """The median time of an answer over `answers`; None with fewer than `FEWEST`. Answers faster
    than reading are left out.
    """

    seconds: float | None
    answers: int
    shared: bool
    """Whether some had several questions on one page"""


def pace(track: Track) -> Pace:
    """Return the median time of an answer to the first interface of a track, cached for a
    minute.
    """
    key = f"pace.{track.pk}"
    kept: Pace | None = cache.get(key)
    if kept is None:
        kept = _measure_pace(track)
        cache.set(key, kept, KEPT_SECONDS)
    return kept


def _measure_pace(track: Track) -> Pace:
    interface = kind_of(track).asking[0].interface
    [(seconds, answers, shared)] = fetch(
        MEASURE, [track.pk, list(ANSWERED), LATEST, interface, TOO_FAST]
    )
    return Pace(seconds if answers >= FEWEST else None, answers, shared)
