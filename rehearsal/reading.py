"""Answers of a simulated worker about whole documents: marked mentions, and relations of pairs."""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

Span = tuple[int, int]
YEAR = re.compile(r"\b(1\d{3}|20\d{2})\b")


class Mention(Protocol):
    """The truth about a mention: its type, its entity's number in the document, its title ("" for
    none).
    """

    @property
    def type(self) -> str: ...
    @property
    def entity_number(self) -> int: ...
    @property
    def link(self) -> str: ...


Finds = Callable[[str], Mapping[Span, Mention]]
"""document -> its true mentions"""
Holds = Callable[[str, Span, Span], Iterable[tuple[str, str]]]
"""document, A, B -> relations that hold: (predicate, ">" from A to B or "<")"""


def marked_mentions(
    page: Mapping[str, Any],
    document: str,
    finds: Finds,
    recall: float,
    accuracy: float,
    rng: random.Random,
) -> str:
    """Return the mentions that a worker sends: each true one with probability `recall`, its type
    right with probability `accuracy`.
    """
    begins = {begin for begin, _ in page["tokens"]}
    ends = {end for _, end in page["tokens"]}
    types = {page_type["name"]: page_type["value"] for page_type in page["types"]}
    clusters: dict[tuple[Any, ...], list[Span]] = defaultdict(list)
    links: dict[tuple[Any, ...], str] = {}
    last = -1
    for span, mention in sorted(finds(document).items()):
        is_whole = span[0] in begins and span[1] in ends
        if not is_whole or span[0] < last or mention.type not in types or rng.random() >= recall:
            continue
        kind = mention.type if rng.random() < accuracy else rng.choice(sorted(types))
        key: tuple[Any, ...] = (mention.entity_number, kind)
        if types[kind] is not None:
            key = (*key, span)
        clusters[key].append(span)
        links[key] = mention.link or "none"
        last = span[1]
    sent = [
        _mention(page["text"], span, key[1], types[key[1]], spans, links[key])
        for key, spans in clusters.items()
        for span in spans
    ]
    return json.dumps(sorted(sent, key=lambda mention: mention["span"]))


def _mention(
    text: str, span: Span, kind: str, value: str | None, spans: list[Span], link: str
) -> dict[str, Any]:
    name = min(spans, key=lambda one: (one[0] - one[1], one))  # the first longest
    mention: dict[str, Any] = {"span": list(span), "type": kind, "canonical": list(name)}
    if value == "date":
        year = YEAR.search(text[span[0] : span[1]])
        mention["value"] = year.group() if year else "none"
    elif value is None and span == name:
        mention["link"] = link
    return mention


def pair_answers(
    page: Mapping[str, Any],
    document: str,
    holds: Holds,
    accuracy: float,
    rng: random.Random,
) -> str:
    """Return a worker's answer about each pair of mentions, wrong with probability 1 - accuracy."""
    chosen_of = {}
    for number, (a, b, options, _) in enumerate(page["pairs"]):
        first, second = (tuple(page["mentions"][place]["span"]) for place in (a, b))
        true = {f"{name}{direction}" for name, direction in holds(document, first, second)}
        offered = [option["part"] for option in page["options"][options]]
        chosen = [part for part in offered if true.intersection(part.split())]
        if rng.random() >= accuracy:
            chosen = wrong_relations(offered, chosen, rng)
        chosen_of[str(number)] = chosen
    return json.dumps(chosen_of)


def wrong_relations(
    offered_predicates: Sequence[str], holds: Collection[str], rng: random.Random
) -> list[str]:
    """Return a wrong answer about a pair: the true relations with one more, or one fewer."""
    part = rng.choice(offered_predicates)
    return [
        relation for relation in offered_predicates if (relation in holds) != (relation == part)
    ]


def wrong_referent(candidates: Sequence[str], chosen: str, rng: random.Random) -> str:
    """Return a wrong candidate for the referent of a mention, if there is one; otherwise the chosen
    one.
    """
    wrong = [candidate for candidate in candidates if candidate != chosen]
    return rng.choice(wrong) if wrong else chosen
