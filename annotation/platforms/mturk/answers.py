"""QuestionFormAnswers: the XML in which the platform hands over what a worker sent in.

The parser takes no document type, no entity and no external reference: what is not plain elements
is refused.
"""

from __future__ import annotations

from typing import NoReturn
from xml.parsers import expat

MOST_CHARACTERS = 2_000_000


class Unreadable(ValueError):
    """Not an answer as the platform writes it."""


def fields_of(xml: str) -> dict[str, str]:
    """Return the fields of the form: name → value. Raises Unreadable."""
    if len(xml) > MOST_CHARACTERS:
        raise Unreadable("The answer is too long.")
    reader = _Reader()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse
    parser.EntityDeclHandler = _refuse
    parser.ExternalEntityRefHandler = _refuse
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    try:
        parser.Parse(xml, True)
    except expat.ExpatError as error:
        raise Unreadable(f"The answer is no XML: {error}") from error
    return reader.fields


def _refuse(*_: object) -> NoReturn:
    raise Unreadable("The answer declares a document type or an entity.")


class _Reader:
    """Gathers QuestionIdentifier and FreeText of every Answer."""

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}
        self.name = ""
        self.value = ""
        self.inside = ""

    def start(self, name: str, _: dict[str, str]) -> None:
        self.inside = name.rpartition(" ")[2]
        if self.inside == "Answer":
            self.name = self.value = ""

    def text(self, data: str) -> None:
        if self.inside == "QuestionIdentifier":
            self.name += data
        elif self.inside == "FreeText":
            self.value += data

    def end(self, name: str) -> None:
        if name.rpartition(" ")[2] == "Answer" and self.name:
            self.fields[self.name] = self.value
        self.inside = ""
