"""Who may see a judgment, and since when.

Everybody, from its settling on, if a track that it was made for is closed by then. A team, of what
its submission predicts: what was asked for the submission as it is answered, and what was asked for
others once the submission's own sample is answered. Before that it would read for nothing what
others paid for, and take the submission back.
"""

from __future__ import annotations

from collections.abc import Collection

from kbpo.corpus.fetch import fetch
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

TRACKS = """
    SELECT id, status FROM tracks_track
    WHERE corpus_id IN (SELECT corpus_id FROM tracks_track WHERE id = ANY(%s))
        ORDER BY id FOR KEY SHARE
"""
"""The lock lets a closing wait until what is being written now is committed, or makes us wait
for the closing: no label slips in between unseen. Money and new rows of the track do not mind
it."""
AWAITED = """
    SELECT DISTINCT s.target_id FROM sampling_sample s
    JOIN sampling_samplebatch b ON b.id = s.batch_id JOIN submissions_submission u
        ON u.id = b.submission_id
    WHERE s.target_id = ANY(%s) AND b.settled_at IS NULL AND u.track_id = ANY(%s)
"""
ASKED_FOR = """
    SELECT s.target_id FROM sampling_sample s JOIN sampling_samplebatch b ON b.id = s.batch_id
    WHERE b.submission_id = %s AND NOT EXISTS (
        SELECT 1 FROM instances_label l WHERE l.target_id = s.target_id
        AND l.created_at <= b.drawn_at AND l.value <> '{}'::jsonb
    ) AND NOT EXISTS (
        SELECT 1 FROM sampling_sample o JOIN sampling_samplebatch ob ON ob.id = o.batch_id
        WHERE o.target_id = s.target_id AND ob.submission_id <> b.submission_id
        AND ob.drawn_at <= b.drawn_at
    )
"""
"""What nobody had judged, or was paying for, when it was drawn for a submission"""


def is_answered(submission: Submission) -> bool:
    """Whether the submission's own sample was answered: from then on its team sees what was judged
    for others, too, of what it predicts.
    """
    return submission.scored_at is not None or submission.status == "scored"


def asked_for(submission: Submission) -> set[int]:
    """The targets that were asked for this submission before anybody else: their judgments its team
    may see at once.
    """
    return {target for (target,) in fetch(ASKED_FOR, [submission.pk])}


def seen_by_everybody(asked: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
    """Those of some (track that asked, target it asked about) of which everybody may see a judgment
    that is made now.

    A closed track's own, and what one still waits for to be judged through another's question. What
    an open track asks for itself is not: its teams would be told of what others predict.
    """
    closed = _closed({track for track, _ in asked}) if asked else set()
    if not closed:
        return set()
    awaited = {
        target
        for (target,) in fetch(AWAITED, [sorted({target for _, target in asked}), sorted(closed)])
    }
    return {(track, target) for track, target in asked if track in closed or target in awaited}


def is_closed(track: Track) -> bool:
    """Whether everybody may see what is judged for a track now."""
    return track.pk in _closed({track.pk})


def _closed(tracks: set[int]) -> set[int]:
    """The closed tracks on the corpora of some tracks; none closes until this transaction ends."""
    return {pk for pk, status in fetch(TRACKS, [sorted(tracks)]) if status == Track.Status.CLOSED}
