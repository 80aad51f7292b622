"""Pages for log-in, account, password and API tokens."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, cast

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.contrib.auth.views import LoginView, LogoutView, PasswordChangeView
from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse, reverse_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from annotation.models import Assignment, Bonus, Payment, Qualification, Worker, WorkerIdentity
from annotation.workers import volunteer
from annotation.workers.models import (
    Appeal,
    Application,
    Consent,
    Feedback,
    Message,
    Payout,
    TutorialRun,
)
from kbpo import clock
from kbpo.accounts.backend import password_refusal
from kbpo.accounts.close import close_account as close_account
from kbpo.accounts.close import delete_decided_requests
from kbpo.accounts.limits import Limit
from kbpo.accounts.models import AccountRequest, Audit, Delivery, Invitation, Token, User, Webhook
from kbpo.accounts.notices import (
    MOST,
    add_webhook,
    notice_choices,
    save_notice_choices,
    send_test_call,
)
from kbpo.accounts.sign_up import EmailForm, NewPassword
from kbpo.accounts.teams import CannotChange
from kbpo.accounts.webhooks import CannotCall
from kbpo.sampling.models import ExpertCheck
from kbpo.submissions.models import Submission
from kbpo.web.expensive import limit_exports
from kbpo.web.http import client_address, has_typed_word
from kbpo.web.research import teams

MOST_TOKENS = 20
"""Greatest number of tokens of one person"""
TOKEN_DAYS = (7, 30, 90, 365)
"""Lifetimes of a new token in days"""
QUARTER = 15 * 60
LOGINS_OF_ADDRESS = Limit("login.address", 40, QUARTER)
LOGINS_OF_NAME = Limit("login.name", 20, QUARTER)
"""Limit of wrong passwords for a name. Strangers may use it up; the owner then gets in by a new
password.
"""
LOGIN_PAUSED = "Too many wrong passwords. Wait a quarter of an hour, or set a new password."
WRONG_PASSWORD = "Name and password do not match. Capital letters matter."


class LoginForm(AuthenticationForm):
    """Form with name and password. After too many wrong passwords even the right one is refused for
    a while.
    """

    error_messages = {
        "invalid_login": WRONG_PASSWORD,
        "inactive": "This account is closed. Ask an admin.",
    }

    paused = 0
    """Seconds until the next password is checked"""

    def clean(self) -> dict[str, Any]:
        name = str(self.cleaned_data.get("username") or "")
        if self.request is None or not name:
            return super().clean()
        address = client_address(self.request)
        if seconds := max(
            LOGINS_OF_ADDRESS.seconds_until_allowed(address),
            LOGINS_OF_NAME.seconds_until_allowed(name),
        ):
            self.paused = seconds
            raise forms.ValidationError(LOGIN_PAUSED, code="paused")
        try:
            cleaned = super().clean()
        except forms.ValidationError:
            LOGINS_OF_ADDRESS.count_action(address)
            LOGINS_OF_NAME.count_action(name)
            raise
        LOGINS_OF_NAME.reset_count(name)
        return cleaned


class Login(LoginView):
    """The log-in page."""

    template_name = "people/login.html"
    authentication_form = LoginForm
    redirect_authenticated_user = True

    def get_default_redirect_url(self) -> str:
        """Return the start page of the user: the desk of admins, the runs of researchers, the
        questions of annotators, the answer to a volunteer's request, else the account.
        """
        user = self.request.user
        if user.is_staff:
            return reverse("desk")
        if isinstance(user, User) and user.is_researcher and user.team_keys:
            return reverse("runs")
        if isinstance(user, User) and user.is_annotator and not user.is_researcher:
            return reverse("annotate")
        if (
            isinstance(user, User)
            and not user.is_researcher
            and volunteer.application_of_user(user)
        ):
            return reverse("annotate_volunteer")
        return super().get_default_redirect_url()

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_invalid(form)
        response.status_code = 422
        if isinstance(form, LoginForm) and form.paused:
            response.status_code = 429
            response["Retry-After"] = str(form.paused)
        return response


class PasswordForm(NewPassword, PasswordChangeForm):
    """Form with the old password and a new one. Guesses of the old password are limited."""

    def clean_old_password(self) -> str:
        password = str(self.cleaned_data["old_password"])
        if refusal := password_refusal(self.user, password):
            raise forms.ValidationError(refusal, code="password_incorrect")
        return password


class ChangePassword(PasswordChangeView):
    """The page for changing the password, which ends all other sessions."""

    form_class = PasswordForm
    template_name = "people/password.html"
    success_url = reverse_lazy("account")

    def form_valid(self, form: Any) -> HttpResponse:
        ended = cast(User, self.request.user).tokens.filter(revoked_at=None).count()
        answer = super().form_valid(form)
        notice = "Your password is changed. Other browsers are logged out"
        notice += f", and {ended} of your API tokens revoked." if ended else "."
        messages.success(self.request, notice)
        return answer

    def form_invalid(self, form: Any) -> HttpResponse:
        response = super().form_invalid(form)
        response.status_code = 422
        return response


@never_cache
@login_required
def show_account(request: HttpRequest) -> HttpResponse:
    """Show the user's account: teams and tokens."""
    return _account_page(request)


