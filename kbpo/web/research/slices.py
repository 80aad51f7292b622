"""Tells a submission's scores by slice, and what may be watched of it while judgments arrive."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.urls import reverse

from kbpo.evaluation import latest
from kbpo.evaluation.latest import Latest
from kbpo.evaluation.slices.estimate import would_do
from kbpo.sampling.order import may_order
from kbpo.submissions.models import Submission
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.registry import kind_of
from kbpo.web.components import drawing
from kbpo.web.components.plots import Moment
from scoring.report import FEW, Figure, Key
from scoring.slices import OWN

DEFINED = "Defined here"
"""What the page calls the group of slices that admins defined"""


def told(latest: Latest, *, own: bool) -> dict[Key, Figure]:
    """Return the scores by slice that somebody may read, on a page or over the API: all to its own
    team and admins, what the page shows to others.

    These see no thin slices while the track is open: one of few judgments would tell what they
    were.
    """
    found = latest.slices
    if own:
        return found
    track = latest.submission.track
    mean = kind_of(track).measures.mean
    guaranteed = {
        key.slice: figure
        for key, figure in found.items()
        if (key.quantity, key.criterion) == (mean, track.criterion)
    }
    least = 0 if track.status == "closed" else FEW
    shown = {}
    for key, figure in found.items():
        whole = guaranteed.get(key.slice)
        if whole is None or whole.n_labels < least or key.quantity not in (mean, "recall"):
            continue
        decides = figure if key.quantity == mean else whole
        if figure is whole or not decides.printed.few:
            shown[key] = figure
    return shown


def by_slice(latest: Latest, chosen: str, *, own: bool, address: str) -> dict[str, Any]:
    """Return the table of one group of slices, and the switch between the groups that there are, on
    the page at that address.
    """
    submission = latest.submission
    kind = kind_of(submission.track)
    scores_of = _scores_of(latest, own=own)
    beside = [
        name for name in kind.measures.criterion_names() if name != submission.track.criterion
    ]
    names = {name: group.label for name, group in kind.groups.items()} | {OWN: DEFINED}
    there = {_group_of(key) for key in scores_of}
    groups = [group for group in names if group in there]
    group = chosen if chosen in groups else next(iter(groups), "")
    labels = submission.track.corpus.relation_names()
    rows = []
    for key, scores in scores_of.items():
        if _group_of(key) == group:
            rows.append(_row(kind, key, scores, submission, labels, beside))
    rows.sort(key=lambda row: (-row["n"], row["name"]))
    if not any(any(row["criteria"]) for row in rows):  # empty columns say nothing
        beside = []
        for row in rows:
            row["criteria"] = []
    return {
        "rows": rows,
        "name": names.get(group, "").lower(),
        "quantity": kind.measures.printed(kind.measures.mean, submission.track.criterion).label,
        "distribution": kind.measures.distributions[submission.track.distribution].label,
        "criterion": kind.measures.criterion(submission.track.criterion).label,
        "criteria": [kind.measures.criterion(name).label for name in beside],
        "axis": drawing.axis_over([row["interval"] for row in rows]),
        "recall": any(row["recall"] for row in rows),
        "more": any(row["would_do"] for row in rows),
        "orders": own and submission.track.status == "open" and may_order(submission),
        "order_url": reverse("submission", args=[submission.pk]) + "#more",
        "own": group == OWN,
        "options": [
            {"url": f"{address}?by={key}#slices", "text": names[key], "current": key == group}
            for key in groups
        ],
    }


def _scores_of(latest: Latest, *, own: bool) -> dict[str, dict[str, Figure]]:
    """Slice -> its scores: recall and the mean by their quantity, the mean under another criterion
    than the track's by this.
    """
    track = latest.submission.track
    mean = kind_of(track).measures.mean
    scores_of: dict[str, dict[str, Figure]] = {}
    for key, figure in told(latest, own=own).items():
        is_beside = key.quantity == mean and key.criterion != track.criterion
        name = key.criterion if is_beside else key.quantity
        scores_of.setdefault(key.slice, {})[name] = figure
    return scores_of


def _group_of(key: str) -> str:
    """Return the group that a slice belongs to."""
    return key.partition(":")[0]


def _row(
    kind: Kind,
    key: str,
    scores: dict[str, Figure],
    submission: Submission,
    labels: dict[str, str],
    beside: list[str],
) -> dict[str, Any]:
    stored = scores[kind.measures.mean]
    figure, (group, _, name) = stored.printed, key.partition(":")
    words = kind.groups[group].words if group in kind.groups else {}
    would = _more_of(figure, stored) if figure.few else 0
    recall = scores.get("recall")
    by_criterion = [
        scores[criterion].printed if criterion in scores else None for criterion in beside
    ]
    return {
        "name": words.get(name) or labels.get(name, name),
        "n": stored.n_predictions or 0,
        "figure": figure,
        "criteria": by_criterion,
        "interval": drawing.Interval.of(figure),
        "kind": "few" if figure.few else "final" if submission.status == "scored" else "moment",
        "would_do": would,
        "price": would * _each(submission),
        "recall": recall.printed if recall and recall.value is not None else None,
    }


def _each(submission: Submission) -> Decimal:
    """Return what a judgment cost in what was confirmed last."""
    plan = submission.plan
    return Decimal(plan.get("options", {}).get(plan.get("chosen"), {}).get("each", "0"))


def _more_of(figure: Figure, stored: Figure) -> int:
    """Return how many judgments more would do: never more than are left."""
    left = max(0, (stored.n_predictions or 0) - figure.n_labels)
    return min(left, would_do(figure.value, stored.variance, figure.n_labels))


def watched(submission: Submission) -> dict[str, Any] | None:
    """Return what may be watched of a submission's guaranteed number as judgments arrive; None
    before the first.
    """
    intervals = latest.watched(submission.pk)
    if not intervals:
        return None
    now = intervals[-1]
    kind = kind_of(submission.track)
    quantity = kind.measures.printed(kind.measures.mean, submission.track.criterion)
    return {
        "quantity": quantity.label,
        "axis": f"{quantity.label}, %",
        "moments": [
            Moment(interval.n, interval.value, interval.low80, interval.high80)
            for interval in intervals
        ],
        "now": now,
        "alt": (
            f"After {now.n:,} judgments {quantity.in_text} is between {now.low80:.1%} and"
            f" {now.high80:.1%}."
        ),
        "interval": drawing.Interval.of(now),
    }
