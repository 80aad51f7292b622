"""The admins' page of documents that are annotated whole: what it would cost, ordering them, and
where they are.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path

from annotation.questions import follow_documents
from annotation.questions.order import CannotOrder, add_money_to, order_documents, plan_documents
from kbpo.accounts.models import User
from kbpo.money.purpose import Purpose
from kbpo.money.spend import OverBudget, allowance
from kbpo.sampling.documents.draw import in_two_stages, waiting_documents
from kbpo.sampling.models import DocumentSample
from kbpo.tracks.models import Track
from kbpo.web.http import for_admins, why_of

CENTS = Decimal(100)


class OrderForm(forms.Form):
    """How many documents, and at which price."""

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


@for_admins
def show(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the orders of a track and the form of a new one; a POST with the price that was shown
    orders.
    """
    track = get_object_or_404(Track.objects.select_related("corpus"), slug=slug)
    refusal, plan = "", None
    asked = request.POST if request.method == "POST" else request.GET
    form = OrderForm(asked if "n" in asked else None)
    if request.method == "POST" and "more" in request.POST:
        refusal = _add_money(track, request)
        if not refusal:
            return redirect("desk-reading", slug=slug)
        form = OrderForm()
    elif form.is_bound and form.is_valid():
        try:
            plan = plan_documents(track, form.cleaned_data["n"], **form.terms())
            if request.method == "POST":
                _order(track, form, request)
                return redirect("desk-reading", slug=slug)
        except (CannotOrder, OverBudget) as error:
            refusal = str(error)
    samples = DocumentSample.objects.filter(track=track)
    context: dict[str, Any] = {
        "track": track,
        "form": form,
        "plan": plan,
        "refusal": refusal,
        "left": allowance(track, None, Purpose("documents")).left,
        "orders": follow_documents.document_orders(track),
        "drawn": samples.count(),
        "read": samples.filter(settled_at__isnull=False).count(),
        "waiting": len(waiting_documents(track)),
        "two_stages": in_two_stages(track),
    }
    return render(
        request,
        "desk/reading.html",
        context,
        status=409 if refusal and request.method == "POST" else 200,
    )


def _shown(request: HttpRequest, name: str) -> Decimal:
    """Return the price that was shown. Raises CannotOrder."""
    try:
        shown = Decimal(request.POST.get(name, ""))
    except ArithmeticError as error:
        raise CannotOrder("Look at the price first, then order.") from error
    if not shown.is_finite():
        raise CannotOrder("Look at the price first, then order.")
    return shown


def _order(track: Track, form: OrderForm, request: HttpRequest) -> None:
    """Raises CannotOrder or OverBudget, with a sentence."""
    shown = _shown(request, "at_most")
    admin, why = cast(User, request.user), why_of(request)
    order = order_documents(
        track, form.cleaned_data["n"], shown, who=admin, why=why, **form.terms()
    )
    messages.success(request, f"{order.documents} documents are ordered, at most ${shown}.")


def _add_money(track: Track, request: HttpRequest) -> str:
    """Return why nothing was added, as a sentence; nothing if it was."""
    number = request.POST.get("more", "")
    if not number.isascii() or not number.isdigit() or len(number) > 18:
        return "There is no such order."
    try:
        added = add_money_to(track, int(number), who=cast(User, request.user), why=why_of(request))
    except (CannotOrder, OverBudget) as error:
        return str(error)
    messages.success(
        request, f"${added} more is set aside." if added else "Nothing more is needed."
    )
    return ""


urlpatterns = [path("desk/tracks/<slug:slug>/reading/", show, name="desk-reading")]
