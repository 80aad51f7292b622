"""Reads the rule of a slice: which predictions lie in it and how they are weighted, as JSON that
says nothing else.

    {"predicate": ["per:parents"], "subject_type": ["PER"], "object_type": ["GPE"], "confidence":
    [0.5, 1.0],
     "frequency": ["low"], "same_sentence": true, "document": "nyt-", "date": ["2013-01-01",
     "2013-12-31"], "weight": "relation"}

Every key may be missing; those that are there must all hold. The weight is a distribution of the
track, "confidence" (each prediction counts as much as its system is sure of it), or a table of
numbers, which any trait of a prediction can have: {"predicate": {"per:parents": 3, "per:spouse":
1.5}, "other": 0.5}.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from scoring.slices import CONFIDENCE

LONGEST = 200
HEAVIEST = 1e6


class BadRule(ValueError):
    """A rule that cannot be used; the text is a sentence for its author."""


@dataclass(frozen=True)
class Table:
    """Weights by a trait of the prediction."""

    trait: str
    """One of those by which slices of its kind of track are cut"""
    weight: tuple[tuple[str, float], ...]
    other: float = 0.0
    """Of everything that is not named"""

    def as_json(self) -> dict[str, Any]:
        """The table as it is stored."""
        return {self.trait: dict(self.weight)} | ({"other": self.other} if self.other else {})


@dataclass(frozen=True)
class Rule:
    """What a prediction must be to lie in a slice; an empty part asks for nothing."""

    names: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """A trait, and the names of which its own must be one"""
    confidence: tuple[float, float] | None = None
    """Both ends belong to it; a system that gives no confidences is sure of everything"""
    same_sentence: bool | None = None
    document: str = ""
    """How the document's id begins"""
    date: tuple[str, str] | None = None
    """First and last day, both of it, on which the document may be dated; one without a date is
    on none"""
    weight: str | Table = field(kw_only=True)
    """What the predictions in the slice are weighted by: a distribution, the confidences, or a
    table"""

    @property
    def only(self) -> tuple[str, str] | None:
        """The trait and its name, if the rule asks for one name and for nothing else: where that is
        a stratum, it is known what nobody predicted of it.
        """
        if len(self.as_json()) != 2 or len(self.names) != 1:
            return None
        [(trait, names)] = self.names
        return (trait, names[0]) if len(names) == 1 else None

    def as_json(self) -> dict[str, Any]:
        """The rule as it is stored: without the parts that ask for nothing."""
        values = dict(self.names) | {name: getattr(self, name) for name in _PARTS}
        kept = {name: value for name, value in values.items() if value not in ((), None, "")}
        lists = {
            name: list(value) if isinstance(value, tuple) else value for name, value in kept.items()
        }
        return lists | {
            "weight": self.weight.as_json() if isinstance(self.weight, Table) else self.weight
        }


