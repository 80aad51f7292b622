"""Declared interfaces: the form, with the title, the price and the tutorial that an admin wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from annotation.interfaces.form.interface import Form
from kbpo.tracks.generation.declared import form_of
from kbpo.tracks.registry import FORM

if TYPE_CHECKING:
    from annotation.interfaces.base import Judgment
    from annotation.models import Question


class DeclaredForm(Form):
    """One that asks by a declared form; its page is the form's."""

    @property
    def template(self) -> str:
        return "interfaces/form/page.html"

    @property
    def script(self) -> str:
        return "interfaces/form/page.js"

    def is_right(self, question: Question, given: Mapping[str, Any], right: Judgment) -> bool:
        """Free words are never wrong; what counts alike is alike right."""
        return "text" in right.value or given.get("value") == right.value.get("value")


def interface_of_form(name: str) -> DeclaredForm:
    """Return the interface of a declared form. Raises KeyError if there is none of that name."""
    form = form_of(name)
    declared: type[DeclaredForm] = type(
        "DeclaredForm",
        (DeclaredForm,),
        {
            "name": FORM + name,
            "title": form.title,
            "offered_as": form.offered_as,
            "default_reward": str(form.price),
            "default_seconds": form.seconds,
            "__module__": __name__,
        },
    )
    return declared()
