"""Finds targets by their content, and creates missing ones. Their keys and random numbers are
hashes of the content, computed in SQL and in Python with identical results.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from kbpo.corpus.models import Corpus
from kbpo.corpus.sql import fetch_rows

BITS = 52
"""Bits of a random number; a double represents every multiple of 2^-52 in [0, 1) exactly."""

KEY_SQL = (
    "md5({corpus}::text || '|' || {kind}::text || '|' || {document}::text || '|' || {a_begin}::text"
    " || '|' || {a_end}::text || '|' || {b_begin}::text || '|' || {b_end}::text)::uuid"
)
"""SQL of a target's key, a template for the expressions of its parts."""

CONTENT_KEY_SQL = (
    "left(encode(sha256(convert_to({corpus}::text || '|' || {kind}::text || '|' || {content},"
    " 'UTF8')), 'hex'), 32)::uuid"
)
"""SQL of the key of a target without a document, from the text that identifies it."""


def independent_random_number(hash_key: str, key: UUID) -> float:
    """Return a second random number in [0, 1) of a target, independent of its first one, `u`. It
    decides how many annotators are asked, never whether the target is drawn.
    """
    digest = hashlib.sha256(f"{hash_key}second{key}".encode()).digest()
    return float((int.from_bytes(digest[:7], "big") >> (56 - BITS)) / 2**BITS)


U_SQL = (
    "('x' || left(encode(sha256(convert_to({hash_key} || {key}::text, 'UTF8')), 'hex'),"
    " 13))::bit(52)::bigint / 4503599627370496.0::float8"
)
"""SQL of a target's random number, a template for the expressions of the corpus's secret and the
target's key."""


def random_number_of_target(hash_key: str, key: UUID) -> float:
    """Return the target's random number in [0, 1): its key, hashed with the corpus's secret."""
    digest = hashlib.sha256(f"{hash_key}{key}".encode()).hexdigest()
    return int(digest[: BITS // 4], 16) / float(1 << BITS)


Span = tuple[int, int]
NOWHERE: Span = (0, 0)


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a target: a pair has both spans, the smaller one first; a mention only a; a
    document neither.
    """

    kind: str
    document: int
    a: Span = NOWHERE
    b: Span = NOWHERE

    @classmethod
    def of_unordered_pair(cls, document: int, one: Span, other: Span) -> Place:
        """Return the place of an unordered pair of mentions."""
        return cls("pair", document, min(one, other), max(one, other))


_MAKE = """
    INSERT INTO instances_target (corpus_id, document_id, kind, a_begin, a_end, b_begin, b_end,
        key, u, is_dev)
    SELECT %(corpus)s, document, kind, a_begin, a_end, b_begin, b_end, key, {u},
        EXISTS (SELECT FROM corpus_document d WHERE d.id = document AND d.part = 'dev')
    FROM (SELECT *, {key} AS key
        FROM unnest(%(kinds)s::text[], %(documents)s::bigint[], %(ab)s::int[], %(ae)s::int[],
              %(bb)s::int[], %(be)s::int[]) AS n (kind, document, a_begin, a_end, b_begin,
                  b_end)) AS keyed
    WHERE NOT EXISTS (SELECT 1 FROM instances_target t WHERE t.key = keyed.key)
    ORDER BY key
    ON CONFLICT (key) DO NOTHING
"""
_FIND = """
    SELECT t.id, t.kind, t.document_id, t.a_begin, t.a_end, t.b_begin, t.b_end
    FROM unnest(%(kinds)s::text[], %(documents)s::bigint[], %(ab)s::int[], %(ae)s::int[],
        %(bb)s::int[], %(be)s::int[])
         AS n (kind, document, a_begin, a_end, b_begin, b_end)
    JOIN instances_target t ON t.key = {key}
"""
_LOCATED = """
    SELECT t.id, t.key::text, t.kind, d.key, ARRAY[t.a_begin, t.a_end, t.b_begin, t.b_end]
    FROM instances_target t LEFT JOIN corpus_document d ON d.id = t.document_id
    WHERE t.id = ANY(%s)
"""
_KEY = KEY_SQL.format(
    corpus="%(corpus)s",
    kind="n.kind",
    document="n.document",
    a_begin="n.a_begin",
    a_end="n.a_end",
    b_begin="n.b_begin",
    b_end="n.b_end",
)
_U = U_SQL.format(hash_key="%(hash_key)s", key="key")


def make_targets(corpus: Corpus, places: Sequence[Place]) -> dict[Place, int]:
    """Return place -> primary key of the target; missing targets are created.

    New targets are inserted in key order, so that two transactions with the same targets wait for
    each other without a deadlock.
    """
    return _find_or_make_targets(corpus, places, make=True)


def find_targets(corpus: Corpus, places: Sequence[Place]) -> dict[Place, int]:
    """Return place -> primary key of the existing target; none is created."""
    return _find_or_make_targets(corpus, places, make=False)


def _find_or_make_targets(
    corpus: Corpus, places: Sequence[Place], *, make: bool
) -> dict[Place, int]:
    unique = list(dict.fromkeys(places))
    if not unique:
        return {}
    parameters: dict[str, Any] = {
        "corpus": corpus.pk,
        "hash_key": corpus.hash_key,
        "kinds": [place.kind for place in unique],
        "documents": [place.document for place in unique],
        "ab": [place.a[0] for place in unique],
        "ae": [place.a[1] for place in unique],
        "bb": [place.b[0] for place in unique],
        "be": [place.b[1] for place in unique],
    }
    with connection.cursor() as cursor:
        if make:
            cursor.execute(_MAKE.format(key=_KEY, u=_U), parameters)
        cursor.execute(_FIND.format(key=_KEY), parameters)
        return {
            Place(kind, document, (a, b), (c, d)): pk
            for pk, kind, document, a, b, c, d in cursor.fetchall()
        }


def target_positions(
    targets: Sequence[int],
) -> dict[int, tuple[str, str, str | None, list[int]]]:
    """Return target -> its key, its kind, the key of its document if it has one, and the begins and
    ends of its spans.
    """
    rows = fetch_rows(_LOCATED, [list(targets)])
    return {pk: (key, kind, document, spans) for pk, key, kind, document, spans in rows}
