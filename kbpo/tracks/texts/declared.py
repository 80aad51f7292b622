"""Forms that admins declared: what they ask is a kind of track, without code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from typing import Any

from formats.forms import Form, read_form, said_of
from formats.messages import Report
from kbpo.tracks.base import Asking
from kbpo.tracks.registry import FORM
from kbpo.tracks.texts.forms import criterion_of, form_in, tutorial_of
from kbpo.tracks.texts.models import DeclaredForm
from kbpo.tracks.texts.pairs import PreferenceTrack
from kbpo.tracks.texts.track import TextTrack


class CannotDeclare(Exception):
    """A form of which nothing was stored; each text is a sentence with line, code and field."""

    def __init__(self, *sentences: str) -> None:
        super().__init__(" ".join(sentences))
        self.sentences = sentences


def declare(text: str) -> DeclaredForm:
    """Return the form, stored. Raises CannotDeclare with all that is wrong."""
    report = Report(100)
    form = read_form(text, report)
    if form is None:
        raise CannotDeclare(*said_of(report))
    if DeclaredForm.objects.filter(name=form.name).exists():
        raise CannotDeclare(
            f"There is a form {form.name} already, and what was answered rests on its words:"
            " choose another name."
        )
    return DeclaredForm.objects.create(name=form.name, title=form.title, text=text)


def classes() -> dict[str, type[TextTrack]]:
    """Return the kinds of track that ask by declared forms, the oldest form's first."""
    forms = DeclaredForm.objects.order_by("pk").values_list("name", "text")
    return {FORM + name: _class(text) for name, text in forms}


def tutorials() -> dict[str, dict[str, Any] | None]:
    """Return a mapping: interface -> its tutorial, as `tutorial.json` has it, of all declared
    forms, the oldest first; None where a form has none.
    """
    return tutorials_in(DeclaredForm.objects.order_by("pk").values_list("name", "text"))


def tutorials_in(forms: Iterable[Sequence[str]]) -> dict[str, dict[str, Any] | None]:
    """Return the tutorials of forms that were read already: name and text of each."""
    return {FORM + name: tutorial_of(form_in(text)) for name, text in forms}


def form_of(name: str) -> Form:
    """Return the form of that name. Raises KeyError if there is none."""
    return form_in(_read_form_text(name))


def class_of_form(name: str) -> type[TextTrack]:
    """Return the kind of track that asks by a form. Raises KeyError if there is none of that
    name.
    """
    return _class(_read_form_text(name))


def _read_form_text(name: str) -> str:
    """Return the stored text of a declared form. Raises KeyError if no form has this name."""
    text = DeclaredForm.objects.filter(name=name).values_list("text", flat=True).first()
    if text is None:
        raise KeyError(FORM + name)
    return text


@lru_cache(maxsize=256)
def _class(text: str) -> type[TextTrack]:
    form = form_in(text)
    base = PreferenceTrack if form.compares else TextTrack
    asking = Asking(FORM + form.name, form.price, form.seconds, people=form.people)
    digest = sha256(form.name.encode()).hexdigest()[:8]
    return type(
        base.__name__,
        (base,),
        {
            "kind": FORM + form.name,
            "target_kind": f"{base.target_kind}-{digest}",  # judgments of two forms never mix
            "form": form,
            "measures": replace(
                base.measures, criteria=tuple(criterion_of(question) for question in form.scored)
            ),
            "asking": (asking,),
            "words": replace(base.words, kind=f"texts that people judge by the form “{form.name}”"),
            "second_share": form.second_share,
            "__module__": __name__,
        },
    )
