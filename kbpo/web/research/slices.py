"""The scores of a run by slice, and its interim interval."""

from __future__ import annotations

from typing import Any

from kbpo.evaluation import latest
from kbpo.evaluation.latest import Latest
from kbpo.submissions.models import Submission
from kbpo.tracks.registry import kind_of
from kbpo.web.components import drawing
from kbpo.web.components.plots import Moment
from scoring.report import FEW, Figure, Key


def visible_slices(latest: Latest, *, is_own_team: bool) -> dict[Key, Figure]:
    """Return the scores by slice that a visitor may see: all for the run's team and admins.

    For others, slices with few judgments are hidden while the track is open: they would reveal
    single judgments.
    """
    found = latest.slices
    if is_own_team:
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
        if figure is whole or not decides.printed.has_few_judgments:
            shown[key] = figure
    return shown


def slice_table(latest: Latest, chosen: str, *, is_own_team: bool, address: str) -> dict[str, Any]:
    """Return the table of one group of slices, and the switch between groups, for the page at
    `address`.
    """
    submission, track = latest.submission, latest.submission.track
    kind = kind_of(track)
    scores_of: dict[str, dict[str, Figure]] = {}
    for key, figure in visible_slices(latest, is_own_team=is_own_team).items():
        # Recall and the mean by their quantity, the mean under another criterion by this.
        is_beside = key.quantity == kind.measures.mean and key.criterion != track.criterion
        name = key.criterion if is_beside else key.quantity
        scores_of.setdefault(key.slice, {})[name] = figure
    names = {name: group.label for name, group in kind.groups.items()}
    there = {key.partition(":")[0] for key in scores_of}
    groups = [group for group in names if group in there]
    group = chosen if chosen in groups else next(iter(groups), "")
    words = dict(track.corpus.relation_names())
    if group:
        words |= kind.groups[group].words
    beside = [name for name in kind.measures.criterion_names() if name != track.criterion]
    rows: list[dict[str, Any]] = []
    for slice_, scores in scores_of.items():
        in_group, _, name = slice_.partition(":")
        if in_group != group:
            continue
        stored, recall = scores[kind.measures.mean], scores.get("recall")
        figure = stored.printed
        rows.append(
            {
                "name": words.get(name) or name,
                "n": stored.n_predictions or 0,
                "figure": figure,
                "criteria": [one and one.printed for one in map(scores.get, beside)],
                "interval": drawing.Interval.from_figure(figure),
                "kind": "few"
                if figure.has_few_judgments
                else "final"
                if submission.status == "scored"
                else "moment",
                "recall": recall.printed if recall and recall.value is not None else None,
            }
        )
    rows.sort(key=lambda row: (-row["n"], row["name"]))
    if not any(any(row["criteria"]) for row in rows):  # empty columns say nothing
        beside = []
        for row in rows:
            row["criteria"] = []
    return {
        "rows": rows,
        "name": names.get(group, "").lower(),
        "quantity": kind.measures.quantity_as_printed(kind.measures.mean, track.criterion).label,
        "distribution": kind.measures.distributions[track.distribution].label,
        "criterion": kind.measures.criterion(track.criterion).label,
        "criteria": [kind.measures.criterion(name).label for name in beside],
        "axis": drawing.axis_over([row["interval"] for row in rows]),
        "recall": any(row["recall"] for row in rows),
        "options": [
            {"url": f"{address}?by={key}#slices", "text": names[key], "current": key == group}
            for key in groups
        ],
    }


def interim_context(submission: Submission) -> dict[str, Any] | None:
    """Return the interim interval of the guaranteed score for the page; None before the first."""
    intervals = latest.interim_intervals(submission.pk)
    if not intervals:
        return None
    now = intervals[-1]
    kind = kind_of(submission.track)
    quantity = kind.measures.quantity_as_printed(kind.measures.mean, submission.track.criterion)
    return {
        "quantity": quantity.label,
        "axis": f"{quantity.label}, %",
        "moments": [
            Moment(interval.n, interval.value, interval.low80, interval.high80)
            for interval in intervals
        ],
        "now": now,
        "alt": (
            f"After {now.n:,} judgments {quantity.label_in_text} is between {now.low80:.1%} and"
            f" {now.high80:.1%}."
        ),
        "interval": drawing.Interval.from_figure(now),
    }
