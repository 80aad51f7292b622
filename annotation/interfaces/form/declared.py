"""Makes interfaces of declared forms, with the title, price and tutorial that an admin wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from annotation.interfaces.base import Terms
from annotation.interfaces.form.interface import Form
from kbpo.tracks.registry import FORM
from kbpo.tracks.texts.declared import form_of

if TYPE_CHECKING:
    from annotation.interfaces.base import Judgment
    from annotation.models import Question


class DeclaredForm(Form):
    """The interface of a declared form; it uses the page of `form`."""

    folder: ClassVar[str] = "form"

    def is_right(self, question: Question, given: Mapping[str, Any], right: Judgment) -> bool:
        """Return whether a rating is right, or equivalent to the right one; free text is never
        wrong.
        """
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
            "terms": Terms(form.offered_as, form.price, seconds=form.seconds),
            "__module__": __name__,
        },
    )
    return declared()
