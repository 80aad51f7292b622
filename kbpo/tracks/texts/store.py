"""Stores what systems say where each thing said is a whole by itself: a target by its content, one
instance, one prediction.

New targets are inserted in the order of their keys: two files that share some wait for each other,
and never block each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from kbpo.corpus.copy import copy
from kbpo.corpus.fetch import fetch
from kbpo.corpus.models import Corpus
from kbpo.instances.hashing import CONTENT_KEY_SQL, U_SQL


@dataclass(frozen=True, slots=True)
class Claim:
    """One output of a system. `text` is its identity among those of its kind on the corpus;
    `content` is the data of its question, where it has no table of its own.
    """

    text: str
    line: int
    content: Any = None
    confidence: float | None = None


_STAGE = """
    CREATE TEMPORARY TABLE said (
        line int, text text, content jsonb, confidence float8, key uuid, target_id bigint
    ) ON COMMIT DROP
"""
_KEYS = f"UPDATE said SET key = {CONTENT_KEY_SQL}".format(
    corpus="%(corpus)s", kind="%(kind)s", content="text"
)
_TARGETS = f"""
    INSERT INTO instances_target (corpus_id, kind, key, u, content,
        a_begin, a_end, b_begin, b_end, is_dev)
    SELECT DISTINCT ON (key) %(corpus)s, %(kind)s, key,
        {U_SQL.format(hash_key="%(hash_key)s", key="key")}, content, 0, 0, 0, 0,
        coalesce(content->>'input' = ANY(%(dev)s), false)
    FROM said WHERE NOT EXISTS (SELECT 1 FROM instances_target t WHERE t.key = said.key)
    ORDER BY key, line
    ON CONFLICT (key) DO NOTHING
"""
_FOUND = "UPDATE said SET target_id = t.id FROM instances_target t WHERE t.key = said.key"
_INSTANCES = """
    INSERT INTO instances_instance (target_id)
    SELECT DISTINCT target_id FROM said ORDER BY target_id
    ON CONFLICT DO NOTHING
"""
_PREDICTIONS = """
    INSERT INTO submissions_prediction (submission_id, instance_id, confidence, line,
        subject_type, object_type, subject_link, object_link, same_predicate, same_subject,
        subject_facts, is_dev)
    SELECT DISTINCT ON (i.id) %(submission)s, i.id, s.confidence, s.line, '', '', '', '', 1, 1, 1,
        coalesce(s.content->>'input' = ANY(%(dev)s), false)
    FROM said s JOIN instances_instance i ON i.target_id = s.target_id
    ORDER BY i.id, s.line
    ON CONFLICT (submission_id, instance_id) DO NOTHING
"""


def store(
    submission_id: int, corpus: Corpus, kind: str, claims: Iterable[Claim], dev: Iterable[str] = ()
) -> int:
    """Store the claims of a file and return how many are distinct; of equal claims the first line
    counts. `kind` is the kind of their targets, `dev` are the inputs of the development part. Runs
    inside the caller's transaction.
    """
    parameters: dict[str, Any] = {
        "corpus": corpus.pk,
        "hash_key": corpus.hash_key,
        "submission": submission_id,
        "kind": kind,
        "dev": list(dev),
    }
    with connection.cursor() as cursor:
        cursor.execute(_STAGE)
    copy("said", ("line", "text", "content", "confidence"), _rows(claims))
    with connection.cursor() as cursor:
        for statement in (_KEYS, _TARGETS, _FOUND, _INSTANCES, _PREDICTIONS):
            cursor.execute(statement, parameters)
        stored = int(cursor.rowcount)
        cursor.execute("DROP TABLE said")
    return stored


def contents(instances: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Return the content of the target of each instance that has one, in the order of their
    numbers.
    """
    contents_of = fetch(
        "SELECT i.id, t.content FROM instances_instance i JOIN instances_target t ON"
        " t.id = i.target_id WHERE i.id = ANY(%s) AND t.content IS NOT NULL ORDER BY i.id",
        [list(instances)],
    )
    return {pk: json.loads(content) for pk, content in contents_of}


def _rows(claims: Iterable[Claim]) -> Iterator[tuple[Any, ...]]:
    for claim in claims:
        content = None if claim.content is None else json.dumps(claim.content, ensure_ascii=False)
        yield claim.line, claim.text, content, claim.confidence
