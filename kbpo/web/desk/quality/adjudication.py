"""Judgments that experts are asked about: the admins' queue and trails, and a researcher's "I think
this is wrong".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.views.decorators.http import require_POST

from annotation.desk import adjudicate, split_votes
from annotation.desk.adjudicate import NEAR, CannotAsk
from annotation.desk.trail import trail_of
from annotation.interfaces.registry import interface_of
from annotation.quality import describe, error_rate, gold
from annotation.quality.judged import MARKED, PAIRS, TEXTS, words_of
from kbpo.accounts.models import User
from kbpo.sampling.models import ExpertCheck
from kbpo.tracks.models import Track
from kbpo.tracks.recall import NAME, recall_of
from kbpo.tracks.registry import kind_of
from kbpo.web.http import check_may_act, for_admins, why_of
from kbpo.web.research import judged
from kbpo.web.research.submissions import find, is_own

CLOCK_IDLE = {"split_votes": "The clock queues nothing.", "random": "The clock draws nothing."}


@for_admins
def queue(request: HttpRequest, slug: str) -> HttpResponse:
    """Return what waits for an expert and what experts said. A POST queues judgments, says how many
    the clock does, or drops a dispute.
    """
    track = get_object_or_404(Track, slug=slug)
    kind = kind_of(track)
    if kind.unchecked:
        raise Http404(kind.unchecked)
    refusal = _change(request, track) if request.method == "POST" else ""
    if request.method == "POST" and not refusal:
        return redirect("desk-adjudication", slug=slug)
    counts, has_recall = adjudicate.counts(track), recall_of(track) is not None
    context = {
        "track": track,
        "kind": kind,
        "has_recall": has_recall,
        "near": round(100 * NEAR),
        "counts": counts,
        "open": sum(count.get("open", 0) for count in counts.values()),
        "errors": _errors(track),
        "judged": words_of(track),
        "limit": gold.policy_of(track).split_limit,
        "random_limit": gold.policy_of(track).random_limit,
        "disputes": [
            (dispute_, _title(dispute_), has_recall and not _is_of_names(dispute_))
            for dispute_ in adjudicate.disputes(track)
        ],
        "entries": [(entry, _title(entry)) for entry in adjudicate.entries(track)],
        "refusal": refusal,
    }
    return render(request, "desk/adjudication.html", context, status=422 if refusal else 200)


def _title(entry: ExpertCheck) -> str:
    """Return what an entry is about, in a line."""
    title = describe.title_of(adjudicate.question_of(entry))
    return title + (": every name" if _is_of_names(entry) else "")


def _is_of_names(entry: ExpertCheck) -> bool:
    """Return whether an entry asks for every name of a document."""
    return interface_of(entry.interface).reads == NAME


def _errors(track: Track) -> list[tuple[str, Any, str]]:
    """(what, how often the crowd errs in it, what is counted), of what experts answered after a
    random draw.
    """
    if recall_of(track) is None:
        items = kind_of(track).words.items.capitalize()
        rates = [(items, error_rate.errors(track, TEXTS), "random judgment")]
        return [rate for rate in rates if rate[1].of]
    wrong, missed = error_rate.errors_of_names(track)
    rates = [
        (
            "Pairs that were asked alone",
            error_rate.errors(track, PAIRS),
            "random judgment",
        ),
        ("Relations marked in documents", error_rate.errors(track, MARKED), "random mark"),
        ("Names marked in documents", wrong, "settled name"),
        ("Names that readers missed", missed, "name that experts marked"),
    ]
    return [rate for rate in rates if rate[1].of]


def _change(request: HttpRequest, track: Track) -> str:
    """Return why nothing was changed, as a sentence; nothing if something was."""
    change = CHANGES.get(request.POST.get("verb", ""))
    if change is None:
        return "Say what to queue or to drop."
    try:
        return change(request, track, cast(User, request.user))
    except CannotAsk as refusal:
        return str(refusal)


def _number(request: HttpRequest) -> int | None:
    """Return the number that was sent; None where it is none of at most four digits."""
    sent = request.POST.get("n", "")
    return int(sent) if sent.isdecimal() and sent.isascii() and len(sent) <= 4 else None


def _queue(request: HttpRequest, track: Track, user: User) -> str:
    n, why = _number(request), why_of(request)
    if n is None:
        return "Say how many judgments to queue."
    if not why:
        return "Nothing was queued: say what experts are asked for. It stands in the log."
    by_chance = request.POST["verb"] == "random"
    add = adjudicate.queue_random if by_chance else adjudicate.queue_split_votes
    queued = add(track, n, user, request.POST.get("what", ""), why=why)
    messages.success(request, f"{queued} judgments were queued.")
    return ""


def _limit(request: HttpRequest, track: Track, user: User) -> str:
    n = _number(request)
    if n is None:
        return "Say how many may wait at once; 0 leaves it to you."
    queue = "random" if request.POST["verb"] == "random-limit" else "split_votes"
    split_votes.set_limit(track, n, user, why_of(request), queue)
    messages.success(request, f"The clock keeps up to {n} waiting." if n else CLOCK_IDLE[queue])
    return ""


def _settle(request: HttpRequest, track: Track, user: User) -> str:
    """A dispute is dropped, or becomes one about all names of its document."""
    disputes = {str(dispute.pk): dispute for dispute in adjudicate.disputes(track)}
    dispute = disputes.get(request.POST.get("entry", ""))
    if dispute is None:
        return "That dispute is not open any more."
    if request.POST["verb"] == "names":
        adjudicate.dispute_names(dispute, user)
        messages.success(request, "An expert marks all names of its document anew.")
    else:
        adjudicate.drop(dispute, user, why_of(request))
        messages.success(request, "It is off the queue.")
    return ""


CHANGES: dict[str, Callable[[HttpRequest, Track, User], str]] = {
    "split_votes": _queue,
    "random": _queue,
    "limit": _limit,
    "random-limit": _limit,
    "drop": _settle,
    "names": _settle,
}
"""What a POST may ask for, by its `verb`; each returns why nothing was changed"""


@for_admins
def trail(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Return what the crowd and the expert said of one judgment, and why it was asked. A POST adds
    the expert's remark.
    """
    track = get_object_or_404(Track, slug=slug)
    trail = trail_of(track, pk)
    if trail is None:
        raise Http404("Nobody has answered this one yet.")
    if request.method == "POST":
        adjudicate.remark(trail.row, cast(User, request.user), request.POST.get("remark", ""))
        messages.success(request, "Saved.")
        return redirect("desk-trail", slug=slug, pk=pk)
    return render(request, "desk/trail.html", {"track": track, "trail": trail, "row": trail.row})


@login_required
@require_POST
def dispute(request: HttpRequest, pk: int, prediction: int) -> HttpResponse:
    """Return a member of the team thinks that the judgment of a prediction is wrong."""
    submission, note = find(request, pk), request.POST.get("note", "")
    if is_own(request, submission):
        check_may_act(cast(User, request.user), submission.team)
    try:
        judged.dispute(cast(User, request.user), submission, prediction, note)
        messages.success(
            request, "Noted. An expert is asked, without seeing what was judged or who doubts it."
        )
    except CannotAsk as refusal:
        messages.error(request, str(refusal))
    return redirect(reverse("submission-explore", args=[pk]) + f"?p={prediction}")


urlpatterns = [
    path("desk/tracks/<slug:slug>/adjudication/", queue, name="desk-adjudication"),
    path("desk/tracks/<slug:slug>/adjudication/<int:pk>/", trail, name="desk-trail"),
    path(
        "submissions/<int:pk>/judged/<int:prediction>/dispute/", dispute, name="submission-dispute"
    ),
]
