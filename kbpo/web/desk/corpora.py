"""The pages on which admins upload corpora, and annotations of whole documents: files are checked
first, then loaded.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import SuspiciousOperation, ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path

from kbpo.accounts.audit import write_audit_entry
from kbpo.corpus.models import Corpus, CorpusUpload, Upload
from kbpo.corpus.upload import discard_upload, request_load, shipped_schemas
from kbpo.queue import wake_step
from kbpo.sampling.documents.draw import waiting_documents
from kbpo.sampling.models import AnnotationUpload
from kbpo.tracks.models import Track
from kbpo.tracks.recall import kind_with_recall_or_none
from kbpo.web.http import current_admin, for_admins, form_pk

LISTED = 20
"""Number of uploads on a page"""


class UploadForm(forms.Form):
    """Form to upload a corpus: documents with schema and mentions, or inputs."""

    name = forms.CharField(max_length=120, label="Name of the corpus")
    what = forms.ChoiceField(
        choices=CorpusUpload.What.choices, initial=CorpusUpload.What.DOCUMENTS, label="What it is"
    )
    file = forms.FileField(
        label="Documents or inputs", help_text="JSON Lines, one a line; may be gzipped."
    )
    schema = forms.ChoiceField(
        choices=lambda: [(name, name) for name in shipped_schemas()],
        initial=lambda: shipped_schemas()[-1],
        required=False,
        label="Schema of documents",
    )
    schema_file = forms.FileField(
        required=False,
        label="Or a custom schema",
        help_text="JSON or YAML with entity_types and predicates, instead of the choice above.",
    )
    mentions = forms.FileField(
        required=False,
        label="Mentions in the documents",
        help_text="Optional: TSV, may be gzipped. Everybody may download them.",
    )
    dev_share = forms.FloatField(
        min_value=0,
        max_value=0.5,
        required=False,
        label="Share that becomes the development part",
        help_text=(
            "By default 0.2 of documents, 0.1 of inputs, 0 of a study. Parts in the file win."
        ),
    )

    def clean_name(self) -> str:
        name = " ".join(str(self.cleaned_data["name"]).split())
        if not any(letter.isalnum() for letter in name):
            raise ValidationError("A name needs letters or digits.")
        if Corpus.objects.filter(name__iexact=name).exists():
            raise ValidationError(f"There is a corpus {name} already.")
        return name

    def clean_schema_file(self) -> Any:
        file = self.cleaned_data["schema_file"]
        if file and not str(file.name).lower().endswith((".json", ".yaml", ".yml")):
            raise ValidationError("A schema is a file that ends in .json, .yaml or .yml.")
        return file

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("what") == CorpusUpload.What.INPUTS:
            for name in ("schema_file", "mentions"):
                if cleaned.get(name):
                    self.add_error(name, ValidationError("Only documents have one: leave it out."))
        return cleaned


@for_admins
def show_corpora(request: HttpRequest) -> HttpResponse:
    """Return the form and the latest uploads. A POST stores a file to check, or loads or drops a
    checked one.
    """
    if "verb" in request.POST:
        _load_or_drop(request, CorpusUpload, "corpus")
        return redirect("desk-corpora")
    form = UploadForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        _store_corpus(form.cleaned_data, request)
        messages.success(request, "Uploaded. The file is being checked; nothing is loaded yet.")
        return redirect("desk-corpora")
    uploads = CorpusUpload.objects.select_related("corpus").order_by("-pk")[:LISTED]
    context = {"form": form, **_list_uploads(uploads)}
    status = 422 if request.method == "POST" else 200
    return render(request, "desk/corpora.html", context, status=status)


def _list_uploads(uploads: Iterable[Upload]) -> dict[str, Any]:
    """Return the context of a list of uploads, and whether any is being checked or loaded."""
    rows = list(uploads)
    return {"rows": rows, "moving": any(row.status in ("received", "wanted") for row in rows)}


@transaction.atomic
def _store_corpus(cleaned: dict[str, Any], request: HttpRequest) -> None:
    """Store the files of a corpus, log the upload, and wake the step that checks them."""
    row = CorpusUpload.objects.create(
        status="received",
        name=cleaned["name"],
        what=cleaned["what"],
        file=cleaned["file"],
        file_name=_original_name(cleaned["file"]),
        dev_share=cleaned["dev_share"],
        schema=cleaned["schema"] or shipped_schemas()[-1],
        schema_file=cleaned["schema_file"] or "",
        schema_name=_original_name(cleaned["schema_file"]),
        mentions=cleaned["mentions"] or "",
        mentions_name=_original_name(cleaned["mentions"]),
    )
    write_audit_entry(
        "upload corpus", f"corpus upload:{row.pk}", who=current_admin(request), after=row.name
    )
    wake_step(row.step)


def _original_name(file: Any) -> str:
    """Return the original name of a file; empty without one."""
    return str(file.name)[:255] if file else ""


def _load_or_drop(
    request: HttpRequest, model: type[Upload], upload_kind: str, track: Track | None = None
) -> None:
    """Order the load of an upload, or drop it, as the form says. Raises SuspiciousOperation for any
    other action.
    """
    verb, pk = request.POST.get("verb", ""), form_pk(request)
    if verb not in ("load", "drop"):
        raise SuspiciousOperation("An upload is loaded or dropped.")
    row = (request_load if verb == "load" else discard_upload)(model, pk)
    if row is None:
        messages.error(request, "Nothing was changed: it is loaded, dropped or being checked.")
        return
    action = f"{verb} {upload_kind}" if track is None else f"{verb} {upload_kind}s"
    slug = "" if track is None else track.slug
    write_audit_entry(
        action, f"{upload_kind} upload:{pk}", who=current_admin(request), after=str(row), track=slug
    )
    messages.success(request, f"{row}: {'loading now' if verb == 'load' else 'dropped'}.")


class AnnotationForm(forms.Form):
    """Form to upload annotations: the files of relations and mentions, and which documents they
    annotate.
    """

    file = forms.FileField(label="True relations (gold.tsv)", help_text="May be gzipped.")
    mentions = forms.FileField(label="Mentions with their canonical mentions (mentions.tsv)")
    which = forms.ChoiceField(choices=AnnotationUpload.Which.choices, label="Which documents")
    size = forms.IntegerField(
        min_value=1,
        required=False,
        label="Documents drawn now",
        help_text="Only if documents are drawn now.",
    )
    closed = forms.BooleanField(required=False, label="Whatever is not marked is false")
    public = forms.BooleanField(
        required=False,
        label="Public: everybody may see them, and runs confirmed later carry a mark that says so",
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("which") == AnnotationUpload.Which.SAMPLE and not cleaned.get("size"):
            self.add_error("size", ValidationError("Give the number of documents to draw."))
        return cleaned


@for_admins
def show_annotations(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the form and the latest uploads. A POST stores files to check, or loads or drops
    checked ones.
    """
    track = get_object_or_404(Track.objects.select_related("corpus"), slug=slug)
    if "verb" in request.POST:
        get_object_or_404(AnnotationUpload, track=track, pk=form_pk(request))
        _load_or_drop(request, AnnotationUpload, "annotation", track)
        return redirect("desk-annotations", slug=slug)
    which = AnnotationUpload.Which
    initial = {
        "which": which.DRAWN if waiting_documents(track) else which.ALL,
        "public": track.is_study,
    }
    form = AnnotationForm(request.POST or None, request.FILES or None, initial=initial)
    refusal = (
        ""
        if kind_with_recall_or_none(track)
        else "Nobody reads documents in full on this kind of track."
    )
    if request.method == "POST" and not refusal and form.is_valid():
        _store_annotations(track, form.cleaned_data, request)
        messages.success(request, "Uploaded. The files are being checked; nothing is loaded yet.")
        return redirect("desk-annotations", slug=slug)
    uploads = AnnotationUpload.objects.filter(track=track).select_related("track").order_by("-pk")
    context = {"track": track, "form": form, "refusal": refusal, **_list_uploads(uploads[:LISTED])}
    status = 422 if request.method == "POST" else 200
    return render(request, "desk/annotations.html", context, status=status)


@transaction.atomic
def _store_annotations(track: Track, cleaned: dict[str, Any], request: HttpRequest) -> None:
    """Store the files of annotations, log the upload, and wake the step that checks them."""
    row = AnnotationUpload.objects.create(
        status="received",
        track=track,
        file=cleaned["file"],
        file_name=_original_name(cleaned["file"]),
        mentions=cleaned["mentions"],
        mentions_name=_original_name(cleaned["mentions"]),
        which=cleaned["which"],
        size=cleaned["size"],
        seed=secrets.randbits(62),
        closed=cleaned["closed"],
        is_public=cleaned["public"],
    )
    subject = f"annotation upload:{row.pk}"
    write_audit_entry(
        "upload annotations", subject, who=current_admin(request), after=row.which, track=track.slug
    )
    wake_step(row.step)


urlpatterns = [
    path("desk/corpora/", show_corpora, name="desk-corpora"),
    path("desk/tracks/<slug:slug>/annotations/", show_annotations, name="desk-annotations"),
]
