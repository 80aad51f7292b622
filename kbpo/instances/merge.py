"""Merges the labels of one target into its current value.

This module has the rules of every kind of track: which labels are current, by source, and that
single ratings accumulate, since each is an independent rating. All other merging follows the rule
of the kind (`kbpo.tracks.base.Track.merge_statements`), which callers pass.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from kbpo.corpus.cache import read_cached
from kbpo.corpus.sql import fetch_rows
from kbpo.instances.models import Label

T = TypeVar("T")
Value = dict[str, Any]
RATINGS = "ratings"
"""The part of a value with single ratings: criterion -> a list, one entry for each person"""
RANK = {source: rank for rank, source in enumerate(Label.PRECEDENCE)}
ORDER = "array_position(%s::text[], l.source::text) DESC, l.created_at, l.id"
"""Sources of labels, from the weakest to the one with precedence"""
PEOPLE = "people"
"""The part of a value with the raters, as keyed hashes: criterion -> a list, one entry for each
rating
"""
PUBLIC = " AND l.public_at <= statement_timestamp()"
"""Condition: the label is public"""
IN_PLACE = """
    NOT EXISTS (SELECT 1 FROM instances_label later WHERE later.target_id = l.target_id
                AND later.again IS NOT NULL AND later.question = l.question
                AND (later.created_at, later.id) > (l.created_at, l.id))
