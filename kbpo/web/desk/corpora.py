"""The page on which admins upload a corpus: it is checked first, then loaded."""

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
from kbpo.corpus import upload
from kbpo.corpus.models import Corpus, CorpusUpload
from kbpo.corpus.upload import discard, order_load
from kbpo.queue import nudge
from kbpo.sampling.documents.draw import waiting_documents
from kbpo.sampling.models import AnnotationUpload
from kbpo.tracks.models import Track
from kbpo.tracks.recall import recall_of
from kbpo.web.http import admin_of, for_admins, pk_of

LISTED = 20


class UploadForm(forms.Form):
    """A corpus of documents with schema and mentions, or of inputs."""

    name = forms.CharField(max_length=120, label="Name of the corpus")
    what = forms.ChoiceField(
        choices=CorpusUpload.What.choices, initial=CorpusUpload.What.DOCUMENTS, label="What it is"
    )
    file = forms.FileField(
        label="Documents or inputs", help_text="JSON Lines, one a line; may be gzipped."
    )
    schema = forms.ChoiceField(required=False, label="Schema of documents")
    schema_file = forms.FileField(
        required=False,
        label="Or a schema of your own",
        help_text="JSON or YAML with entity_types and predicates; it goes before the choice above.",
    )
    mentions = forms.FileField(
        required=False,
        label="Mentions in the documents",
        help_text="If you have them: TSV, may be gzipped. Everybody may download them, too.",
    )
    dev_share = forms.FloatField(
        min_value=0,
        max_value=0.5,
        required=False,
        label="Share that becomes the development part",
        help_text="Empty: 0.2 of documents, 0.1 of inputs. Its judgments are public at once and"
        " count for no score. A file that names parts is taken at its word; a study needs 0.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = upload.shipped_schemas()
        self.fields["schema"] = forms.ChoiceField(
            choices=[(name, name) for name in names], required=False, initial=names[-1]
        )
        self.order_fields(
            ["name", "what", "file", "schema", "schema_file", "mentions", "dev_share"]
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
def show(request: HttpRequest) -> HttpResponse:
    """Return the form and the latest uploads. A POST stores a file to check, or loads or drops a
    checked one.
    """
    if "verb" in request.POST:
        return _change(request)
    form = UploadForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        _keep(form, request)
        messages.success(request, "The file is here. It is tried now; nothing is loaded yet.")
        return redirect("desk-corpora")
    corpus_uploads = CorpusUpload.objects.select_related("corpus").order_by("-pk")[:LISTED]
    context = {
        "form": form,
        "rows": corpus_uploads,
        "moving": any(row.status in ("received", "wanted") for row in corpus_uploads),
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "desk/corpora.html", context, status=status)


@transaction.atomic
def _keep(form: UploadForm, request: HttpRequest) -> None:
    cleaned = form.cleaned_data
    row = CorpusUpload.objects.create(
        status="received",
        name=cleaned["name"],
        what=cleaned["what"],
        file=cleaned["file"],
        file_name=_name_of(cleaned["file"]),
        dev_share=cleaned["dev_share"],
        schema=cleaned["schema"] or upload.shipped_schemas()[-1],
        schema_file=cleaned["schema_file"] or "",
        schema_name=_name_of(cleaned["schema_file"]),
        mentions=cleaned["mentions"] or "",
        mentions_name=_name_of(cleaned["mentions"]),
    )
    note("upload corpus", f"corpus upload:{row.pk}", who=admin_of(request), after=row.name)
    nudge(row.step)


def _name_of(file: Any) -> str:
    """Return the original name of a file; empty without one."""
    return str(file.name)[:255] if file else ""


def _change(request: HttpRequest) -> HttpResponse:
    """Load or drop an upload."""
    verb, pk = verb_of(request), pk_of(request)
    row = (upload.order_load if verb == "load" else upload.discard)(CorpusUpload, pk)
    if row is None:
        messages.error(request, "Nothing was done: it is loaded, dropped or being tried.")
    else:
        action = "load corpus" if verb == "load" else "drop corpus"
        note(action, f"corpus upload:{pk}", who=admin_of(request), after=row.name)
        done = (
            "is being loaded; then “Make a track on it” stands below"
            if verb == "load"
            else "is dropped"
        )
        messages.success(request, f"{row.name} {done}.")
    return redirect("desk-corpora")


LISTED_ANNOTATIONS = 20


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
def annotations_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the form and the latest uploads. A POST stores files to check, or loads or drops
    checked ones.
    """
    track = get_object_or_404(Track.objects.select_related("corpus"), slug=slug)
    if "verb" in request.POST:
        return _change_annotations(request, track)
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
    annotation_uploads = annotation_uploads[:LISTED_ANNOTATIONS]
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


def _change_annotations(request: HttpRequest, track: Track) -> HttpResponse:
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


urlpatterns = [
    path("desk/corpora/", show, name="desk-corpora"),
    path("desk/tracks/<slug:slug>/annotations/", annotations_page, name="desk-annotations"),
]
