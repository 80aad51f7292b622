"""Reads the judgments of instances: f_i(x) of every submission, NaN if unknown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbpo.corpus.cache import Arrays, cached_arrays, read_cached
from kbpo.corpus.models import Corpus, Document, Predicate
from kbpo.corpus.sql import fetch_arrays, fetch_rows
from kbpo.instances.merge import merged_values, merged_values_in_documents
from kbpo.instances.models import Instance, Target
from kbpo.submissions.models import Prediction, predictions_state
from kbpo.tracks.base import Answers, Trait
from kbpo.tracks.kbp import judge as verdicts
from kbpo.tracks.kbp.judge import Clusters, JudgedRow, Span
from kbpo.tracks.kbp.merge import merge_labels
from scoring.arrays import Floats, Ids


def verdicts_by_criterion(
    instances: Ids,
    submissions: Sequence[int],
    *,
    answers: Answers | None = None,
) -> dict[str, Floats]:
    """Return the verdicts f (n, m) under each criterion: 1 right, 0 wrong, NaN missing, for each
    instance as each submission predicts it.

    A target with an answer is judged by the answer alone, and so are its two mentions. Other
    mentions of their clusters follow the labels, so that the verdict on a target never depends on
    answers about other targets.

    If a submission does not predict an instance, it is judged as if its mentions were their own
    canonical ones: its probability is 0, and only whether the draw has a label matters.
    """
    unique, position = np.unique(instances, return_inverse=True)
    facts = _cached_facts(unique.tolist())
    world = _World(
        {fact[1] for fact in facts.values()},
        {fact[2] for fact in facts.values()},
        answers,
    )
    column = {submission: j for j, submission in enumerate(submissions)}
    judged_rows: list[JudgedRow] = []
    place: dict[Any, int] = {}
    cell = np.empty((unique.size, len(submissions)), dtype=np.int64)

    def judged_row(
        instance: int, subject_canonical: Span | None, object_canonical: Span | None
    ) -> int:
        key = (instance, subject_canonical, object_canonical)
        if key not in place:
            place[key] = len(judged_rows)
            judged_rows.append(world.row(facts[instance], subject_canonical, object_canonical))
        return place[key]

    for at, instance in enumerate(unique.tolist()):
        cell[at, :] = judged_row(instance, None, None)
    for instance, submission, *ends in _predicted_canonical_mentions(
        unique.tolist(), list(submissions)
    ):
        at = int(np.searchsorted(unique, instance))
        cell[at, column[submission]] = judged_row(instance, (ends[0], ends[1]), (ends[2], ends[3]))
    found = verdicts.verdicts_of_rows(judged_rows)
    empty = np.zeros((0, len(submissions)))
    return {
        criterion: verdict[cell][position] if judged_rows else empty
        for criterion, verdict in found.items()
    }


def judged_rows(
    instances: Sequence[int], submission: int, *, public: bool = False
) -> list[JudgedRow]:
    """Return one row with the judgments of each instance, in the order of `instances`. Its
    canonical mentions are those that the submission predicts. With `public`, only public judgments
    are used.
    """
    facts = _cached_facts(list(instances))
    targets, documents = {fact[1] for fact in facts.values()}, {fact[2] for fact in facts.values()}
    world = _World(targets, documents, public=public)
    ends = {row[0]: row[2:] for row in _predicted_canonical_mentions(list(instances), [submission])}
    return [
        (
            world.row(
                facts[instance],
                (ends[instance][0], ends[instance][1]),
                (ends[instance][2], ends[instance][3]),
            )
            if instance in ends
            else world.row(facts[instance], None, None)
        )
        for instance in instances
    ]


def judged_rows_of_predictions(
    predictions: Sequence[Prediction], *, public: bool = False
) -> list[JudgedRow]:
    """Return the judgments of predictions that were read with their instances, documents and
    predicates.
    """
    facts = [_fact_row(prediction.instance) for prediction in predictions]
    documents = [prediction.instance.document for prediction in predictions]
    world = _World(
        {fact[1] for fact in facts},
        {fact[2] for fact in facts},
        public=public,
        texts={document.pk: document.text for document in documents if document is not None},
        keeps=True,
    )
    return [
        world.row(
            fact,
            _span_or_none(one.subject_canonical_begin, one.subject_canonical_end),
            _span_or_none(one.object_canonical_begin, one.object_canonical_end),
        )
        for fact, one in zip(facts, predictions, strict=True)
    ]


class _World:
    """The merged (public) labels of some targets, of the mentions of their documents, and of the
    documents, whose texts are read unless given.
    """

    def __init__(
        self,
        targets: set[int],
        documents: set[int],
        answers: Answers | None = None,
        *,
        public: bool = False,
        texts: dict[int, str] | None = None,
        keeps: bool = False,
    ) -> None:
        pairs = merged_values(targets, merge_labels, public=public)
        self.values = {target: value for target, value, _ in pairs}
        self.closed = set[int]()
        spans: dict[int, dict[Span, dict[str, Any]]] = defaultdict(dict)
        kinds = (Target.Kind.DOCUMENT, Target.Kind.MENTION)
        for kind, document, span, value in merged_values_in_documents(
            documents, merge_labels, *kinds, public=public
        ):
            if kind == Target.Kind.MENTION:
                spans[document][span] = value
            elif value.get("closed"):
                self.closed.add(document)
        if texts is None:
            texts = read_cached("texts", documents, document_texts)
        self.clusters = {
            document: Clusters(texts[document], spans[document], keeps=keeps)
            for document in documents
        }
        self.answers = {one: answer for one, answer in (answers or {}).items() if one in targets}
        self.own = self._own_clusters(texts, spans)

    def _own_clusters(
        self, texts: dict[int, str], spans: Mapping[int, Mapping[Span, dict[str, Any]]]
    ) -> dict[int, Clusters]:
        """Return the clusters of the targets that have an answer, in which only the answer links
        the mentions of its target.
        """
        asked = {one for answer in self.answers.values() for one in answer}
        rows = {row.pk: row for row in Target.objects.filter(pk__in={*self.answers, *asked})}
        by_target = {}
        for target, answer in self.answers.items():
            pair, known = rows[target], dict(spans[rows[target].document_id_or_error])
            for span in ((pair.a_begin, pair.a_end), (pair.b_begin, pair.b_end)):
                known.pop(span, None)
            for one, value in answer.items():
                if rows[one].kind == Target.Kind.MENTION:
                    known[rows[one].a_begin, rows[one].a_end] = dict(value)
            by_target[target] = Clusters(texts[pair.document_id_or_error], known)
        return by_target

    def row(
        self, fact: tuple[Any, ...], subject_canonical: Span | None, object_canonical: Span | None
    ) -> JudgedRow:
        _, target, document, subject, predicate, object_ = fact
        answered = target in self.answers
        return JudgedRow(
            predicate=predicate,
            forward=subject <= object_,
            value=self.answers[target].get(target, {}) if answered else self.values.get(target, {}),
            subject=subject,
            object=object_,
            subject_canonical=subject_canonical or subject,
            object_canonical=object_canonical or object_,
            clusters=self.own[target] if answered else self.clusters[document],
            closed=document in self.closed and not answered,
        )


def settled_clusters(documents: set[int], *, public: bool = False) -> dict[int, Clusters]:
    """Return the clusters of coreferent mentions in documents, from the (public) labels of their
    mentions.
    """
    return _World(set(), documents, public=public).clusters


def document_texts(documents: list[int]) -> dict[int, str]:
    """Return document -> its text."""
    return dict(Document.objects.filter(pk__in=documents).values_list("pk", "text"))


def _cached_facts(instances: list[int]) -> dict[int, tuple[Any, ...]]:
    return read_cached("facts", instances, _read_facts)


def _read_facts(instances: list[int]) -> dict[int, tuple[Any, ...]]:
    rows = Instance.objects.filter(pk__in=instances).values_list(
        "pk",
        "target_id",
        "document_id",
        "subject_begin",
        "subject_end",
        "predicate__name",
        "object_begin",
        "object_end",
    )
    return {
        pk: (pk, target, document, (sb, se), name, (ob, oe))
        for pk, target, document, sb, se, name, ob, oe in rows
    }


def _fact_row(instance: Instance) -> tuple[Any, ...]:
    subject, object_ = (
        (instance.subject_begin, instance.subject_end),
        (instance.object_begin, instance.object_end),
    )
    name = None if instance.predicate is None else instance.predicate.name
    return instance.pk, instance.target_id, instance.document_id, subject, name, object_


def _span_or_none(begin: int | None, end: int | None) -> Span | None:
    return None if begin is None or end is None else (begin, end)


def _predicted_canonical_mentions(
    instances: list[int], submissions: list[int]
) -> list[tuple[Any, ...]]:
    def read_canonicals(missing: list[int]) -> dict[int, list[tuple[Any, ...]]]:
        rows = fetch_rows(
            "SELECT instance_id, submission_id, subject_canonical_begin, subject_canonical_end,"
            " object_canonical_begin, object_canonical_end FROM submissions_prediction WHERE"
            " instance_id = ANY(%s) AND submission_id = ANY(%s)",
            [missing, submissions],
        )
        found: dict[int, list[tuple[Any, ...]]] = {}
        for row in rows:
            found.setdefault(row[0], []).append(row)
        return found

    of_each = read_cached(("canonicals", *submissions), instances, read_canonicals)
    return [row for rows in of_each.values() for row in rows]


TRAITS = ("predicate", "subject_type", "sentence")
COLUMNS = {
    "instance": "p.instance_id",
    "document": "i.document_id",
    "predicate": "i.predicate_id",
    "subject": "i.subject_begin",
    "object": "i.object_begin",
    "subject_type": "hashtextextended(p.subject_type, 0)",
}
TYPES = """
    SELECT DISTINCT hashtextextended(p.subject_type, 0), p.subject_type
    FROM submissions_prediction p WHERE p.submission_id = ANY(%s)