def parse(text: str) -> Any:
    """The JSON of a text. Raises BadRule."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise BadRule(f"This is no JSON: {problem}.") from problem


def read(raw: Any, *, traits: Mapping[str, Collection[str]], weights: Collection[str]) -> Rule:
    """The rule that a JSON object stands for, checked against a track's distributions and the names
    of each trait by which its slices are cut. Raises BadRule.
    """
    if not isinstance(raw, dict):
        raise BadRule(f"A rule is a JSON object, for example {json.dumps(example(traits))}.")
    parts = [*traits, *_PARTS, "weight"]
    unknown = sorted(set(raw) - set(parts))
    if unknown:
        raise BadRule(f"A rule has no part “{unknown[0][:40]}”; it has {', '.join(parts)}.")
    rule = Rule(
        names=tuple((trait, _names(raw, trait, traits[trait])) for trait in traits if trait in raw),
        confidence=_range(raw),
        same_sentence=_flag(raw),
        document=_prefix(raw),
        date=_days(raw),
        weight=_weight(raw.get("weight", next(iter(weights))), weights, traits),
    )
    if len(rule.as_json()) == 1 and "weight" not in raw:
        raise BadRule("This rule asks for nothing: name at least one part.")
    return rule


_PARTS = ("confidence", "same_sentence", "document", "date")
"""Besides the names of traits, and the weight"""


def example(traits: Mapping[str, Collection[str]]) -> dict[str, list[str]]:
    """A rule that asks for one name of the first trait that has any; empty if none has."""
    named = {trait: list(names)[:1] for trait, names in traits.items() if names}
    return dict(list(named.items())[:1])


def _names(raw: dict[str, Any], key: str, allowed: Collection[str]) -> tuple[str, ...]:
    values = raw[key]
    if (
        not isinstance(values, list)
        or not values
        or not all(isinstance(value, str) for value in values)
    ):
        raise BadRule(f"{key} must be a list of names; got {_shown(values)}.")
    for name in values:
        if name not in allowed:
            examples = ", ".join(sorted(allowed)[:6])
            raise BadRule(
                f"This track has no {key.replace('_', ' ')} “{name[:60]}”; it has {examples} …"
            )
    return tuple(dict.fromkeys(values))


def _range(raw: dict[str, Any]) -> tuple[float, float] | None:
    if "confidence" not in raw:
        return None
    ends = raw["confidence"]
    numbers = (
        isinstance(ends, list) and len(ends) == 2 and all(type(end) in (int, float) for end in ends)
    )
    if not numbers or not 0 <= ends[0] <= ends[1] <= 1:
        raise BadRule(
            f"confidence must be two numbers from 0 to 1, the lower first; got {_shown(ends)}."
        )
    return float(ends[0]), float(ends[1])


def _flag(raw: dict[str, Any]) -> bool | None:
    value = raw.get("same_sentence")
    if value is not None and not isinstance(value, bool):
        raise BadRule(f"same_sentence must be true or false; got {_shown(value)}.")
    return value


def _prefix(raw: dict[str, Any]) -> str:
    value = raw.get("document", "")
    if not isinstance(value, str) or len(value) > LONGEST or "\x00" in value:
        raise BadRule(f"document must be the beginning of a document's id; got {_shown(value)}.")
    return value


def _days(raw: dict[str, Any]) -> tuple[str, str] | None:
    if "date" not in raw:
        return None
    ends = raw["date"]
    try:
        earlier, later = (date.fromisoformat(end).isoformat() for end in ends)
    except (TypeError, ValueError):
        earlier, later = "1", "0"
    if not isinstance(ends, list) or earlier > later:
        raise BadRule(
            f"date must be two days like 2013-03-17, the earlier first; got {_shown(ends)}."
        )
    return earlier, later


def _weight(raw: Any, kinds: Collection[str], tables: Mapping[str, Collection[str]]) -> str | Table:
    if isinstance(raw, dict):
        return _table(raw, tables)
    if not isinstance(raw, str) or raw not in (*kinds, CONFIDENCE):
        weightings = ", ".join((*kinds, CONFIDENCE))
        raise BadRule(
            f"weight must be one of {weightings}, or a table of numbers; got {_shown(raw)}."
        )
    return raw


def _table(raw: dict[str, Any], tables: Mapping[str, Collection[str]]) -> Table:
    traits = sorted(set(raw) - {"other"})
    if len(traits) != 1 or traits[0] not in tables or not isinstance(raw[traits[0]], dict):
        raise BadRule(
            f"A table of weights names one of {', '.join(tables)} and gives numbers for its names,"
            f" for example {json.dumps(table_example(tables))}; got {_shown(raw)}."
        )
    trait = traits[0]
    names = _names({trait: list(raw[trait])}, trait, tables[trait])
    weight = tuple((name, _number(name, raw[trait][name])) for name in names)
    table = Table(trait, weight, _number("other", raw.get("other", 0)))
    if not table.other and not any(number for _, number in weight):
        raise BadRule("A table of weights needs a number above 0: else nothing counts.")
    return table


def table_example(tables: Mapping[str, Collection[str]]) -> dict[str, Any]:
    """A table that gives a number for one name."""
    weights = {trait: dict.fromkeys(names, 3) for trait, names in example(tables).items()}
    return {**weights, "other": 1}


def _number(name: str, value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value <= HEAVIEST:
        raise BadRule(
            f"The weight of {name} must be a number from 0 to {HEAVIEST:,.0f}; got {_shown(value)}."
        )
    return float(value)


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:60]
