"""Tells how two systems differ relation by relation: what the comparison's second table shows."""

from __future__ import annotations

from typing import Any

from kbpo.evaluation.compare import differences_by_relation
from kbpo.evaluation.models import Evaluation
from kbpo.submissions.models import Submission
from kbpo.web.components import drawing
from kbpo.web.components.figures import number_text
from scoring.report import FEW


def by_relation(evaluation: Evaluation, a: Submission, b: Submission) -> dict[str, Any] | None:
    """The table, with how many relations it leaves out; None where the evaluation kept nothing of
    this pair.

    Relations of few judgments are left out: they would tell what those were, and intervals would
    promise too much.
    """
    stored = evaluation.details.relations
    if not {a.pk, b.pk} <= set(stored.systems):
        return None
    differences = differences_by_relation(evaluation, a.pk, b.pk, least=FEW)
    labels = a.track.corpus.relation_names()
    rows: list[dict[str, Any]] = [
        {
            "name": labels.get(difference.quantity, difference.quantity),
            "first": difference.first,
            "second": difference.second,
            "difference": drawing.Interval.of(difference),
            "value": number_text(difference.value, signed=True),
            "written": (
                f"{number_text(difference.low80, signed=True)} to"
                f" {number_text(difference.high80, signed=True)}"
            ),
        }
        for difference in differences
    ]
    return {
        "rows": rows,
        "differences": differences,
        "axis": drawing.axis_over([row["difference"] for row in rows], bounds=(-1, 1), zero=True),
        "left_out": len(stored.errors) - len(rows),
        "least": FEW,
        "told_apart": sum(bool(difference.told_apart) for difference in differences),
    }
