"""How long people take for an answer: on a track, and about single targets."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

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
ALONE = "(SELECT count(*) FROM annotation_hit_questions hq WHERE hq.hit_id = a.hit_id) = 1"
"""SQL: whether an assignment `a` was about one question, whose time its time is"""


@dataclass(frozen=True)
class Pace:
    """How long an answer takes, in the middle of `answers`; None of fewer than `FEWEST`. What came
    faster than anybody reads is none: programs are no pace.
    """

    seconds: float | None
    answers: int


def pace(track: Track) -> Pace:
    """Return how long people take for what a track asks first of all, by its latest answers."""
    [(seconds, answers)] = fetch(
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds), count(*) FROM ("
        " SELECT a.seconds FROM annotation_assignment a JOIN annotation_hit h ON h.id = a.hit_id"
        f" WHERE h.track_id = %s AND a.status = ANY(%s) AND {ALONE} AND EXISTS ("
        " SELECT FROM annotation_hit_questions hq JOIN annotation_question q ON"
        " q.id = hq.question_id WHERE hq.hit_id = a.hit_id AND q.interface = %s"
        " AND a.seconds >= %s * q.seconds) ORDER BY a.id DESC LIMIT %s) AS latest",
        [track.pk, list(ANSWERED), kind_of(track).asking[0].interface, TOO_FAST, LATEST],
    )
    return Pace(seconds if answers >= FEWEST else None, answers)


def seconds_of(targets: Collection[int], *, public: bool) -> dict[int, list[float]]:
    """Target -> how long each answer took that its labels are made of, the shortest first; those
    of its public labels alone if asked. What was answered on a page with other questions is left
    out, for nobody knows how long it took by itself.
    """
    found: dict[int, list[float]] = {}
    if targets:
        for target, seconds in fetch(
            "SELECT r.target_id, a.seconds FROM (SELECT DISTINCT target_id, question_id,"
            " assignment_id FROM annotation_response WHERE counts AND target_id = ANY(%s)) r"
            " JOIN annotation_assignment a ON a.id = r.assignment_id WHERE a.seconds > 0 AND"
            f" {ALONE} AND EXISTS (SELECT FROM instances_label l WHERE l.target_id = r.target_id"
            f" AND l.question = r.question_id AND l.source = 'crowd'{PUBLIC if public else ''})"
            " ORDER BY a.seconds",
            [list(targets)],
        ):
            found.setdefault(target, []).append(seconds)
    return found
