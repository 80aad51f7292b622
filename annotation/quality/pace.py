"""Measures how long answers take, on a track and about single targets.

If a page has several questions, its time is divided equally among them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from django.core.cache import cache

from annotation.models import ANSWERED
from annotation.quality.signals import TOO_FAST
from kbpo.corpus.fetch import fetch
from kbpo.instances.merge import PUBLIC
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of

LATEST = 2000
"""Answers that are measured: the latest"""
FEWEST = 20
"""With fewer answers nothing is said of the pace"""
KEPT_SECONDS = 60
"""So often at most a track's pace is measured"""
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
EACH = """
    SELECT r.target_id, a.seconds / page.questions, page.questions > 1 FROM (
        SELECT DISTINCT target_id, question_id, assignment_id FROM annotation_response
        WHERE counts AND target_id = ANY(%s)) r
    JOIN annotation_assignment a ON a.id = r.assignment_id
    CROSS JOIN LATERAL (SELECT count(*) AS questions FROM annotation_hit_questions hq
        WHERE hq.hit_id = a.hit_id) page
    WHERE a.seconds > 0 AND page.questions > 0 AND EXISTS (
        SELECT FROM instances_label l WHERE l.target_id = r.target_id
        AND l.question = r.question_id AND l.source = 'crowd'{public})
    ORDER BY 2
"""
"""Target, how long an answer took, and whether that is a part of a longer time"""


@dataclass(frozen=True)
class Pace:
    """The median time of an answer over `answers`; None with fewer than `FEWEST`. Answers faster
    than reading are left out.
    """

    seconds: float | None
    answers: int
    shared: bool
    """Whether some had several questions on one page"""


@dataclass(frozen=True)
class Took:
    """The times of the answers about one target, ascending."""

    alone: list[float] = field(default_factory=list)
    about: list[float] = field(default_factory=list)
    """Each of those that were given on one page with others: about so long"""


def pace(track: Track) -> Pace:
    """Return the median time of an answer to the first interface of a track, cached for a
    minute.
    """
    key = f"pace.{track.pk}"
    kept: Pace | None = cache.get(key)
    if kept is None:
        kept = _measured(track)
        cache.set(key, kept, KEPT_SECONDS)
    return kept


def _measured(track: Track) -> Pace:
    interface = kind_of(track).asking[0].interface
    [(seconds, answers, shared)] = fetch(
        MEASURE, [track.pk, list(ANSWERED), LATEST, interface, TOO_FAST]
    )
    return Pace(seconds if answers >= FEWEST else None, answers, shared)


def seconds_of(targets: Collection[int], *, public: bool) -> dict[int, Took]:
    """Return target -> times of the answers behind its labels; with `public` only its public
    labels.
    """
    took_of: dict[int, Took] = {}
    if targets:
        for target, seconds, is_part in fetch(
            EACH.format(public=PUBLIC if public else ""), [list(targets)]
        ):
            took = took_of.setdefault(target, Took())
            (took.about if is_part else took.alone).append(seconds)
    return took_of
