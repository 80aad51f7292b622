"""The interfaces there are: one line each."""

from __future__ import annotations

from django.utils.module_loading import import_string

from annotation.interfaces.base import Interface

INTERFACES = {
    "relation": "annotation.interfaces.relation.interface.Relation",
    "entities": "annotation.interfaces.entities.interface.Entities",
    "relations_exhaustive": "annotation.interfaces.relations_exhaustive.interface.RelationsExhaustive",
    "language_quality": "annotation.interfaces.language_quality.interface.LanguageQuality",
    "answer_correctness": "annotation.interfaces.answer_correctness.interface.AnswerCorrectness",
    "form": "annotation.interfaces.form.interface.Form",
}


def interface_of(name: str) -> Interface:
    """The interface of that name. Raises KeyError if there is none."""
    found: Interface = import_string(INTERFACES[name])()
    return found
