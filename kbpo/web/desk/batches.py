"""The page of one batch, with its progress, for pausing and stopping it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path, register_converter, reverse
from django.urls.converters import StringConverter

from annotation.budget import halts
from annotation.hits import batch
from annotation.quality import agreement
from kbpo.money.models import Purpose
from kbpo.web.components.drawing import axis_over
from kbpo.web.desk.measures import agreement_lines
from kbpo.web.http import current_admin, for_admins, form_reason, has_typed_word


@for_admins
def show_batch(request: HttpRequest, payer: Purpose) -> HttpResponse:
    """Return the page of a batch. A POST pauses, continues or stops it."""
    shown = batch.batch(payer)
    if shown is None:
        raise Http404("There is no such batch.")
    refusal = _change_batch(request, shown) if request.method == "POST" else ""
    if request.method == "POST" and not refusal:
        return redirect("desk-batch", payer=payer)
    lines = agreement_lines(agreement.measure_agreement(payer=payer))
    context: dict[str, Any] = {
        "batch": shown,
        "address": reverse("submission", args=[payer.number]) if payer.kind == "submission" else "",
        "progress": batch.questions_progress(payer=payer),
        "agreement": lines,
        "axis": axis_over([line["interval"] for line in lines], bounds=(-1.0, 1.0), ticks=3),
        "refusal": refusal,
    }
    return render(request, "desk/batch.html", context, status=422 if refusal else 200)


def _change_batch(request: HttpRequest, shown: batch.Batch) -> str:
    """Change the batch, and return why not, as a sentence; empty if it was changed."""
    user, verb, why = current_admin(request), request.POST.get("verb", ""), form_reason(request)
    try:
        if verb == "pause":
            halts.pause(shown.track, user, why, payer=shown.payer)
            messages.warning(request, "Paused. Started answers may be finished and are paid.")
        elif verb == "go on":
            halts.lift_halts(shown.track, user, why, payer=shown.payer)
            messages.success(request, "Publishing continues.")
        elif verb == "stop":
            if not has_typed_word(request, "stop"):
                return "Nothing was stopped: type the word stop to arm the button."
            n = batch.stop_batch(shown.payer, user, why)
            messages.warning(request, f"Stopped: {n} questions are closed without an answer.")
        else:
            return "Choose: pause, continue or stop."
    except ValueError as refusal:
        return str(refusal)
    return ""


class PurposeConverter(StringConverter):
    """A purpose in an address."""

    def to_python(self, value: str) -> Purpose:  # type: ignore[override]
        return Purpose.read(value)

    def to_url(self, value: object) -> str:
        return str(value)


register_converter(PurposeConverter, "purpose")
urlpatterns = [path("desk/batches/<purpose:payer>/", show_batch, name="desk-batch")]
