"""The numbers behind the history of a run."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import path

from kbpo.evaluation.latest import Latest
from kbpo.web.expensive import export
from kbpo.web.research.history import history_of
from kbpo.web.research.submissions import find
from kbpo.web.table import csv_response


@export
def as_csv(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the numbers behind the plot: every evaluation that is kept, unrounded."""
    submission = find(request, pk)
    history = history_of(Latest.of(submission)) if submission.has_score else None
    ends = ("value", "low80", "high80", "low95", "high95", "n_labels")
    header = ["evaluation", "made_at", "number", *ends]
    rows, name = [], history.quantity.name if history else ""
    for evaluation, figure in history.figures if history else ():
        cells = [evaluation.number, evaluation.made_at, name]
        rows.append([*cells, *(getattr(figure, end) for end in ends)])
    return csv_response(f"history-{submission.pk}.csv", header, rows)


urlpatterns = [
    path("submissions/<int:pk>/history.csv", as_csv, name="submission-history"),
]
