"""What others take from a run: the numbers behind its history, and a badge for other sites."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import path
from django.views.decorators.cache import cache_control

from kbpo.evaluation.latest import Latest
from kbpo.evaluation.leaderboard import headlines
from kbpo.evaluation.words import figure_text
from kbpo.submissions.models import Submission
from kbpo.web.csv import csv_response
from kbpo.web.public import cite
from kbpo.web.research.history import history_of
from kbpo.web.research.submissions import find


def as_csv(request: HttpRequest, pk: int) -> HttpResponse:
    """The numbers behind the plot: every evaluation that is kept, unrounded."""
    submission = find(request, pk)
    history = history_of(Latest.of(submission)) if submission.has_score else None
    ends = ("value", "low80", "high80", "low95", "high95", "n_labels")
    header = ["evaluation", "made_at", "number", *ends]
    rows, name = [], history.quantity.name if history else ""
    for evaluation, figure in history.figures if history else ():
        cells = [evaluation.number, evaluation.made_at, name]
        rows.append([*cells, *(getattr(figure, end) for end in ends)])
    return csv_response(f"history-{submission.pk}.csv", header, rows)


@cache_control(public=True, max_age=300)
def badge(request: HttpRequest, pk: int) -> HttpResponse:
    """The score as a small picture for other sites: the same for everybody, so never of a private
    run; of one that was withdrawn that word.
    """
    row = get_object_or_404(Submission.objects.select_related("track", "team"), pk=pk)
    if row.is_gone:
        return HttpResponse(cite.badge(row.track.name, "withdrawn"), content_type="image/svg+xml")
    evaluation = row.track.evaluations.order_by("-number").first()
    if not row.is_on_board or evaluation is None:
        raise Http404("There is no such run on a board.")
    headline = headlines(evaluation, [row.pk]).get(row.pk)
    value = "no score yet"
    if headline is not None:
        more = ", provisional" if row.status != "scored" else ""
        value = f"{headline[0].label} {figure_text(headline[1])}{more}"
    return HttpResponse(cite.badge(row.track.name, value), content_type="image/svg+xml")


urlpatterns = [
    path("submissions/<int:pk>/history.csv", as_csv, name="submission-history"),
    path("submissions/<int:pk>/badge.svg", badge, name="badge"),
]
