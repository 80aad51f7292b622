"""The instructions of a track as annotators see them, and an example of each page on which they
judge; for everybody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse

from annotation.interfaces.registry import interface_of, reading
from kbpo.tracks.models import Track
from kbpo.tracks.recall import recall_of
from kbpo.tracks.registry import kind_of
from kbpo.web.api.tracks import public_track
from kbpo.web.judging.attempt import example_at


@dataclass(frozen=True)
class Asked:
    """One kind of question of a track."""

    title: str
    how: str
    """The template of its instructions"""
    page: Mapping[str, Any]
    """What they say of this track alone"""
    extra: Decimal
    example: str
    """The address of an example; empty where there is none"""


def asked_on(track: Track) -> list[Asked]:
    """Return the kinds of questions that people are asked on a track."""
    kind = kind_of(track)
    guide, extra = kind.guide(), {asking.interface: asking.extra for asking in kind.asking}
    if recall_of(track) is not None:
        extra |= dict.fromkeys(reading(), Decimal("0.00"))
    asked = []
    for name, amount in extra.items():
        interface, example = interface_of(name), example_at(name)
        asked.append(
            Asked(
                interface.title,
                f"interfaces/{interface.folder or interface.name}/how.html",
                interface.instructions(guide),
                amount,
                reverse("try_question", args=[example]) if example else "",
            )
        )
    return asked


def context_of(track: Track) -> dict[str, Any]:
    """Return what the page and the file are filled with."""
    kind = kind_of(track)
    catalogue = kind.guide().get("catalogue", ())
    return {
        "track": track,
        "kind": kind,
        "words": kind.words,
        "questions": asked_on(track),
        "asked": kind.guide().get("asked", ()),
        "catalogue": catalogue,
        "n_catalogue": len(catalogue),
        "everything": True,
        "site": settings.SITE_URL.rstrip("/"),
    }


def show(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the page."""
    return render(request, "guidelines.html", context_of(public_track(slug)))


urlpatterns = [path("tracks/<slug:slug>/guidelines/", show, name="guidelines")]
