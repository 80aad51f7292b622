"""The key of a target, in SQL, and its random numbers: `u` in SQL and in Python, which give the
same, bit for bit.
"""

from __future__ import annotations

import hashlib
from uuid import UUID

BITS = 52
"""A double holds every multiple of 2^-52 in [0, 1) exactly."""

KEY_SQL = (
    "md5({corpus}::text || '|' || {kind}::text || '|' || {document}::text || '|' || {a_begin}::text"
    " || '|' || {a_end}::text || '|' || {b_begin}::text || '|' || {b_end}::text)::uuid"
)
"""SQL of a target's key, to be formatted with the expressions of its parts."""

CONTENT_KEY_SQL = (
    "left(encode(sha256(convert_to({corpus}::text || '|' || {kind}::text || '|' || {content},"
    " 'UTF8')), 'hex'), 32)::uuid"
)
"""SQL of the key of a target that lies in no document, from the text that tells it from others."""


def second_number(hash_key: str, key: UUID) -> float:
    """Return a random number in [0, 1) of a target that is independent of `u`: it decides how many
    annotators are asked, never whether the target is drawn.
    """
    digest = hashlib.sha256(f"{hash_key}second{key}".encode()).digest()
    return float((int.from_bytes(digest[:7], "big") >> (56 - BITS)) / 2**BITS)


U_SQL = (
    "('x' || left(encode(sha256(convert_to({hash_key} || {key}::text, 'UTF8')), 'hex'),"
    " 13))::bit(52)::bigint / 4503599627370496.0::float8"
)
"""SQL of a target's random number, to be formatted with the expressions of the corpus's secret
and the target's key."""


def u_of(hash_key: str, key: UUID) -> float:
    """Return the target's random number in [0, 1): its key, hashed with the corpus's secret."""
    digest = hashlib.sha256(f"{hash_key}{key}".encode()).hexdigest()
    return int(digest[: BITS // 4], 16) / float(1 << BITS)
