"""What admins do about accounts: answer requests from outside, and help with lost passwords."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.tokens import default_token_generator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import path, reverse
from django.utils.http import urlsafe_base64_encode
from django.views.decorators.http import require_POST

from kbpo.accounts.ask import JoinsTeam, accept, decline
from kbpo.accounts.audit import note
from kbpo.accounts.mail import goes_out
from kbpo.accounts.models import AccountRequest, User
from kbpo.web.http import admin_of, for_admins, why_of


@for_admins
@require_POST
def answer_request(request: HttpRequest, pk: int) -> HttpResponse:
    """Accepts or declines a request for an account; the link of an accepted one stands below."""
    asked = get_object_or_404(AccountRequest, pk=pk)
    admin = admin_of(request)
    verdict = request.POST.get("verdict")
    if verdict == "decline":
        decline(asked, admin, why_of(request, "No reason was given."))
        notice = "is told that there is no account at the moment."
        if not goes_out():
            notice = (
                f"is declined. No mail is sent: write to {asked.email}, or they never hear of it."
            )
        messages.success(request, f"{asked.name} {notice}")
        return redirect("desk-people")
    try:
        accepted = accept(asked, admin, joins=verdict == "join")
    except JoinsTeam as refusal:
        messages.error(request, str(refusal))
        return redirect("desk-people")
    if accepted is None:
        messages.info(request, "Somebody has decided this already.")
    else:
        sent = f"A mail went to {asked.email}." if goes_out() else "Hand it over: no mail is sent."
        messages.success(request, f"The link for {asked.name} is made; it stands below. {sent}")
    return redirect("desk-people")


@for_admins
@require_POST
def reset_link(request: HttpRequest) -> HttpResponse:
    """Makes a link with which somebody sets a new password, once; it is shown to the admin."""
    name = request.POST.get("username", "").replace("\x00", "").strip()
    person = User.objects.filter(username__iexact=name, is_active=True).first()
    if person is None:
        messages.error(request, f"Nobody is called “{name[:80]}” here.")
    elif person.is_staff:
        messages.error(request, "Admins set their passwords by mail, or on the server itself.")
    else:
        uid = urlsafe_base64_encode(str(person.pk).encode())
        token = default_token_generator.make_token(person)
        address = reverse("password_reset_confirm", args=[uid, token])
        request.session["reset_link"] = {
            "name": person.username,
            "url": request.build_absolute_uri(address),
        }
        why = why_of(request, "Asked for by hand.")
        note("make reset link", f"user:{person.pk}", who=admin_of(request), why=why)
    return redirect("desk-people")


urlpatterns = [
    path("desk/people/request/<int:pk>/", answer_request, name="desk-answer-request"),
    path("desk/people/reset/", reset_link, name="desk-reset-link"),
]
