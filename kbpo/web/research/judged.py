"""The judged predictions of a run, and who may see them.

Judgments of the development part are public, those of the test part once the track's corpus is
open; admins and the owners of a study see all of them (`kbpo.tracks.models`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from django.http import Http404
from numpy.typing import NDArray

from annotation.desk import experts
from kbpo.accounts.models import User
from kbpo.instances.models import Label
from kbpo.sampling.models import ExpertCheck
from kbpo.scores.models import Scorer
from kbpo.scores.read import read_scores, scorers_of_track
from kbpo.submissions.models import Prediction, Submission
from kbpo.tracks.base import Judged
from kbpo.tracks.models import Track, can_see_all_judgments
from kbpo.tracks.registry import kind_of

SHOWING_STATUSES = ("judging", "scored")
"""Statuses of submissions whose judgments are shown."""
NOT_DISPUTED = {
    "import": experts.BROUGHT,
    "expert": "An expert judged this already.",
}
"""Source of a label -> why the judgment cannot be disputed."""


def shows_judgments(submission: Submission) -> bool:
    """Return whether a run has judgments to show: its sample is drawn and it is not withdrawn."""
    return submission.status in SHOWING_STATUSES or bool(
        submission.status == "confirmed" and submission.sampled_at
    )


def sees_only_public(user: Any, submission: Submission) -> bool:
    """Return whether a user sees only the public judgments of a run."""
    return not can_see_all_judgments(user, submission.track)


def is_restricted(user: Any, submission: Submission) -> bool:
    """Return whether a user sees only predictions with a public judgment: true before the track is
    closed, except for the run's team.
    """
    track = submission.track
    is_open = track.status != Track.Status.CLOSED or track.hides_test
    return is_open and not is_of_team(user, submission)


def is_of_team(user: Any, submission: Submission) -> bool:
    """Return whether a user belongs to the team of a run; admins belong to every team."""
    return isinstance(user, User) and (user.is_staff or submission.team_id in user.team_keys)


def metric_scores(
    track: Track, instances: NDArray[np.int64]
) -> tuple[list[tuple[int, str]], NDArray[np.float64]]:
    """Return the used metrics and judges of a track (number and name) and their scores of these
    instances, in the last axis; NaN without a score.
    """
    every = np.unique(instances)
    used = scorers_of_track(track).filter(is_used=True)
    scores = read_scores(track, every, list(used.values_list("pk", flat=True)))
    labels = {metric.name: metric.label for metric in kind_of(track).metrics}
    row_of = Scorer.objects.in_bulk(scores.scorers)
    named = [
        (pk, str(labels.get(row.name, row.name) if row.source == "computed" else row))
        for pk, row in ((pk, row_of[pk]) for pk in scores.scorers)
    ]
    return named, scores.value[np.searchsorted(every, instances)]


def dispute(user: User, submission: Submission, prediction: int, note: str) -> ExpertCheck:
    """Create a blind expert check for a judgment that a team member doubts. Raises Http404, and
    CannotAsk with a sentence.
    """
    if not shows_judgments(submission) or not is_of_team(user, submission):
        raise Http404("Judgments are disputed by the submission's own team.")
    row = Prediction.objects.filter(pk=prediction, submission=submission).first()
    if row is None:
        raise Http404("This submission has no such prediction.")
    public = sees_only_public(user, submission)
    verdicts = kind_of(submission.track).verdicts(submission.pk, public=public)
    if row.pk not in set(verdicts.prediction):
        raise Http404("This prediction has no judgment yet.")
    return experts.store_dispute(submission, row.instance.target_id, user, note)


def add_disputes(
    submission: Submission,
    predictions: list[Judged],
    is_own_team: bool,
    disputes: Mapping[int, ExpertCheck],
) -> list[Judged]:
    """Return the rows with their disputes (by target) and, for the run's own team, whether each row
    can be disputed.
    """
    unchecked = kind_of(submission.track).words.unchecked
    return [
        replace(
            row,
            dispute=disputes.get(row.prediction.instance.target_id),
            disputable=is_own_team
            and not unchecked
            and row.source in (Label.Source.CROWD, Label.Source.DOCUMENT),
            undisputed=(NOT_DISPUTED.get(row.source) or (row.source and unchecked))
            if is_own_team
            else "",
        )
        for row in predictions
    ]
