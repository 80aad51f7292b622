"""Reads what scores of relations are cut by: predicate, type, entity, sentence, document and date.

As everywhere in the pool, an instance is what the first submission that states it says: a slice is
the same set of instances for every system, so that systems can be compared in it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kbpo.corpus.fetch import fetch
from kbpo.corpus.frequency import PEOPLE
from kbpo.corpus.models import Corpus
from kbpo.tracks.frequency import classes, limits

Names = NDArray[np.str_]


def read_traits(corpus: Corpus, submissions: Sequence[int]) -> dict[str, Names]:
    """The traits of all that some submissions state, by ascending instance: `predicate`,
    `subject_type`, `object_type`, `frequency` (low, medium or high: in how many documents the
    subject occurs), `sentence` (same or across), `document` (its id in the corpus file) and `date`
    (2013-03-17; empty where it has none).
    """
    rows = fetch(
        "SELECT DISTINCT ON (p.instance_id) p.instance_id, p.subject_type, p.object_type, d.key,"
        " d.id, d.date, lower(CASE WHEN p.subject_link <> '' THEN p.subject_link ELSE"
        " substring(d.text FROM p.subject_canonical_begin + 1 FOR p.subject_canonical_end -"
        " p.subject_canonical_begin) END), width_bucket(i.subject_begin, d.sentence_begin) ="
        " width_bucket(i.object_begin, d.sentence_begin), r.name FROM submissions_prediction p JOIN"
        " instances_instance i ON i.id = p.instance_id JOIN corpus_document d ON d.id ="
        " i.document_id JOIN corpus_predicate r ON r.id = i.predicate_id WHERE p.submission_id ="
        " ANY(%s) ORDER BY p.instance_id, p.submission_id",
        [list(submissions)],
    )
    columns = list(zip(*rows, strict=True)) if rows else [()] * 9
    types, names, documents = columns[1], columns[6], columns[4]
    stated = list(zip(names, documents, types, strict=True))
    return {
        "predicate": np.array(columns[8], dtype=np.str_),
        "subject_type": np.array(types, dtype=np.str_),
        "object_type": np.array(columns[2], dtype=np.str_),
        "frequency": _classes(corpus, stated, list(names)),
        "sentence": np.where(np.array(columns[7], dtype=np.bool_), "same", "across"),
        "document": np.array(columns[3], dtype=np.str_),
        "date": np.array(columns[5], dtype=np.str_),
    }


def _classes(corpus: Corpus, stated: list[tuple[str, int, str]], names: list[str]) -> Names:
    """The frequency class of each name. The frequencies are those of the corpus's own mentions;
    where it came without any, those of the subjects that systems state.
    """
    frequency = _in_corpus(corpus) or _in_pool(stated)
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


def _in_pool(stated: list[tuple[str, int, str]]) -> dict[str, tuple[int, bool]]:
    documents: dict[str, set[int]] = {}
    people: dict[str, bool] = {}
    for name, document, kind in stated:
        documents.setdefault(name, set()).add(document)
        people[name] = people.get(name, False) or kind in PEOPLE
    return {name: (len(some), people[name]) for name, some in documents.items()}
