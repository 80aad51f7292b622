"""Step 2a: computes the metrics of a submission's predictions, a portion at a time; stored scores
are never computed again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping

from django.db.models import QuerySet

from kbpo import clock
from kbpo.accounts.audit import write_audit_entry
from kbpo.corpus.sql import fetch_rows
from kbpo.queue import handle_rows, wake_step
from kbpo.scores.models import Computing, Scorer
from kbpo.scores.read import scorers_of_track
from kbpo.submissions.models import Submission
from kbpo.tracks.base import Metric
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of, track_classes

AT_ONCE = 200
"""Number of predictions whose metrics are computed in one transaction, which a killed worker
repeats
"""
RETIRED = "Another version of it has scored everything."
RESTORED = "It has scored everything, in the place of another version."
LONGEST = 20.0
"""Longest duration of a tick in seconds"""
STORED = ("planned", "confirmed", "judging", "scored")
"""Statuses of submissions whose predictions are stored"""
STATED = (
    "SELECT DISTINCT p.instance_id FROM submissions_prediction p JOIN submissions_submission s"
    " ON s.id = p.submission_id"
)
MISSING = (
    f"{STATED} WHERE s.id = %s AND (SELECT count(*) FROM scores_score c WHERE c.instance_id ="
    " p.instance_id AND c.scorer_id = ANY(%s)) < %s ORDER BY p.instance_id"
)


def tick() -> int:
    """Compute metrics of submissions for some seconds and return how many portions were
    computed.
    """
    for name, of_kind in track_classes().items():
        versions = [[metric.name, metric.version] for metric in of_kind.metrics]
        if not versions:
            continue
        submissions = Submission.objects.filter(track__kind=name, status__in=STORED)
        fresh = [
            Computing(submission=row, status="wanted") for row in submissions.filter(computing=None)
        ]
        Computing.objects.bulk_create(fresh, ignore_conflicts=True)
        made = Computing.objects.filter(submission__in=submissions, status="made")
        made.exclude(versions=versions).move("wanted")
    done, until = 0, time.monotonic() + LONGEST
    while time.monotonic() < until and (
        moved := handle_rows(Computing, "wanted", _compute_portion)
    ):
        done += moved
    return done


def _compute_portion(computing: Computing) -> None:
    """Compute the metrics of the next portion of a submission."""
    submission = Submission.objects.select_related("track__corpus").get(pk=computing.submission_id)
    kind = kind_of(submission.track)
    scorers = {metric.name: _find_or_create_scorer(kind, metric) for metric in kind.metrics}
    numbers = [scorer.pk for scorer in scorers.values()]
    rows = fetch_rows(MISSING, [submission.pk, numbers, len(numbers)])
    missing = [instance for (instance,) in rows]
    computing.total = submission.predictions.count()
    store_new_scores(
        (scorers[name].pk, instance, None if math.isnan(value) else value)
        for instance, values in kind.compute_metrics(missing[:AT_ONCE])
        for name, value in values.items()
    )
    computing.done = computing.total - max(0, len(missing) - AT_ONCE)
    computing.versions = [[metric.name, metric.version] for metric in kind.metrics]
    computing.save(update_fields=["done", "total", "versions"])
    if len(missing) > AT_ONCE:
        computing.move("wanted")
        return
    computing.move("made")
    # A failed one has no scores, and may be requested again.
    unscored = Computing.objects.filter(submission__status__in=STORED).exclude(status="made")
    behind = Track.objects.filter(
        pk__in=unscored.values("submission__track"), corpus=submission.track.corpus_id
    )
    if not behind.exists():
        _retire_old_versions(scorers_of_track(submission.track), scorers)


def _find_or_create_scorer(kind: Kind, metric: Metric) -> Scorer:
    """Return the scorer of a metric's current version, created if needed."""
    versions = scorers_of_track(kind.track).filter(name=metric.name, source=Scorer.Source.COMPUTED)
    last = versions.last()
    scorer, _ = Scorer.objects.get_or_create(
        corpus=kind.corpus,
        name=metric.name,
        version=metric.version,
        prompt="",
        source=Scorer.Source.COMPUTED,
        defaults={"is_used": last is None or last.is_used},
    )
    return scorer


def _retire_old_versions(every: QuerySet[Scorer], scorers: Mapping[str, Scorer]) -> None:
    """Stop using versions of scorers that newer, complete versions replace. The newer ones are put
    in use even if they were retired, as after an upgrade that was undone.
    """
    computed = every.filter(source=Scorer.Source.COMPUTED, is_used=True)
    old = computed.filter(name__in=scorers).exclude(pk__in=[row.pk for row in scorers.values()])
    for row in old:
        successor = scorers[row.name]
        for scorer, used, action, why in (
            (row, False, "switch judge off", RETIRED),
            (successor, True, "switch judge on", RESTORED),
        ):
            if scorer.is_used != used:
                scorer.is_used = used
                scorer.save(update_fields=["is_used"])
                write_audit_entry(action, f"scorer:{scorer.pk}", why=why, after=str(scorer))
        wake_step("estimate")


def store_new_scores(scores: Iterable[tuple[int, int, float | None]]) -> int:
    """Store (scorer, instance, value) triples and return how many were new. An existing score is
    never replaced.
    """
    triples = list(scores)
    columns = list(zip(*triples, strict=True)) if triples else [(), (), ()]
    stored = fetch_rows(
        "INSERT INTO scores_score (scorer_id, instance_id, value, made_at) SELECT scorer, instance,"
        " value, %s FROM unnest(%s::bigint[], %s::bigint[], %s::float8[])"
        " AS new (scorer, instance, value) ON CONFLICT DO NOTHING RETURNING 1",
        [clock.now(), *(list(column) for column in columns)],
    )
    return len(stored)
