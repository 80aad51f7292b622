"""The contract of an interface: how one kind of question is shown, what an answer means, how
answers become labels.

An interface is a directory: `interface.py`, `page.html`, `how.html`, `page.js`, `tutorial.json`,
and what else its page needs. What several interfaces share is in `interfaces/shared`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from annotation.models import Question, Response

Unit = tuple[str, str]
"""A unit that every worker answers: its kind ("relation", "linking" …), and its key."""


@dataclass(frozen=True)
class Statement:
    """One part of an answer as a sentence. Two answers agree if their statements have the same
    keys.
    """

    key: tuple[str, ...]
    words: str
    places: tuple[tuple[int, int], ...] = ()
    """Spans of the statement in the text of the page"""
    optional: bool = False
    """Whether an answer without this statement is as good, e.g. a Wikipedia title"""


class BadAnswer(ValueError):
    """Raised for an answer that the server rejects; the text is a sentence for the worker that
    names what is missing.
    """


@dataclass(frozen=True)
class ParsedResponse:
    """A judgment in an answer: target, criterion and value."""

    target_id: int
    criterion: str
    value: dict[str, Any]


@dataclass(frozen=True)
class Doubt:
    """A reason to doubt an answer, with a sentence for admins."""

    kind: str
    against: bool
    detail: str


class Judgment(Protocol):
    """A response of a worker, parsed just now or stored."""

    @property
    def target_id(self) -> int: ...
    @property
    def criterion(self) -> str: ...
    @property
    def value(self) -> Any: ...


@dataclass(frozen=True)
class AggregatedLabel:
    """The label of one target that responses aggregate to."""

    target_id: int
    value: dict[str, Any]
    method: str
    n: int
    disagreement: float
    source: str = "crowd"


@dataclass(frozen=True)
class Asked:
    """A target about which a question asks several yes-or-no statements."""

    target: int
    sentences: Mapping[str, Sequence[str]]
    """Name of a yes-or-no statement -> the parts that hold if it is affirmed. Equivalent parts are
    one statement on the page."""
    shown: Sequence[str]
    """The parts that the question settles, in page order"""


@dataclass(frozen=True)
class Terms:
    """The title under which an interface is offered, and its default price."""

    offered_as: str
    """Title of its HITs on a marketplace; at most 128 characters"""
    reward: Decimal
    seconds: int
    extra: Decimal = Decimal("0.00")
    """Extra pay for an answer that took more work (`Interface.earns_extra`)"""
    extra_reason: str = "Your answer took more work"
    """Reason of the extra pay for workers of a marketplace"""
    seconds_each: float = 0.0
    """Expected seconds for each paid unit of a document (`units_paid`)"""
    lease_minutes: int = 0
    """Minimal duration of a lease in minutes; 0 means the setting LEASE_MINUTES"""


@dataclass(frozen=True)
class Agreement:
    """Settings for comparing the answers to one question: the tolerated difference, names of units,
    and published values.
    """

    tolerance: float | None = None
    """The share of its marks in which an answer may differ from the others before a signal is
    counted against it. None: answers are neither compared nor measured, since `agreement_units`
    does not split them."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Kind of unit -> its name for admins"""
    published: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    """Kind of unit -> the measure and value of agreement that the literature reports for three
    people"""


