"""The way in: asking for an account, and a way back for a forgotten password."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.forms import PasswordResetForm
from django.contrib.auth.views import PasswordResetConfirmView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse_lazy
from django.views.decorators.cache import never_cache

from kbpo.accounts.ask import CannotAsk, ask
from kbpo.accounts.limits import Limit
from kbpo.accounts.mail import goes_out
from kbpo.accounts.models import User
from kbpo.web.address import address_of
from kbpo.web.public import throttle

AN_HOUR = 20
"""Requests and resets that one address may ask for in an hour"""
MAILS = Limit("ask.reset.mail", 3, 3600)
"""Mails with a link that one mailbox is sent in an hour, whoever asks for them: the page says the
same of the next one"""
TOO_MANY = "Many requests came from your network in the last hour. Try again later."


class AskForm(forms.Form):
    """What an admin needs to know of somebody who asks for an account."""

    name = forms.CharField(max_length=120, label="Your name")
    email = forms.EmailField(help_text="The link to your account is sent here.")
    affiliation = forms.CharField(max_length=200, required=False)
    team = forms.CharField(
        max_length=80,
        help_text=(
            "The name of a new team; it stands on the board. Is yours here already? Then ask one of"
            " its members for a link instead."
        ),
    )
    system = forms.CharField(
        max_length=2000,
        required=False,
        label="What system will you evaluate?",
        widget=forms.Textarea(attrs={"rows": 3}),
    )

    def clean_team(self) -> str:
        team = " ".join(str(self.cleaned_data["team"]).split())
        if not any(letter.isalnum() for letter in team):
            raise forms.ValidationError("A team’s name needs letters or digits.")
        return team


@never_cache
def show(request: HttpRequest) -> HttpResponse:
    """The form for an account; afterwards it says what happens next."""
    form = AskForm(request.POST or None)
    if request.method != "POST" or not form.is_valid():
        status = 422 if request.method == "POST" else 200
        return render(request, "people/ask.html", {"form": form}, status=status)
    if too_often(request, "ask"):
        return render(request, "people/ask.html", {"form": form, "refusal": TOO_MANY}, status=429)
    try:
        ask(**form.cleaned_data, user=request.user if isinstance(request.user, User) else None)
    except CannotAsk as refusal:
        context = {"form": form, "refusal": str(refusal)}
        return render(request, "people/ask.html", context, status=503)
    context = {"email": form.cleaned_data["email"], "by_mail": goes_out()}
    return render(request, "people/asked.html", context)


@never_cache
def forgotten(request: HttpRequest) -> HttpResponse:
    """Asks for a mail with a link that sets a new password. It never tells who has an account."""
    form = PasswordResetForm(request.POST or None)
    if request.method != "POST" or not form.is_valid():
        status = 422 if request.method == "POST" else 200
        context = {"form": form, "by_mail": goes_out()}
        return render(request, "people/forgotten.html", context, status=status)
    if too_often(request, "reset"):
        context = {"form": form, "by_mail": True, "refusal": TOO_MANY}
        return render(request, "people/forgotten.html", context, status=429)
    if MAILS.count(form.cleaned_data["email"]):
        form.save(
            request=request,
            use_https=request.is_secure(),
            subject_template_name="people/reset_subject.txt",
            email_template_name="people/reset_mail.txt",
        )
    messages.success(
        request,
        "If there is an account with this address, a mail with a link is on its way to it.",
    )
    return redirect("login")


class Reset(PasswordResetConfirmView):
    """The page behind a link of a mail, or of an admin: a new password, twice."""

    template_name = "people/reset.html"
    success_url = reverse_lazy("login")

    def form_valid(self, form: Any) -> HttpResponse:
        answer = super().form_valid(form)
        throttle.remember(self.request, answer, form.user)
        messages.success(
            self.request,
            "Your password is changed, and your API tokens are revoked. Log in with the new one.",
        )
        return answer

    def form_invalid(self, form: Any) -> HttpResponse:
        response = super().form_invalid(form)
        response.status_code = 422
        return response


def too_often(request: HttpRequest, what: str) -> bool:
    """Whether this address asked for more than a person would in the last hour."""
    return not Limit(f"ask.{what}", AN_HOUR, 3600).count(address_of(request))


urlpatterns = [
    path("ask/", show, name="ask"),
    path("forgotten/", forgotten, name="forgotten"),
    path("reset/<uidb64>/<token>/", Reset.as_view(), name="password_reset_confirm"),
]
