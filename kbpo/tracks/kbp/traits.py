"""Reads the traits by which scores of relations are cut: predicate, type, frequency, sentence.

As everywhere in the pool, an instance is what the first submission that predicts it says: a slice
is the same set of instances for every system, so that systems can be compared in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import Max
from numpy.typing import NDArray

from estimators.sums import code_pairs
from kbpo.corpus.fetch import fetch, fetch_arrays
from kbpo.corpus.frequency import PEOPLE
from kbpo.corpus.kept import Arrays, kept
from kbpo.corpus.models import Corpus, Document, Mention, Predicate
from kbpo.corpus.names import entity_types
from kbpo.submissions.fixed import state_of
from kbpo.submissions.models import Submission
from kbpo.tracks.base import Trait
from kbpo.tracks.frequency import classes, limits
from kbpo.tracks.models import Track
from scoring.arrays import Ids

Names = NDArray[np.str_]


TRAITS = ("predicate", "subject_type", "frequency", "sentence")
COLUMNS = {
    "instance": "p.instance_id",
    "document": "i.document_id",
    "predicate": "i.predicate_id",
    "subject": "i.subject_begin",
    "object": "i.object_begin",
    "subject_type": "hashtextextended(p.subject_type, 0)",
    "link": "hashtextextended(p.subject_link, 0)",
    "canonical": "p.subject_canonical_begin::bigint << 32 | p.subject_canonical_end",
}
SAID = {
    "run": "p.submission_id",
    **{name: COLUMNS[name] for name in ("document", "subject_type", "link", "canonical")},
    "n": "count(*)",
}
SAID_BY = """
    FROM submissions_prediction p JOIN instances_instance i ON i.id = p.instance_id
    WHERE p.submission_id = ANY(%s) GROUP BY 1, 2, 3, 4, 5
"""
"""How often each run tells of a subject in the same way"""
Occurrence = tuple[int, str, int, bool]
"""Document, name, how often, whether the ends of the classes go by it: a person or an organisation
"""
IN_CORPUS = """
    SELECT m.document_id, lower(CASE WHEN m.link <> '' THEN m.link ELSE substring(d.text FROM
        coalesce(m.canonical_begin, m.begin) + 1 FOR coalesce(m.canonical_end, m."end") -
        coalesce(m.canonical_begin, m.begin)) END) AS name, count(*), bool_or(m.type = ANY(%s))
        AS people
    FROM corpus_mention m JOIN corpus_document d ON d.id = m.document_id
    WHERE d.corpus_id = %s AND m.type = ANY(%s) GROUP BY 1, 2
"""
"""The entities of the mentions that came with a corpus, as `Occurrence`; with `in_corpus`"""
TEXTS = """
    SELECT DISTINCT hashtextextended(said.text, 0), said.text
    FROM submissions_prediction p
    CROSS JOIN LATERAL (VALUES (p.subject_type), (p.subject_link)) AS said(text)
    WHERE p.submission_id = ANY(%s)
"""
NAMES = """
    SELECT lower(CASE WHEN entity.link <> '' THEN entity.link
        ELSE substring(d.text FROM entity.begin + 1 FOR entity.stop - entity.begin) END)
    FROM unnest(%s::bigint[], %s::int[], %s::int[], %s::text[])
        WITH ORDINALITY AS entity(document, begin, stop, link, place)
    JOIN corpus_document d ON d.id = entity.document ORDER BY entity.place
