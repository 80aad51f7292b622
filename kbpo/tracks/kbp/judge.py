"""Decides whether predictions are right, from the values of labels: f_i(x) under each criterion."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbpo.instances.models import Target
from kbpo.tracks.kbp.merge import (
    CLUSTER,
    ELSEWHERE,
    OFFERED,
    has_majority_reference,
    may_refer_to_unseen_name,
)

Span = tuple[int, int]
MOST = 8
"""Greatest number of names that people see for one mention"""


class Clusters:
    """The coreferent mentions of one document, from the labels of its mention targets; the labels
    are kept if they are to be shown.
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
        """Mention that readers left undecided -> the representative of its cluster"""
        self.offered: dict[Span, list[Span]] = {
            span: [(begin, end) for begin, end in value[OFFERED]]
            for span, value in values.items()
            if may_refer_to_unseen_name(value)
        }

    def canonical_mention(self, span: Span) -> Span | None:
        """Return the canonical mention of a span according to the labels, followed recursively. The
        span itself if it refers to none of the names that annotators saw; None if it has no label,
        or annotators disagreed.
        """
        return _end_of_chain(self.canonical, span)

    def cluster_of(self, span: Span) -> Span | None:
        """Return the canonical mention of a span's cluster, also if readers disagreed on its
        reference; None if it has no label.
        """
        return _end_of_chain(self.cluster | self.canonical, span)

    def reference_verdict(self, span: Span, claimed: Span) -> float:
        """Return 1.0 if `span` and `claimed` have the same referent, 0.0 if not. NaN if `span` has
        no label, if annotators did not see `claimed` and disagreed, found no name right or saw only
        its own, or if readers disagreed on the reference of `claimed`.

        As in Chaganty 2018, section 3.6.2, a link must be confirmed. The settled canonical mention
        is right, and so is any mention with the same wording, since pages offer each wording once.
        Another mention of the same settled cluster is right too if it is as informative as the
        canonical one (`mention_specificity`). A mention is its own canonical one only if people say
        so.
        """
        settled = self.canonical_mention(span)
        if settled is None:
            return nan
        nowhere = span in self.elsewhere
        if self._has_same_wording(claimed, settled) and not nowhere:
            return 1.0
        if claimed == span:
            return 0.0
        if span in self.offered and was_name_not_offered(self.text, claimed, self.offered[span]):
            return nan
        if nowhere:
            return 0.0
        if self._specificity_at(claimed) < self._specificity_at(settled):
            return 0.0
        root = self.cluster_of(claimed)
        if root is not None and self._has_same_wording(root, settled):
            return 1.0
        return nan if claimed in self.cluster else 0.0

    def _has_same_wording(self, span: Span, other: Span) -> bool:
        return span == other or normalized_wording(self.text, span) == normalized_wording(
            self.text, other
        )

    def _specificity_at(self, span: Span) -> int:
        return mention_specificity(unicodedata.normalize("NFC", self.text[span[0] : span[1]]))


def _end_of_chain(leads: Mapping[Span, Span], span: Span) -> Span | None:
    """Return the end of a chain of spans, or the first span of a cycle; None for an empty chain."""
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


def normalized_wording(text: str, span: Span) -> str:
    """Return the normalised words of a span, without differences in spacing and capitals.

    Headings write names in capitals. Pronouns are not normalised: "us" is not "US".
    """
    words = " ".join(unicodedata.normalize("NFC", text[span[0] : span[1]]).split())
    folded = unicodedata.normalize("NFC", words.casefold())
    return words if folded in PRONOUNS else folded


def was_name_not_offered(text: str, claimed: Span, offered_spans: Sequence[Span]) -> bool:
    """Return whether a name was not among the names that people saw, but would be offered in a new
    question.
    """
    words = normalized_wording(text, claimed)
    seen = {normalized_wording(text, span) for span in offered_spans}
    return bool(words) and words not in seen and len(seen) < MOST


def mention_specificity(gloss: str) -> int:
    """Return how informative a mention is: 2 for a name, 1 for a nominal, 0 for a pronoun.

    Decided by the words, since files and pages do not state it: an English pronoun; else a name if
    a word after determiners has a capital or a digit, or is in a script without capitals.
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
    """A prediction on a target that has a label, with what is needed to judge it.

    `value` is the merged value of its pair target ({} if there is none); `forward` is whether the
    subject is the target's first mention; `clusters` are the settled clusters of its document;
    `closed` is whether the document was read in full and unmarked relations in it are false.
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


