"""Pages to ask for an account and to reset a forgotten password."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.forms import PasswordResetForm, SetPasswordForm
from django.contrib.auth.views import PasswordResetConfirmView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import path, reverse_lazy
from django.views.decorators.cache import never_cache

from kbpo.accounts.ask import CannotAsk, request_account
from kbpo.accounts.limits import Limit
from kbpo.accounts.mail import is_mail_configured, queue_mail
from kbpo.accounts.models import User
from kbpo.accounts.sign_up import NewPassword
from kbpo.web.http import client_address, client_network
from kbpo.web.public.people import LOGINS_OF_NAME

REQUESTS_OF_ADDRESS = Limit("ask.ask", 20, 3600)
"""Greatest number of requests for an account or a team from one address in an hour"""
RESETS_OF_ADDRESS = Limit("ask.reset", 20, 3600)
"""Greatest number of password resets from one address in an hour"""
RESET_MAILS = Limit("ask.reset.mail", 3, 3600)
"""Greatest number of reset mails to one mailbox in an hour, whoever requests them; the page shows
the same message beyond it"""
TOO_MANY = "Many requests came from your network in the last hour. Try again later."


class AskForm(forms.Form):
    """Form for a request for an account or a team."""

    name = forms.CharField(max_length=120, label="Your name")
    email = forms.EmailField()
    affiliation = forms.CharField(max_length=200, required=False)
    team = forms.CharField(
        max_length=80,
        help_text=("A new team, shown on the board. To join one, ask a member for a link."),
    )
    system = forms.CharField(
        max_length=2000,
        required=False,
        label="What system will you evaluate?",
        widget=forms.Textarea(attrs={"rows": 3}),
    )

    def __init__(self, *args: Any, user: User | None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if user is not None:
            self.initial = {"name": user.get_full_name(), "email": user.email}
        if is_mail_configured():
            to = "your account" if user is None else "your team"
            self.fields["email"].help_text = f"The link to {to} is sent here."

    def clean_team(self) -> str:
        team = " ".join(str(self.cleaned_data["team"]).split())
        if not any(letter.isalnum() for letter in team):
            raise forms.ValidationError("A team’s name needs letters or digits.")
        return team


@never_cache
def ask_for_account(request: HttpRequest) -> HttpResponse:
    """Return the form for an account, or for a team to users who are logged in. A POST stores a
    request.
    """
    user = request.user if isinstance(request.user, User) else None
    form = AskForm(request.POST or None, user=user)
    if request.method != "POST" or not form.is_valid():
        return _form_page(request, form, 422 if request.method == "POST" else 200)
    if not REQUESTS_OF_ADDRESS.count_action(client_address(request)):
        answer = _form_page(request, form, 429, TOO_MANY)
        answer["Retry-After"] = str(
            REQUESTS_OF_ADDRESS.seconds_until_retry(client_address(request))
        )
        return answer
    try:
        request_account(**form.cleaned_data, network=client_network(request), user=user)
    except CannotAsk as refusal:
        return _form_page(request, form, 503, str(refusal))
    return render(request, "people/asked.html", {"email": form.cleaned_data["email"]})


def _form_page(request: HttpRequest, form: AskForm, status: int, refusal: str = "") -> HttpResponse:
    context = {"form": form, "refusal": refusal}
    return render(request, "people/ask.html", context, status=status)


class LinkForm(PasswordResetForm):
    """Form for the address to which a reset link is mailed. The mail is queued and retried like any
    other.
    """

    def send_mail(
        self,
        subject_template_name: str,
        email_template_name: str,
        context: dict[str, Any],
        from_email: str | None,
        to_email: str,
        html_email_template_name: str | None = None,
    ) -> None:
        """Queue the mail, so that the response time does not tell whether the account exists."""
        subject = render_to_string(subject_template_name, context)
        text = render_to_string(email_template_name, context)
        queue_mail(to_email, subject, text, user=context["user"])


@never_cache
def forgot_password(request: HttpRequest) -> HttpResponse:
    """Mail a link to set a new password. The answer is the same whether the account
    exists or not.
    """
    form = LinkForm(request.POST or None)
    if request.method != "POST" or not form.is_valid():
        status = 422 if request.method == "POST" else 200
        return render(request, "people/forgotten.html", {"form": form}, status=status)
    if not RESETS_OF_ADDRESS.count_action(client_address(request)):
        context = {"form": form, "refusal": TOO_MANY}
        answer = render(request, "people/forgotten.html", context, status=429)
        answer["Retry-After"] = str(RESETS_OF_ADDRESS.seconds_until_retry(client_address(request)))
        return answer
    if RESET_MAILS.count_action(form.cleaned_data["email"]):
        form.save(
            request=request,
            subject_template_name="people/reset_subject.txt",
            email_template_name="people/reset_mail.txt",
            # Never the Host header: whoever asks for the mail chooses it.
            extra_email_context={"site": settings.SITE_URL},
        )
    messages.success(
        request,
        "If an account has this address, we have mailed a link to it.",
    )
    return redirect("login")


class ResetForm(NewPassword, SetPasswordForm):  # type: ignore[type-arg]
    """The form for a new password, entered twice."""


class Reset(PasswordResetConfirmView):
    """The page of a reset link, which sets a new password."""

    form_class = ResetForm
    template_name = "people/reset.html"
    success_url = reverse_lazy("login")

    def form_valid(self, form: Any) -> HttpResponse:
        answer = super().form_valid(form)
        LOGINS_OF_NAME.reset_count(form.user.username)
        messages.success(
            self.request,
            "Your password is changed, and your API tokens are revoked. Log in with the new one.",
        )
        return answer

    def form_invalid(self, form: Any) -> HttpResponse:
        response = super().form_invalid(form)
        response.status_code = 422
        return response


urlpatterns = [
    path("ask/", ask_for_account, name="ask"),
    path("forgotten/", forgot_password, name="forgotten"),
    path("reset/<uidb64>/<token>/", Reset.as_view(), name="password_reset_confirm"),
]