def _account_page(request: HttpRequest, *, secret: str = "", refusal: str = "") -> HttpResponse:
    user = cast(User, request.user)
    asked = user.requests.select_related("invitation").order_by("asked_at")
    context = {
        "teams": user.teams.order_by("name"),
        "waiting": asked.filter(decided_at=None),
        "asks_to_judge": volunteer.application_of_user(user),
        "open": asked.filter(invitation__in=teams.usable_invitations()),
        "tokens": user.tokens.filter(revoked_at=None).order_by("-pk"),
        "scopes": Token.Scope.choices,
        "days": TOKEN_DAYS,
        "secret": secret,
        "site": settings.SITE_URL.rstrip("/"),
        "refusal": refusal,
        "now": clock.now(),
    }
    return render(request, "people/account.html", context, status=422 if refusal else 200)


@never_cache
@login_required
def create_token(request: HttpRequest) -> HttpResponse:
    """Create a token. Its secret is shown in this response only."""
    if request.method != "POST":
        return redirect("account")
    user, name = cast(User, request.user), request.POST.get("name", "").replace("\x00", "").strip()
    if not 1 <= len(name) <= 80:
        return _account_page(request, refusal="Give the token a name of 1 to 80 characters.")
    scope, days = request.POST.get("scope", ""), request.POST.get("days", "")
    if scope not in Token.Scope.values or days not in map(str, TOKEN_DAYS):
        return _account_page(request, refusal="Choose what the token may do, and for how long.")
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)  # counts one at a time
        if user.tokens.filter(revoked_at=None).count() < MOST_TOKENS:
            secret = Token.create_with_secret(user, name, days=int(days), scope=scope)[1]
            return _account_page(request, secret=secret)
    return _account_page(
        request, refusal=f"You have {MOST_TOKENS} tokens. Revoke one that you no longer use."
    )


@login_required
@require_POST
def revoke_token(request: HttpRequest, pk: int) -> HttpResponse:
    """Revoke a token of the user."""
    token = get_object_or_404(Token, pk=pk, user=cast(User, request.user))
    if token.revoked_at is None:
        token.revoked_at = clock.now()
        token.save(update_fields=["revoked_at"])
    messages.success(request, f"The token {token.name} is revoked.")
    return redirect("account")


