"""The admins' page of documents that people annotate whole: what is drawn, what is done, and how to
order more.
"""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path

from kbpo.accounts.models import User
from kbpo.sampling.documents.annotated import annotated
from kbpo.sampling.documents.draw import (
    LEAST_UNIFORM,
    UNIFORM_SHARE,
    CannotDraw,
    in_two_stages,
    order_documents,
    what_was_drawn,
)
from kbpo.sampling.models import DocumentBatch, DocumentSample
from kbpo.tracks.models import Track
from kbpo.web.expensive import export
from kbpo.web.http import for_admins, why_of
from kbpo.web.table import csv_response

HEAD = [
    "document",
    "stage",
    "design",
    "probability",
    "batch",
    "seed",
    "position",
    "drawn_at",
    "settled_at",
]


class OrderForm(forms.Form):
    """How many documents, and how they are drawn."""

    size = forms.IntegerField(min_value=1, max_value=10**7, label="Documents")
    design = forms.ChoiceField(choices=DocumentBatch.Design.choices, initial="uniform")
    seed = forms.IntegerField(min_value=0, max_value=2**62, required=False)
    uniform_share = forms.FloatField(min_value=LEAST_UNIFORM, max_value=1, required=False)


@for_admins
def show(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the documents of a track. A POST draws some."""
    track = get_object_or_404(Track.objects.select_related("corpus"), slug=slug)
    refusal = _order(track, request) if request.method == "POST" else ""
    if request.method == "POST" and not refusal:
        return redirect("desk-documents", slug=slug)
    return render(
        request,
        "desk/documents.html",
        _context(track, request, refusal),
        status=422 if refusal else 200,
    )


def _context(track: Track, request: HttpRequest, refusal: str) -> dict[str, Any]:
    document_samples = DocumentSample.objects.filter(track=track)
    done = Count("samples", filter=Q(samples__settled_at__isnull=False))
    counting = annotated(track)
    latest = track.evaluations.order_by("-number").first()
    return {
        "track": track,
        "refusal": refusal,
        "said": request.POST,
        "uniform_checked": request.POST.get("design") != "two_stage",
        "two_stage_checked": request.POST.get("design") == "two_stage",
        "batches": DocumentBatch.objects.filter(track=track).annotate(done=done).order_by("pk"),
        "imported": document_samples.filter(batch=None).count(),
        "drawn": document_samples.count(),
        "settled": document_samples.filter(settled_at__isnull=False).count(),
        "counting": len(counting.documents),
        "weighted": counting.inclusion is not None,
        "two_stages": in_two_stages(track),
        "second": DocumentBatch.objects.filter(track=track, stage=2).first(),
        "left": track.corpus.n_test - document_samples.count(),
        "misses": latest.report.misses if latest else None,
    }


def _order(track: Track, request: HttpRequest) -> str:
    """Return why nothing was drawn, as a sentence; nothing if it was."""
    form = OrderForm(request.POST)
    if not form.is_valid():
        field, errors = next(iter(form.errors.items()))
        return f"{field.replace('_', ' ').capitalize()}: {errors[0]}"
    cleaned = form.cleaned_data
    if not (why := why_of(request)):
        return "Nothing was drawn: say what the documents are for. It stands in the log."
    admin = cast(User, request.user)
    try:
        batch = order_documents(
            track,
            cleaned["size"],
            cleaned["design"],
            seed=cleaned["seed"],
            uniform_share=UNIFORM_SHARE
            if cleaned["uniform_share"] is None
            else cleaned["uniform_share"],
            user=admin,
            why=why,
        )
    except CannotDraw as problem:
        return str(problem)
    messages.success(request, what_was_drawn(batch))
    return ""


@export
@for_admins
def as_csv(request: HttpRequest, slug: str) -> HttpResponse:
    """Return every document that was drawn, with its probability, seed and place."""
    track = get_object_or_404(Track, slug=slug)
    document_samples = DocumentSample.objects.filter(track=track).order_by(
        "stage", "batch", "position"
    )
    columns = (
        "document__key",
        "stage",
        "design",
        "probability",
        "batch",
        "seed",
        "position",
        "drawn_at",
        "settled_at",
    )
    return csv_response(f"documents-{slug}.csv", HEAD, document_samples.values_list(*columns))


urlpatterns = [
    path("desk/tracks/<slug:slug>/documents/", show, name="desk-documents"),
    path("desk/tracks/<slug:slug>/documents.csv", as_csv, name="desk-documents-csv"),
]
