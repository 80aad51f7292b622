"""The pages of declared forms, which admins write in YAML and preview."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path

from annotation.models import Question
from kbpo.accounts.audit import write_audit_entry
from kbpo.tracks.models import Track
from kbpo.tracks.registry import FORM
from kbpo.tracks.texts.declared import CannotDeclare, declared_form, store_form
from kbpo.tracks.texts.forms import form_payload
from kbpo.tracks.texts.models import DeclaredForm
from kbpo.web.http import current_admin, for_admins
from kbpo.web.judging.views import render_question as show_question

EXAMPLE = Path(__file__).with_name("example_form.yaml")
LARGEST = 200_000
SAMPLE = (
    "The ferry to Marsk runs again from Monday. It had been laid up since the storm of March.",
    "From Monday there is a ferry to Marsk once more; the storm had stopped it in March.",
)
"""Texts that a preview shows if the tutorial has none"""


@for_admins
def show_forms(request: HttpRequest) -> HttpResponse:
    """Return the forms and a field for a new one. A POST stores it, or shows its errors."""
    wrong: tuple[str, ...] = ()
    text = EXAMPLE.read_text(encoding="utf-8")
    if request.method == "POST":
        text, wrong = _read_form_text(request)
        if not wrong:
            try:
                row = store_form(text)
            except CannotDeclare as problem:
                wrong = problem.sentences
            else:
                write_audit_entry(
                    "declare form", f"form:{row.name}", who=current_admin(request), after=row.title
                )
                messages.success(request, f"{row.title} is declared. Tracks can use it now.")
                return redirect("desk-form", name=row.name)
    context: dict[str, Any] = {
        "rows": DeclaredForm.objects.order_by("-pk"),
        "text": text,
        "wrong": wrong,
    }
    return render(request, "desk/forms.html", context, status=422 if wrong else 200)


def _read_form_text(request: HttpRequest) -> tuple[str, tuple[str, ...]]:
    """Return the text that was uploaded or typed, and why it cannot be read."""
    file = request.FILES.get("file")
    if file is None:
        return request.POST.get("text", "").replace("\r\n", "\n"), ()
    if file.size is not None and file.size > LARGEST:
        return "", (f"The file is longer than {LARGEST // 1000} kB. Shorten it.",)
    try:
        return file.read().decode("utf-8"), ()
    except UnicodeDecodeError:
        return "", ("The file is not UTF-8. Save it as UTF-8 and send it again.",)


@for_admins
def show_form(request: HttpRequest, name: str) -> HttpResponse:
    """Return a form with its tracks; with `?preview` its page."""
    if "preview" in request.GET:
        return _preview_form(request, name)
    row = get_object_or_404(DeclaredForm, name=name)
    context = {
        "row": row,
        "form": declared_form(name),
        "kind": FORM + name,
        "tracks": Track.objects.filter(kind=FORM + name).order_by("name"),
    }
    return render(request, "desk/form.html", context)


def _preview_form(request: HttpRequest, name: str) -> HttpResponse:
    """Return the page that annotators see, with the first text of the tutorial."""
    try:
        form = declared_form(name)
    except KeyError:
        raise Http404 from None
    lesson = form.lessons[0] if form.lessons else None
    texts = lesson.texts if lesson else SAMPLE[: 2 if form.is_comparison else 1]
    asked = Question(
        interface=FORM + name,
        payload=form_payload(form, texts, lesson.beside if lesson else {}),
        target_id=0,
        reward=form.price,
        seconds=form.seconds,
    )
    return show_question(request, asked, None, {"preview": True, "elapsed": 0})


urlpatterns = [
    path("desk/forms/", show_forms, name="desk-forms"),
    path("desk/forms/<slug:name>/", show_form, name="desk-form"),
]
