"""Tells a submission's scores as tables, and what expert checks make of them."""

from __future__ import annotations

from typing import Any

from kbpo.evaluation.leaderboard import Figure, figures
from kbpo.submissions.models import Submission
from kbpo.web import drawing
from kbpo.web.board import CRITERIA, DISTRIBUTIONS, interval
from kbpo.web.slices import watched

QUANTITIES = (
    ("f1", "F1"),
    ("precision", "Precision"),
    ("recall", "Recall"),
    ("instance_recall", "Recall, every mention of a fact counted"),
    ("recall_corrected", "Recall, with what annotators miss"),
)


def tables(submission: Submission) -> list[dict[str, Any]]:
    """Scores by criterion: the guaranteed one first, each with its rows and one axis."""
    found = figures(submission)
    looked = watched(submission) if submission.status != "scored" else None
    guaranteed = ("precision", submission.track.criterion, submission.track.distribution)
    criteria = sorted({key[1] for key in found}, key=lambda name: (name != submission.track.criterion, name))
    result = []
    for criterion in criteria:
        rows: list[dict[str, Any]] = []
        for quantity, name in QUANTITIES:
            for distribution in submission.track.distributions if quantity == "precision" else ["instance"]:
                figure = found.get((quantity, criterion, distribution, "centred"))
                if figure is not None:
                    label = f"{name}, {DISTRIBUTIONS[distribution].lower()}" if quantity == "precision" else name
                    safe = looked is not None and (quantity, criterion, distribution) == guaranteed
                    rows.append(
                        {
                            "name": label,
                            "figure": figure,
                            "interval": looked["interval"] if looked and safe else interval(figure),
                            "safe": safe,
                            "kind": _kind(submission, figure),
                        }
                    )
                    rows += _corrected(submission, found, (quantity, criterion, distribution), label)
        axis = drawing.axis_over(interval(row["figure"]) for row in rows)
        result.append({"name": CRITERIA.get(criterion, criterion), "criterion": criterion, "rows": rows, "axis": axis})
    return result


def _corrected(
    submission: Submission, found: dict[tuple[str, str, str, str], Figure], key: tuple[str, str, str], label: str
) -> list[dict[str, Any]]:
    """The row of the guaranteed number as expert checks correct it; none without any."""
    figure = found.get((*key, "expert"))
    if figure is None or key != ("precision", submission.track.criterion, submission.track.distribution):
        return []
    kind = _kind(submission, figure)
    return [
        {"name": f"{label}, corrected", "figure": figure, "interval": interval(figure), "safe": False, "kind": kind}
    ]


def checked(submission: Submission) -> dict[str, Any] | None:
    """The guaranteed precision as expert checks correct it, and how many; None without any."""
    latest = submission.track.evaluations.order_by("-number").first()
    track = submission.track
    row = submission.estimates.filter(
        evaluation=latest, quantity="precision", criterion=track.criterion, distribution=track.distribution,
        method="expert", slice="",
    ).first()  # fmt: skip
    return None if row is None else {"n": row.n_checked, "figure": Figure.of(row)}


def _kind(submission: Submission, figure: Any) -> str:
    if submission.status != "scored":
        return "live"
    return "few" if figure.few else "final"
