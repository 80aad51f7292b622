"""Defines the payload of a question about a pair of mentions, which tracks write and the relation
page reads.

All spans are half-open, in characters of the whole document. The payload must not reveal which
system claimed what: predicates and candidates are those of all systems, in an order that depends on
the schema and the text alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from kbpo.tracks.kbp.merge import UNDECIDED, add_reader_votes, aggregate_statements

if TYPE_CHECKING:
    from kbpo.instances.merge import Statement

Span = tuple[int, int]
Meanings = Mapping[str, dict[str, str]]
"""Predicate -> its entry in the schema: a `definition`, an `example` of words that state it, and a
`counter_example` of words that do not"""
COMMON = 9  # as many as there are digits to pick them with; rarer relations are folded


class CandidatePayload(TypedDict):
    """A candidate referent of a mention: a canonical mention of the document."""

    span: list[int]
    gloss: str


class MentionPayload(TypedDict):
    """A marked mention. Without candidates (dates, titles, numbers) nobody is asked for its
    referent; the mention itself as the only candidate is selected by default.
    """

    target: int
    span: list[int]
    gloss: str
    type: str
    candidates: list[CandidatePayload]


class PredicatePayload(TypedDict):
    """A directed predicate: `part` is ``"per:parents>"`` where A is the subject, ``"per:parents<"``
    where B is.

    `also` are equivalent parts (the inverse, or the other direction of a symmetric predicate):
    people read one sentence, and their answer holds for all of them.
    """

    part: str
    template: str
    also: NotRequired[list[str]]
    rare: NotRequired[bool]


class RelationPayload(TypedDict):
    """A question about a pair; without `b` and predicates, a question about the referent of one
    mention.

    `text` is what is shown of the document and starts at character `begin`; `lit` is the smallest
    span of whole sentences over both mentions; `sentences` are the first and last shown, counted
    from 1, and how many there are; `others` are further mentions in the text, underlined.
    """

    document: dict[str, str]  # key, title
    text: str
    begin: int
    length: int  # characters of the whole document
    sentences: list[int]
    lit: list[int]
    a: MentionPayload
    b: NotRequired[MentionPayload]
    others: list[list[int]]
    predicates: list[PredicatePayload]
    meanings: NotRequired[Meanings]


def directed_predicates(predicate: PredicatePayload) -> list[str]:
    """Return the directed predicates that one sentence states: its own, and all equivalent ones."""
    return [predicate["part"], *predicate.get("also", [])]


def predicates_by_sentence(predicates: Sequence[PredicatePayload]) -> dict[str, list[str]]:
    """Return first directed predicate of each sentence -> all directed predicates that the sentence
    states.
    """
    return {predicate["part"]: directed_predicates(predicate) for predicate in predicates}


def meaning_of(predicate: PredicatePayload, meanings: Meanings) -> dict[str, str]:
    """Return the schema's definition and examples of a sentence; empty without an entry."""
    return meanings.get(predicate["part"][:-1], {})


def sentence_of(predicate: PredicatePayload, a: str, b: str) -> str:
    """Return a directed predicate as a sentence about two names."""
    subject, object_ = (a, b) if predicate["part"].endswith(">") else (b, a)
    names = {"{subject}": subject, "{object}": object_}
    pieces = re.split("({subject}|{object})", predicate["template"])
    return "".join(names.get(piece, piece) for piece in pieces)


