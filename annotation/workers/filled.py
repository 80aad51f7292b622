"""Says of which runs a worker gave their share of the ratings: at most a quarter of a run's come
from one person while others are there, or that person's level would be the run's.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from annotation.interfaces.registry import RATING
from annotation.models import COUNTED
from kbpo import clock
from kbpo.tracks.registry import FORM

MOST_OF_ONE = 0.25
"""Share of a run's ratings"""
HERE = timedelta(minutes=5)
"""Somebody is there who was given a question so lately"""

FILLED = """
    WITH asked AS (
        SELECT q.id, q.payer_number AS run, s.track_id AS track, q.answers_wanted
        FROM submissions_submission s
        JOIN annotation_question q ON q.payer_kind = 'submission' AND q.payer_number = s.id
        WHERE s.status = 'judging' AND EXISTS (
            SELECT FROM money_price p WHERE p.track_id = s.track_id
              AND (p.interface = ANY(%(rating)s::text[]) OR p.interface LIKE %(forms)s))
    ), given AS (
        SELECT asked.run, a.worker_id, count(*) AS n
        FROM asked JOIN annotation_hit_questions hq ON hq.question_id = asked.id
        JOIN annotation_assignment a ON a.hit_id = hq.hit_id AND a.status = ANY(%(counted)s::text[])
        GROUP BY asked.run, a.worker_id
    ), share AS (
        SELECT run, track, ceil(sum(answers_wanted) * %(most)s::float8) AS most
        FROM asked GROUP BY run, track
    ), rates AS (
        SELECT DISTINCT share.track, given.worker_id FROM given JOIN share USING (run)
    )
    SELECT ARRAY[share.run, other.id] FROM share JOIN given mine ON mine.run = share.run
    JOIN rates ON rates.track = share.track AND rates.worker_id <> %(worker)s
    JOIN annotation_worker other ON other.id = rates.worker_id
        AND other.excluded_at IS NULL AND other.last_seen_at > %(here)s
    LEFT JOIN given theirs ON theirs.worker_id = other.id AND theirs.run = share.run
    WHERE mine.worker_id = %(worker)s AND mine.n >= share.most
      AND coalesce(theirs.n, 0) < share.most
"""
"""SQL of the runs that are judged of which `worker` gave a quarter of the ratings, each with every
person who is there, rates on the track and gave less.
"""


def of_filled() -> dict[str, Any]:
    """Return the values of `FILLED` but for the worker."""
    return {
        "rating": list(RATING),
        "forms": f"{FORM}%",
        "counted": list(COUNTED),
        "most": MOST_OF_ONE,
        "here": clock.now() - HERE,
    }
