"""A submission's judged predictions, as its kind of track shows them, for those who may see them.

A judgment is shown only to a team whose own sampled submission predicts it, to admins, and to
everybody once it is public; before the submission's own sample is answered, only if it was asked
for it (`kbpo.pool.visibility`). A draft shows nothing: else an upload would be a way to read other
people's answers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from django.http import Http404

from annotation.desk import adjudicate
from annotation.quality.pace import seconds_of
from kbpo.accounts.models import User
from kbpo.instances.models import Label
from kbpo.pool.visibility import asked_for, is_answered
from kbpo.sampling.models import ExpertCheck
from kbpo.submissions.models import Prediction, Submission
from kbpo.tracks.base import Judged, Verdicts
from kbpo.tracks.registry import kind_of

SHOWING = ("judging", "scored")
"""Statuses of submissions that show judgments."""
NOT_DISPUTED = {
    "import": adjudicate.BROUGHT,
    "expert": "An expert judged this already.",
}
"""Why a judgment is not put before an expert, by the source of its label."""


def may_see(user: Any, submission: Submission) -> bool:
    """Whether a person may see this submission's judgments: all of them, or the public ones
    (`only_public`).

    A draft shows nothing, nor does a submission before its sample is drawn or after it was
    withdrawn: else one could predict everything, read what others paid for, and take it back for
    free.
    """
    if submission.status not in SHOWING and not (
        submission.status == "confirmed" and submission.sampled_at
    ):
        return False
    return submission.track.status == "closed" or not only_public(user, submission)


def only_public(user: Any, submission: Submission) -> bool:
    """Whether a person sees no more of this submission's judgments than everybody does."""
    if not isinstance(user, User):
        return True
    if submission.track.status == "closed" and not is_answered(submission):
        return True  # which is more than what was asked for it
    return not (user.is_staff or submission.team_id in user.team_keys)


def verdicts(
    submission: Submission, *, public: bool, targets: Collection[int] | None = None
) -> Verdicts:
    """What people said of a submission's predictions, as far as its team may see that now; or what
    of it is public. If asked, only what may rest on labels of `targets`.
    """
    answers = kind_of(submission.track).verdicts(submission.pk, public=public, targets=targets)
    if public or is_answered(submission):
        return answers
    shown = Prediction.objects.filter(
        submission=submission, instance__target__in=asked_for(submission)
    )
    return answers.of(np.isin(answers.prediction, list(shown.values_list("pk", flat=True))))


def describe(
    submission: Submission,
    ids: Sequence[int],
    *,
    public: bool,
    unjudged: Collection[int] = (),
) -> list[Judged]:
    """The predictions with these ids, in order, ready for the page; by their public judgments alone
    if asked. Of those without a judgment that may be seen nothing is told that people said.
    """
    kind = kind_of(submission.track)
    rows = kind.describe(submission.pk, ids, public=public, unjudged=unjudged)
    answered = {
        row.prediction.instance.target_id for row in rows if row.source == Label.Source.CROWD
    }
    took = seconds_of(answered, public=public)
    return [
        row
        if row.source != Label.Source.CROWD or found is None
        else replace(row, seconds=found.alone, about_seconds=found.about)
        for row, found in ((row, took.get(row.prediction.instance.target_id)) for row in rows)
    ]


def dispute(user: User, submission: Submission, prediction: int, note: str) -> ExpertCheck:
    """The entry for an expert, blind, where a member of the team thinks that the judgment of a
    prediction is wrong. Raises Http404, and CannotAsk with a sentence.
    """
    if not may_see(user, submission) or only_public(user, submission):
        raise Http404("Judgments are disputed by the submission's own team.")
    row = Prediction.objects.filter(pk=prediction, submission=submission).first()
    if row is None:
        raise Http404("This submission has no such prediction: its errors tell their numbers.")
    if row.pk not in set(verdicts(submission, public=False).prediction):
        raise Http404("This prediction has no judgment yet.")
    return adjudicate.dispute(submission, row.instance.target_id, user, note)


def with_disputes(
    submission: Submission,
    rows: list[Judged],
    own: bool,
    turned: Mapping[int, Any],
    disputes: Mapping[int, ExpertCheck],
) -> list[Judged]:
    """The rows, for their own team with what it disputes (by targets) and may dispute (what people
    judged), and with how the verdict turned, by instances.
    """
    unchecked = kind_of(submission.track).unchecked
    return [
        replace(
            row,
            turned=turned.get(row.prediction.instance_id),
            dispute=disputes.get(row.prediction.instance.target_id),
            disputable=own
            and not unchecked
            and row.source in (Label.Source.CROWD, Label.Source.DOCUMENT),
            undisputed=(NOT_DISPUTED.get(row.source) or (row.source and unchecked)) if own else "",
        )
        for row in rows
    ]
