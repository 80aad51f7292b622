"""What metrics and judges save on a board, and which of them came late: the board and the page of
metrics print the same numbers, both from here.
"""

from __future__ import annotations

from dataclasses import dataclass

from kbpo.evaluation.leaderboard import Board
from kbpo.evaluation.models import Evaluation


@dataclass(frozen=True)
class Saved:
    """Judgments that people alone would have to give besides for intervals as narrow."""

    judgments: int
    share: float
    """Of all that people alone would have to give"""


def saved_on(shown: Board, scorer: str = "") -> Saved | None:
    """What the metric or judge of that number saves on a board by Algorithm 1, or all together;
    never more than is not yet judged. None where it is not known.
    """
    if shown.evaluation is None:
        return None
    key = f"{shown.criterion}|{shown.distribution}"
    by_scorer = dict(shown.evaluation.settings.get("by_each", {}).get(key, []))
    pairs = []
    for row in shown.rows:
        share = row.saved
        if scorer:
            share = by_scorer.get(scorer, {}).get(str(row.submission.pk))
        if share is not None and share < 1:
            pairs.append((row.n_labels, share))
    given = sum(n for n, _ in pairs)
    if not given:
        return None
    unjudged = shown.evaluation.settings.get("unjudged", {}).get(key, 0)
    saved = min(round(sum(n * share / (1 - share) for n, share in pairs)), unjudged)
    return Saved(saved, saved / (given + saved) if given + saved > 0 else 0.0)


def late_scorers(evaluation: Evaluation | None) -> list[dict[str, str]]:
    """The metrics and judges behind an evaluation that came after the first judgments: their names,
    and who stated that they were not tuned on them.
    """
    return evaluation.settings.get("late_scorers", []) if evaluation is not None else []
