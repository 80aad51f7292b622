"""Counts what a submission claims once, when its file is read, for the pages that list it."""

from __future__ import annotations

from kbpo.corpus.fetch import fetch
from kbpo.submissions.models import Submission, Tally
from kbpo.tracks.registry import kind_of

CONFIDENCE = "coalesce(p.confidence, -1.0)"
"""SQL of a confidence: below all others where there is none. The index is of this expression."""
BANDS = {
    "high": ("0.9 and more", 0.9, 1e9),
    "middle": ("0.5 to 0.9", 0.5, 0.9),
    "low": ("Below 0.5", -0.5, 0.5),
    "none": ("Not given", -1.5, -0.5),
}
"""Band of confidence -> its words; from where it goes, and up to where"""
_BAND = "CASE " + " ".join(
    f"WHEN {CONFIDENCE} >= {low} THEN '{name}'" for name, (_, low, _) in BANDS.items()
)


def count_predictions(submission: Submission) -> Tally:
    """Return the counts of a submission whose predictions are stored, as an unsaved row."""
    columns = [f"p.{facet.column}" for facet in kind_of(submission.track).facets]
    places = ", ".join(str(index + 1) for index in range(len(columns) + 1))
    rows = fetch(
        f"SELECT {', '.join([*columns, f'{_BAND} END'])}, count(*), min(p.id)"
        f" FROM submissions_prediction p WHERE p.submission_id = %s GROUP BY {places}",
        [submission.pk],
    )
    cells = sorted((list(row[:-1]) for row in rows), key=str)
    return Tally(
        submission=submission, cells=cells, first=min((row[-1] for row in rows), default=0)
    )


def tally_of(submission: Submission) -> Tally:
    """Return the counts of a submission that were stored when its file was read."""
    return Tally.objects.filter(pk=submission.pk).first() or count_predictions(submission)
