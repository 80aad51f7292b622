"""The contract of an interface: how one kind of question looks, what an answer means, how answers
become labels.

An interface is a directory of its own: `interface.py`, `page.html`, `how.html`, `page.js`,
`tutorial.json`, and what else its page needs. What several share is in `interfaces/shared`.
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
"""A thing that every worker says something of: what it is about ("relation", "linking" …), and
which one."""


@dataclass(frozen=True)
class Statement:
    """A part of an answer in words. Two answers agree if they have statements with the same key."""

    key: tuple[str, ...]
    words: str
    places: tuple[tuple[int, int], ...] = ()
    """Its places in the text of the page"""
    optional: bool = False
    """An answer without it is as good, a title of Wikipedia, say"""


class BadAnswer(ValueError):
    """An answer that the server does not accept; the text is a sentence for the worker, naming what
    is missing.
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
    """A target of which a question asks several things, each yes or no."""

    target: int
    sentences: Mapping[str, Sequence[str]]
    """What is answered yes or no, by its name -> the parts that its answer holds for: what says the
    same in other words stands on the page once"""
    shown: Sequence[str]
    """The parts that are settled, in the order of the page"""


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
    """How long a question stays with somebody at least; 0 leaves it to the setting
    LEASE_MINUTES."""


@dataclass(frozen=True)
class Agreement:
    """How answers to one question are compared."""

    tolerance: float | None = None
    """In which share of what it marks an answer may differ from the others before it counts as
    against them. None: answers are neither compared nor measured, since `agreement_units` does not
    take them apart."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Kind of unit -> its name for admins"""
    published: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    """What agreement the literature reached with three people, by what its units are about: the
    measure and its value"""


class Interface(ABC):
    """One kind of question. Stateless. Its page and its script are in its directory."""

    name: ClassVar[str]
    title: ClassVar[str]
    """Its question, in words for annotators"""
    folder: ClassVar[str] = ""
    """The directory; empty: the one of its name"""
    terms: ClassVar[Terms]
    agreement: ClassVar[Agreement] = Agreement()
    reads: ClassVar[str] = ""
    """What it asks for in a whole document: every `NAME`, or every `RELATION` between these
    (kbpo.tracks.recall); empty: it asks about one target alone"""
    criterion: ClassVar[str] = ""
    """Under which its answers say yes or no to what it asks (`asked_statements`); empty: they are
    no such answers. Of what was asked about alone, what most deny does not hold, and where two
    people differ a third can decide; in whole documents what too few marked is missing and never
    false: people overlook things"""

    def instructions(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Return the context of the instructions, from a payload alone."""
        return {"guide": payload.get("guide", [])}

    @abstractmethod
    def render(self, question: Question, answer: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the template's context, from the question's payload alone; never who claimed what,
        never gold.

        `answer` is a raw answer (a draft, or one that was refused) to be shown as it was left.
        """

    def document_with_marks(self, question: Question, text: str) -> dict[str, Any]:
        """Return the whole document with the question's marks: `text` and `marks` as (begin, end,
        role).
        """
        return {"text": text, "marks": []}

    def answer_of(
        self, question: Question, values: Mapping[int, Mapping[str, Any]]
    ) -> dict[str, Any] | None:
        """Return the answer, as the form would send it, that these labels of the targets give, with
        unknown steps left open; None if they give none.
        """
        return None

    @abstractmethod
    def parse(self, question: Question, raw: dict[str, Any]) -> list[ParsedResponse]:
        """Return the responses in a raw answer. Raises BadAnswer with a sentence for the worker."""

    @abstractmethod
    def aggregate(self, question: Question, responses: Sequence[Response]) -> list[AggregatedLabel]:
        """Return the labels that responses aggregate to; empty if too few count."""

    def asked_statements(self, question: Question) -> list[Asked]:
        """Return the targets of a question with yes-or-no statements."""
        return []

    def is_split(self, question: Question, responses: Sequence[Response]) -> bool:
        """Return whether these responses are tied, so that one more would decide. False for whole
        documents.
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
        """Return whether a parsed answer earns the extra of its question."""
        return False

    def doubts(self, judgments: Sequence[Judgment]) -> Iterator[Doubt]:
        """Yield checks of a parsed answer for signs of careless work."""
        return iter(())

    def is_right(self, question: Question, given: Mapping[str, Any], right: Judgment) -> bool:
        """Return whether a judgment in a tutorial is right; parts that the right answer leaves open
        are ignored.
        """
        return all(given.get(name) == value for name, value in right.value.items())

    def agreement_units(
        self, question: Question, response: Judgment, *, measured: bool = False
    ) -> Iterator[tuple[Unit, str]]:
        """Yield the units of agreement in a response with their values; with `measured` the units
        in which agreement is published. Units called "flag" are left out of measures of agreement.
        """
        yield (
            (response.criterion, str(response.target_id)),
            json.dumps(response.value, sort_keys=True),
        )


def units_paid(payload: Mapping[str, Any]) -> int:
    """Return the number of pairs or tokens that a question about a whole document is paid for."""
    return len(payload["pairs"] if "pairs" in payload else payload["tokens"])


def parts_by_target(target: int, value: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
    """Return target (as text) -> parts that hold, of a stored yes-or-no response; responses about
    whole documents contain the targets.
    """
    holds = value["holds"]
    return holds if isinstance(holds, Mapping) else {str(target): holds}


def value_of(
    shown: Sequence[str], holds: Sequence[str], votes: Mapping[str, int], *, in_document: bool
) -> dict[str, Any]:
    """Return the value of a label: the parts that were `shown`, those of them that hold, and the
    votes; empty if no part was shown. For whole documents, only the parts that hold are stored as
    shown.
    """
    if in_document:
        shown = holds = sorted(holds)
    return {"shown": list(shown), "holds": list(holds), "votes": votes} if shown else {}