@dataclass(frozen=True)
class Side:
    """One of the marked mentions of a question about a pair."""

    letter: str  # a, b
    data: MentionPayload

    @property
    def target(self) -> int:
        return int(self.data["target"])

    @property
    def span(self) -> Span:
        return self.data["span"][0], self.data["span"][1]

    @property
    def gloss(self) -> str:
        return self.data["gloss"]

    @property
    def type(self) -> str:
        return self.data.get("type", "")

    @property
    def has_choice(self) -> bool:
        """Return whether people choose among several candidates."""
        return bool(set(self.candidates) - {f"{self.span[0]}-{self.span[1]}"})

    @property
    def is_person(self) -> bool:
        return self.type.upper() in ("PER", "PERSON")

    @cached_property
    def candidates(self) -> dict[str, str]:
        """Return the candidates: form value of the span -> words."""
        return {f"{c['span'][0]}-{c['span'][1]}": c["gloss"] for c in self.data["candidates"]}

    @cached_property
    def longer_names_by_candidate(self) -> dict[str, list[str]]:
        """Return form value -> longer names, for each candidate whose words are part of another
        candidate, or its initials. Each entity is shown by its longest name, so these candidates
        are different entities.
        """
        fuller_of: dict[str, list[str]] = {}
        for value, own in self.candidates.items():
            longer = [
                other
                for other in self.candidates.values()
                if _is_part_of(own.casefold().split(), other.casefold().split())
                or _are_initials_of(own, other)
            ]
            if longer:
                fuller_of[value] = list(dict.fromkeys(longer))
        return fuller_of

    def candidate_words(self, value: str) -> str:
        """Return the words of a candidate, distinct from all others."""
        gloss = self.candidates[value]
        return (
            f"{gloss}, not {' or '.join(self.longer_names_by_candidate[value])}"
            if value in self.longer_names_by_candidate
            else gloss
        )


def _is_part_of(words: list[str], longer: list[str]) -> bool:
    """Return whether some words are a proper consecutive part of others."""
    n = len(words)
    starts = range(len(longer) - n + 1)
    return 0 < n < len(longer) and any(longer[start : start + n] == words for start in starts)


def _are_initials_of(short: str, name: str) -> bool:
    """Return whether letters are the initials of a name of several words, as WCI of World Council
    of Insurers.
    """
    initials = "".join(word[0] for word in name.split() if word[0].isupper())
    return len(initials) > 1 and short.replace(".", "") == initials


@dataclass(frozen=True)
class Pair:
    """The parsed payload of a question about a pair."""

    data: RelationPayload

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> Pair:
        """Return the pair that a payload describes. Raises KeyError if a part of the payload is
        missing.
        """
        return cls(payload)  # type: ignore[arg-type]

    @cached_property
    def a(self) -> Side:
        return Side("a", self.data["a"])

    @cached_property
    def b(self) -> Side:
        return Side("b", self.data["b"])

    @property
    def asked_sides(self) -> tuple[Side, ...]:
        """Return A and B; A alone if the question is about one mention."""
        return (self.a, self.b) if "b" in self.data else (self.a,)

    @cached_property
    def parts(self) -> list[str]:
        """Return the directed predicates that the page offers, in its order."""
        parts: list[str] = []
        for predicate in self.data["predicates"]:
            for part in directed_predicates(predicate):
                parts.append(part)
        return parts

    @cached_property
    def visible_relations(self) -> list[PredicatePayload]:
        """Return the relations that are visible at first; the first nine by default."""
        predicates = self.data["predicates"]
        if any("rare" in predicate for predicate in predicates):
            predicates = [one for one in predicates if not one.get("rare", True)]
        return predicates[:COMMON]

    @cached_property
    def relations_behind_more(self) -> list[PredicatePayload]:
        """Return the relations that are shown after a click on “more”."""
        return [
            predicate
            for predicate in self.data["predicates"]
            if predicate not in self.visible_relations
        ]


def sentences_by_predicate(payload: Mapping[str, Any]) -> dict[str, str]:
    """Return directed predicate -> sentence; empty for other kinds of questions."""
    if "predicates" not in payload:
        return {}
    pair = Pair.from_payload(payload)
    return {
        part: sentence_of({**predicate, "part": part}, pair.a.gloss, pair.b.gloss)
        for predicate in pair.data["predicates"]
        for part in directed_predicates(predicate)
    }


def mentions_of_pair(payload: Mapping[str, Any]) -> dict[int, str]:
    """Return target -> words, for the mentions whose referents are asked in a question about a
    pair; empty for other kinds of questions.
    """
    if "predicates" not in payload:
        return {}
    return {side.target: side.gloss for side in Pair.from_payload(payload).asked_sides}


def settles_reader_tie(payload: Mapping[str, Any]) -> bool:
    """Return whether a question resolves a tie between the readers of a whole document."""
    return len(mentions_of_pair(payload)) == 1


def are_people_tied(statements: Sequence[Statement]) -> bool:
    """Return whether the answers about a mention's referent are tied, over all questions
    about it.
    """
    return UNDECIDED in aggregate_statements(add_reader_votes(statements))
