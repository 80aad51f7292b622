"""Compares answers to one question statement by statement."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from annotation.interfaces.base import Interface, Judgment, Statement

if TYPE_CHECKING:
    from annotation.models import Question

Answer = Sequence[Judgment]
Mark = tuple[int, int, str] | tuple[int, int, str, str]
"""Begin, end, role, and the numbers of its lines"""


@dataclass(frozen=True)
class Line:
    """One statement, with who made it: the answer, the right answer (None: unknown), and the number
    of other answers.
    """

    number: int
    words: str
    yours: bool
    right: bool | None
    others: int
    of: int

    @property
    def is_different(self) -> bool:
        """Return whether the right answer, or else the majority of the others, differs."""
        if self.right is not None:
            return self.yours != self.right
        return self.of > 0 and self.yours != (2 * self.others > self.of)


@dataclass(frozen=True)
class SideBySide:
    """A text with numbered positions, and the statements about it."""

    text: str
    marks: list[Mark]
    lines: list[Line]
    numbered: bool
    """Whether the marks carry the numbers of the lines"""
    of: int = 0
    """Number of other answers"""
    knows_right: bool = False
    title: str = ""

    @property
    def differing_lines(self) -> list[Line]:
        """Return the statements that differ."""
        return [line for line in self.lines if line.is_different]


def side_by_side(
    interface: Interface,
    question: Question,
    answer: Answer,
    right: Answer | None = None,
    other_answers: Sequence[Answer] = (),
) -> SideBySide:
    """Compare an answer with the right one and with those of others, statement by statement in text
    order. Statements that only a minority of the others makes are left out, and optional ones are
    not compared.
    """
    yours = _statements_by_key(interface.statements(question, answer))
    ours = _statements_by_key(interface.statements(question, right or ()))
    votes: Counter[tuple[str, ...]] = Counter()
    theirs: dict[tuple[str, ...], Statement] = {}
    for other in other_answers:
        of_other = _statements_by_key(interface.statements(question, other))
        votes.update(of_other.keys())
        theirs |= of_other
    most = {
        key: statement for key, statement in theirs.items() if 2 * votes[key] > len(other_answers)
    }
    shown = []
    for key, statement in {**most, **ours, **yours}.items():
        if key in yours or not statement.optional:
            shown.append(statement)
    ordered = sorted(shown, key=lambda statement: min(statement.places, default=(-1, -1)))
    page = interface.render(question)
    lines = []
    for number, statement in enumerate(ordered, start=1):
        key, is_held = statement.key, not statement.optional
        line = Line(
            number,
            statement.words,
            key in yours,
            key in ours if is_held and right is not None else None,
            votes[key],
            len(other_answers) if is_held else 0,
        )
        lines.append(line)
    return SideBySide(
        text=page.get("text", ""),
        marks=page.get("marks") or _number_positions(ordered),
        lines=lines,
        numbered=not page.get("marks") and any(statement.places for statement in ordered),
        of=len(other_answers),
        knows_right=right is not None,
        title=page.get("title", ""),
    )


def _statements_by_key(statements: Sequence[Statement]) -> dict[tuple[str, ...], Statement]:
    return {statement.key: statement for statement in statements}


def _number_positions(statements: Sequence[Statement]) -> list[Mark]:
    """Return the positions of statements with the numbers of the statements at each."""
    numbers: dict[tuple[int, int], list[str]] = defaultdict(list)
    for number, row in enumerate(statements, start=1):
        for place in row.places:
            numbers[place].append(str(number))
    return [
        (begin, end, "other", ", ".join(labels)) for (begin, end), labels in sorted(numbers.items())
    ]
