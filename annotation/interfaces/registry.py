"""Registers the interfaces: the built-in ones, one line each, and declared forms."""

from __future__ import annotations

from django.utils.module_loading import import_string

from annotation.interfaces.base import Interface
from kbpo.tracks.registry import FORM
from kbpo.tracks.texts import declared

INTERFACES = {
    "relation": "annotation.interfaces.relation.interface.Relation",
    "entities": "annotation.interfaces.entities.interface.Entities",
    "relations_exhaustive": (
        "annotation.interfaces.relations_exhaustive.interface.RelationsExhaustive"
    ),
    "language_quality": "annotation.interfaces.language_quality.interface.LanguageQuality",
    "answer_correctness": "annotation.interfaces.answer_correctness.interface.AnswerCorrectness",
    "form": "annotation.interfaces.form.interface.Form",
}


def interface_names() -> list[str]:
    """Return the names of all interfaces, those of declared forms last."""
    return [*INTERFACES, *declared.declared_track_classes()]


def document_interfaces(*what: str) -> list[str]:
    """Return the interfaces that ask about whole documents; with `NAME` or `RELATION` only those
    that ask for it.
    """
    reads = {name: interface_by_name(name).reads for name in INTERFACES}
    return [name for name, subjects in reads.items() if subjects and (not what or subjects in what)]


def yes_no_interfaces() -> list[str]:
    """Return the interfaces with yes-or-no statements."""
    return [name for name in INTERFACES if interface_by_name(name).criterion]


def rating_interfaces() -> list[str]:
    """Return the built-in interfaces for ratings."""
    return [
        name for name in INTERFACES if name not in {*document_interfaces(), *yes_no_interfaces()}
    ]


def can_ask_third_after_disagreement(name: str) -> bool:
    """Return whether a third person can be asked only after a disagreement between two
    (`Interface.is_split`).
    """
    interface = interface_by_name(name)
    return bool(interface.criterion and not interface.reads)


def interface_by_name(name: str) -> Interface:
    """Return the interface of that name. Raises KeyError for an unknown name."""
    if name.startswith(FORM):
        made: Interface = import_string("annotation.interfaces.form.interface.interface_of_form")(
            name.removeprefix(FORM)
        )
        return made
    interface: Interface = import_string(INTERFACES[name])()
    return interface
