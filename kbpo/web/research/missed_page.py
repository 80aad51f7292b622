"""The page of what a run misses: listed, chosen, and as a file."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import path

from kbpo.sampling.documents.annotated import annotated_documents
from kbpo.tracks.recall import kind_with_recall
from kbpo.web.components.figures import count_text
from kbpo.web.expensive import expensive, export
from kbpo.web.public.documents import may_read, shows_readers
from kbpo.web.research.explore import chosen_of, explored, tabs_of
from kbpo.web.research.explorer import PAGE, Explorer, Unreadable
from kbpo.web.research.missed import MISSED, NOT_READ_YET, SORTS, Missed, missed_of, missed_record
from kbpo.web.research.submissions import is_own, name_for
from kbpo.web.table import file_of


def show(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Return a page of it, or all of it as a file."""
    return (_file if "format" in request.GET else _page)(request, pk)


@expensive
def _page(request: HttpRequest, pk: int) -> HttpResponse:
    explorer, refusal = explored(request, pk), ""
    submission = explorer.submission
    try:
        missed = missed_of(request.user, explorer, chosen_of(request))
    except Unreadable as wrong:
        missed, refusal = missed_of(request.user, explorer, {}), f"{wrong} All is listed."
    choice = missed.choice
    context = {
        "submission": submission,
        "words": explorer.kind.words,
        "name": name_for(submission, is_own(request, submission)),
        "tabs": tabs_of(request, explorer, choice, current="Missed"),
        "shown": shows_readers(request.user, submission.track),
        "readable": may_read(request, submission.track),
        "n_documents": len(annotated_documents(submission.track).documents),
        "refusal": refusal,
        "said": choice.said,
        "sorts": [(name, words, choice["sort"] or "text") for name, words in SORTS.items()],
        "page": Paginator(missed.listed, PAGE).get_page(request.GET.get("page")),
        "query": choice.query(who=missed.who)[1:],
        "filters": _filters(explorer, missed),
        "options": [
            {
                "url": choice.query(who=name),
                "text": f"{words} {count_text(len(missed.facts[name]))}",
                "current": name == missed.who,
            }
            for name, words in MISSED.items()
        ],
        "everything": choice.query(document=""),
    }
    return render(request, "missed.html", context, status=400 if refusal else 200)


def _filters(explorer: Explorer, missed: Missed) -> list[dict[str, Any]]:
    """Return the values of each facet with how many there are of them; the one that is chosen leads
    back.
    """
    filters = []
    for facet in explorer.kind.facets:
        words = dict(facet.called(explorer.kind.corpus).values())
        options = [
            {
                "url": missed.choice.query(**{facet.name: "" if chosen else value}),
                "text": words.get(value, value),
                "n": n,
                "chosen": chosen,
            }
            for value, n in missed.values.get(facet.name, Counter()).most_common()
            for chosen in [missed.choice[facet.name] == value]
        ]
        if options:
            filters.append({"label": facet.label, "options": options})
    return filters


@export
def _file(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Return the same as a file. Raises Http404 while it may not be told."""
    explorer = explored(request, pk)
    if not shows_readers(request.user, explorer.submission.track):
        raise Http404(NOT_READ_YET)
    try:
        missed = missed_of(request.user, explorer, chosen_of(request))
    except Unreadable as wrong:
        return HttpResponse(str(wrong), status=400, content_type="text/plain; charset=utf-8")
    header = [*kind_with_recall(explorer.submission.track).found_columns, "found_by"]
    rows = [list(missed_record(fact, runs).values()) for fact, runs in missed.listed]
    return file_of(request, f"missed-{pk}", header, rows)


urlpatterns = [path("submissions/<int:pk>/missed/", show, name="submission-missed")]
