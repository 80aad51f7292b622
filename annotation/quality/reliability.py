"""Measures the reliability of a track's annotators for everybody: agreement, and errors on gold. No
figure describes one person.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.core.cache import cache
from django.db.models import Count, Q

from annotation.models import Response
from annotation.quality.agreement import agreement_as_one_choice
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of

HELD = 60  # seconds: many read a board, and neither figure moves much in a minute


@dataclass(frozen=True)
class Reliability:
    """Figures about all annotators of a track together, without excluded answers."""

    kappa: float | None
    """Fleiss' κ of the latest questions, each with all that was ticked as one choice; None where
    no two people answered one, or answers are ratings"""
    gold_answers: int
    """to gold questions that stand, of at least two people together; 0 of one alone"""
    gold_error: float | None
    """the share of these that say something else than what is known"""


NOT_KEPT = Reliability(None, 0, None)
"""Shown on a board of the past, whose reliability was not stored"""


def reliability(track: Track) -> Reliability:
    """Return the figures of a track, cached for a minute."""
    key = f"reliability:{track.pk}"
    found: Reliability | None = cache.get(key)
    if found is None:
        found = Reliability(_kappa(track), *_gold_error_share(track))
        cache.set(key, found, HELD)
    return found


def _kappa(track: Track) -> float | None:
    """Return κ of the first interface of the track."""
    measured = agreement_as_one_choice(kind_of(track).asking[0].interface, track=track)
    return measured[0].kappa if measured else None


def _gold_error_share(track: Track) -> tuple[int, float | None]:
    """Return the number of answers to gold, and the share of wrong ones."""
    answers = Response.objects.filter(
        question__track=track,
        question__gold__isnull=False,
        question__gold__retired_at=None,
        counts=True,
        assignment__signals__kind="gold",
    )
    wrong = Q(assignment__signals__against=True)
    told = answers.aggregate(
        n=Count("assignment", distinct=True),
        wrong=Count("assignment", distinct=True, filter=wrong),
        people=Count("assignment__worker", distinct=True),
    )
    return (told["n"], told["wrong"] / told["n"]) if told["people"] > 1 else (0, None)
