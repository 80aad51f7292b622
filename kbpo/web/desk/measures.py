"""The pages of a track's agreement and gold questions."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, re_path

from annotation.interfaces.registry import interface_by_name
from annotation.labels import revise
from annotation.labels.export import EXPORTS
from annotation.models import SIGNALS, Policy
from annotation.quality import agreement, describe
from annotation.quality.agreement import Measured
from annotation.quality.gold import (
    CannotMake,
    gold_candidates,
    gold_money_left,
    gold_policy,
    gold_results,
    reserve_gold_money,
    retire_gold,
    set_gold_rate,
)
from annotation.quality.signals import NAMES
from annotation.quality.warn import set_excluding_signals
from annotation.questions.ask import imported_questions
from kbpo.money.spend import OverBudget
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.web.components.drawing import Interval, axis_over
from kbpo.web.expensive import limit_exports as limited_export
from kbpo.web.http import current_admin, for_admins, form_reason, parse_amount
from kbpo.web.table import csv_stream, json_stream


@for_admins
def show_quality(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the agreement of a track. A POST sets the signals that exclude, or the aggregation
    method.
    """
    track = get_object_or_404(Track, slug=slug)
    refusal = ""
    if request.method == "POST":
        change = _switch_aggregation if "method" in request.POST else _change_signals
        refusal = change(request, track)
    if request.method == "POST" and not refusal:
        return redirect("desk-track-quality", slug=slug)
    lines = agreement_lines(agreement.measure_agreement(track=track))
    policy, kind = gold_policy(track), kind_of(track)
    context = {
        "track": track,
        "rated": kind.rates,
        "unchecked": kind.words.unchecked,
        "lines": lines,
        "axis": axis_over([line["interval"] for line in lines], bounds=(-1.0, 1.0), ticks=3),
        "policy": policy,
        "golds": gold_results(track),
        "published": [(line["name"], line["published"][1]) for line in lines if line["published"]],
        "signals": [(kind, NAMES[kind], kind in policy.exclude_for) for kind in SIGNALS],
        "methods": Policy.Aggregation.choices,
        "refusal": refusal,
        "exports": list(EXPORTS),
    }
    return render(request, "desk/quality.html", context, status=422 if refusal else 200)


def _change_signals(request: HttpRequest, track: Track) -> str:
    """Set the signals, and return why not, as a sentence; empty if they were set."""
    timed = "timed" in request.POST if "times" in request.POST else None
    kinds = request.POST.getlist("kind")
    try:
        set_excluding_signals(
            track, kinds, current_admin(request), form_reason(request), timed=timed
        )
    except ValueError as refusal:
        return str(refusal)
    messages.success(request, "Saved. It applies to answers that are settled from now on.")
    return ""


def _switch_aggregation(request: HttpRequest, track: Track) -> str:
    """Aggregate the track's answers by another method; return a sentence if that is refused."""
    method, why = request.POST["method"], form_reason(request)
    if method not in Policy.Aggregation.values:
        return "Choose how answers are aggregated."
    if not why:
        return "Give a reason: it is kept in the log."
    revision = revise.switch_aggregation(track, method, current_admin(request), why)
    messages.success(request, f"Saved. {len(revision.labels)} labels changed.")
    for reason in revision.reasons:
        messages.warning(request, f"The majority stays: {reason}")
    return ""


@for_admins
@limited_export
def download_export(request: HttpRequest, slug: str, what: str, form: str) -> HttpResponseBase:
    """Return the answers or labels of a track as a file."""
    track = get_object_or_404(Track, slug=slug)
    header, rows_of = EXPORTS[what]
    send = csv_stream if form == "csv" else json_stream
    return send(f"{what}-{slug}.{form}", header, rows_of(track))


@for_admins
def show_gold(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the gold questions of a track, and candidates. A POST sets the rate or the money, or
    retires a gold question.
    """
    track = get_object_or_404(Track, slug=slug)
    refusal = ""
    if request.method == "POST":
        try:
            messages.success(request, _change_gold(request, track))
            return redirect("desk-gold", slug=slug)
        except (CannotMake, OverBudget) as cannot:
            refusal = str(cannot)
    policy = gold_policy(track)
    context = {
        "track": track,
        "policy": policy,
        "golds": gold_results(track),
        "money": gold_money_left(track),
        "candidates": [
            (candidate, _candidate_title(candidate)) for candidate in gold_candidates(track, 20)
        ],
        "known": [(one.target_id, _candidate_title(one)) for one in imported_questions(track)],
        "refusal": refusal,
        "percent": f"{100 * policy.gold_rate:g}",
        "key": secrets.token_hex(8),
    }
    return render(request, "desk/gold.html", context, status=422 if refusal else 200)


def _candidate_title(candidate: Any) -> str:
    """Return the subject of a candidate; for whole documents also what is asked, since each has two
    questions.
    """
    reads = interface_by_name(candidate.interface).reads
    return describe.question_title(candidate) + (f": every {reads}" if reads else "")


def _change_gold(request: HttpRequest, track: Track) -> str:
    """Run the action, and return what was done as a sentence. Raises CannotMake, OverBudget."""
    verb, why, who = request.POST.get("verb", ""), form_reason(request), current_admin(request)
    if verb == "retire":
        golds = {str(result.gold.pk): result.gold for result in gold_results(track)}
        chosen = golds.get(request.POST.get("gold", ""))
        if chosen is None:
            raise CannotMake("That gold question no longer exists.")
        retire_gold(chosen, who, why)
        return "It is no longer gold. Its answers stay paid."
    if verb == "rate":
        share = parse_amount(request.POST.get("percent", ""))
        if share is None or share > 50:
            raise CannotMake("Give a share between 0 and 50 %.")
        set_gold_rate(track, float(share / 100), who, why)
        return f"{share:g} % of the questions are gold from now on."
    if verb == "money":
        amount = parse_amount(request.POST.get("amount", ""))
        if amount is None or not 0 < amount <= 10_000:
            raise CannotMake("Give an amount of dollars above 0, to the cent.")
        reserve_gold_money(track, amount, who, why, key=request.POST.get("key", "")[:32])
        return f"${amount} of the budget of {track.name} is reserved for gold."
    raise CannotMake("Say what to change.")


def unit_name(interface: str, unit_kind: str) -> str:
    """Return the name that pages show for a kind of unit, the smallest part of an answer on which
    two people can agree.
    """
    called = interface_by_name(interface).agreement.names.get(unit_kind)
    return called or f"{interface}, {unit_kind}".replace("_", " ").capitalize()


def agreement_lines(measured: Sequence[Measured]) -> list[dict[str, Any]]:
    """Return each measure with its name and the interval of α."""
    return [
        {
            "name": unit_name(agreement.interface, agreement.what),
            "told": agreement,
            "published": interface_by_name(agreement.interface).agreement.published.get(
                agreement.what
            ),
            "interval": Interval(
                agreement.alpha,
                agreement.low80,
                agreement.high80,
                agreement.low95,
                agreement.high95,
            ),
        }
        for agreement in measured
    ]


urlpatterns = [
    path("desk/tracks/<slug:slug>/quality/", show_quality, name="desk-track-quality"),
    re_path(
        rf"^desk/tracks/(?P<slug>[-\w]+)/(?P<what>{'|'.join(EXPORTS)})\.(?P<form>csv|jsonl)$",
        download_export,
        name="desk-export",
    ),
    path("desk/tracks/<slug:slug>/gold/", show_gold, name="desk-gold"),
]