"""


def in_corpus(corpus: Corpus) -> list[object]:
    """Return what `IN_CORPUS` is asked with."""
    return [list(PEOPLE), corpus.pk, sorted(entity_types(corpus))]


def read_traits(track: Track, submissions: Sequence[int]) -> dict[str, Trait]:
    """Return the traits of all that some submissions predict, by ascending instance: `predicate`,
    `subject_type`, `frequency` (low, medium or high: in how many documents the subject occurs) and
    `sentence` (same or across).
    """
    corpus, state = track.corpus, state_of(submissions)
    newest = Mention.objects.filter(document__corpus=corpus).aggregate(last=Max("pk"))["last"]
    arrays = kept(
        f"traits-{corpus.pk}",
        None
        if state is None
        else (*state, *COLUMNS.items(), corpus.loaded_at.isoformat(), newest, *_sampled(track)),
        lambda: _of_each_instance(track, submissions),
    )
    return {name: Trait(arrays[f"names {name}"], arrays[f"code {name}"]) for name in TRAITS}


def _of_each_instance(track: Track, submissions: Sequence[int]) -> Arrays:
    """Return the same as arrays. Few texts occur in many rows: rows are read as numbers, and each
    text once.
    """
    rows = _first_of_each_instance(submissions)
    predicates = dict(Predicate.objects.filter(corpus=track.corpus).values_list("pk", "name"))
    text_of = dict(fetch(TEXTS, [list(submissions)]))
    documents, document = np.unique(rows["document"], return_inverse=True)
    row_of = {
        row.pk: row for row in Document.objects.filter(pk__in=documents.tolist()).defer("text")
    }
    read = [row_of[pk] for pk in documents.tolist()]
    first, last = (_sentences(read, document, rows[end]) for end in ("subject", "object"))
    subjects = _subjects(rows, text_of)
    class_of_row = _classes(track, subjects)[subjects.of_row]
    frequency, class_of = np.unique(class_of_row, return_inverse=True)
    coded = {
        "predicate": _texts(rows["predicate"], predicates),
        "subject_type": _texts(rows["subject_type"], text_of),
        "frequency": (frequency, class_of),
        "sentence": (np.array(["across", "same"]), (first == last).astype(np.int64)),
    }
    arrays: dict[str, NDArray[Any]] = {}
    for name, (names, code) in coded.items():
        arrays |= {f"names {name}": names, f"code {name}": code}
    return arrays


def _first_of_each_instance(submissions: Sequence[int]) -> dict[str, Ids]:
    """Return what is read of each test instance as the first submission predicts it, by ascending
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


def _texts(codes: Ids, text_of: Mapping[int, str]) -> tuple[Names, Ids]:
    """Return the texts of some codes, and (n,) which of them each row has."""
    known, place = np.unique(codes, return_inverse=True)
    return np.array([text_of[code] for code in known.tolist()], dtype=np.str_), place


def _sentences(documents: Sequence[Document], document: Ids, begin: Ids) -> Ids:
    """(n,) in which sentence each mention begins: all sentences stand in one ascending list."""
    sizes = [len(row.sentence_begin) for row in documents]
    begins = np.array([one for row in documents for one in row.sentence_begin], dtype=np.int64)
    ahead = np.repeat(np.arange(len(documents)), sizes) << 32
    return np.searchsorted(ahead + begins, (document << 32) + begin, side="right")


@dataclass(frozen=True, eq=False)
class Subjects:
    """Who some predictions are about: the distinct ways of telling it, and which each row has."""

    names: list[str]
    documents: list[int]
    people: list[bool]
    """Whether each is told to be a person or an organisation"""
    of_row: Ids


def _subjects(rows: Mapping[str, Ids], text_of: Mapping[int, str]) -> Subjects:
    """Return the subjects of some rows; those that are told alike are looked up once."""
    place = code_pairs(rows["document"], rows["canonical"])
    told = code_pairs(place, code_pairs(rows["link"], rows["subject_type"]))
    _, first, of_row = np.unique(told, return_index=True, return_inverse=True)
    document, canonical, link, types = (
        rows[name][first].tolist() for name in ("document", "canonical", "link", "subject_type")
    )
    spans = [(span >> 32, span & 0xFFFFFFFF) for span in canonical]
    begins, ends = [begin for begin, _ in spans], [end for _, end in spans]
    named = fetch(NAMES, [document, begins, ends, [text_of[code] for code in link]])
    names = [name for (name,) in named]
    return Subjects(names, document, [text_of[code] in PEOPLE for code in types], of_row)


