"""How a simulated worker answers about whole documents: what they mark in a page, and what they say
of its pairs.
"""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Protocol

from rehearsal.bias import NONE, mistaken

Span = tuple[int, int]
YEAR = re.compile(r"\b(1\d{3}|20\d{2})\b")


class Mention(Protocol):
    """What is true of a mention: its type, the number of its entity in the document, its title (""
    for none).
    """

    @property
    def type(self) -> str: ...
    @property
    def cluster(self) -> int: ...
    @property
    def link(self) -> str: ...


Finds = Callable[[str], Mapping[Span, Mention]]
"""document -> its true mentions"""
Holds = Callable[[str, Span, Span], Iterable[tuple[str, str]]]
"""document, A, B -> what holds: (predicate, ">" from A to B or "<")"""


def marks(
    page: Mapping[str, Any],
    document: str,
    finds: Finds,
    recall: float,
    accuracy: float,
    rng: random.Random,
    told: Collection[str] | None = None,
) -> str:
    """The mentions that a worker sends: each true one with probability `recall`, its type right
    with `accuracy`; those alone whose type they were `told` to mark, if it matters.
    """
    begins = {begin for begin, _ in page["tokens"]}
    ends = {end for _, end in page["tokens"]}
    types = {one["name"]: one["value"] for one in page["types"]}
    clusters: dict[tuple[Any, ...], list[Span]] = defaultdict(list)
    links: dict[tuple[Any, ...], str] = {}
    last = -1
    for span, known in sorted(finds(document).items()):
        if (
            span[0] not in begins
            or span[1] not in ends
            or span[0] < last
            or known.type not in types
        ):
            continue
        if rng.random() >= recall or (told is not None and known.type not in told):
            continue
        kind = known.type if rng.random() < accuracy else rng.choice(sorted(types))
        key: tuple[Any, ...] = (
            (known.cluster, kind) if types[kind] is None else (known.cluster, kind, span)
        )
        clusters[key].append(span)
        links[key] = known.link or "none"
        last = span[1]
    sent = [
        _mention(page["text"], span, key[1], types[key[1]], spans, links[key])
        for key, spans in clusters.items()
        for span in spans
    ]
    return json.dumps(sorted(sent, key=lambda one: one["span"]))


def _mention(
    text: str, span: Span, kind: str, value: str | None, spans: list[Span], link: str
) -> dict[str, Any]:
    name = min(spans, key=lambda one: (one[0] - one[1], one))  # the first longest
    found: dict[str, Any] = {"span": list(span), "type": kind, "canonical": list(name)}
    if value == "date":
        year = YEAR.search(text[span[0] : span[1]])
        found["value"] = year.group() if year else "none"
    elif value is None and span == name:
        found["link"] = link
    return found


def pairs(
    page: Mapping[str, Any],
    document: str,
    holds: Holds,
    accuracy: float,
    rng: random.Random,
    bias: str = NONE,
) -> str:
    """What a worker says of each pair: the truth, or where they err a mistake as their bias has
    it.
    """
    said = {}
    for number, (a, b, options, _) in enumerate(page["pairs"]):
        spans = [
            (one["span"][0], one["span"][1]) for one in (page["mentions"][a], page["mentions"][b])
        ]
        true = {f"{name}{direction}" for name, direction in holds(document, spans[0], spans[1])}
        offered = [option["part"] for option in page["options"][options]]
        chosen = [part for part in offered if true.intersection(part.split())]
        if rng.random() >= accuracy:
            chosen = mistaken(offered, chosen, bias, rng)
        said[str(number)] = chosen
    return json.dumps(said)
