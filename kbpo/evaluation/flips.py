"""Logs verdicts that turned: answers about one target add up, so that later ones may outvote
earlier ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from kbpo.accounts.audit import note
from kbpo.corpus.fetch import fetch
from kbpo.evaluation.models import Flip
from kbpo.instances.models import Target
from kbpo.submissions.models import Submission
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of


def log_flips(track: Track, submissions: Sequence[int], before: int, now: int) -> int:
    """How many verdicts on predictions of these submissions turned between the labels of these two
    numbers. Each is kept for its team, and the log says how many there were.
    """
    kind = kind_of(track)
    affected = _affected(kind, before, now) if submissions else []
    if not affected:
        return 0
    instances = np.array(sorted(affected), dtype=np.int64)
    was = kind.judge(instances, submissions, until=before)
    is_now = kind.judge(instances, submissions, until=now)
    predicted = fetch(
        "SELECT instance_id, submission_id FROM submissions_prediction"
        " WHERE instance_id = ANY(%s) AND submission_id = ANY(%s)",
        [affected, list(submissions)],
    )
    column = {submission: column_number for column_number, submission in enumerate(submissions)}
    flips = []
    for instance, submission in sorted(predicted):
        place = int(np.searchsorted(instances, instance)), column[submission]
        for criterion in kind.measures.criterion_names():
            old, new = float(was[criterion][place]), float(is_now[criterion][place])
            if old != new and {old, new} <= {0.0, 1.0}:
                flip = Flip(instance_id=instance, submission_id=submission, criterion=criterion)
                flip.before, flip.now = old, new
                flips.append(flip)
    Flip.objects.bulk_create(flips)
    for submission, n in Counter(flip.submission_id for flip in flips).items():
        note(
            "verdicts turned",
            f"submission:{submission}",
            after=f"{n} verdict{'' if n == 1 else 's'}",
            why="More answers came about the same targets, and all of them add up.",
            track=track.slug,
        )
    return len(flips)


def _affected(kind: Kind, before: int, now: int) -> list[int]:
    """The instances of a track's corpus whose verdict the labels after one number and up to another
    may have turned: those of a target that had a label before; of a document, all of them, where
    the whole, or something of it that is settled besides, got a label and any of these had one
    before: what is said of one may turn what is said of another that was settled to be the same.

    One narrow question after the other, each with the answers of the last, so that no plan depends
    on what is known of how labels are spread.
    """
    placed_kinds = [Target.Kind.MENTION.value, Target.Kind.DOCUMENT.value]
    fresh = fetch(
        "SELECT DISTINCT t.id, t.kind, t.document_id FROM instances_label l"
        " JOIN instances_target t ON t.id = l.target_id"
        " WHERE l.id > %s AND l.id <= %s AND t.corpus_id = %s",
        [before, now, kind.corpus.pk],
    )
    targets = [target for target, of_kind, _ in fresh if of_kind not in placed_kinds]
    documents = {document for _, of_kind, document in fresh if of_kind in placed_kinds}
    if documents:
        placed = fetch(
            "SELECT id, document_id FROM instances_target WHERE document_id = ANY(%s)"
            " AND kind = ANY(%s)",
            [list(documents), placed_kinds],
        )
        its_document = dict(placed)
        documents = {its_document[instance] for instance in _labelled(list(its_document), before)}
    affected = fetch(
        "SELECT id FROM instances_instance WHERE target_id = ANY(%s) UNION"
        " SELECT id FROM instances_instance WHERE document_id = ANY(%s)",
        [_labelled(targets, before), list(documents)],
    )
    return [instance for (instance,) in affected]


def _labelled(targets: list[int], until: int) -> list[int]:
    """Those of some targets that had an answer among the labels up to this number."""
    if not targets:
        return []
    labelled = fetch(
        "SELECT DISTINCT target_id FROM instances_label WHERE target_id = ANY(%s) AND id <= %s"
        " AND value <> '{}'::jsonb",
        [targets, until],
    )
    return [target for (target,) in labelled]


def flips_of(submission: Submission) -> dict[int, Flip]:
    """The instances whose verdict under the guaranteed criterion turned for a submission, each with
    how it turned last; while the test part is hidden those of the development part.
    """
    flips = Flip.objects.filter(submission=submission, criterion=submission.track.criterion)
    if submission.track.hides_test:
        flips = flips.filter(instance__target__is_dev=True)
    return {row.instance_id: row for row in flips.order_by("pk")}


def turned(submission: Submission) -> list[dict[str, Any]]:
    """The verdicts of a submission that turned, in the order of time, as the API tells them; while
    the test part is hidden those of the development part.
    """
    flips = submission.flips.order_by("pk")
    if submission.track.hides_test:
        flips = flips.filter(instance__target__is_dev=True)
    return [
        {
            "item": flip.instance_id,
            "criterion": flip.criterion,
            "before": flip.before,
            "now": flip.now,
            "at": flip.made_at,
        }
        for flip in flips
    ]
