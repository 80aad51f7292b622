"""The admins' page on which the questions of a tutorial are chosen."""

from __future__ import annotations

from textwrap import shorten
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path

from annotation.interfaces.registry import interface_of
from annotation.quality.describe import title_of
from annotation.quality.taught import (
    APART,
    MOST,
    CannotTeach,
    ChangedMeanwhile,
    chosen,
    gold_of,
    taught_so_far,
    teach_these,
    teachable,
)
from annotation.workers import teach
from kbpo.web.http import admin_of, for_admins

SHOWN = 50
"""Gold questions that are offered, the newest first"""
BEGINS = 80
"""Characters of a text that say which question it is"""


@for_admins
def tutorial(request: HttpRequest, interface: str) -> HttpResponse:
    """Return what is taught of an interface, and what could be. A POST makes a new version of
    it.
    """
    try:
        asked = interface_of(interface)
    except KeyError:
        raise Http404 from None
    refusal, status, seen = "", 200, None
    if request.method == "POST":
        refusal, status, seen = _change(request, interface)
    if request.method == "POST" and not refusal:
        messages.success(request, "That is taught from now on.")
        return redirect("desk-tutorial", interface=interface)
    own, base = chosen(interface), teach.built_in().get(interface)
    n, sent = len(base.questions) if base else 0, request.POST if refusal else None
    now = {one["gold"] for one in gold_of(own)}
    golds = [
        (pk, _words(one), one["why"], pk in now) for pk, one in taught_so_far(interface).items()
    ]
    golds += [
        (gold.pk, f"{title_of(gold.question)} ({gold.question.track.name})", "", False)
        for gold in teachable(interface)[:SHOWN]
    ]
    ticked = {one["built_in"] for one in own.questions if "built_in" in one} if own else range(n)
    context: dict[str, Any] = {
        "interface": interface,
        "title": asked.title,
        "own": own,
        "version": seen if seen is not None else getattr(own, "version", 0),
        "built_in": [
            (
                place,
                _words(question),
                question["why"],
                _is(sent, "built_in", place, place in ticked),
            )
            for place, question in enumerate(base.questions if base else ())
        ],
        "golds": [
            (
                pk,
                words,
                sent.get(f"why-{pk}", "") if sent else why,
                _is(sent, "gold", pk, is_taught),
            )
            for pk, words, why, is_taught in golds
        ],
        "needed": sent.get("needed", "") if sent else getattr(own or base, "needed", ""),
        "most": MOST,
        "apart": APART,
        "first": own is None and base is None,
        "anew": sent is not None and "anew" in sent,
        "refusal": refusal,
    }
    return render(request, "desk/tutorial.html", context, status=status)


def _is(sent: Any, name: str, value: int, otherwise: bool) -> bool:
    """Return whether something is ticked: as it was sent, if it was."""
    return otherwise if sent is None else str(value) in sent.getlist(name)


def _words(question: dict[str, Any]) -> str:
    """Return how a question of a tutorial begins."""
    payload = question["payload"]
    document = payload.get("document") or {}
    words = document.get("title") or payload.get("question") or payload.get("text", "")
    return shorten(str(words), BEGINS, placeholder=" …")


def _change(request: HttpRequest, interface: str) -> tuple[str, int, int | None]:
    """Return why nothing was changed, as a sentence (none if it was), the status that says so, and
    of which version the page is now that is shown again: of the one that was sent, until its admin
    has read that another one holds.
    """
    seen = _seen(request)
    try:
        built_in = [_number(place) for place in request.POST.getlist("built_in")]
        golds = {
            _number(pk): request.POST.get(f"why-{pk}", "").replace("\x00", "")
            for pk in request.POST.getlist("gold")
        }
        needed = _number(request.POST.get("needed", ""))
        who, anew = admin_of(request), "anew" in request.POST
        teach_these(interface, built_in, golds, needed, who, anew=anew, seen=seen)
    except ChangedMeanwhile as refusal:
        return str(refusal), 409, refusal.now
    except CannotTeach as refusal:
        return str(refusal), 422, seen
    return "", 200, None


def _seen(request: HttpRequest) -> int:
    """Return the version that the page showed; -1 where the form does not say it."""
    said = request.POST.get("version", "")
    return int(said) if said.isascii() and said.isdecimal() and len(said) < 10 else -1


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise CannotTeach("Give a whole number of questions that must be right.")
    return int(text)


urlpatterns = [path("desk/tutorials/<slug:interface>/", tutorial, name="desk-tutorial")]
