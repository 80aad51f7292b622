"""Tells how two systems differ relation by relation: what the comparison's second table shows."""

from __future__ import annotations

from typing import Any

from kbpo.evaluation.compare.by_relation import KEY, differences_by_relation
from kbpo.evaluation.leaderboard import FEW
from kbpo.evaluation.models import Evaluation
from kbpo.submissions.models import Submission
from kbpo.web.components import drawing
from kbpo.web.components.figures import number_text


def by_relation(evaluation: Evaluation, a: Submission, b: Submission) -> dict[str, Any] | None:
    """The table, with how many relations it leaves out; None where the evaluation kept nothing of
    this pair.

    Relations of few judgments are left out: they would tell what those were, and intervals would
    promise too much.
    """
    stored = evaluation.comparisons.get(KEY)
    if not stored or not {a.pk, b.pk} <= set(stored["systems"]):
        return None
    found = differences_by_relation(evaluation, a.pk, b.pk, least=FEW)
    labels = a.track.corpus.relation_names()
    rows: list[dict[str, Any]] = [
        {
            "name": labels.get(one.quantity, one.quantity),
            "first": one.first,
            "second": one.second,
            "difference": drawing.Interval(one.value, one.low80, one.high80, one.low95, one.high95),
            "value": number_text(one.value, signed=True),
            "written": (
                f"{number_text(one.low80, signed=True)} to {number_text(one.high80, signed=True)}"
            ),
        }
        for one in found
    ]
    return {
        "rows": rows,
        "differences": found,
        "axis": drawing.axis_over([row["difference"] for row in rows], bounds=(-1, 1), zero=True),
        "left_out": len(stored["errors"]) - len(rows),
        "least": FEW,
        "told_apart": sum(bool(one.told_apart) for one in found),
    }
