"""Reads what scores of relations are cut by: predicate, type, entity, sentence, document and date.

As everywhere in the pool, an instance is what the first submission that predicts it says: a slice
is the same set of instances for every system, so that systems can be compared in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from django.db.models import Max
from numpy.typing import NDArray

from estimators.sums import code_pairs
from kbpo.corpus.fetch import fetch, fetch_arrays
from kbpo.corpus.frequency import FREQUENCIES, PEOPLE
from kbpo.corpus.kept import Arrays, kept
from kbpo.corpus.models import Corpus, Document, Mention, Predicate
from kbpo.submissions.fixed import state_of
from kbpo.tracks.base import Trait
from kbpo.tracks.frequency import classes, limits
from scoring.arrays import Ids

Names = NDArray[np.str_]


COLUMNS = {
    "instance": "p.instance_id",
    "document": "i.document_id",
    "predicate": "i.predicate_id",
    "subject": "i.subject_begin",
    "object": "i.object_begin",
    "subject_type": "hashtextextended(p.subject_type, 0)",
    "object_type": "hashtextextended(p.object_type, 0)",
    "link": "hashtextextended(p.subject_link, 0)",
    "canonical": "p.subject_canonical_begin::bigint << 32 | p.subject_canonical_end",
}
TRAITS = (
    "predicate",
    "subject_type",
    "object_type",
    "frequency",
    "sentence",
    "document",
    "date",
)
TEXTS = """
    SELECT DISTINCT hashtextextended(said.text, 0), said.text
    FROM submissions_prediction p
    CROSS JOIN LATERAL (VALUES (p.subject_type), (p.object_type), (p.subject_link)) AS said(text)
    WHERE p.submission_id = ANY(%s)
"""
NAMES = """
    SELECT lower(CASE WHEN entity.link <> '' THEN entity.link
        ELSE substring(d.text FROM entity.begin + 1 FOR entity.stop - entity.begin) END)
    FROM unnest(%s::bigint[], %s::int[], %s::int[], %s::text[])
        WITH ORDINALITY AS entity(document, begin, stop, link, place)
    JOIN corpus_document d ON d.id = entity.document ORDER BY entity.place
