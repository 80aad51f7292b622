"""Says why a system's numbers are not corrected."""

from __future__ import annotations

from kbpo.tracks.models import Track
from kbpo.tracks.recall import recall_criteria
from kbpo.tracks.registry import kind_of
from scoring.corrected import WIDEST, Corrections
from scoring.double_sampling import LEAST, Corrected
from scoring.score import Score

LATE = (
    "No round of expert checks could draw from its judgments yet, so its scores are not corrected."
)
BROUGHT = (
    "Some of its texts were rated elsewhere, and no round of expert checks could draw those ratings"
    " yet, so its scores are not corrected."
)
UNCOVERED = (
    "Recall and F1 are not corrected: they rest on what all systems predict together, and of some"
    " of that no round of expert checks could draw yet."
)


def not_corrected(track: Track, found: Corrected | None, made: Corrections) -> dict[int, list[str]]:
    """Return, for each submission that is not fully corrected, the reasons as sentences."""
    if found is None:
        return {}
    reasons = {
        system: _uncorrected_reasons(track, found, made, column)
        for column, system in enumerate(found.data.systems)
        if found.data.shown[column]
    }
    return {system: sentences for system, sentences in reasons.items() if sentences}


def _uncorrected_reasons(
    track: Track, corrected: Corrected, made: Corrections, column: int
) -> list[str]:
    kind = kind_of(track)
    printed = _guaranteed_quantities(track, made.scores, column)
    too_wide = _guaranteed_quantities(track, made.too_wide, column) - printed
    if corrected.late(column, track.criterion):
        return [BROUGHT if corrected.checks.since[column] and corrected.data.noise else LATE]
    if kind.measures.mean not in printed | too_wide:
        n = corrected.checked_of(column)
        return [
            f"An expert has checked {n} of its judgments so far: scores are corrected from"
            f" {LEAST} checks on, for fewer say little."
        ]
    reasons = [
        f"The expert checks so far leave its corrected {name} anywhere within more than"
        f" {WIDEST * 100:.0f} points: they are too few to print it."
        for quantity, name in (
            (
                kind.measures.mean,
                kind.measures.printed(kind.measures.mean, track.criterion).in_text,
            ),
            ("recall", "recall"),
            ("f1", "F1"),
        )
        if quantity in too_wide
    ]
    if (
        track.criterion in recall_criteria(track)
        and corrected.data.facts is not None
        and not made.covered
    ):
        reasons.append(UNCOVERED)
    return reasons


def _guaranteed_quantities(track: Track, scores: list[Score], column: int) -> set[str]:
    """Return the quantities of a system among these scores under the guaranteed criterion. Its mean
    counts under the guaranteed distribution alone.
    """
    mean = kind_of(track).measures.mean
    return {
        row.quantity
        for row in scores
        if row.column == column
        and row.criterion == track.criterion
        and (row.quantity != mean or row.distribution == track.distribution)
    }