@never_cache
@login_required
def close_page(request: HttpRequest) -> HttpResponse:
    """Return a page with the consequences of closing the account. A POST closes it after the typed
    word and the password.
    """
    user, refusal = cast(User, request.user), ""
    if request.method == "POST":
        if not has_typed_word(request, "close"):
            refusal = "Nothing was closed: type the word close to confirm."
        refusal = refusal or password_refusal(user, request.POST.get("password", ""))
        for team in user.teams.order_by("pk") if not refusal else ():
            if why_not := teams.why_cannot_leave(team, user):
                refusal = refusal or f"{team.name}: {why_not}"
        if not refusal:
            try:
                close_account(user)
            except CannotChange as cannot:
                refusal = str(cannot)
        if not refusal:
            logout(request)
            messages.success(request, "Your account is closed.")
            return redirect("login")
    context = {"refusal": refusal, "teams": user.teams.order_by("name")}
    return render(request, "people/close.html", context, status=422 if refusal else 200)


@never_cache
@login_required
@limit_exports
def download_own_data(request: HttpRequest) -> HttpResponse:
    """Return all data about the user as a JSON file."""
    text = personal_data_as_json(cast(User, request.user))
    headers = {"Content-Disposition": 'attachment; filename="my-data.json"'}
    return HttpResponse(text, content_type="application/json", headers=headers)


ACCOUNT = ("username", "email", "first_name", "last_name", "date_joined", "last_login")
NOTICES = ("no_mail_about", "no_call_about")
ROLES = ("is_researcher", "is_annotator", "is_volunteer", "is_staff")
ANNOTATOR = (
    "handle",
    "created_at",
    "last_seen_at",
    "excluded_reason",
    "wants",
    "keys",
    "warned",
    "wants_mail",
    "mailed_at",
    "leaves_at",
    "waives",
)


@dataclass(frozen=True)
class PersonalTable:
    """The rows of a table that refer to a person by one column, and the columns to return."""

    name: str
    model: type[Model]
    column: str
    fields: str
    """Names of columns, separated by blanks"""

    @property
    def label(self) -> str:
        """Return table and column, such as ``accounts.Token.user``."""
        return f"{self.model._meta.label}.{self.column}"

    def rows(self, row: Model) -> list[dict[str, Any]]:
        """Return the values of the columns, ordered by primary key."""
        records = self.model._base_manager.filter(**{self.column: row}).order_by("pk")
        return list(records.values(*self.fields.split()))


OF_USER = (
    PersonalTable(
        "tokens",
        Token,
        "user",
        "name prefix scope created_at last_used_at expires_at revoked_at",
    ),
    PersonalTable("webhooks", Webhook, "user", "url made_at"),
    PersonalTable("told", Delivery, "user", "event hook__url address body status reason made_at"),
    PersonalTable(
        "requests",
        AccountRequest,
        "user",
        "name email affiliation team system network asked_at decided_at accepted",
    ),
    PersonalTable("applications", Application, "user", "why network made_at admitted answered_at"),
    PersonalTable(
        "invitations", Invitation, "made_by", "role team__name created_at expires_at uses_left"
    ),
    PersonalTable(
        "runs",
        Submission,
        "user",
        "id track__slug team__name name description status reason file_name received_at"
        " confirmed_at scored_at withdrawn_at file_size file_digest",
    ),
    PersonalTable(
        "disputes", ExpertCheck, "raised_by", "id track__slug submission note raised_at status"
    ),
    PersonalTable(
        "expert_answers",
        ExpertCheck,
        "expert",
        "id track__slug kind interface raw remark answered_at",
    ),
    PersonalTable(
        "expert_drafts", ExpertCheck, "holder", "id track__slug kind interface draft held_until"
    ),
    PersonalTable("log", Audit, "who", "at what about track before after why"),
)
OF_WORKER = (
    PersonalTable("identity", WorkerIdentity, "worker", "external_id pay_to"),
    PersonalTable("consents", Consent, "worker", "version at"),
    PersonalTable(
        "tutorials",
        TutorialRun,
        "worker",
        "interface version attempt answers passed started_at ended_at",
    ),
    PersonalTable("qualifications", Qualification, "worker", "name wanted wanted_at"),
    PersonalTable(
        "answers",
        Assignment,
        "worker",
        "id status first_accepted_at accepted_at submitted_at seconds raw draft",
    ),
    PersonalTable("payments", Payment, "worker", "amount status why created_at"),
    PersonalTable("bonuses", Bonus, "worker", "amount status why created_at"),
    PersonalTable("payouts", Payout, "worker", "amount paid_at number sent_to"),
    PersonalTable("messages", Message, "worker", "subject text at read_at"),
    PersonalTable("feedback", Feedback, "worker", "interface clear fair comment at"),
    PersonalTable(
        "appeals",
        Appeal,
        "worker",
        "about_pay excluded_reason text made_at answer reinstated answered_at",
    ),
)


