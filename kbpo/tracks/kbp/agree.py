"""Holds what an expert says of a pair or a mention against what counts of it now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kbpo.instances.models import Target
from kbpo.tracks.kbp.judge import wording
from kbpo.tracks.kbp.merge import ELSEWHERE, is_named

NEW = "none of those that were offered"
"""What a mention refers to that is none of the names"""


def agrees(
    target: Target, says: Mapping[str, Any], now: Mapping[str, Any], *, marked: bool = False
) -> bool:
    """Return whether an expert's answer about a pair or a mention agrees with the label that counts
    now. An answer about a predicate of a pair that was not asked, as in documents that were read in
    full (`marked`), cannot disagree.
    """
    if marked and says.get("holds") and not now.get("shown"):
        return False  # most of those who read the document marked nothing there
    both = set(says.get("shown", ())) & set(now.get("shown", ()))
    if set(says.get("holds", ())) & both != set(now.get("holds", ())) & both:
        return False
    if not (is_named(says) and is_named(now)):
        return True
    return same_name(target.its_document.text, says, now)


def same_name(text: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two values of a mention have the same canonical mention, or two with the same
    words in any capitals (each wording is offered once), or both have none of the names.
    """
    if ELSEWHERE in one or ELSEWHERE in other:
        return ELSEWHERE in one and ELSEWHERE in other
    (a, b), (c, d) = one["canonical"], other["canonical"]
    return bool((a, b) == (c, d) or wording(text, (a, b)) == wording(text, (c, d)))


def compare_references(
    target: Target, now: Mapping[str, Any], says: Mapping[str, Any]
) -> tuple[str, str, bool] | None:
    """Return the reference of a mention: the one that counts now, the expert's, and whether they
    are the same; None where one of them is missing.
    """
    if not (is_named(now) and is_named(says)):
        return None
    text = target.its_document.text
    spans = now.get("canonical"), says.get("canonical")
    ours, theirs = (text[span[0] : span[1]] if span else NEW for span in spans)
    return ours, theirs, same_name(text, now, says)
