"""The contract of an interface: how one kind of question looks, what an answer means, how answers
become labels.

An interface is a directory of its own: `interface.py`, `page.html`, `how.html`, `page.js`,
`tutorial.json`, and what else its page needs. What several share is in `interfaces/shared`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from annotation.models import Question, Response
    from kbpo.instances.merge import Said

Lines = dict[tuple[str, tuple[int, int]], str]
"""What is said, and where it stands -> its words"""
Unit = tuple[str, str]
"""A thing that every worker says something of: what it is about ("relation", "linking" …), and
which one."""


@dataclass(frozen=True)
class Statement:
    """One thing that an answer says, in words for people. Two answers say the same if they make
    statements with the same key.
    """

    key: tuple[str, ...]
    words: str
    places: tuple[tuple[int, int], ...] = ()
    """Where it stands in the text that the page shows"""
    optional: bool = False
    """An answer without it is as good, a title of Wikipedia, say"""


class BadAnswer(ValueError):
    """An answer that the server does not accept; the text is a sentence for the worker, naming what
    is missing.
    """


@dataclass(frozen=True)
class ParsedResponse:
    """One judgment in an answer: about which target, under which criterion, what."""

    target_id: int
    criterion: str
    value: dict[str, Any]


@dataclass(frozen=True)
class Doubt:
    """Something about one answer by itself that may count against it,
    with a sentence for admins.
    """

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
    """What responses agree on about one target."""

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
    names: str
    """What it is, where the question is about more than this one"""
    sentences: Mapping[str, Sequence[str]]
    """What is answered yes or no, by its name -> the parts that its answer holds for: what says the
    same in other words stands on the page once"""
    shown: Sequence[str]
    """The parts that are settled, in the order of the page"""


class Interface(ABC):
    """One kind of question. Stateless."""

    name: ClassVar[str]
    version: ClassVar[int] = 1
    title: ClassVar[str]
    """What it asks, in words for annotators"""
    offered_as: ClassVar[str]
    """What a marketplace offers it as, in words that strangers choose by; at most 128
    characters."""
    default_reward: ClassVar[str]
    default_seconds: ClassVar[int]
    default_extra: ClassVar[str] = "0.00"
    """What is paid besides for an answer that took more work (`earns_extra`)."""
    extra_reason: ClassVar[str] = "Your answer took more work"
    """What a worker of a marketplace reads of being paid that"""
    tolerance: ClassVar[float | None] = None
    """In which share of what it marks an answer may differ from the others before it counts as
    against them. None: answers are neither compared nor measured, since `units` does not take
    them apart."""
    lease_minutes: ClassVar[int] = 0
    """How long a question stays with somebody at least; 0 leaves it to the setting
    LEASE_MINUTES."""
    unit_names: ClassVar[Mapping[str, str]] = {}
    """What agreement is told of, by what its units are about, in words for admins"""
    published: ClassVar[Mapping[str, tuple[str, float]]] = {}
    """What agreement the literature reached with three people, by what its units are about: the
    measure and its value"""
    suggests_titles: ClassVar[bool] = False
    """Whether its page looks up titles while they are typed."""
    reads: ClassVar[str] = ""
    """What it asks for in a whole document: every `NAME`, or every `RELATION` between these
    (kbpo.tracks.recall); empty: it asks about one target alone"""
    seconds_each: ClassVar[float] = 0.0
    """Expected for each of the things that a document is paid by (`size`)"""
    source: ClassVar[str] = "crowd"
    """Of its labels"""
    telling: ClassVar[tuple[str, ...]] = ()
    """Parts of its labels' values that say something, where the rest tells how that came about: a
    label whose answers change these counts as changed"""
    is_staged: ClassVar[bool] = False
    """Whether a third person is asked only where the first two differ (`is_split`)"""
    criterion: ClassVar[str] = ""
    """Under which its answers say yes or no to what it asks (`asked`); empty: they are no such
    answers. Of what was asked about alone, what most deny does not hold; in whole documents what
    too few marked is missing and never false: people overlook things"""

    @property
    def template(self) -> str:
        """The template of its page."""
        return f"interfaces/{self.name}/page.html"

    @property
    def how(self) -> str:
        """The template of its instructions, which its page includes."""
        return self.template.replace("page.html", "how.html")

    def instructions(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the instructions show of a payload, where there is no question yet."""
        return {"guide": payload.get("guide", [])}

    @property
    def script(self) -> str:
        """The script of its page, among the static files."""
        return f"interfaces/{self.name}/page.js"

    @abstractmethod
    def render(self, question: Question, answer: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the template's context, from the question's payload alone; never who claimed what,
        never gold.

        `answer` is a raw answer (a draft, or one that was refused) to be shown as it was left.
        """

    @abstractmethod
    def whole(self, question: Question, text: str) -> dict[str, Any]:
        """Return the whole document with the question's marks: `text` and `marks` as (begin, end,
        role).
        """

    def other_targets(self, question: Question) -> list[int]:
        """Return the targets that a question asks about beside its own."""
        return []

    def answer_of(
        self, question: Question, values: Mapping[int, Mapping[str, Any]]
    ) -> dict[str, Any] | None:
        """Return the answer, as the form would send it, that says what these labels of its targets
        say, a step that they do not tell left open; None where they tell nothing.
        """
        return None

    @abstractmethod
    def parse(self, question: Question, raw: dict[str, Any]) -> list[ParsedResponse]:
        """Return the responses in a raw answer. Raises BadAnswer with a sentence for the worker."""

    @abstractmethod
    def aggregate(self, question: Question, responses: Sequence[Response]) -> list[AggregatedLabel]:
        """Return the labels that responses of different workers aggregate to (empty list if too few
        count).
        """

    def size(self, payload: Mapping[str, Any]) -> int:
        """Return how many things a question is paid for, one by one: of whole documents alone."""
        return 1

    def asked(self, question: Question) -> list[Asked]:
        """Return the targets of which a question asks what holds, yes or no of each thing."""
        return []

    def held(self, target: int, value: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
        """Return what holds by a judgment under `criterion`: target, as text -> parts."""
        return {}

    def value_of(
        self, shown: Sequence[str], holds: Sequence[str], votes: Mapping[str, int]
    ) -> dict[str, Any]:
        """Return the value of a label by which these of the parts that were shown hold."""
        return {}

    def choices(self, question: Question, raw: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the sentences that its page lets people choose from, each with its `pieces`, the
        parts that it stands for, in one word, and whether an answer has `chosen` it.
        """
        return []

    def sentences(self, payload: Mapping[str, Any]) -> dict[str, str]:
        """Return part -> words, of all that a question about one target asks yes or no of."""
        return {}

    def besides(self, payload: Mapping[str, Any]) -> dict[int, str]:
        """Return target -> words, of other things about which the same question asks something by
        itself.
        """
        return {}

    def joins_readers(self, payload: Mapping[str, Any]) -> bool:
        """Return whether a question asks alone what readers of a whole document were divided
        about.
        """
        return False

    def is_divided(self, said: Sequence[Said]) -> bool:
        """Return whether people are divided about one of these other things, by all that was said
        of it in answer to whatever question.
        """
        return False

    def is_split(self, question: Question, responses: Sequence[Response]) -> bool:
        """Return whether as many of these responses say one thing as say the other, so that one
        more would decide. Of whole documents nobody is asked for that.
        """
        return False

    def statements(self, question: Question, answer: Sequence[Judgment]) -> list[Statement]:
        """Return what an answer says, in words, in the order of the page. `answer` is what `parse`
        returned, or the same as it is stored. By default each unit is one.
        """
        statements = []
        for judgment in answer:
            for (subject, which), value in self.units(question, judgment):
                words = f"{subject.replace('_', ' ').capitalize()}: {value}"
                statements.append(Statement((subject, which, value), words))
        return statements

    def lines(self, question: Question, raw: dict[str, Any]) -> Lines:
        """Return what a raw answer says, to be held beside another to the same question. By default
        each unit is a line. Raises BadAnswer.
        """
        lines: Lines = {}
        judgments = self.parse(question, raw)
        units = [unit for judgment in judgments for unit in self.units(question, judgment)]
        for place, ((subject, which), value) in enumerate(units):
            if subject != "flag":
                lines[subject + value, (place, 0)] = self.line(question, subject, which, value)
        return lines

    def line(self, question: Question, what: str, which: str, value: str) -> str:
        """Return how a unit with what was said of it reads, in a line."""
        labels = {field["name"]: field["label"] for field in question.payload.get("fields", ())}
        return f"{labels[what]}: {value.lower()}"

    def earns_extra(self, judgments: Sequence[Judgment]) -> bool:
        """Return whether an answer, parsed, took the work that a question's extra pays for."""
        return False

    def doubts(self, judgments: Sequence[Judgment]) -> Iterator[Doubt]:
        """Yield what an answer, parsed, is held against: whether it looks like little work."""
        return iter(())

    def is_right(self, question: Question, given: Mapping[str, Any], right: Judgment) -> bool:
        """Return whether what somebody said in a tutorial is right; parts that the right answer
        leaves open do not count.
        """
        return all(given.get(name) == value for name, value in right.value.items())

    def units(self, question: Question, response: Judgment) -> Iterator[tuple[Unit, str]]:
        """Yield what people can agree on in a response, each with what was said of it. Units called
        "flag" are left out of measures of agreement. By default the whole value is one unit.
        """
        yield (
            (response.criterion, str(response.target_id)),
            json.dumps(response.value, sort_keys=True),
        )

    def measured(self, question: Question, response: Judgment) -> Iterator[tuple[Unit, str]]:
        """Yield the units in which agreement is measured, each with what was said of it: the same
        unless agreement is published in others.
        """
        return self.units(question, response)
