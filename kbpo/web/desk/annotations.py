"""The page on which admins upload annotations of whole documents: files are checked first, then
loaded.
"""

from __future__ import annotations

import secrets
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import SuspiciousOperation, ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path

from kbpo.accounts.audit import note
from kbpo.corpus.upload import discard, order_load
from kbpo.queue import nudge
from kbpo.sampling.documents.draw import waiting_documents
from kbpo.sampling.models import AnnotationUpload
from kbpo.tracks.models import Track
from kbpo.tracks.recall import recall_of
from kbpo.web.http import admin_of, for_admins, pk_of

LISTED = 20


class AnnotationForm(forms.Form):
    """The files of relations and mentions, and their documents."""

    file = forms.FileField(label="Relations that hold (gold.tsv)", help_text="May be gzipped.")
    mentions = forms.FileField(label="Mentions with their canonical mentions (mentions.tsv)")
    which = forms.ChoiceField(choices=AnnotationUpload.Which.choices, label="They are of")
    size = forms.IntegerField(
        min_value=1,
        required=False,
        label="How many are drawn now",
        help_text="Only where documents are drawn now.",
    )
    closed = forms.BooleanField(
        required=False, label="What is not marked is false, not only missing"
    )
    public = forms.BooleanField(
        required=False,
        label="They were published: everybody may see them, and later runs are marked",
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("which") == AnnotationUpload.Which.SAMPLE and not cleaned.get("size"):
            self.add_error("size", ValidationError("Say how many documents are drawn."))
        return cleaned


@for_admins
def show(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the form and the latest uploads. A POST stores files to check, or loads or drops
    checked ones.
    """
    track = get_object_or_404(Track.objects.select_related("corpus"), slug=slug)
    if "verb" in request.POST:
        return _change(request, track)
    which = AnnotationUpload.Which  # of what was drawn and waits, else of every document
    initial = {
        "which": which.DRAWN if waiting_documents(track) else which.ALL,
        "public": track.is_study,
    }
    form = AnnotationForm(request.POST or None, request.FILES or None, initial=initial)
    refusal = "" if recall_of(track) else "Nobody reads documents in full on this kind of track."
    if request.method == "POST" and not refusal and form.is_valid():
        _store_upload(track, form.cleaned_data, request)
        messages.success(request, "The files are here. They are tried now; nothing is loaded yet.")
        return redirect("desk-annotations", slug=slug)
    annotation_uploads = (
        AnnotationUpload.objects.filter(track=track).select_related("track").order_by("-pk")
    )
    annotation_uploads = annotation_uploads[:LISTED]
    context = {
        "track": track,
        "form": form,
        "rows": annotation_uploads,
        "refusal": refusal,
        "moving": any(row.status in ("received", "wanted") for row in annotation_uploads),
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "desk/annotations.html", context, status=status)


@transaction.atomic
def _store_upload(track: Track, cleaned: dict[str, Any], request: HttpRequest) -> None:
    """Store the uploaded files with the options of the form, log the upload, and wake the step that
    checks them.
    """
    row = AnnotationUpload.objects.create(
        status="received",
        track=track,
        file=cleaned["file"],
        file_name=str(cleaned["file"].name)[:255],
        mentions=cleaned["mentions"],
        mentions_name=str(cleaned["mentions"].name)[:255],
        which=cleaned["which"],
        size=cleaned["size"],
        seed=secrets.randbits(62),
        closed=cleaned["closed"],
        is_public=cleaned["public"],
    )
    subject = f"annotation upload:{row.pk}"
    note("upload annotations", subject, who=admin_of(request), after=row.which, track=track.slug)
    nudge(row.step)


def verb_of(request: HttpRequest) -> str:
    """Return whether an upload is to be loaded or dropped. Raises SuspiciousOperation for anything
    else.
    """
    verb = request.POST.get("verb", "")
    if verb not in ("load", "drop"):
        raise SuspiciousOperation("An upload is loaded or dropped.")
    return verb


def _change(request: HttpRequest, track: Track) -> HttpResponse:
    """Load or drop an upload."""
    verb, pk = verb_of(request), pk_of(request)
    get_object_or_404(AnnotationUpload, track=track, pk=pk)
    if (order_load if verb == "load" else discard)(AnnotationUpload, pk) is None:
        messages.error(request, "Nothing was done: it is loaded, dropped or being tried.")
    else:
        subject = f"annotation upload:{pk}"
        note(f"{verb} annotations", subject, who=admin_of(request), track=track.slug)
        done = "are being loaded" if verb == "load" else "are dropped"
        messages.success(request, f"The annotations {done}.")
    return redirect("desk-annotations", slug=track.slug)


urlpatterns = [path("desk/tracks/<slug:slug>/annotations/", show, name="desk-annotations")]