def predicted_names(track: Track) -> list[Occurrence]:
    """Return the subjects that the sampled runs of a track predict: in which document, under which
    name, how often, and whether the ends of the classes go by it.

    A name occurs as the first sampled run says that predicts it, and the ends of the classes go by
    the persons and organisations of the first of all: so no later run moves an entity from one
    class to another, and no score changes since somebody else uploaded.
    """
    runs = _sampled(track, "sampled_at", "pk")
    rows = fetch_arrays(SAID, SAID_BY, [runs])
    subjects = _subjects(rows, dict(fetch(TEXTS, [runs])))
    turn = _places(runs, rows["run"])
    code_of: dict[str, int] = {}
    codes = [code_of.setdefault(name, len(code_of)) for name in subjects.names]
    name = np.array(codes, dtype=np.int64)[subjects.of_row]
    first = np.full(len(code_of), len(runs))
    np.minimum.at(first, name, turn)
    of_first = turn == turn.min(initial=len(runs))
    people = np.array(subjects.people, dtype=np.bool_)[subjects.of_row]
    bounds = of_first & people if (of_first & people).any() else of_first
    says = turn == first[name]
    return _occurrences(subjects, subjects.of_row[says], rows["n"][says], bounds[says])


def _places(runs: Sequence[int], of_row: Ids) -> Ids:
    """Return where the run of each row stands among these."""
    order = np.argsort(runs)
    return order[np.searchsorted(runs, of_row, sorter=order)]


def _occurrences(
    subjects: Subjects, of_row: Ids, times: Ids, bounds: NDArray[np.bool_]
) -> list[Occurrence]:
    """Return each document's names of subjects, from rows that say one so many times."""
    found: dict[tuple[int, str], tuple[int, bool]] = {}
    told = zip(of_row.tolist(), times.tolist(), bounds.tolist(), strict=True)
    for subject, n, is_bound in told:
        key = subjects.documents[subject], subjects.names[subject]
        before, was_bound = found.get(key, (0, False))
        found[key] = before + n, was_bound or is_bound
    return [(document, name, *said) for (document, name), said in found.items()]


def _sampled(track: Track, *order: str) -> list[int]:
    sampled = Submission.objects.filter(track=track, sampled_at__isnull=False)
    return list(sampled.order_by(*(order or ("pk",))).values_list("pk", flat=True))


def _classes(track: Track, subjects: Subjects) -> Names:
    """Return the frequency class of each subject: by the mentions that came with the corpus; where
    it came without any, by what the sampled runs of the track predict.
    """
    frequency = _in_corpus(track.corpus) or _frequencies(predicted_names(track))
    counts = np.array([number for number, _ in frequency.values()], dtype=np.int64)
    people = np.array([found for _, found in frequency.values()], dtype=np.bool_)
    of = np.array([frequency.get(name, (0, False))[0] for name in subjects.names], dtype=np.int64)
    return classes(of, limits(counts, people))


def _in_corpus(corpus: Corpus) -> dict[str, tuple[int, bool]]:
    """name -> (number of documents, whether the ends of the classes go by it), from the mentions
    that came with the corpus.
    """
    rows = fetch(
        f"SELECT name, count(*), bool_or(people) FROM ({IN_CORPUS}) found GROUP BY 1",
        in_corpus(corpus),
    )
    return {name: (number, people) for name, number, people in rows}


def _frequencies(occurrences: Sequence[Occurrence]) -> dict[str, tuple[int, bool]]:
    """Return the same from each document's names."""
    found: dict[str, tuple[int, bool]] = {}
    for _, name, _, people in occurrences:
        n, was_people = found.get(name, (0, False))
        found[name] = n + 1, was_people or people
    return found
