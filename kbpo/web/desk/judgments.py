"""The admins' way to take a track's single judgments elsewhere, and to bring others here."""

from __future__ import annotations

from typing import BinaryIO, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path

from formats.messages import Report
from kbpo.accounts.models import User
from kbpo.tracks.content.judgments import CannotImport, text_kind
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.web.access import for_admins
from kbpo.web.expensive import export
from kbpo.web.judgments import bring, judgment_file

SHOWN = 100
"""Problems on the page"""


@for_admins
def judgments(request: HttpRequest, slug: str) -> HttpResponse:
    """Return what a file of judgments looks like; a POST imports one."""
    track = get_object_or_404(Track.objects.select_related("corpus"), slug=slug)
    report, refusal, sent = Report(), "", request.FILES.get("file")
    if request.method == "POST" and sent is None:
        refusal = "Nothing was imported: choose a file."
    elif request.method == "POST" and sent is not None:
        try:
            partly = request.POST.get("partly") == "1"
            done = bring(
                track,
                cast(BinaryIO, sent),
                report,
                cast(User, request.user),
                partly=partly,
                is_public=request.POST.get("public") == "1",
            )
        except CannotImport as no:
            refusal = str(no)
        else:
            messages.success(request, done.sentence)
            return redirect("desk-track-judgments", slug=slug)
    context = {
        "track": track,
        "rated": kind_of(track).rates,
        "why_none": why_none(track),
        "refusal": refusal,
        "problems": list(report)[:SHOWN],
    }
    return render(request, "desk/judgments.html", context, status=422 if refusal else 200)


def why_none(track: Track) -> str:
    """Return why files of judgments are neither taken nor made of a track; empty where they are."""
    try:
        text_kind(track)
    except CannotImport as no:
        return str(no)
    return ""


@for_admins
@export
def download(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Return all single judgments of a track, as a file."""
    track = get_object_or_404(Track.objects.select_related("corpus"), slug=slug)
    try:
        return judgment_file(track)
    except CannotImport as no:
        messages.error(request, str(no))
        return redirect("desk-track-judgments", slug=slug)


urlpatterns = [
    path("desk/tracks/<slug:slug>/judgments/", judgments, name="desk-track-judgments"),
    path("desk/tracks/<slug:slug>/judgments.tsv", download, name="desk-track-judgments-tsv"),
]