"""
"""Condition: the label l was not replaced by another one"""


def unreplaced_labels(labels: Iterable[tuple[T, int | None, int | None]]) -> list[T]:
    """Return the labels of one target that no other label replaced, given (label, question, earlier
    aggregations) in order. A label of a repeated aggregation takes the place of the question's
    first label, so that it does not override labels that overrode the first.
    """
    in_order = list(labels)
    if all(again is None for _, _, again in in_order):
        return [label for label, _, _ in in_order]
    groups: dict[tuple[str, int], list[T]] = {}
    for place, (label, question, again) in enumerate(in_order):
        of_its_own = ("place", place)
        group = groups.setdefault(of_its_own if question is None else ("question", question), [])
        if again is not None:
            group.clear()
        group.append(label)
    return list(chain.from_iterable(groups.values()))


def newest_labels(labels: Iterable[tuple[T, int | None]]) -> list[T]:
    """Return the newest label of each question, given pairs of label and question about one target
    in order. A label without a question is kept.
    """
    of_question: dict[tuple[str, int], T] = {}
    for place, (label, question) in enumerate(labels):
        of_question[("place", place) if question is None else ("question", question)] = label
    return list(of_question.values())


def current_labels(labels: Iterable[Label]) -> list[Label]:
    """Return the labels that no other label of their target replaced; labels may be of several
    targets.
    """
    by_target: dict[int, list[tuple[Label, int | None, int | None]]] = {}
    for label in sorted(labels, key=lambda label: (label.created_at, label.pk)):
        of_target = by_target.setdefault(label.target_id, [])
        of_target.append((label, label.question, label.again))
    return list(
        chain.from_iterable(unreplaced_labels(of_target) for of_target in by_target.values())
    )


class Statement(NamedTuple):
    """The value and origin of one label."""

    value: Value
    source: str
    n: int
    question: int | None
    again: int | None = None

    @classmethod
    def from_label(cls, label: Label) -> Statement:
        """Return the value and origin of a stored label."""
        return cls(label.value, label.source, label.n, label.question, label.again)


Rule = Callable[[Sequence[Statement]], Value]
"""The merging rule of a kind: labels of one target, from the weakest to the one with precedence ->
a new value. Single ratings are added afterwards"""


def merge_latest_parts(statements: Sequence[Statement]) -> Value:
    """Merge by the default rule of a kind: each part of a value comes from the last label that has
    it.
    """
    value: Value = {}
    for label in statements:
        value |= label.value
    return value


def merged_value(labels: Iterable[Label], rule: Rule) -> Value:
    """Return the value of a target, given all its labels and the rule of its kind. Labels of
    questions that ended unanswered are empty and override nothing. If the answers to a question
    were aggregated several times, only its last label is used.
    """
    ordered = sorted(labels, key=lambda label: (-RANK[label.source], label.created_at, label.pk))
    return _merge_statements(
        unreplaced_statements(Statement.from_label(label) for label in ordered), rule
    )


def unreplaced_statements(labels: Iterable[Statement]) -> list[Statement]:
    """Return the values of the labels of one target that were not replaced."""
    labels = list(labels)
    if len(labels) == 1:
        return labels
    return unreplaced_labels((label, label.question, label.again) for label in labels)


def merged_values(
    targets: Collection[int], rule: Rule, *, public: bool = False
) -> Iterator[tuple[int, Value, bool]]:
    """Yield the targets with a (public) label, their values by the rule of their kind, and whether
    a question about them ended unanswered.
    """
    found = read_cached(
        ("values", rule, public),
        targets,
        lambda missing: _merged_values_by_target(missing, rule, public),
    )
    for target in sorted(found):
        yield target, *found[target]


def _merged_values_by_target(
    targets: list[int], rule: Rule, public: bool
) -> dict[int, tuple[Value, bool]]:
    rows = fetch_rows(
        "SELECT l.target_id, l.value, l.source, l.n, l.question, l.again FROM instances_label l"
        f" WHERE l.target_id = ANY(%s){PUBLIC if public else ''}"
        f" ORDER BY l.target_id, {ORDER}",
        [targets, list(Label.PRECEDENCE)],
    )
    found = {}
    for target, group in groupby(rows, key=itemgetter(0)):
        said = unreplaced_statements(Statement(json.loads(row[1]), *row[2:]) for row in group)
        # Nobody was asked because of a withdrawn mark.
        unanswered = any(
            not label.value and label.source != Label.Source.DOCUMENT for label in said
        )
        found[target] = _merge_statements(said, rule), unanswered
    return found


def merged_values_in_documents(
    documents: Collection[int],
    rule: Rule,
    *kinds: str,
    public: bool = False,
) -> Iterator[tuple[str, int, tuple[int, int], Value]]:
    """Yield the kind, document, first span and value of every target of these kinds in these
    documents that has a (public) label.
    """
    chosen = sorted(str(kind) for kind in kinds)
    found = read_cached(
        ("values inside", rule, *chosen, public),
        documents,
        lambda missing: _values_by_document(missing, rule, chosen, public),
    )
    for document, targets in found.items():
        for kind, span, value in targets:
            yield kind, document, span, value


def _values_by_document(
    documents: list[int], rule: Rule, kinds: list[str], public: bool
) -> dict[int, list[tuple[str, tuple[int, int], Value]]]:
    rows = fetch_rows(
        "SELECT l.target_id, l.value, l.source, l.n, l.question, l.again, t.kind,"
        " t.document_id, t.a_begin, t.a_end"
        " FROM instances_target t JOIN instances_label l ON l.target_id = t.id WHERE t.document_id"
        f" = ANY(%s) AND t.kind = ANY(%s){PUBLIC if public else ''}"
        f" ORDER BY l.target_id, {ORDER}",
        [documents, kinds, list(Label.PRECEDENCE)],
    )
    found: dict[int, list[tuple[str, tuple[int, int], Value]]] = {}
    for _, group in groupby(rows, key=itemgetter(0)):
        labels = list(group)
        kind, document, begin, end = labels[0][6:]
        said = unreplaced_statements(Statement(json.loads(row[1]), *row[2:6]) for row in labels)
        found.setdefault(document, []).append((kind, (begin, end), _merge_statements(said, rule)))
    return found


def _merge_statements(statements: Sequence[Statement], rule: Rule) -> Value:
    """Merge the labels of one target into one value, and collect the ratings of all labels. The
    labels are ordered by precedence; the last one decides.
    """
    value = rule(statements)
    ratings: dict[str, list[float]] = {}
    people: dict[str, list[str]] = {}
    for label in statements:
        if RATINGS not in label.value:
            continue
        names = label.value.get(PEOPLE, {})
        for criterion, given in label.value[RATINGS].items():
            ratings.setdefault(criterion, []).extend(given)
            people.setdefault(criterion, []).extend(names.get(criterion, [""] * len(given)))
    if ratings:
        value |= {RATINGS: ratings, PEOPLE: people}
    return value


def parts_that_hold(value: Value) -> dict[str, bool]:
    """Return part (a directed relation) -> whether it holds, for the parts that a value decides;
    empty for values without parts.
    """
    holds = set(value.get("holds", ()))
    return {part: part in holds for part in value.get("shown", ())}


def count_dissenters(statements: Sequence[Statement]) -> int | None:
    """Return how many annotators of a target, over all its questions, differ from the merged value.
    For each question these are the dissenters at the part with the most dissent, since one person
    answers all parts. None if no label has parts.
    """
    labels = newest_labels((label, label.question) for label in statements)
    votes: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for label in labels:
        for part in label.value.get("shown", ()):
            asked[part] += max(1, label.n)
            votes[part] += _raw_votes(part, label)
    if not asked:
        return None
    against = 0
    for label in labels:
        minorities = []
        for part in label.value.get("shown", ()):
            holds, n = 2 * votes[part] > asked[part], _raw_votes(part, label)
            minorities.append(max(1, label.n) - n if holds else n)
        against += max(minorities, default=0)
    return against


def _raw_votes(part: str, label: Statement) -> int:
    """Return how many annotators of one question affirmed a part (a directed relation), before any
    annotator model.
    """
    if "votes" in label.value:
        return int(label.value["votes"].get(part, 0))
    return max(1, label.n) if part in label.value["holds"] else 0
