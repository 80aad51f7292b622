"""Merges the labels of one target into the value that counts now."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kbpo.instances.models import Label

RANK = {source: rank for rank, source in enumerate(Label.PRECEDENCE)}


def merged(labels: Iterable[Label]) -> dict[str, Any]:
    """The value of a target, given all its labels: for each part the highest source decides, then the newest label.

    A pair's parts are the directed predicates that were shown; every other value counts whole. Labels that were given
    up are empty, so that they never hide a judgment.
    """
    value: dict[str, Any] = {}
    shown: dict[str, bool] = {}
    for label in sorted(labels, key=lambda one: (-RANK[one.source], one.created_at, one.pk)):
        if not label.value:
            continue
        holds = set(label.value.get("holds", ()))
        shown.update({part: part in holds for part in label.value.get("shown", ())})
        value.update(label.value)
    if shown:
        value |= {"shown": sorted(shown), "holds": sorted(part for part, true in shown.items() if true)}
    return value
