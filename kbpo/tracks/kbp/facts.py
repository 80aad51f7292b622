"""Reads the facts behind instances, for recall: several pairs of mentions may predict one fact,
which is counted once.

A fact is (document, subject cluster, predicate, object cluster). In documents with labels, a
mention belongs to the cluster of its own label, else to that of the settled mention with the
largest overlap, so that "Obama" and "President Obama" are not two facts. In other documents its
cluster is the canonical mention that most submissions claim.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from estimators.sums import encode_pairs
from kbpo.corpus.cache import Arrays, cached_arrays
from kbpo.corpus.models import Document, Predicate
from kbpo.corpus.sql import fetch_arrays, fetch_rows
from kbpo.instances.merge import IN_PLACE, PUBLIC, merged_values, merged_values_in_documents
from kbpo.instances.models import Label, Target
from kbpo.submissions.models import predictions_state
from kbpo.tracks.kbp.judge import Clusters, Span
from kbpo.tracks.kbp.judgments import settled_clusters
from kbpo.tracks.kbp.merge import merge_labels
from kbpo.tracks.models import Track
from scoring.arrays import Bools, Ids
from scoring.documents import Facts

Fact = tuple[int, str, Span, Span]
Mark = tuple[int, str, Span, Span]
"""A relation as marked: document, predicate, spans of subject and object"""
REACH = {"sentence": 0, "neighbours": 1, "document": 10**9}
"""Scope -> greatest distance of the two mentions in sentences"""


COLUMNS = {
    "instance": "p.instance_id",
    "document": "i.document_id",
    "predicate": "i.predicate_id",
    "subject": "i.subject_begin::bigint << 32 | i.subject_end",
    "object": "i.object_begin::bigint << 32 | i.object_end",
    "subject_canonical": "p.subject_canonical_begin::bigint << 32 | p.subject_canonical_end",
    "object_canonical": "p.object_canonical_begin::bigint << 32 | p.object_canonical_end",
}
"""Columns of a prediction that are read; a span is one number (`_decode_span`)"""


@dataclass(frozen=True)
class _Predicted:
    """All predictions of some submissions, one row each."""

    instance: Ids
    column: Ids
    document: Ids
    predicate: Ids
    subject: Ids
    object: Ids
    subject_canonical: Ids
    object_canonical: Ids

    @classmethod
    def read_predictions(cls, systems: list[int], documents: list[int] | None = None) -> _Predicted:
        """Return the predictions of some submissions, read from the database; only those in
        `documents`, if given.
        """
        parts = []
        for column, system in enumerate(systems):
            rest = (
                "FROM submissions_prediction p JOIN instances_instance i ON i.id = p.instance_id"
                " WHERE p.submission_id = %s"
                " AND (%s::bigint[] IS NULL OR i.document_id = ANY(%s::bigint[]))"
            )
            part = fetch_arrays(COLUMNS, rest, [system, documents, documents])
            parts.append(part | {"column": np.full(part["instance"].size, column)})
        none = np.zeros(0, dtype=np.int64)
        return cls(
            **{
                name: np.concatenate([none, *(part.pop(name) for part in parts)])
                for name in (*COLUMNS, "column")
            }
        )

    def select_rows(self, rows: Ids) -> _Predicted:
        """Return these predictions restricted to some rows."""
        return _Predicted(**{name: values[rows] for name, values in vars(self).items()})


@dataclass(frozen=True)
class _Mentioned:
    """Predictions with the entities to which most submissions link their two mentions."""

    document: Ids
    predicate: Ids
    subject: Ids
    object: Ids
    subject_claimed: Ids
    object_claimed: Ids

    @classmethod
    def from_predictions(
        cls, predicted: _Predicted, from_entered: Bools | None = None
    ) -> _Mentioned:
        """Return one row for each prediction, with the canonical mentions to which most predictions
        link its subject and its object. `from_entered` (n,) tells whether each prediction is by a
        submission whose facts count already. If given, links by other submissions are used only for
        mentions that occur in no prediction of such a submission.
        """
        spans = np.append(predicted.subject, predicted.object)
        claims = np.append(predicted.subject_canonical, predicted.object_canonical)
        mention = encode_pairs(np.tile(predicted.document, 2), spans)
        if from_entered is not None and not from_entered.all():
            counts = np.tile(from_entered, 2)
            counts |= ~np.isin(mention, mention[counts])
            said_of, claims = mention[counts], claims[counts]
        else:
            said_of = mention
        claimed, n = _most_predicted_canonical(said_of, claims)[mention], predicted.document.size
        return cls(
            predicted.document,
            predicted.predicate,
            predicted.subject,
            predicted.object,
            claimed[:n],
            claimed[n:],
        )

    def of(self, rows: Ids) -> _Mentioned:
        """Return these predictions restricted to some rows."""
        return _Mentioned(**{name: values[rows] for name, values in vars(self).items()})

    def fact_codes(self) -> Ids:
        """Return (n,) a code of the fact that each row predicts, given its links."""
        entity = encode_pairs(
            np.tile(self.document, 2), np.append(self.subject_claimed, self.object_claimed)
        )
        n = self.document.size
        return encode_pairs(encode_pairs(entity[:n], entity[n:]), self.predicate)


def _decode_span(number: int) -> Span:
    return number >> 32, number & 0xFFFFFFFF


def _encode_span(span: Span) -> int:
    return span[0] << 32 | span[1]


def read_facts(
    track: Track,
    instances: Ids,
    systems: list[int],
    annotated: list[int],
    entered: list[int] | None = None,
) -> Facts:
    """Return the facts of instances that the systems predict and of documents that were read in
    full, and which systems predict them. Only facts of the systems that have `entered` are counted
    (by default all systems).
    """
    state = predictions_state(systems)
    has_entered = np.isin(systems, systems if entered is None else entered)
    predicted = cached_arrays(
        f"facts-{track.pk}",
        None if state is None else (*state, *COLUMNS.items(), track.scope, *has_entered.tolist()),
        lambda: _instance_fact_arrays(systems, REACH[track.scope], has_entered),
    )
    each = _Mentioned(**{field.name: predicted[field.name] for field in fields(_Mentioned)})
    document, in_scope, read = each.document, predicted["near"], np.array(annotated, dtype=np.int64)
    counted = predicted["counted"]
    sentences = _Sentences(annotated, REACH[track.scope])
    names = _Names(
        _documents_with_mention_labels(corpus=track.corpus_id)
        & {*annotated, *predicted["documents"].tolist()}
    )
    # In other documents there are no judgments of names, so the systems' claims are used.
    touched = np.flatnonzero(np.isin(document, [*names.clusters, *annotated]))
    fact, size, predicting = predicted["fact"], predicted["size"], predicted["predicting"]
    untouched = int(fact.max(initial=-1)) + 1
    size_of = np.zeros(0, dtype=np.int64)
    if touched.size:
        fact, size, predicting = np.array(fact), np.array(size), np.array(predicting)
        settled = names.settle_fact_codes(each.of(touched))
        fact[touched] = untouched + settled
        size_of = np.bincount(settled[counted[touched]], minlength=int(settled.max()) + 1)
        size[touched] = size_of[settled]
        shape = (document.size, len(systems))
        entries = (
            np.ones(predicted["column"].size, np.int8),
            predicted["column"],
            predicted["begin"],
        )
        part = sparse.csr_array(entries, shape=shape)[touched]
        predicting[touched] = _systems_predicting_fact(settled, in_scope[touched], part)
    number = dict(Predicate.objects.filter(corpus=track.corpus_id).values_list("name", "pk"))
    marks = set(_true_marks(annotated, sentences))
    true = sorted({names.canonical_fact(*mark) for mark in marks})
    rows_inside = np.flatnonzero(np.isin(document, read))
    inside, entered_inside = each.of(rows_inside), np.flatnonzero(predicted["entered"][rows_inside])
    code_of = _fact_codes_in_documents(inside, fact[rows_inside], names, number)
    code = np.array([code_of.get(one, -1) for one in true], dtype=np.int64)
    last = int(max(document.max(initial=0), read.max(initial=0)))
    place = np.full(last + 1, -1, dtype=np.int64)
    place[read] = np.arange(read.size)
    if not np.array_equal(predicted["instance"], instances):
        row = np.searchsorted(predicted["instance"], instances)
        assert np.array_equal(predicted["instance"][row], instances), (
            "an instance that nobody predicts"
        )
        fact, size, predicting = fact[row], size[row], predicting[row]
        in_scope, counted, document = in_scope[row], counted[row], document[row]
    return Facts(
        fact=fact,
        in_scope=in_scope,
        pool_weight=np.where(counted, 1 / np.maximum(size, 1), 0.0),
        predicted=predicting,
        document=place[[one[0] for one in true]] if true else np.zeros(0, dtype=np.int64),
        stratum=np.array([number.get(one[1], 0) for one in true], dtype=np.int64),
        found=(code >= 0) & (np.append(size_of, 0)[np.where(code < 0, -1, code - untouched)] > 0),
        n_annotated=len(annotated),
        n_documents=track.corpus.n_test,
        inside=place[document],
        marked=np.isin(fact, code[code >= 0]),
        code=code,
        links=_majority_titles(true, names, annotated),
        missed=_count_missed_facts(marks, inside.of(entered_inside), number, place, len(annotated)),
    )


def _instance_fact_arrays(systems: list[int], reach: int, has_entered: Bools) -> Arrays:
    """Return the parts of `Facts` that depend only on predictions and on which submissions have
    entered recall, so that their facts are counted. There is a row per instance, with the links of
    its subject and its object that most submissions predict, and a code of the resulting fact;
    `begin` and `column` list the systems that predict it. `entered` is whether a system that has
    entered predicts it, `counted` whether it is also in scope, `size` the number of counted
    instances of its fact, and `predicting` (u, m) which systems predict the fact.
    """
    predicted = _Predicted.read_predictions(systems)
    instance, first, row = np.unique(predicted.instance, return_index=True, return_inverse=True)
    order = np.lexsort((predicted.column, row))
    from_entered = has_entered[predicted.column]
    each = _Mentioned.from_predictions(predicted, from_entered).of(first)
    entered = np.zeros(instance.size, dtype=np.bool_)
    entered[row[from_entered]] = True
    documents, fact = np.unique(each.document), each.fact_codes()
    near = _Sentences(documents.tolist(), reach).are_rows_within_scope(each)
    counted = near & entered
    begin = np.searchsorted(row[order], np.arange(instance.size + 1)).astype(np.int32)
    column = predicted.column[order].astype(np.int32)
    entries = sparse.csr_array(
        (np.ones(column.size, np.int8), column, begin), shape=(instance.size, len(systems))
    )
    return {
        **vars(each),
        "instance": instance,
        "documents": documents,
        "near": near,
        "fact": fact,
        "entered": entered,
        "counted": counted,
        "size": np.bincount(fact[counted], minlength=int(fact.max(initial=-1)) + 1)[fact],
        "predicting": _systems_predicting_fact(fact, near, entries),
        "begin": begin,
        "column": column,
    }


def _systems_predicting_fact(
    fact: Ids, near: NDArray[np.bool_], entries: sparse.csr_array
) -> NDArray[np.bool_]:
    """Return (n, m) whether each submission predicts the fact of each row, by this row or by
    another row in scope. Entries of rows out of scope are False. `fact` (n,) is the code of the
    fact, `near` (n,) whether the row is in scope, and `entries` (n, m) which submission predicts
    which row.
    """
    rows = np.repeat(np.arange(fact.size), np.diff(entries.indptr))
    inside = near[rows]
    found = np.zeros((int(fact.max(initial=-1)) + 1, entries.shape[1]), dtype=np.bool_)
    found[fact[rows[inside]], entries.indices[inside]] = True
    return np.asarray(found[fact] & near[:, None])


def _fact_codes_in_documents(
    inside: _Mentioned, fact: Ids, names: _Names, number: dict[str, int]
) -> dict[Fact, int]:
    """Return the code of each fact that is predicted in annotated documents."""
    name_of = {pk: name for name, pk in number.items()}
    codes: dict[Fact, int] = {}
    _, first = np.unique(fact, return_index=True)
    for at in first.tolist():
        subject, object_ = (
            _decode_span(int(inside.subject[at])),
            _decode_span(int(inside.object[at])),
        )
        predicate = name_of[int(inside.predicate[at])]
        predicted = names.canonical_fact(int(inside.document[at]), predicate, subject, object_)
        codes[predicted] = int(fact[at])
    return codes


def facts_with_systems(
    track: Track, documents: list[int], systems: list[int], *, public: bool
) -> dict[Mark, set[int]]:
    """Return a mark of each true fact of the documents that were read in full -> the systems that
    predict the fact. With `public`, only public labels are used.
    """
    sentences = _Sentences(documents, REACH[track.scope])
    names = _Names(_documents_with_mention_labels(document__in=documents), public=public)
    predicted = _Predicted.read_predictions(systems, documents)
    rows = _Mentioned.from_predictions(predicted)
    code = names.settle_fact_codes(rows)
    number = dict(Predicate.objects.filter(corpus=track.corpus_id).values_list("name", "pk"))
    by_fact: dict[Fact, set[int]] = {}
    for fact, wanted in _fact_codes_in_documents(rows, code, names, number).items():
        columns = np.unique(predicted.column[code == wanted])
        by_fact[fact] = {systems[column] for column in columns.tolist()}
    marks: dict[Fact, Mark] = {}
    for mark in sorted(_true_marks(documents, sentences, public=public)):
        marks.setdefault(names.canonical_fact(*mark), mark)
    return {mark: by_fact.get(fact, set()) for fact, mark in marks.items()}


def _majority_titles(
    facts: Sequence[Fact], names: _Names, documents: Sequence[int]
) -> NDArray[np.str_]:
    """Return (t, 2) the titles to which people linked most mentions of the subject's and of the
    object's cluster.
    """
    votes: dict[tuple[int, Span], Counter[str]] = defaultdict(Counter)
    for _, document, span, value in merged_values_in_documents(
        documents, merge_labels, Target.Kind.MENTION
    ):
        if value.get("link"):
            votes[document, names.canonical_span(document, span)][value["link"]] += 1
    titles = {end: max(some, key=lambda one: (some[one], one)) for end, some in votes.items()}
    rows = [[titles.get((fact[0], end), "") for end in fact[2:]] for fact in facts]
    return np.array(rows, dtype=np.str_).reshape(-1, 2)


def targets_in_scope(track: Track, targets: Sequence[int]) -> set[int]:
    """Return the pairs of mentions that are close enough for the track's recall (its scope:
    sentence, neighbours or document).
    """
    rows = Target.objects.filter(pk__in=targets, kind=Target.Kind.PAIR)
    places = list(rows.values_list("pk", "document_id", "a_begin", "a_end", "b_begin", "b_end"))
    sentences = _Sentences({document for _, document, *_ in places}, REACH[track.scope])
    return {
        pk
        for pk, document, *ends in places
        if sentences.are_within_scope(document, (ends[0], ends[1]), (ends[2], ends[3]))
    }


def _count_missed_facts(
    marks: set[Mark], inside: _Mentioned, number: dict[str, int], place: Ids, n: int
) -> Ids:
    """Return, for each annotated document, how many relations that readers marked are predicted by
    no row at exactly the same mentions.
    """
    columns = (inside.document, inside.predicate, inside.subject, inside.object)
    predicted = set(zip(*(column.tolist() for column in columns), strict=True))
    left = [
        mark[0]
        for mark in marks
        if (mark[0], number.get(mark[1], 0), _encode_span(mark[2]), _encode_span(mark[3]))
        not in predicted
    ]
    return np.bincount(place[left] if left else [], minlength=n).astype(np.int64)


class _Sentences:
    """Tests whether pairs of mentions are close enough for recall (the track's scope)."""

    def __init__(self, documents: Collection[int], reach: int) -> None:
        self.reach = reach
        rows = Document.objects.filter(pk__in=documents).values_list("pk", "sentence_begin")
        self.begins = {pk: np.array(begins, dtype=np.int64) for pk, begins in rows}

    def are_within_scope(self, document: int, a: Span, b: Span) -> bool:
        begins = self.begins[document]
        first, second = np.searchsorted(begins, [a[0], b[0]], side="right")
        return bool(abs(int(first) - int(second)) <= self.reach)

    def are_rows_within_scope(self, predicted: _Mentioned) -> NDArray[np.bool_]:
        """Return (n,) whether the mentions of each row are close enough for recall. Uses one
        ascending list of the sentences of all documents.
        """
        documents = np.array(sorted(self.begins), dtype=np.int64)
        sizes = [self.begins[document].size for document in documents.tolist()]
        begins = np.concatenate(
            [np.zeros(0, dtype=np.int64), *(self.begins[one] for one in documents.tolist())]
        )
        ahead = np.repeat(np.arange(documents.size), sizes) << 32
        mine = np.searchsorted(documents, predicted.document) << 32
        first, second = (
            np.searchsorted(ahead + begins, mine + (end >> 32), side="right")
            for end in (predicted.subject, predicted.object)
        )
        return np.asarray(np.abs(first - second) <= self.reach)


def _documents_with_mention_labels(**where: Any) -> set[int]:
    """Return the documents in which a mention has a label."""
    targets = Target.objects.filter(kind=Target.Kind.MENTION, labels__isnull=False, **where)
    return set(targets.values_list("document", flat=True).distinct())


class _Names:
    """Finds the canonical mention of a span: the one in its label, otherwise the one that most
    submissions predict.
    """

    def __init__(self, labelled: set[int], *, public: bool = False) -> None:
        self.clusters: dict[int, Clusters] = settled_clusters(labelled, public=public)
        self.overlapping = {document: _Overlapping(one) for document, one in self.clusters.items()}
        self.claimed: dict[tuple[int, Span], Span] = {}
        """Canonical mentions that most submissions claim, in documents with labels"""

    def settle_fact_codes(self, rows: _Mentioned) -> Ids:
        """Return (n,) a code of the fact that each row predicts. The links of these rows are used
        from now on.
        """
        document, spans = np.tile(rows.document, 2), np.append(rows.subject, rows.object)
        claims = np.append(rows.subject_claimed, rows.object_claimed)
        mention = encode_pairs(document, spans)
        _, first = np.unique(mention, return_index=True)
        canonical = claims[first]
        for at, place in enumerate(first.tolist()):
            key = int(document[place]), _decode_span(int(spans[place]))
            self.claimed[key] = _decode_span(int(canonical[at]))
            canonical[at] = _encode_span(self.canonical_span(*key))
        subject, object_ = np.split(canonical[mention], 2)
        return replace(rows, subject_claimed=subject, object_claimed=object_).fact_codes()

    def canonical_span(self, document: int, span: Span) -> Span:
        settled = self._settled_root(document, span)
        if settled is not None:
            return settled
        claimed = self.claimed.get((document, span), span)
        return self._settled_root(document, claimed) or claimed

    def _settled_root(self, document: int, span: Span) -> Span | None:
        """Return the canonical mention of the labelled cluster of a span. If the span itself has no
        label, the cluster of the labelled mention that it overlaps is used; None if there is
        neither.
        """
        clusters = self.clusters.get(document)
        if clusters is None:
            return None
        known = clusters.cluster_of(span)
        if known is None:
            other = self.overlapping[document].closest_mention(span)
            known = clusters.cluster_of(other) if other else None
        return known

    def canonical_fact(self, document: int, predicate: str, subject: Span, object_: Span) -> Fact:
        return (
            document,
            predicate,
            self.canonical_span(document, subject),
            self.canonical_span(document, object_),
        )


def _most_predicted_canonical(mention: Ids, claims: Ids) -> Ids:
    """Return the canonical mention that most submissions predict for each mention (codes 0, 1 …);
    the first span in a tie.
    """
    pair = encode_pairs(mention, claims)
    _, at, votes = np.unique(pair, return_index=True, return_counts=True)
    order = np.lexsort((claims[at], -votes, mention[at]))
    _, best = np.unique(mention[at][order], return_index=True)
    return claims[at][order][best]


class _Overlapping:
    """Finds the labelled mentions of one document that overlap with a span."""

    def __init__(self, clusters: Clusters) -> None:
        self.spans = sorted(clusters.canonical.keys() | clusters.cluster.keys())
        self.begins = [begin for begin, _ in self.spans]
        self.longest = max((end - begin for begin, end in self.spans), default=0)

    def closest_mention(self, span: Span) -> Span | None:
        """Return the labelled mention that shares most characters with the span, the shortest in a
        tie; None if none overlaps.
        """
        first = bisect_left(self.begins, span[0] - self.longest)
        last = bisect_left(self.begins, span[1])
        shared = {
            one: min(one[1], span[1]) - max(one[0], span[0]) for one in self.spans[first:last]
        }
        best = max(shared, key=lambda one: (shared[one], one[0] - one[1], -one[0]), default=None)
        return best if best is not None and shared[best] > 0 else None


def _true_marks(
    annotated: list[int], sentences: _Sentences, *, public: bool = False
) -> Iterator[Mark]:
    """Yield the relations that (public) annotations of whole documents mark and that are in the
    scope of recall, unless a stronger judgment contradicts them.
    """
    rows = fetch_rows(
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
    for target, value, _ in merged_values(marked, merge_labels, public=public):
        document, a, b = places[target]
        if sentences.are_within_scope(document, a, b):
            for part in marked[target] & set(value.get("holds", ())):
                subject, object_ = (a, b) if part.endswith(">") else (b, a)
                yield document, part[:-1], subject, object_