class Interface(ABC):
    """One kind of question. Stateless. Its page and script are in its directory."""

    name: ClassVar[str]
    title: ClassVar[str]
    """The question in words, for annotators"""
    folder: ClassVar[str] = ""
    """The directory; empty: the directory with the interface's name"""
    terms: ClassVar[Terms]
    agreement: ClassVar[Agreement] = Agreement()
    reads: ClassVar[str] = ""
    """What readers mark in a whole document: every `NAME`, or every `RELATION` between names
    (kbpo.tracks.recall); empty if the interface asks about single targets"""
    criterion: ClassVar[str] = ""
    """The criterion of its yes-or-no answers (`asked_statements`); empty if it has none. In
    questions about single targets, a statement that most deny does not hold, and if two people
    differ a third can decide. In whole documents, a statement that too few marked is missing and
    never false, since readers overlook things"""

    def instructions(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Return the template context of the instructions, computed from a payload only."""
        return {"guide": payload.get("guide", [])}

    @abstractmethod
    def render(self, question: Question, answer: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the template context, computed only from the question's payload. It never tells
        which system claimed what, or whether the answer is known (gold).

        `answer` is a raw answer (a draft, or one that was refused) that is shown as it was left.
        """

    def document_with_marks(self, question: Question, text: str) -> dict[str, Any]:
        """Return the whole document with the question's marks: `text` and `marks` as (begin, end,
        role).
        """
        return {"text": text, "marks": []}

    def answer_of(
        self, question: Question, values: Mapping[int, Mapping[str, Any]]
    ) -> dict[str, Any] | None:
        """Return the answer, in the fields of the form, that these labels of the targets imply,
        with unknown steps left open; None if they imply none.
        """
        return None

    @abstractmethod
    def parse(self, question: Question, raw: dict[str, Any]) -> list[ParsedResponse]:
        """Return the responses in a raw answer. Raises BadAnswer with a sentence for the worker."""

    @abstractmethod
    def aggregate(self, question: Question, responses: Sequence[Response]) -> list[AggregatedLabel]:
        """Return the labels that responses aggregate to; empty if too few count."""

    def asked_statements(self, question: Question) -> list[Asked]:
        """Return the targets of a question with their yes-or-no statements."""
        return []

    def is_split(self, question: Question, responses: Sequence[Response]) -> bool:
        """Return whether these responses are tied, so that one more answer would decide. False for
        whole documents.
        """
        return False

    def statements(self, question: Question, answer: Sequence[Judgment]) -> list[Statement]:
        """Return an answer in words, in the order of the page. `answer` is the result of `parse`,
        or stored responses. By default, each unit is a statement.
        """
        statements = []
        for judgment in answer:
            for (subject, which), value in self.agreement_units(question, judgment):
                words = f"{subject.replace('_', ' ').capitalize()}: {value}"
                statements.append(Statement((subject, which, value), words))
        return statements

    def earns_extra(self, judgments: Sequence[Judgment]) -> bool:
        """Return whether a parsed answer earns the extra pay of its question."""
        return False

    def doubts(self, judgments: Sequence[Judgment]) -> Iterator[Doubt]:
        """Yield doubts about a parsed answer that shows signs of careless work."""
        return iter(())

    def is_right(
        self, question: Question, given_answer: Mapping[str, Any], right: Judgment
    ) -> bool:
        """Return whether a judgment in a tutorial is right. Parts that the right answer leaves open
        are ignored.
        """
        return all(given_answer.get(name) == value for name, value in right.value.items())

    def agreement_units(
        self, question: Question, response: Judgment, *, measured: bool = False
    ) -> Iterator[tuple[Unit, str]]:
        """Yield the units of a response with their values; a unit is the smallest part of an answer
        on which two people can agree. With `measured`, yield the units for which the literature
        reports agreement. Units called "flag" are left out of measures of agreement.
        """
        yield (
            (response.criterion, str(response.target_id)),
            json.dumps(response.value, sort_keys=True),
        )


def units_paid(payload: Mapping[str, Any]) -> int:
    """Return the number of pairs or tokens for which a question about a whole document is paid."""
    return len(payload["pairs"] if "pairs" in payload else payload["tokens"])


def parts_by_target(target: int, value: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
    """Return target (as text) -> parts (directed relations) that hold, from a stored response.
    Responses about whole documents name the targets.
    """
    holds = value["holds"]
    return holds if isinstance(holds, Mapping) else {str(target): holds}


def label_value(
    shown_parts: Sequence[str], holds: Sequence[str], votes: Mapping[str, int], *, in_document: bool
) -> dict[str, Any]:
    """Return the value of a label: the parts (directed relations) `shown_parts`, those of
    them that hold, and the votes; empty if no part was shown. For whole documents, only the parts
    that hold are stored as shown.
    """
    if in_document:
        shown_parts = holds = sorted(holds)
    return {"shown": list(shown_parts), "holds": list(holds), "votes": votes} if shown_parts else {}