"""


def read_traits(corpus: Corpus, submissions: Sequence[int]) -> dict[str, Trait]:
    """Return the traits of all predictions of some submissions, by ascending instance: `predicate`,
    `subject_type` and `sentence` (same or across).
    """
    state = predictions_state(submissions)
    arrays = cached_arrays(
        f"traits-{corpus.pk}",
        None if state is None else (*state, *COLUMNS.items(), corpus.loaded_at.isoformat()),
        lambda: _traits_of_instances(corpus, submissions),
    )
    return {name: Trait(arrays[f"names {name}"], arrays[f"code {name}"]) for name in TRAITS}


def _traits_of_instances(corpus: Corpus, submissions: Sequence[int]) -> Arrays:
    """Return the traits as arrays of codes, and the names of the codes."""
    rows = _first_predictions(submissions)
    predicates = dict(Predicate.objects.filter(corpus=corpus).values_list("pk", "name"))
    documents, document = np.unique(rows["document"], return_inverse=True)
    begins = dict(
        Document.objects.filter(pk__in=documents.tolist()).values_list("pk", "sentence_begin")
    )
    sentence_begins = [begins[pk] for pk in documents.tolist()]
    first, last = (
        _sentence_of_mentions(sentence_begins, document, rows[end]) for end in ("subject", "object")
    )
    coded = {
        "predicate": _names_and_codes(rows["predicate"], predicates),
        "subject_type": _names_and_codes(
            rows["subject_type"], dict(fetch_rows(TYPES, [list(submissions)]))
        ),
        "sentence": (np.array(["across", "same"]), (first == last).astype(np.int64)),
    }
    arrays: dict[str, NDArray[Any]] = {}
    for name, (names, code) in coded.items():
        arrays |= {f"names {name}": names, f"code {name}": code}
    return arrays


def _first_predictions(submissions: Sequence[int]) -> dict[str, Ids]:
    """Return `COLUMNS` of each test instance as the first submission predicts it, by ascending
    instance.
    """
    parts = [
        fetch_arrays(
            COLUMNS,
            "FROM submissions_prediction p JOIN instances_instance i ON i.id = p.instance_id"
            " WHERE p.submission_id = %s AND NOT p.is_dev",
            [submission],
        )
        for submission in sorted(submissions)
    ]
    none = np.zeros(0, dtype=np.int64)
    rows = {name: np.concatenate([none, *(part.pop(name) for part in parts)]) for name in COLUMNS}
    first = np.unique(rows["instance"], return_index=True)[1]
    return {name: values[first] for name, values in rows.items()}


def _names_and_codes(codes: Ids, name_of: Mapping[int, str]) -> tuple[NDArray[np.str_], Ids]:
    """Return the distinct names of some codes, and (n,) the index of each row's name."""
    known, place = np.unique(codes, return_inverse=True)
    return np.array([name_of[code] for code in known.tolist()], dtype=np.str_), place


def _sentence_of_mentions(
    sentence_begins: Sequence[Sequence[int]], document: Ids, begin: Ids
) -> Ids:
    """Return (n,) the sentence in which each mention begins, numbered over all documents."""
    ahead = np.repeat(np.arange(len(sentence_begins)), [len(row) for row in sentence_begins]) << 32
    begins = np.array([one for row in sentence_begins for one in row], dtype=np.int64)
    return np.searchsorted(ahead + begins, (document << 32) + begin, side="right")
