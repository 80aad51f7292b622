"""One's own page of notices: what one is told, by which ways; webhooks and what came of their calls."""

from __future__ import annotations

from typing import cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from kbpo.accounts import notices
from kbpo.accounts.close import forget_requests
from kbpo.accounts.limits import Limit
from kbpo.accounts.models import EVENTS, Preference, User, Webhook
from kbpo.accounts.password_again import why_not
from kbpo.accounts.sign_up import EmailForm
from kbpo.accounts.webhooks import CannotCall, check_new

MOST = 5
"""Webhooks of one person"""
LISTED = 20
TESTS = Limit("webhook test", 20, 3600)
"""Tests that one person may send in an hour"""


@never_cache
@login_required
def show(request: HttpRequest) -> HttpResponse:
    """The page. A POST stores by which ways one wants to be told and where mail goes, or adds a
    webhook.
    """
    user, refusal = cast(User, request.user), ""
    if request.method == "POST":
        if request.POST.get("verb") == "add":
            refusal = _add(user, request.POST.get("url", "").strip())
        elif request.POST.get("verb") == "email":
            refusal = _write_to(user, request)
        else:
            _choose(user, request)
        if not refusal:
            messages.success(request, "Saved.")
            return redirect("notices")
    said = {row.event: row for row in user.preferences.all()}
    events = [
        {
            "name": name,
            "words": words,
            "by_mail": name not in said or said[name].by_mail,
            "by_call": name not in said or said[name].by_call,
        }
        for name, words in EVENTS.items()
    ]
    log = user.deliveries.select_related("hook").order_by("-pk")
    context = {
        "events": events,
        "hooks": user.webhooks.order_by("pk"),
        "log": log[:LISTED],
        "most": MOST,
        "refusal": refusal,
        "said": request.POST,
    }
    return render(request, "people/notices.html", context, status=422 if refusal else 200)


def _choose(user: User, request: HttpRequest) -> None:
    by_mail, by_call = request.POST.getlist("mail"), request.POST.getlist("call")
    for event in EVENTS:
        Preference.objects.update_or_create(
            user=user,
            event=event,
            defaults={"by_mail": event in by_mail, "by_call": event in by_call},
        )


def _write_to(user: User, request: HttpRequest) -> str:
    """Why the address is not changed, as a sentence; nothing if it is. It takes the password, since
    a link for who forgot theirs goes there.
    """
    if refusal := why_not(user, request.POST.get("password", "")):
        return refusal
    before, form = user.email, EmailForm(request.POST, instance=user)
    if not form.is_valid():
        return "Nothing was changed: that is no e-mail address."
    form.save()
    if user.email.lower() != before.lower():
        forget_requests(before)  # later nothing would say that they were this person's
    return ""


def _add(user: User, url: str) -> str:
    """Why no webhook was added, as a sentence; nothing if one was. Where a name leads is looked up
    when it is called: that may change.
    """
    if len(url) > 500:
        return "The address is longer than 500 characters."
    try:
        check_new(url)
    except CannotCall as refusal:
        return str(refusal)
    if user.webhooks.count() >= MOST:
        return f"You have {MOST} webhooks. Remove one that is not used any more."
    if not Webhook.objects.get_or_create(user=user, url=url)[1]:
        return "This address is called already."
    return ""


@login_required
@require_POST
def change(request: HttpRequest, pk: int) -> HttpResponse:
    """Sends a test to one of one's own webhooks, or removes it with what waits for it."""
    user = cast(User, request.user)
    hook = get_object_or_404(Webhook, pk=pk, user=user)
    if request.POST.get("verb") == "remove":
        hook.delete()
        messages.success(request, "It is called no more.")
    elif not TESTS.count(str(user.pk)):
        messages.error(request, "No test was sent: there were many in the last hour.")
    else:
        notices.test(hook)
        messages.success(request, "A test is on its way; what came of it stands below in a moment.")
    return redirect("notices")


urlpatterns = [
    path("account/notices/", show, name="notices"),
    path("account/notices/<int:pk>/", change, name="notices-webhook"),
]