def verdicts_of_rows(judged_rows: Sequence[JudgedRow]) -> dict[str, NDArray[np.float64]]:
    """Return right (1.0), wrong (0.0) or missing (NaN) under `relation`, `linking` and `correct`,
    one entry a row.

    `correct` is missing if either part is. If a wrong relation alone decided it, missingness would
    depend on the verdict, and the mean of the others would be too low.
    """
    relation = np.fromiter(
        (predicate_verdict(row) for row in judged_rows), dtype=np.float64, count=len(judged_rows)
    )
    linking = np.fromiter(
        (linking_verdict(row) for row in judged_rows), dtype=np.float64, count=len(judged_rows)
    )
    return {"relation": relation, "linking": linking, "correct": relation * linking}


def predicate_verdict(judged_row: JudgedRow) -> float:
    """Return 1.0 if the predicate holds in the prediction's direction, 0.0 if not, NaN if people
    were not asked about it.
    """
    part = directed_name(judged_row.predicate, judged_row.forward)
    if part in judged_row.value.get("shown", ()):
        return float(part in judged_row.value["holds"])
    return 0.0 if judged_row.closed else nan


def linking_verdict(judged_row: JudgedRow) -> float:
    """Return 1.0 if both links of the prediction are right, 0.0 if one is wrong, NaN if a mention
    has no label.
    """
    subject = judged_row.clusters.reference_verdict(
        judged_row.subject, judged_row.subject_canonical
    )
    return subject * judged_row.clusters.reference_verdict(
        judged_row.object, judged_row.object_canonical
    )


def directed_name(predicate: str, forward: bool) -> str:
    """Return the name of a predicate with its direction over the target's two mentions, as in
    labels.
    """
    return predicate + (">" if forward else "<")


def directed_names(predictions: Iterable[tuple[str, bool]]) -> set[str]:
    """Return the directed predicates that must be shown so that these (predicate, forward) can be
    judged.
    """
    return {directed_name(predicate, forward) for predicate, forward in predictions}


NEW = "none of those that were offered"
"""Referent of a mention that is none of the offered names"""


def agrees_with_expert(
    target: Target,
    expert_answer: Mapping[str, Any],
    current_value: Mapping[str, Any],
    *,
    marked: bool = False,
) -> bool:
    """Return whether an expert's answer about a pair or a mention agrees with the current label. An
    answer about a predicate that was not asked, as in documents that were read in full (`marked`),
    cannot disagree.
    """
    if marked and expert_answer.get("holds") and not current_value.get("shown"):
        return False  # most of those who read the document marked nothing there
    both = set(expert_answer.get("shown", ())) & set(current_value.get("shown", ()))
    if set(expert_answer.get("holds", ())) & both != set(current_value.get("holds", ())) & both:
        return False
    if not (has_majority_reference(expert_answer) and has_majority_reference(current_value)):
        return True
    return has_same_reference(target.document_or_error.text, expert_answer, current_value)


def has_same_reference(text: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two values of a mention have the same canonical mention, or canonical mentions
    with the same words ignoring case (each wording is offered once), or both have none of the
    names.
    """
    if ELSEWHERE in one or ELSEWHERE in other:
        return ELSEWHERE in one and ELSEWHERE in other
    (a, b), (c, d) = one["canonical"], other["canonical"]
    return bool(
        (a, b) == (c, d) or normalized_wording(text, (a, b)) == normalized_wording(text, (c, d))
    )


def compare_references(
    target: Target, current_value: Mapping[str, Any], expert_answer: Mapping[str, Any]
) -> tuple[str, str, bool] | None:
    """Return the reference of a mention by the current label and by the expert, and whether they
    are the same; None if one of them is missing.
    """
    if not (has_majority_reference(current_value) and has_majority_reference(expert_answer)):
        return None
    text = target.document_or_error.text
    spans = current_value.get("canonical"), expert_answer.get("canonical")
    ours, theirs = (text[span[0] : span[1]] if span else NEW for span in spans)
    return ours, theirs, has_same_reference(text, current_value, expert_answer)
