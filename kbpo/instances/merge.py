"""Merges the labels of one target into the value that counts now.

What most people said stands in the place of what was said before; single ratings join those that
there are, since each is a draw of its own from what people think.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from typing import Any, TypeVar

from kbpo.corpus.fetch import fetch
from kbpo.instances.models import Label

T = TypeVar("T")
Value = dict[str, Any]
AGAIN = "/again-"
"""In an origin: the label was made again, and stands in the place of all that its origin had
said of the target"""
RATINGS = "ratings"
"""The part of a value that holds single ratings: criterion -> a list, one entry a person"""
RANK = {source: rank for rank, source in enumerate(Label.PRECEDENCE)}
ORDER = "array_position(%s::text[], l.source::text) DESC, l.created_at, l.id"
"""From the weakest label of a target to the one that decides"""
PUBLIC = " AND l.public_at <= statement_timestamp()"
"""What everybody may see"""
IN_PLACE = f"""
    NOT EXISTS (SELECT 1 FROM instances_label later WHERE later.target_id = l.target_id
                AND position('{AGAIN}' IN later.origin) > 0
                AND split_part(later.origin, '/', 1) = split_part(l.origin, '/', 1)
                AND (later.created_at, later.id) > (l.created_at, l.id))
"""
"""A label l in whose place no other was made"""


def root(origin: str) -> str:
    """What a label came from, without how often or by what method it was made since."""
    return origin.split("/")[0]


def in_place(labels: Iterable[tuple[T, str]]) -> list[T]:
    """Of labels of one target with their origins, in their order, those that no other was made in
    the place of. What was made again stands where its origin stood first, so that it hides nothing
    that had hidden it.
    """
    rows = list(labels)
    if not any(AGAIN in origin for _, origin in rows):
        return [label for label, _ in rows]
    found: dict[str, list[T]] = {}
    for label, origin in rows:
        if AGAIN in origin:
            found.setdefault(root(origin), []).clear()
        found.setdefault(root(origin), []).append(label)
    return [label for some in found.values() for label in some]


def standing(labels: Iterable[Label]) -> list[Label]:
    """Of labels of any targets, those that no other was made in the place of."""
    by_target: dict[int, list[tuple[Label, str]]] = {}
    for one in sorted(labels, key=lambda one: (one.created_at, one.pk)):
        by_target.setdefault(one.target_id, []).append((one, one.origin))
    return [label for some in by_target.values() for label in in_place(some)]


def merged(labels: Iterable[Label]) -> Value:
    """The value of a target, given all its labels: for each part the highest source decides, then
    the newest label.

    A pair's parts are the directed predicates that were shown; every other value counts whole.
    Labels that were given up are empty, so that they never hide a judgment; but of what was made
    again the last alone counts.
    """
    ordered = sorted(labels, key=lambda one: (-RANK[one.source], one.created_at, one.pk))
    return _merged(in_place((label.value, label.origin) for label in ordered))


def values_of(
    targets: Collection[int], *, public: bool = False
) -> Iterator[tuple[int, Value, bool]]:
    """The targets that have a label (a public one), with the value that counts and whether somebody
    asked in vain.
    """
    rows = fetch(
        "SELECT l.target_id, l.value, l.origin, l.source FROM instances_label l"
        f" WHERE l.target_id = ANY(%s){PUBLIC if public else ''}"
        f" ORDER BY l.target_id, {ORDER}",
        [list(targets), list(Label.PRECEDENCE)],
    )
    for target, group in groupby(rows, key=lambda row: row[0]):
        said = in_place(((json.loads(row[1]), row[3]), row[2]) for row in group)
        # A mark that was taken back asked nobody.
        in_vain = any(not value and source != Label.Source.DOCUMENT for value, source in said)
        yield target, _merged(value for value, _ in said), in_vain


def values_inside(
    documents: Collection[int], kind: str, *, public: bool = False
) -> Iterator[tuple[int, tuple[int, int], Value]]:
    """Document, first span and value that counts of every target of a kind that has a (public)
    label, in documents.
    """
    rows = fetch(
        "SELECT l.target_id, l.value, t.document_id, t.a_begin, t.a_end, l.origin FROM"
        " instances_target t JOIN instances_label l ON l.target_id = t.id WHERE t.document_id ="
        f" ANY(%s) AND t.kind = %s{PUBLIC if public else ''} ORDER BY l.target_id, {ORDER}",
        [list(documents), kind, list(Label.PRECEDENCE)],
    )
    for _, group in groupby(rows, key=lambda row: row[0]):
        some = list(group)
        yield (
            some[0][2],
            (some[0][3], some[0][4]),
            _merged(in_place((json.loads(row[1]), row[5]) for row in some)),
        )


def _merged(values: Iterable[Value]) -> Value:
    value: Value = {}
    shown: dict[str, bool] = {}
    ratings: dict[str, list[float]] = {}
    for one in values:
        if not one:
            continue
        holds = set(one.get("holds", ()))
        shown.update({part: part in holds for part in one.get("shown", ())})
        for criterion, some in one.get(RATINGS, {}).items():
            ratings.setdefault(criterion, []).extend(some)
        value.update(one)
    if ratings:
        value[RATINGS] = ratings
    if shown:
        value |= {
            "shown": sorted(shown),
            "holds": sorted(part for part, true in shown.items() if true),
        }
    return value