"""


def read_traits(corpus: Corpus, submissions: Sequence[int]) -> dict[str, Trait]:
    """The traits of all that some submissions predict, by ascending instance: `predicate`,
    `subject_type`, `object_type`, `frequency` (low, medium or high: in how many documents the
    subject occurs), `sentence` (same or across), `document` (its id in the corpus file) and `date`
    (2013-03-17; empty where it has none).
    """
    state = state_of(submissions)
    newest = Mention.objects.filter(document__corpus=corpus).aggregate(last=Max("pk"))["last"]
    arrays = kept(
        f"traits-{corpus.pk}",
        None if state is None else (*state, *COLUMNS.items(), corpus.loaded_at.isoformat(), newest),
        lambda: _of_each_instance(corpus, submissions),
    )
    return {name: Trait(arrays[f"names {name}"], arrays[f"code {name}"]) for name in TRAITS}


def cut_by(corpus: Corpus) -> dict[str, list[str]]:
    """The traits by whose names slices are cut, each with the names that there are."""
    schema = corpus.schema
    types = [entity_type["name"] for entity_type in schema.get("entity_types", ())]
    return {
        "predicate": [predicate["name"] for predicate in schema.get("predicates", ())],
        "subject_type": types,
        "object_type": types,
        "frequency": list(FREQUENCIES),
    }


def _of_each_instance(corpus: Corpus, submissions: Sequence[int]) -> Arrays:
    """The same as arrays. Few texts occur in many rows: rows are read as numbers, and each text
    once.
    """
    rows = _first_of_each_instance(submissions)
    predicates = dict(Predicate.objects.filter(corpus=corpus).values_list("pk", "name"))
    text_of = dict(fetch(TEXTS, [list(submissions)]))
    documents, document = np.unique(rows["document"], return_inverse=True)
    row_of = {
        row.pk: row for row in Document.objects.filter(pk__in=documents.tolist()).defer("text")
    }
    read = [row_of[pk] for pk in documents.tolist()]
    first, last = (_sentences(read, document, rows[end]) for end in ("subject", "object"))
    frequency, class_of = np.unique(_frequency(corpus, rows, text_of), return_inverse=True)
    coded = {
        "predicate": _texts(rows["predicate"], predicates),
        "subject_type": _texts(rows["subject_type"], text_of),
        "object_type": _texts(rows["object_type"], text_of),
        "frequency": (frequency, class_of),
        "sentence": (np.array(["across", "same"]), (first == last).astype(np.int64)),
        "document": (np.array([row.key for row in read], dtype=np.str_), document),
        "date": (np.array([row.date for row in read], dtype=np.str_), document),
    }
    arrays: dict[str, NDArray[Any]] = {}
    for name, (names, code) in coded.items():
        arrays |= {f"names {name}": names, f"code {name}": code}
    return arrays


def _first_of_each_instance(submissions: Sequence[int]) -> dict[str, Ids]:
    """What is read of each instance as the first submission predicts it, by ascending instance."""
    parts = [
        fetch_arrays(
            COLUMNS,
            "FROM submissions_prediction p JOIN instances_instance i ON i.id = p.instance_id"
            " WHERE p.submission_id = %s",
            [submission],
        )
        for submission in sorted(submissions)
    ]
    none = np.zeros(0, dtype=np.int64)
    rows = {name: np.concatenate([none, *(part.pop(name) for part in parts)]) for name in COLUMNS}
    first = np.unique(rows["instance"], return_index=True)[1]
    return {name: values[first] for name, values in rows.items()}


def _texts(codes: Ids, text_of: Mapping[int, str]) -> tuple[Names, Ids]:
    """The texts of some codes, and (n,) which of them each row has."""
    known, place = np.unique(codes, return_inverse=True)
    return np.array([text_of[code] for code in known.tolist()], dtype=np.str_), place


def _sentences(documents: Sequence[Document], document: Ids, begin: Ids) -> Ids:
    """(n,) in which sentence each mention begins: all sentences stand in one ascending list."""
    sizes = [len(row.sentence_begin) for row in documents]
    begins = np.array([one for row in documents for one in row.sentence_begin], dtype=np.int64)
    ahead = np.repeat(np.arange(len(documents)), sizes) << 32
    return np.searchsorted(ahead + begins, (document << 32) + begin, side="right")


def _frequency(corpus: Corpus, rows: Mapping[str, Ids], text_of: Mapping[int, str]) -> Names:
    """(n,) the class of each subject; subjects that are told alike are looked up once."""
    place = code_pairs(rows["document"], rows["canonical"])
    subject = code_pairs(place, code_pairs(rows["link"], rows["subject_type"]))
    first = np.unique(subject, return_index=True)[1]
    told = [
        rows[name][first].tolist() for name in ("document", "canonical", "link", "subject_type")
    ]
    document, canonical, link, types = told
    names = [
        name
        for (name,) in fetch(
            NAMES,
            [
                document,
                [span >> 32 for span in canonical],
                [span & 0xFFFFFFFF for span in canonical],
                [text_of[code] for code in link],
            ],
        )
    ]
    predicted = list(zip(names, document, (text_of[code] for code in types), strict=True))
    return _classes(corpus, predicted, names)[subject]


def _classes(corpus: Corpus, predicted: list[tuple[str, int, str]], names: list[str]) -> Names:
    """The frequency class of each name. The frequencies are those of the corpus's own mentions;
    where it came without any, those of the subjects that systems predict.
    """
    frequency = _in_corpus(corpus) or _in_pool(predicted)
    counts = np.array([number for number, _ in frequency.values()], dtype=np.int64)
    people = np.array([found for _, found in frequency.values()], dtype=np.bool_)
    of = np.array([frequency.get(name, (0, False))[0] for name in names], dtype=np.int64)
    return classes(of, limits(counts, people))


def _in_corpus(corpus: Corpus) -> dict[str, tuple[int, bool]]:
    """name -> (number of documents, a person or an organisation), from the mentions that came with
    the corpus.
    """
    rows = fetch(
        "SELECT name, count(DISTINCT document_id), bool_or(type = ANY(%s)) FROM (SELECT"
        " m.document_id, m.type, lower(CASE WHEN m.link <> '' THEN m.link ELSE substring(d.text"
        ' FROM coalesce(m.canonical_begin, m.begin) + 1 FOR coalesce(m.canonical_end, m."end") -'
        " coalesce(m.canonical_begin, m.begin)) END) AS name FROM corpus_mention m JOIN"
        " corpus_document d ON d.id = m.document_id WHERE d.corpus_id = %s) found GROUP BY 1",
        [list(PEOPLE), corpus.pk],
    )
    return {name: (number, people) for name, number, people in rows}


def _in_pool(predicted: list[tuple[str, int, str]]) -> dict[str, tuple[int, bool]]:
    documents: dict[str, set[int]] = {}
    people: dict[str, bool] = {}
    for name, document, kind in predicted:
        documents.setdefault(name, set()).add(document)
        people[name] = people.get(name, False) or kind in PEOPLE
    return {name: (len(some), people[name]) for name, some in documents.items()}
