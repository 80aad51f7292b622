"""Merges the labels of one target into the value that counts now."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from typing import Any

from kbpo.corpus.fetch import fetch
from kbpo.instances.models import Label

Value = dict[str, Any]
RANK = {source: rank for rank, source in enumerate(Label.PRECEDENCE)}
ORDER = "array_position(%s::text[], l.source::text) DESC, l.created_at, l.id"
"""From the weakest label of a target to the one that decides"""
PUBLIC = " AND l.public_at <= statement_timestamp()"
"""What everybody may see"""


def merged(labels: Iterable[Label]) -> Value:
    """The value of a target, given all its labels: for each part the highest source decides, then the newest label.

    A pair's parts are the directed predicates that were shown; every other value counts whole. Labels that were given
    up are empty, so that they never hide a judgment.
    """
    ordered = sorted(labels, key=lambda one: (-RANK[one.source], one.created_at, one.pk))
    return _merged(label.value for label in ordered)


def values_of(targets: Collection[int], *, public: bool = False) -> Iterator[tuple[int, Value, bool]]:
    """The targets that have a label (a public one), with the value that counts and whether somebody asked in vain."""
    rows = fetch(
        f"SELECT l.target_id, l.value FROM instances_label l WHERE l.target_id = ANY(%s){PUBLIC if public else ''}"
        f" ORDER BY l.target_id, {ORDER}",
        [list(targets), list(Label.PRECEDENCE)],
    )
    for target, group in groupby(rows, key=lambda row: row[0]):
        values = [json.loads(row[1]) for row in group]
        yield target, _merged(values), not all(values)


def values_inside(
    documents: Collection[int], kind: str, *, public: bool = False
) -> Iterator[tuple[int, tuple[int, int], Value]]:
    """Document, first span and value that counts of every target of a kind that has a (public) label, in documents."""
    rows = fetch(
        "SELECT l.target_id, l.value, t.document_id, t.a_begin, t.a_end FROM instances_target t"
        " JOIN instances_label l ON l.target_id = t.id WHERE t.document_id = ANY(%s) AND t.kind = %s"
        f"{PUBLIC if public else ''} ORDER BY l.target_id, {ORDER}",
        [list(documents), kind, list(Label.PRECEDENCE)],
    )
    for _, group in groupby(rows, key=lambda row: row[0]):
        some = list(group)
        yield some[0][2], (some[0][3], some[0][4]), _merged(json.loads(row[1]) for row in some)


def _merged(values: Iterable[Value]) -> Value:
    value: Value = {}
    shown: dict[str, bool] = {}
    for one in values:
        if not one:
            continue
        holds = set(one.get("holds", ()))
        shown.update({part: part in holds for part in one.get("shown", ())})
        value.update(one)
    if shown:
        value |= {"shown": sorted(shown), "holds": sorted(part for part, true in shown.items() if true)}
    return value
