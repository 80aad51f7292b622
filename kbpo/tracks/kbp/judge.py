"""Works out whether predictions are right, from the values of labels: f_i(x) under each
criterion.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbpo.instances.models import Target
from kbpo.tracks.kbp.merge import CLUSTER, ELSEWHERE, OFFERED, is_named, is_open

Span = tuple[int, int]
MOST = 8
"""Names that people see for one mention, at most"""


class Clusters:
    """Which mentions of one document are settled to be the same thing, from the labels of its
    mention targets; where they are to be shown these are kept, too.
    """

    def __init__(
        self, text: str, values: Mapping[Span, Mapping[str, Any]], *, keeps: bool = False
    ) -> None:
        self.text = text
        self.values = values if keeps else {}
        self.canonical: dict[Span, Span] = {
            span: (value["canonical"][0], value["canonical"][1])
            for span, value in values.items()
            if value.get("canonical")
        }
        self.elsewhere = {span for span, value in values.items() if value.get(ELSEWHERE)}
        self.canonical |= {span: span for span in self.elsewhere}
        self.cluster: dict[Span, Span] = {
            span: (value[CLUSTER][0], value[CLUSTER][1])
            for span, value in values.items()
            if value.get(CLUSTER) and span not in self.canonical
        }
        """Of what readers left undecided, the mention that stands for its cluster"""
        self.offered: dict[Span, list[Span]] = {
            span: [(begin, end) for begin, end in value[OFFERED]]
            for span, value in values.items()
            if is_open(value)
        }

    def root(self, span: Span) -> Span | None:
        """Return the canonical mention of a span according to the labels, followed recursively; the
        span itself if it refers to none of the names that annotators saw; None if it has no label,
        or annotators disagreed.
        """
        return _end_of(self.canonical, span)

    def cluster_of(self, span: Span) -> Span | None:
        """Return the canonical mention of a span's cluster, also where readers disagreed on its
        reference; None if it has no label.
        """
        return _end_of(self.cluster | self.canonical, span)

    def refers(self, span: Span, claimed: Span) -> float:
        """Return 1.0 if `span` refers to the same as `claimed`, 0.0 if not, NaN if `span` has no
        label, if annotators disagreed, or found no name right, or saw its own alone, and did not
        see `claimed`, or readers disagreed on the reference of `claimed`.

        Linking is earned (Chaganty 2018, section 3.6.2). Right is the settled canonical mention,
        and what reads like it: pages offer each wording once, so that people cannot tell these
        apart. Right too is another mention of the same settled cluster, if it names the thing as
        well as the canonical one does (`name_class`). That a mention is its own canonical one is
        right only where people say so.
        """
        settled = self.root(span)
        if settled is None:
            return nan
        nowhere = span in self.elsewhere
        if self._reads_like(claimed, settled) and not nowhere:
            return 1.0
        if claimed == span:
            return 0.0
        if span in self.offered and was_not_offered(self.text, claimed, self.offered[span]):
            return nan
        if nowhere:
            return 0.0
        if self._class_of(claimed) < self._class_of(settled):
            return 0.0
        root = self.cluster_of(claimed)
        if root is not None and self._reads_like(root, settled):
            return 1.0
        return nan if claimed in self.cluster else 0.0

    def _reads_like(self, span: Span, other: Span) -> bool:
        return span == other or wording(self.text, span) == wording(self.text, other)

    def _class_of(self, span: Span) -> int:
        return name_class(unicodedata.normalize("NFC", self.text[span[0] : span[1]]))


def _end_of(leads: Mapping[Span, Span], span: Span) -> Span | None:
    """Return where a chain of spans ends, the first span of a circle; None if nothing leads on."""
    seen: set[Span] = set()
    at = span
    while at in leads and at not in seen:
        seen.add(at)
        at = leads[at]
    if not seen:
        return None
    return min(seen) if at in seen and leads[at] != at else at


PRONOUN, NOMINAL, NAME = range(3)
PRONOUNS = {
    "i", "me", "my", "mine", "myself", "we", "us", "our", "ours", "ourselves", "you", "your",
    "yours", "yourself", "yourselves", "he", "him", "his", "himself", "she", "her", "hers",
    "herself", "it", "its", "itself", "they", "them", "their", "theirs", "themselves", "one",
    "oneself", "who", "whom", "whose", "which", "that", "this", "these", "those",
}  # fmt: skip
DETERMINERS = {
    "the", "a", "an", "this", "that", "these", "those", "my", "our", "your", "his", "her", "its",
    "their",
}  # fmt: skip


def wording(text: str, span: Span) -> str:
    """Return the words of a span, alike however they are spaced and whether or not they are in
    capitals.

    A heading writes the same name in capitals. Pronouns stay as they are: "us" is not "US".
    """
    words = " ".join(unicodedata.normalize("NFC", text[span[0] : span[1]]).split())
    folded = unicodedata.normalize("NFC", words.casefold())
    return words if folded in PRONOUNS else folded


def was_not_offered(text: str, claimed: Span, offered: Sequence[Span]) -> bool:
    """Return whether people could not pick a name, given those that they saw, and would see it if
    they were asked again.
    """
    words = wording(text, claimed)
    seen = {wording(text, span) for span in offered}
    return bool(words) and words not in seen and len(seen) < MOST


def name_class(gloss: str) -> int:
    """Return how well words name a thing: a name (2) over a nominal (1) over a pronoun (0).

    Read off the words, since files and pages do not say it: an English pronoun; else a name if a
    word after determiners has a capital or a digit, or is of a script without capitals.
    """
    words = gloss.split()
    if " ".join(words).casefold() in PRONOUNS:
        return PRONOUN
    while len(words) > 1 and words[0].casefold() in DETERMINERS:
        words = words[1:]
    for word in words:
        if any(not letter.islower() and letter.isalnum() for letter in word):
            return NAME
    return NOMINAL


@dataclass(frozen=True)
class JudgedRow:
    """A prediction on a target that has a label.

    `value` is the merged value of its pair target ({} if there is none); `forward` says that the
    subject is the target's first mention; `clusters` are the settled clusters of its document;
    `closed` says that the document was annotated whole and that what was not marked there is false.
    """

    predicate: str
    forward: bool
    value: Mapping[str, Any]
    subject: Span
    object: Span
    subject_canonical: Span
    object_canonical: Span
    clusters: Clusters
    closed: bool = False


def judge(rows: Sequence[JudgedRow]) -> dict[str, NDArray[np.float64]]:
    """Return right (1.0), wrong (0.0) or missing (NaN) under `relation`, `linking` and `correct`,
    one entry a row.

    `correct` is missing where either part is: if a wrong relation alone could settle it, what is
    missing would depend on what is right, and the mean of the rest would be too low.
    """
    relation = np.fromiter((holds(row) for row in rows), dtype=np.float64, count=len(rows))
    linking = np.fromiter((links(row) for row in rows), dtype=np.float64, count=len(rows))
    return {"relation": relation, "linking": linking, "correct": relation * linking}


def holds(row: JudgedRow) -> float:
    """Return 1.0 if the predicate holds in the prediction's direction, 0.0 if not, NaN if it was
    not asked.
    """
    part = directed_name(row.predicate, row.forward)
    if part in row.value.get("shown", ()):
        return float(part in row.value["holds"])
    return 0.0 if row.closed else nan


def links(row: JudgedRow) -> float:
    """Return 1.0 if both links of the prediction are right, 0.0 if one is wrong, NaN if a mention
    has no label.
    """
    subject = row.clusters.refers(row.subject, row.subject_canonical)
    return subject * row.clusters.refers(row.object, row.object_canonical)


def directed_name(predicate: str, forward: bool) -> str:
    """Return the name of a predicate with its direction over the target's two mentions, as labels
    hold it.
    """
    return predicate + (">" if forward else "<")


def directed_names(predictions: Iterable[tuple[str, bool]]) -> set[str]:
    """Return the directed predicates that must be shown so that all these (predicate, forward) can
    be judged.
    """
    return {directed_name(predicate, forward) for predicate, forward in predictions}


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