def personal_data(user: User) -> dict[str, Any]:
    """Return all data about a user, by topic."""
    return {
        "account": {name: getattr(user, name) for name in (*ACCOUNT, *ROLES, *NOTICES)},
        "teams": [
            {"name": row.team.name, "role": row.role}
            for row in user.memberships.select_related("team").order_by("team")
        ],
        "former_teams": list(user.former_teams.order_by("pk").values_list("name", flat=True)),
        **{part.name: part.rows(user) for part in OF_USER},
        "annotator": [
            {name: getattr(worker, name) for name in ANNOTATOR}
            | {part.name: part.rows(worker) for part in OF_WORKER}
            for worker in Worker.objects.filter(user=user)
        ],
    }


def personal_data_as_json(user: User) -> str:
    """Return all data about a user as indented JSON."""
    return (
        json.dumps(personal_data(user), cls=DjangoJSONEncoder, indent=2, ensure_ascii=False) + "\n"
    )


LISTED = 20


@never_cache
@login_required
def show_notices(request: HttpRequest) -> HttpResponse:
    """Return the page of notices. A POST stores the choices or the mail address, or adds a
    webhook.
    """
    user, refusal = cast(User, request.user), ""
    if request.method == "POST":
        verb = request.POST.get("verb")
        if verb == "add":
            try:
                add_webhook(user, request.POST.get("url", "").strip())
            except CannotCall as cannot:
                refusal = str(cannot)
        elif verb == "email":
            refusal = _change_email(user, request)
        elif verb == "choose":
            by_mail, by_call = request.POST.getlist("mail"), request.POST.getlist("call")
            save_notice_choices(user, by_mail=by_mail, by_call=by_call)
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
        "sent": request.POST,
    }
    return render(request, "people/notices.html", context, status=422 if refusal else 200)


def _change_email(user: User, request: HttpRequest) -> str:
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
        delete_decided_requests(before)  # later nothing would say that they were this person's
    return ""


@login_required
@require_POST
def change_notices(request: HttpRequest, pk: int) -> HttpResponse:
    """Send a test to a webhook of the user, or delete the webhook with its pending calls."""
    user = cast(User, request.user)
    hook = get_object_or_404(Webhook, pk=pk, user=user)
    verb = request.POST.get("verb")
    if verb not in ("test", "remove"):
        messages.error(request, "Nothing was done: verb is one of test, remove.")
    elif verb == "remove":
        hook.delete()
        messages.success(request, "The webhook is removed.")
    elif send_test_call(hook) is None:
        messages.error(request, "No test was sent: there were many in the last hour.")
    else:
        messages.success(request, "A test was sent; its result will appear below.")
    return redirect("notices")


urlpatterns = [
    path("account/close/", close_page, name="account-close"),
    path("account/my-data.json", download_own_data, name="own-data"),
    path("login/", Login.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("account/", show_account, name="account"),
    path("account/password/", ChangePassword.as_view(), name="password"),
    path("account/tokens/", create_token, name="tokens"),
    path("account/tokens/<int:pk>/revoke/", revoke_token, name="token-revoke"),
    path("account/notices/", show_notices, name="notices"),
    path("account/notices/<int:pk>/", change_notices, name="notices-webhook"),
]
