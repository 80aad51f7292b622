"""Reads the facts behind instances, for recall: one fact may be stated by several pairs of
mentions, and counts once.

A fact is (document, subject cluster, predicate, object cluster). Clusters are the settled ones: a
mention belongs to the cluster of its own label, else to that of the settled mention which it
overlaps most, so that "Obama" and "President Obama" are not two facts. Elsewhere it is the
canonical mention that most submissions claim.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbpo.corpus.fetch import fetch
from kbpo.corpus.models import Document, Predicate
from kbpo.instances.merge import IN_PLACE, PUBLIC, values_inside, values_of
from kbpo.instances.models import Label, Target
from kbpo.tracks.kbp.judge import Clusters, Span
from kbpo.tracks.kbp.judgments import clusters_of
from kbpo.tracks.models import Track
from kbpo.tracks.recall import Facts

Ids = NDArray[np.int64]
Fact = tuple[int, str, Span, Span]
Mark = tuple[int, str, Span, Span]
"""A relation as it was marked: document, predicate, the spans of subject and object themselves"""
REACH = {"sentence": 0, "neighbours": 1, "document": 10**9}
"""Scope -> how many sentences apart the two mentions may be."""


@dataclass(frozen=True)
class _Stated:
    instance: int
    submission: int
    document: int
    predicate: str
    subject: Span
    object: Span
    subject_canonical: Span
    object_canonical: Span


def read_facts(track: Track, instances: Ids, systems: list[int], annotated: list[int]) -> Facts:
    """The facts of drawn instances and of documents that were annotated whole, and who states
    them.
    """
    drawn = {row[0]: row for row in _instances(instances.tolist())}
    documents = {row[1] for row in drawn.values()} | set(annotated)
    sentences = _Sentences(documents, REACH[track.scope])
    names = _Names(documents)
    stated = _statements(sorted({(row[1], row[2]) for row in drawn.values()}), annotated, systems)
    names.learn(stated)
    by_fact: dict[Fact, set[int]] = defaultdict(set)
    instances_of: dict[Fact, set[int]] = defaultdict(set)
    for one in stated:
        if sentences.near(one.document, one.subject, one.object):
            fact = names.fact(one.document, one.predicate, one.subject, one.object)
            by_fact[fact].add(one.submission)
            instances_of[fact].add(one.instance)
    column = {system: j for j, system in enumerate(systems)}
    table = np.zeros((instances.size, len(systems)), dtype=np.bool_)
    weight = np.zeros(instances.size)
    codes: dict[Fact, int] = {}
    code_of = np.zeros(instances.size, dtype=np.int64)
    in_scope = np.zeros(instances.size, dtype=np.bool_)
    for at, instance in enumerate(instances.tolist()):
        _, document, _, predicate, subject, object_ = drawn[instance]
        fact = names.fact(document, predicate, subject, object_)
        in_scope[at] = sentences.near(document, subject, object_)
        code_of[at] = codes.setdefault(fact, len(codes))
        if in_scope[at]:
            weight[at] = 1 / max(1, len(instances_of[fact]))
            table[at, [column[system] for system in by_fact[fact]]] = True
    marks = set(_true_marks(annotated, sentences))
    true = sorted({names.fact(*mark) for mark in marks})
    code = {document: at for at, document in enumerate(annotated)}
    number = dict(Predicate.objects.filter(corpus=track.corpus_id).values_list("name", "pk"))
    return Facts(
        fact=code_of,
        in_scope=in_scope,
        pool_weight=weight,
        stated=table,
        document=np.array([code[fact[0]] for fact in true], dtype=np.int64),
        predicate=np.array([number.get(fact[1], 0) for fact in true], dtype=np.int64),
        found=np.array([bool(by_fact.get(fact)) for fact in true], dtype=np.bool_),
        n_annotated=len(annotated),
        n_documents=track.corpus.n_documents,
        inside=np.array(
            [code.get(drawn[one][1], -1) for one in instances.tolist()], dtype=np.int64
        ),
        marked=np.isin(code_of, [codes[fact] for fact in true if fact in codes]),
        code=np.array([codes.get(fact, -1) for fact in true], dtype=np.int64),
        links=_links(true, names, annotated),
        missed=_missed(marks, stated, code),
    )


def found_by(
    track: Track, documents: list[int], systems: list[int], *, public: bool
) -> dict[Mark, set[int]]:
    """The true facts of documents that were read in full, each as one of its marks -> the systems
    that state it; by public labels alone if asked.
    """
    sentences = _Sentences(set(documents), REACH[track.scope])
    names = _Names(set(documents), public=public)
    stated = _statements([], documents, systems)
    names.learn(stated)
    by_fact: dict[Fact, set[int]] = defaultdict(set)
    for one in stated:
        fact = names.fact(one.document, one.predicate, one.subject, one.object)
        by_fact[fact].add(one.submission)
    marks: dict[Fact, Mark] = {}
    for mark in sorted(_true_marks(documents, sentences, public=public)):
        marks.setdefault(names.fact(*mark), mark)
    return {mark: by_fact.get(fact, set()) for fact, mark in marks.items()}


def _links(facts: Sequence[Fact], names: _Names, documents: Sequence[int]) -> NDArray[np.str_]:
    """(t, 2) the title that people linked most mentions of the subject's and of the object's
    cluster to.
    """
    votes: dict[tuple[int, Span], Counter[str]] = defaultdict(Counter)
    for document, span, value in values_inside(documents, Target.Kind.MENTION):
        if value.get("link"):
            votes[document, names.of(document, span)][value["link"]] += 1
    titles = {end: max(some, key=lambda one: (some[one], one)) for end, some in votes.items()}
    rows = [[titles.get((one[0], end), "") for end in one[2:]] for one in facts]
    return np.array(rows, dtype=np.str_).reshape(-1, 2)


def targets_in_scope(track: Track, targets: Sequence[int]) -> set[int]:
    """The pairs of mentions among some targets that lie within the scope of a track."""
    rows = Target.objects.filter(pk__in=targets, kind=Target.Kind.PAIR)
    places = list(rows.values_list("pk", "document_id", "a_begin", "a_end", "b_begin", "b_end"))
    sentences = _Sentences({document for _, document, *_ in places}, REACH[track.scope])
    return {
        pk
        for pk, document, *ends in places
        if sentences.near(document, (ends[0], ends[1]), (ends[2], ends[3]))
    }


def _missed(marks: set[Mark], stated: list[_Stated], code: dict[int, int]) -> Ids:
    """How many marks of each annotated document no submission states at the very same mentions."""
    left = marks - {(one.document, one.predicate, one.subject, one.object) for one in stated}
    return np.bincount([code[mark[0]] for mark in left], minlength=len(code)).astype(np.int64)


class _Sentences:
    """Which pairs of mentions lie within the scope."""

    def __init__(self, documents: set[int], reach: int) -> None:
        self.reach = reach
        rows = Document.objects.filter(pk__in=documents).values_list("pk", "sentence_begin")
        self.begins = {pk: np.array(begins, dtype=np.int64) for pk, begins in rows}

    def near(self, document: int, a: Span, b: Span) -> bool:
        begins = self.begins[document]
        first, second = np.searchsorted(begins, [a[0], b[0]], side="right")
        return bool(abs(int(first) - int(second)) <= self.reach)


class _Names:
    """The canonical mention of a span: settled where it has a label, else what most submissions
    claim.
    """

    def __init__(self, documents: set[int], *, public: bool = False) -> None:
        self.clusters: dict[int, Clusters] = clusters_of(documents, public=public)
        self.overlapping = {document: _Overlapping(one) for document, one in self.clusters.items()}
        self.claimed: dict[tuple[int, Span], Counter[Span]] = defaultdict(Counter)

    def learn(self, stated: list[_Stated]) -> None:
        for one in stated:
            self.claimed[one.document, one.subject][one.subject_canonical] += 1
            self.claimed[one.document, one.object][one.object_canonical] += 1

    def of(self, document: int, span: Span) -> Span:
        settled = self._settled(document, span)
        if settled is not None:
            return settled
        votes = self.claimed.get((document, span))
        claimed = max(votes, key=lambda one: (votes[one], -one[0])) if votes else span
        return self._settled(document, claimed) or claimed

    def _settled(self, document: int, span: Span) -> Span | None:
        """The root of the span's settled cluster, or of that of the mention which it overlaps; None
        without either.
        """
        clusters = self.clusters[document]
        known = clusters.root(span)
        if known is None:
            other = self.overlapping[document].most(span)
            known = clusters.root(other) if other else None
        return known

    def fact(self, document: int, predicate: str, subject: Span, object_: Span) -> Fact:
        return document, predicate, self.of(document, subject), self.of(document, object_)


class _Overlapping:
    """The settled mentions of one document, to be found by what they overlap."""

    def __init__(self, clusters: Clusters) -> None:
        self.spans = sorted(clusters.canonical)
        self.begins = [begin for begin, _ in self.spans]
        self.longest = max((end - begin for begin, end in self.spans), default=0)

    def most(self, span: Span) -> Span | None:
        """The settled mention that shares most characters with the span, the shortest of several;
        None if none does.
        """
        first = bisect_left(self.begins, span[0] - self.longest)
        last = bisect_left(self.begins, span[1])
        shared = {
            one: min(one[1], span[1]) - max(one[0], span[0]) for one in self.spans[first:last]
        }
        best = max(shared, key=lambda one: (shared[one], one[0] - one[1], -one[0]), default=None)
        return best if best is not None and shared[best] > 0 else None


def _instances(instances: list[int]) -> list[tuple[Any, ...]]:
    rows = fetch(
        "SELECT i.id, i.document_id, i.predicate_id, r.name, i.subject_begin, i.subject_end,"
        " i.object_begin, i.object_end FROM instances_instance i JOIN corpus_predicate r ON r.id ="
        " i.predicate_id WHERE i.id = ANY(%s)",
        [instances],
    )
    return [
        (pk, document, number, name, (sb, se), (ob, oe))
        for pk, document, number, name, sb, se, ob, oe in rows
    ]


def _statements(
    places: list[tuple[int, int]], annotated: list[int], systems: list[int]
) -> list[_Stated]:
    """All predictions in the (document, predicate) places of drawn instances, and in annotated
    documents.
    """
    rows = fetch(
        "SELECT p.instance_id, p.submission_id, i.document_id, r.name, i.subject_begin,"
        " i.subject_end, i.object_begin, i.object_end, p.subject_canonical_begin,"
        " p.subject_canonical_end, p.object_canonical_begin, p.object_canonical_end FROM"
        " instances_instance i JOIN submissions_prediction p ON p.instance_id = i.id JOIN"
        " corpus_predicate r ON r.id = i.predicate_id WHERE p.submission_id = ANY(%s) AND"
        " (i.document_id = ANY(%s) OR (i.document_id, i.predicate_id) IN (SELECT * FROM"
        " unnest(%s::bigint[], %s::bigint[])))",
        [systems, annotated, [place[0] for place in places], [place[1] for place in places]],
    )
    return [
        _Stated(instance, submission, document, name, (a, b), (c, d), (e, f), (g, h))
        for instance, submission, document, name, a, b, c, d, e, f, g, h in rows
    ]


def _true_marks(
    annotated: list[int], sentences: _Sentences, *, public: bool = False
) -> Iterator[Mark]:
    """Relations in scope that annotation of whole documents marked (publicly), as long as no better
    judgment says otherwise.
    """
    rows = fetch(
        "SELECT t.id, t.document_id, t.a_begin, t.a_end, t.b_begin, t.b_end, l.value -> 'holds'"
        " FROM instances_target t JOIN instances_label l ON l.target_id = t.id WHERE t.document_id"
        f" = ANY(%s) AND t.kind = 'pair' AND l.source = ANY(%s) AND {IN_PLACE}"
        f"{PUBLIC if public else ''}",
        [annotated, list(Label.OF_DOCUMENTS)],
    )
    places = {row[0]: (row[1], (row[2], row[3]), (row[4], row[5])) for row in rows}
    marked: dict[int, set[str]] = defaultdict(set)
    for row in rows:
        marked[row[0]].update(json.loads(row[6] or "[]"))
    for target, value, _ in values_of(marked, public=public):
        document, a, b = places[target]
        if sentences.near(document, a, b):
            for part in marked[target] & set(value.get("holds", ())):
                subject, object_ = (a, b) if part.endswith(">") else (b, a)
                yield document, part[:-1], subject, object_
