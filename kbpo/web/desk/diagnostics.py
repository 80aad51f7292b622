"""The admins' page of what samples reach: entities in the corpus, among drawn documents, and among
draws of a run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path

from kbpo.corpus.frequency import FREQUENCIES
from kbpo.evaluation.studies.reach import DOCUMENTS, DRAWS, REPEATS, SIMULATED, Reach, Sharing
from kbpo.evaluation.studies.reach_cache import entities_of, reach_of
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.web.access import for_admins, track_of_relations
from kbpo.web.components.log_plot import Series, draw_key, draw_log_log
from kbpo.web.csv import csv_response

DESIGNS = {"uniform": "Uniform", "two_stage": "In two stages"}


@for_admins
def show(request: HttpRequest, slug: str) -> HttpResponse:
    """The diagnostics of a track, and of one of its submissions."""
    track = track_of_relations(slug)
    entities = entities_of(track)
    chosen = _chosen(track, request.GET.get("submission", ""))
    context: dict[str, Any] = {
        "track": track,
        "submissions": _submissions(track).order_by("team__name", "name"),
        "chosen": chosen,
        "reach": [_told(track, reach) for reach in reach_of(chosen)] if chosen else [],
        "draws": DRAWS,
        "repeats": REPEATS,
        "simulated": SIMULATED,
    }
    if entities is not None:
        context |= {
            "source": entities.source,
            "frequency": _frequency_plot(entities.by_frequency),
            "limits": entities.limits,
        }
        context |= _shared_context(entities.sharing, wanted=DOCUMENTS)
    return render(request, "desk/diagnostics.html", context)


@for_admins
def as_csv(request: HttpRequest, slug: str, what: str) -> HttpResponse:
    """The numbers behind one of the drawings: frequency, shared or reach."""
    track = track_of_relations(slug)
    rows = iter(_rows(track, what, request.GET.get("submission", "")))
    return csv_response(f"{what}-{slug}.csv", next(rows), rows)


def _rows(track: Track, drawing: str, submission: str) -> Iterable[list[Any]]:
    if drawing == "reach":
        chosen = _chosen(track, submission)
        if chosen is None:
            raise Http404("No submission has predictions yet.")
        yield ["distribution", "what", "name", "mean"]
        for reach in reach_of(chosen):
            yield from (
                [reach.kind, "entities", name, number] for name, number in reach.entities.items()
            )
            yield [reach.kind, "predicates", "", reach.strata]
            yield [reach.kind, "entities with several relations", "", reach.several]
            yield from (
                [reach.kind, "draws", name, number] for name, number in reach.by_stratum.items()
            )
        return
    entities = entities_of(track)
    if entities is None:
        raise Http404("No entity is known yet.")
    if drawing == "frequency":
        yield ["documents", "entities"]
        yield from (list(pair) for pair in entities.by_frequency)
        return
    yield ["design", "documents_drawn", "what", "value", "mean_entities"]
    for design in entities.sharing:
        yield from (
            [design.design, design.n, "in so many documents", n, mean]
            for n, mean in design.by_documents
        )
        yield from (
            [design.design, design.n, "shared", name, mean] for name, mean in design.shared.items()
        )
        yield [design.design, design.n, "documents that share one", "", design.documents]


def _frequency_plot(points: list[tuple[int, int]]) -> Any:
    once = next((entities for documents, entities in points if documents == 1), 0)
    alt = (
        f"{sum(entities for _, entities in points):,} entities; {once:,} occur in one document,"
        f" the most frequent in {points[-1][0]:,}."
    )
    return draw_log_log(
        [Series("Entities", [(float(x), float(y)) for x, y in points])],
        alt,
        x_name="Documents in which an entity occurs",
        y_name="Entities",
    )


def _shared_context(shared: list[Sharing], *, wanted: int) -> dict[str, Any]:
    series = [
        Series(DESIGNS[sharing.design], [(float(x), y) for x, y in sharing.by_documents])
        for sharing in shared
    ]
    sentence = "; ".join(
        f"{DESIGNS[sharing.design].lower()}: {sum(sharing.shared.values()):,.0f} entities are in"
        " two or more"
        for sharing in shared
    )
    plot = draw_log_log(
        series,
        f"Of {shared[0].n:,} documents drawn, {sentence}.",
        x_name="Drawn documents that name an entity",
        y_name="Entities, mean",
    )
    table = [
        {
            "name": DESIGNS[sharing.design],
            "documents": sharing.documents,
            "classes": [sharing.shared[f] for f in FREQUENCIES],
            "all": sum(sharing.shared.values()),
        }
        for sharing in shared
    ]
    return {
        "shared": table,
        "shared_plot": plot,
        "shared_key": draw_key(series),
        "n": shared[0].n,
        "wanted": wanted,
    }


def _told(track: Track, reach: Reach) -> dict[str, Any]:
    return {
        "name": kind_of(track).distribution_label(reach.kind),
        "classes": [reach.entities[name] for name in FREQUENCIES],
        "strata": reach.strata,
        "several": reach.several,
        "most": list(reach.by_stratum.items()),
        "without": sum(1 for number in reach.by_stratum.values() if not number),
    }


def _submissions(track: Track) -> Any:
    return (
        Submission.objects.filter(track=track, predictions__isnull=False)
        .distinct()
        .select_related("team")
    )


def _chosen(track: Track, asked: str) -> Submission | None:
    """The submission that is asked for, else the newest that has predictions."""
    submissions = _submissions(track).select_related("track__corpus", "team")
    if asked:
        if not asked.isdecimal() or len(asked) > 12:
            raise Http404("There is no such submission on this track.")
        submissions = submissions.filter(pk=int(asked))
    submission: Submission | None = submissions.order_by("-pk").first()
    if asked and submission is None:
        raise Http404("There is no such submission on this track.")
    return submission


urlpatterns = [
    path("desk/tracks/<slug:slug>/diagnostics/", show, name="desk-diagnostics"),
    *(
        path(
            f"desk/tracks/<slug:slug>/diagnostics/{what}.csv",
            as_csv,
            {"what": what},
            name=f"desk-diagnostics-{what}",
        )
        for what in ("frequency", "shared", "reach")
    ),
]
