"""An invitation link: whoever opens it becomes an annotator, with a name and a password of their own."""

from __future__ import annotations

from django import forms
from django.contrib.auth import login
from django.contrib.auth.forms import BaseUserCreationForm
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from annotation.views import refused
from kbpo.accounts.models import Invitation, User

USED_UP = "This invitation does not work any more: it was used up or has run out. Ask for a new one."


class JoinForm(BaseUserCreationForm):  # type: ignore[type-arg]
    """A name to log in with and a password, twice."""

    class Meta:
        model = User
        fields = ("username",)

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].label = "Name to log in with"
        self.fields["username"].help_text = "Other people do not see it."


def join(request: HttpRequest, code: str) -> HttpResponse:
    """The form, or (for somebody who is logged in) the one button that makes them an annotator."""
    invitation = usable().filter(code=code).first()
    if invitation is None:
        return refused(request, USED_UP, status=410)
    known = request.user.is_authenticated
    form: forms.BaseForm | None = None if known else JoinForm(request.POST or None)
    if request.method == "POST" and (form is None or form.is_valid()):
        user = _accept(invitation, request.user if form is None else form)  # type: ignore[arg-type]
        if user is None:
            return refused(request, USED_UP, status=410)
        if not known:
            login(request, user, backend="django.contrib.auth.backends.ModelBackend")
        return redirect("annotate")
    status = 422 if request.method == "POST" else 200
    return render(request, "annotation/join.html", {"form": form, "invitation": invitation}, status=status)


def usable() -> QuerySet[Invitation]:
    """Invitations for annotators that may still be used."""
    in_time = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
    return Invitation.objects.filter(in_time, role="annotator", uses_left__gt=0)


@transaction.atomic
def _accept(invitation: Invitation, who: User | JoinForm) -> User | None:
    """The annotator; None if somebody else has just taken the last use."""
    if not usable().filter(pk=invitation.pk).update(uses_left=F("uses_left") - 1):
        return None
    user = who.save(commit=False) if isinstance(who, JoinForm) else who
    user.is_annotator = True
    user.save()
    return user
