"""Tells which relations are one, in whatever document they are predicted or were found."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from kbpo.corpus.fetch import fetch
from scoring.arrays import Ids
from scoring.documents import Facts
from scoring.pool import Pool

Key: TypeAlias = tuple[object, ...]
"""A relation by name, in whatever document: its predicate, and the names of its ends in lower
case"""


def across_documents(
    pool: Pool, facts: Facts, row: Ids, marked: Ids, predicted: Ids
) -> tuple[Ids, Ids]:
    """Codes of the relations, in whatever document, that rows of the pool predict, and of facts
    that people marked; `predicted` is a row that predicts each of these, -1 if none does.

    They are one relation if they are of one fact, or of one predicate and the same names. A name of
    what is predicted is the link that the first submission that predicts it claims, else the text
    of its canonical mention; of what people found it is what they linked it to, if they linked both
    ends: without that, and if nobody predicts it, it is a relation of its own.
    """
    everything = np.concatenate([row, predicted])
    n, n_facts = everything.size, int(facts.fact.max(initial=-1)) + 1
    codes: dict[Key, int] = {}
    linkable = np.flatnonzero(everything >= 0)
    names = _names(pool, everything[linkable])
    by_name = [
        codes.setdefault(names[instance], len(codes))
        for instance in pool.instance[everything[linkable]].tolist()
    ]
    linked = {
        fact: codes.setdefault(key, len(codes))
        for fact, key in enumerate(_linked(facts))
        if key is not None
    }
    pairs = list(
        zip(linkable.tolist(), (n + np.array(by_name, dtype=np.int64)).tolist(), strict=True)
    )
    first_code = n + len(codes)
    pairs += zip(
        linkable.tolist(), (first_code + facts.fact[everything[linkable]]).tolist(), strict=True
    )
    place = {int(fact): row.size + number for number, fact in enumerate(marked)}
    for fact, code in linked.items():
        if fact in place:
            pairs.append((place[fact], n + code))
        elif facts.code[fact] >= 0:
            pairs.append((first_code + int(facts.code[fact]), n + code))
    size = first_code + n_facts
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    graph = sparse.coo_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(size, size))
    component = np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)
    return component[: row.size], component[row.size : n]


def _names(pool: Pool, row: Ids) -> dict[int, Key]:
    """Instance -> predicate and names of what rows of the pool predict."""
    names = ", ".join(
        f"lower(CASE WHEN p.{side}_link <> '' THEN p.{side}_link ELSE substring(d.text FROM"
        f" p.{side}_canonical_begin + 1 FOR p.{side}_canonical_end - p.{side}_canonical_begin) END)"
        for side in ("subject", "object")
    )
    named = fetch(
        f"SELECT DISTINCT ON (p.instance_id) p.instance_id, i.predicate_id, {names} FROM"
        " submissions_prediction p JOIN instances_instance i ON i.id = p.instance_id JOIN"
        " corpus_document d ON d.id = i.document_id WHERE p.submission_id = ANY(%s) AND"
        " p.instance_id = ANY(%s) ORDER BY p.instance_id, p.submission_id",
        [pool.systems, pool.instance[row].tolist()],
    )
    return {instance: tuple(names_of_row) for instance, *names_of_row in named}


def _linked(facts: Facts) -> list[Key | None]:
    """Of each true fact that people found its predicate and what they linked its ends to; None
    where not both are.
    """
    links = zip(facts.stratum.tolist(), facts.links.tolist(), strict=True)
    return [
        (predicate, *(end.lower() for end in ends)) if all(ends) else None
        for predicate, ends in links
    ]
