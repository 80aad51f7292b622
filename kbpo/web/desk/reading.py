"""The page of documents that people read in full: draws, costs, orders and progress."""

from __future__ import annotations

from decimal import Decimal
from operator import attrgetter
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path

from annotation.questions import read_documents
from annotation.questions.order import (
    CannotOrder,
    add_missing_money_by_id,
    order_documents,
    plan_documents,
)
from kbpo.money.models import Purpose
from kbpo.money.spend import OverBudget, remaining_allowance
from kbpo.sampling.documents.draw import (
    LEAST_UNIFORM,
    UNIFORM_SHARE,
    CannotDraw,
    annotated_documents,
    describe_draw,
    has_two_stages,
    waiting_documents,
)
from kbpo.sampling.documents.draw import order_documents as draw_documents
from kbpo.sampling.models import DocumentBatch, DocumentSample
from kbpo.tracks.models import Track
from kbpo.web.http import current_admin, for_admins, form_reason, parse_amount
from kbpo.web.table import Column, Table

CENTS = Decimal(100)
DRAWN = (
    Column("document", value=attrgetter("document.key")),
    Column("stage"),
    Column("design"),
    Column("probability"),
    Column("batch", value=attrgetter("batch_id")),
    Column("seed"),
    Column("position"),
    Column("drawn_at"),
    Column("settled_at"),
)


class OrderForm(forms.Form):
    """Form to order the reading of documents: their number, and the prices."""

    n = forms.IntegerField(min_value=1, max_value=100_000, initial=10, label="Documents")
    token = forms.DecimalField(
        min_value=Decimal("0.01"),
        max_value=100,
        max_digits=6,
        decimal_places=2,
        initial="0.75",
        label="For one word, in cents",
        help_text="To each reader, for marking all names.",
    )
    pair = forms.DecimalField(
        min_value=Decimal("0.01"),
        max_value=1000,
        max_digits=6,
        decimal_places=2,
        initial="5.00",
        label="For one pair of names, in cents",
        help_text="To each reader, for its relations.",
    )

    def terms(self) -> dict[str, Decimal]:
        """Return the prices in dollars."""
        return {
            "per_token": self.cleaned_data["token"] / CENTS,
            "per_pair": self.cleaned_data["pair"] / CENTS,
        }


class DrawForm(forms.Form):
    """Form to draw documents: their number, and the design of the draw."""

    size = forms.IntegerField(min_value=1, max_value=10**7, label="Documents")
    design = forms.ChoiceField(choices=DocumentBatch.Design.choices, initial="uniform")
    seed = forms.IntegerField(min_value=0, max_value=2**62, required=False)
    uniform_share = forms.FloatField(min_value=LEAST_UNIFORM, max_value=1, required=False)


@for_admins
def show_reading(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Return the draws and orders of a track; with `?format=csv` all drawn documents with their
    probability. A POST draws documents, or orders them at the price that was shown.
    """
    track = get_object_or_404(Track.objects.select_related("corpus"), slug=slug)
    if "format" in request.GET:
        drawn = DocumentSample.objects.filter(track=track).select_related("document")
        drawn = drawn.order_by("stage", "batch", "position")
        return Table(f"documents-{slug}", DRAWN, drawn).file(request)
    refusal, plan = "", None
    asked = request.POST if request.method == "POST" else request.GET
    form = OrderForm(asked if "n" in asked else None)
    if request.method == "POST" and ("more" in request.POST or "design" in request.POST):
        refusal = (_add_money if "more" in request.POST else _draw_documents)(track, request)
        if not refusal:
            return redirect("desk-reading", slug=slug)
        form = OrderForm()
    elif form.is_bound and form.is_valid():
        try:
            plan = plan_documents(track, form.cleaned_data["n"], **form.terms())
            if request.method == "POST":
                _order_reading(track, form, request)
                return redirect("desk-reading", slug=slug)
        except (CannotOrder, OverBudget) as error:
            refusal = str(error)
    context = _draws_context(track, request) | {
        "track": track,
        "form": form,
        "plan": plan,
        "refusal": refusal,
        "left": remaining_allowance(track, None, Purpose("documents")).left,
        "orders": read_documents.document_orders(track),
        "waiting": len(waiting_documents(track)),
    }
    return render(
        request,
        "desk/reading.html",
        context,
        status=409 if refusal and request.method == "POST" else 200,
    )


def _draws_context(track: Track, request: HttpRequest) -> dict[str, Any]:
    """Return the context of the draws."""
    document_samples = DocumentSample.objects.filter(track=track)
    done = Count("samples", filter=Q(samples__settled_at__isnull=False))
    counting = annotated_documents(track)
    latest = track.evaluations.order_by("-number").first()
    return {
        "sent": request.POST,
        "uniform_checked": request.POST.get("design") != "two_stage",
        "two_stage_checked": request.POST.get("design") == "two_stage",
        "batches": DocumentBatch.objects.filter(track=track).annotate(done=done).order_by("pk"),
        "imported": document_samples.filter(batch=None).count(),
        "drawn": document_samples.count(),
        "settled": document_samples.filter(settled_at__isnull=False).count(),
        "counting": len(counting.documents),
        "weighted": counting.inclusion is not None,
        "two_stages": has_two_stages(track),
        "second": DocumentBatch.objects.filter(track=track, stage=2).first(),
        "undrawn": track.corpus.n_test - document_samples.count(),
        "misses": latest.report.misses if latest else None,
    }


def _draw_documents(track: Track, request: HttpRequest) -> str:
    """Draw documents, and return why not, as a sentence; empty if they were drawn."""
    form = DrawForm(request.POST)
    if not form.is_valid():
        field, errors = next(iter(form.errors.items()))
        return f"{field.replace('_', ' ').capitalize()}: {errors[0]}"
    cleaned = form.cleaned_data
    if not (why := form_reason(request)):
        return "Nothing was drawn: give a reason for the log."
    try:
        batch = draw_documents(
            track,
            cleaned["size"],
            cleaned["design"],
            seed=cleaned["seed"],
            uniform_share=UNIFORM_SHARE
            if cleaned["uniform_share"] is None
            else cleaned["uniform_share"],
            user=current_admin(request),
            why=why,
        )
    except CannotDraw as problem:
        return str(problem)
    messages.success(request, describe_draw(batch))
    return ""


def _order_reading(track: Track, form: OrderForm, request: HttpRequest) -> None:
    """Order the reading of documents. Raises CannotOrder or OverBudget."""
    shown = parse_amount(request.POST.get("at_most", ""), 10**9)
    if shown is None:
        raise CannotOrder("Look at the price first, then order.")
    admin, why = current_admin(request), form_reason(request)
    order = order_documents(
        track, form.cleaned_data["n"], shown, who=admin, why=why, **form.terms()
    )
    messages.success(request, f"{len(order.samples)} documents are ordered, at most ${shown}.")


def _add_money(track: Track, request: HttpRequest) -> str:
    """Reserve more money for an order, and return why not, as a sentence; empty if it was
    reserved.
    """
    number = request.POST.get("more", "")
    if not number.isascii() or not number.isdigit() or len(number) > 18:
        return "There is no such order."
    try:
        added = add_missing_money_by_id(
            track, int(number), who=current_admin(request), why=form_reason(request)
        )
    except (CannotOrder, OverBudget) as error:
        return str(error)
    messages.success(request, f"${added} more is reserved." if added else "Nothing more is needed.")
    return ""


urlpatterns = [path("desk/tracks/<slug:slug>/reading/", show_reading, name="desk-reading")]
