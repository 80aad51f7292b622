"""The page on which users choose their notices and manage webhooks."""

from __future__ import annotations

from typing import cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from kbpo.accounts.backend import password_refusal
from kbpo.accounts.close import forget_requests
from kbpo.accounts.models import User, Webhook
from kbpo.accounts.notices import MOST, add_webhook, notice_choices, save_choices, send_test
from kbpo.accounts.sign_up import EmailForm
from kbpo.accounts.webhooks import CannotCall

LISTED = 20


@never_cache
@login_required
def show_notices(request: HttpRequest) -> HttpResponse:
    """Show the page; store the choices or the mail address, or add a webhook."""
    user, refusal = cast(User, request.user), ""
    if request.method == "POST":
        verb = request.POST.get("verb")
        if verb == "add":
            refusal = _add(user, request.POST.get("url", "").strip())
        elif verb == "email":
            refusal = _write_to(user, request)
        elif verb == "choose":
            by_mail, by_call = request.POST.getlist("mail"), request.POST.getlist("call")
            save_choices(user, by_mail=by_mail, by_call=by_call)
        else:
            refusal = "Nothing was changed: verb is one of choose, add, email."
        if not refusal:
            messages.success(request, "Saved.")
            return redirect("notices")
    log = user.deliveries.select_related("hook").order_by("-pk")
    context = {
        "events": notice_choices(user),
        "hooks": user.webhooks.order_by("pk"),
        "log": log[:LISTED],
        "most": MOST,
        "refusal": refusal,
        "said": request.POST,
    }
    return render(request, "people/notices.html", context, status=422 if refusal else 200)


def _write_to(user: User, request: HttpRequest) -> str:
    """Change the mail address, and return the refusal as a sentence (empty if changed). It requires
    the password, since reset links are mailed there.
    """
    if refusal := password_refusal(user, request.POST.get("password", "")):
        return refusal
    before, form = user.email, EmailForm(request.POST, instance=user)
    if not form.is_valid():
        return "Nothing was changed: that is no e-mail address."
    form.save()
    if user.email.lower() != before.lower():
        forget_requests(before)  # later nothing would say that they were this person's
    return ""


def _add(user: User, url: str) -> str:
    """Add a webhook, and return the refusal as a sentence (empty if added)."""
    try:
        add_webhook(user, url)
    except CannotCall as refusal:
        return str(refusal)
    return ""


@login_required
@require_POST
def change_notices(request: HttpRequest, pk: int) -> HttpResponse:
    """Send a test to a webhook of the user, or delete it with its waiting calls."""
    user = cast(User, request.user)
    hook = get_object_or_404(Webhook, pk=pk, user=user)
    verb = request.POST.get("verb")
    if verb not in ("test", "remove"):
        messages.error(request, "Nothing was done: verb is one of test, remove.")
    elif verb == "remove":
        hook.delete()
        messages.success(request, "It is called no more.")
    elif send_test(hook) is None:
        messages.error(request, "No test was sent: there were many in the last hour.")
    else:
        messages.success(request, "A test is on its way; what came of it stands below in a moment.")
    return redirect("notices")


urlpatterns = [
    path("account/notices/", show_notices, name="notices"),
    path("account/notices/<int:pk>/", change_notices, name="notices-webhook"),
]
