"""Reads the traits by which scores of relations are cut: predicate, entity type, sentence.

As everywhere in the pool, an instance is what the first submission that predicts it says: a slice
is the same set of instances for every system, so that systems can be compared in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbpo.corpus.fetch import fetch, fetch_arrays
from kbpo.corpus.kept import Arrays, cached_arrays
from kbpo.corpus.models import Corpus, Document, Predicate
from kbpo.submissions.fixed import state_of
from kbpo.tracks.base import Trait
from scoring.arrays import Ids

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
    """Return the traits of all that some submissions predict, by ascending instance: `predicate`,
    `subject_type` and `sentence` (same or across).
    """
    state = state_of(submissions)
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
        _sentences(sentence_begins, document, rows[end]) for end in ("subject", "object")
    )
    coded = {
        "predicate": _named(rows["predicate"], predicates),
        "subject_type": _named(rows["subject_type"], dict(fetch(TYPES, [list(submissions)]))),
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


def _named(codes: Ids, name_of: Mapping[int, str]) -> tuple[NDArray[np.str_], Ids]:
    """Return the names of some codes, and (n,) which of them each row has."""
    known, place = np.unique(codes, return_inverse=True)
    return np.array([name_of[code] for code in known.tolist()], dtype=np.str_), place


def _sentences(sentence_begins: Sequence[Sequence[int]], document: Ids, begin: Ids) -> Ids:
    """Return (n,) the sentence in which each mention begins, numbered over all documents."""
    ahead = np.repeat(np.arange(len(sentence_begins)), [len(row) for row in sentence_begins]) << 32
    begins = np.array([one for row in sentence_begins for one in row], dtype=np.int64)
    return np.searchsorted(ahead + begins, (document << 32) + begin, side="right")
