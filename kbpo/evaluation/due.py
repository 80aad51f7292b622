"""Decides when a track is scored again: once any input of its scores has changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.cache import cache
from django.db.models import Count, Max

from kbpo.evaluation.models import Rescoring
from kbpo.instances.models import Label
from kbpo.sampling.models import DocumentSample, ExpertCheck, ExpertRound, Sample, SampleBatch
from kbpo.scores.models import Score
from kbpo.scores.read import scorers_of_track
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of

NEWEST = 10_000
"""Number of newest labels among which a late one may appear."""
LONGEST_REST = 60.0
"""Seconds after which everything is counted again, even if no change was detected."""


def is_scoring_due(rescoring: Rescoring, now: datetime) -> bool:
    """Return whether a track must be scored, or its state stored, now. The end of a stage does not
    wait for the debounce.
    """
    if rescoring.next_try_at <= now:
        return Seen.read_current(rescoring).is_news
    if rescoring.state.get("signs") == change_signs(rescoring.track) or not finished_submissions(
        rescoring.track
    ):
        return False
    Rescoring.objects.filter(pk=rescoring.pk).update(next_try_at=now)
    return True


@dataclass(frozen=True)
class Seen:
    """The current state of a track, compared with its state at the last scoring."""

    signs: dict[str, Any]
    state: dict[str, Any]
    ended: list[Submission]
    counted: bool
    """Whether the history was read for this comparison"""
    is_stale: bool
    """Whether the scores are out of date"""
    is_news: bool
    """Whether the state differs from the stored one"""

    @classmethod
    def read_current(cls, rescoring: Rescoring) -> Seen:
        """Read the state of the track of `rescoring` and return it."""
        signs = change_signs(rescoring.track)
        same = rescoring.state.get("signs") == signs
        counts = not same or cache.get(_cache_key(rescoring)) is None
        state = scoring_state(rescoring.track, None if counts else rescoring.state.get("labels"))
        ended = finished_submissions(rescoring.track) if counts else []
        is_stale = bool(ended) or any(rescoring.state.get(name) != state[name] for name in state)
        if counts and not is_stale:
            remember_that_counts_match(rescoring)
        return cls(signs, state, ended, counts, is_stale, is_stale or not same)


def remember_that_counts_match(rescoring: Rescoring) -> None:
    """Remember for `LONGEST_REST` seconds that the counts of `rescoring` are current."""
    cache.set(_cache_key(rescoring), True, LONGEST_REST)


def _cache_key(rescoring: Rescoring) -> str:
    """Return the cache key of `remember_that_counts_match`."""
    return f"counted.{rescoring.pk}.{rescoring.status_since.timestamp()}"


def change_signs(track: Track) -> dict[str, Any]:
    """Return cheap signs that labels arrived or that other submissions are being judged.

    The greatest primary key is not enough, since a transaction may commit after another one with
    greater keys. So the newest rows are counted as well; rows of an even longer transaction are
    noticed within `LONGEST_REST`.
    """
    newest = Label.objects.aggregate(last=Max("pk"))["last"] or 0
    return {
        "labels": [newest, Label.objects.filter(pk__gt=newest - NEWEST).count()],
        "judging": sorted(
            Submission.objects.filter(track=track, status="judging").values_list("pk", flat=True)
        ),
        "batch": SampleBatch.objects.filter(submission__track=track).aggregate(last=Max("pk"))[
            "last"
        ],
        "scores": _scorers_and_newest_score(track),
        "references": sorted(reference_submissions(track)),
    }


def _scorers_and_newest_score(track: Track) -> list[Any]:
    """Return the metrics and judges in use, and the id of their newest score."""
    used = scorers_of_track(track).in_use()
    pks = list(used.values_list("pk", flat=True))
    newest = Score.objects.filter(scorer__in=pks).order_by("-pk").values_list("pk", flat=True)
    return [pks, newest.first() if pks else None]


def scoring_state(track: Track, labels: list[int | None] | None = None) -> dict[str, Any]:
    """Return the counts and ids on which the scores depend. Scores are out of date as soon as one
    differs. `labels` are the stored counts of labels, if they need not be counted again.
    """
    if labels is None and not track.hides_test:
        counted = Label.objects.filter(target__corpus=track.corpus_id).aggregate(
            n=Count("pk"), last=Max("pk")
        )
        labels = [counted["n"], counted["last"]]
    batches = SampleBatch.objects.filter(submission__track=track).aggregate(
        n=Count("pk"), last=Max("pk")
    )
    # Scores of a shared track change only at the end of a stage: they reveal no single judgment.
    return ({} if track.hides_test else {"labels": labels}) | {
        "batches": [batches["n"], batches["last"]],
        "scores": _scorers_and_newest_score(track),
        "taking_part": _confirmed_runs(track),
        "documents": DocumentSample.objects.filter(track=track, settled_at__isnull=False).count(),
        "checks": ExpertCheck.objects.filter(
            track=track, kind="check", answered_at__isnull=False
        ).count(),
        "rounds": ExpertRound.objects.filter(track=track, status="ended").count(),
        "references": sorted(reference_submissions(track)),
    }


def _confirmed_runs(track: Track) -> list[list[Any]]:
    """Return the id of each confirmed run and whether it is private. A count would not show that
    one run replaced another.
    """
    runs = Submission.objects.filter(track=track).confirmed().order_by("pk")
    return [[pk, is_private] for pk, is_private in runs.values_list("pk", "is_private")]


def finished_submissions(track: Track) -> list[Submission]:
    """Return the submissions being judged whose sample has no unanswered target left."""
    judging = Submission.objects.filter(track=track, status="judging")
    return [submission for submission in judging if not unjudged_targets(submission)]


def unjudged_targets(submission: Submission) -> set[int]:
    """Return the targets of a submission's sample that still need a judgment."""
    targets = list(
        Sample.objects.filter(batch__submission=submission)
        .values_list("target_id", flat=True)
        .distinct()
    )
    return kind_of(submission.track).find_unanswered({submission.pk: targets})[submission.pk]


def reference_submissions(track: Track) -> set[int]:
    """Return the submissions of a track that were written by people; they have no rank."""
    references = Submission.objects.filter(track=track, role=Submission.Role.REFERENCE)
    return set(references.values_list("pk", flat=True))
