"""Stores claims as targets, instances and predictions: COPY into a temporary table, then one
statement for each table.

New targets and instances are inserted in the order of their unique keys, so that two files with
common ones wait for each other without a deadlock. Predictions are inserted in text order, so that
they can be listed by primary key.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast
from unicodedata import normalize

from django.conf import settings
from django.db import connection

from formats.doors import SNIFFED, detect_format, read_claims
from formats.mentions import CompactMap
from formats.messages import Report, replace_unprintable
from formats.opening import MB, Limits, open_text
from formats.relation import RelationClaim
from formats.schema import Schema
from formats.splitting import Span
from kbpo.corpus.lookup import DatabaseCorpus
from kbpo.corpus.models import Corpus, Predicate
from kbpo.corpus.sql import copy_lines, escape_for_copy
from kbpo.instances.targets import KEY_SQL, U_SQL

_LATEST = 20_000
"""Number of recent entities that are cached; the numbers of all entities are stored compactly."""
Tell = Callable[[float], None]


def upload_limits() -> Limits:
    """Return the limits of uploads from the settings."""
    return Limits(
        upload_bytes=settings.UPLOAD_LIMIT_MB * MB,
        unpacked_bytes=settings.UNPACKED_LIMIT_MB * MB,
        relations=settings.RELATION_LIMIT,
    )


class Reading:
    """The claims of one file, which can be iterated once, and its metadata."""

    def __init__(
        self, path: Path, corpus: Corpus, schema: Schema, report: Report, tell: Tell
    ) -> None:
        self.path = path
        self.report = report
        self.documents = DatabaseCorpus(corpus)
        lines = [line for _, line in islice(open_text(path, upload_limits(), Report(0)), SNIFFED)]
        self.door = detect_format(iter(lines)) or ""
        first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
        is_run_id = self.door == "tac_kb" and "\t" not in first
        self.run_id = replace_unprintable(first.strip())[:200] if is_run_id else ""
        self.entities = CompactMap()
        """Hash of an entity's identity -> the number of the system's entity."""
        self._latest: dict[str, int] = {}
        self._schema = schema
        self._tell = tell

    def __iter__(self) -> Iterator[RelationClaim]:
        passes = 2 if self.door == "tac_kb" else 1
        with self.path.open("rb") as file:
            source = cast(BinaryIO, _Watched(file, os.path.getsize(self.path), passes, self._tell))
            yield from read_claims(
                source, self.documents, self._schema, upload_limits(), self.report
            )

    def entity(
        self, claim: RelationClaim, name: str | None, link: str | None, canonical: Span
    ) -> int:
        """Return the number of an argument's entity: the system's own entity across documents, by
        its id or its link; without either, its document and the words of its canonical mention.
        """
        if name:
            known = self._latest.get(name, -1)
            if known == -1:
                if len(self._latest) >= _LATEST:
                    self._latest.clear()
                known = self._latest[name] = self._entity_number(hash(name))
            return known
        if link:
            return self._entity_number(hash(("link", link)))
        view = self.documents.get(claim.document)
        assert view is not None, claim.document
        words = normalize("NFC", view.text[canonical[0] : canonical[1]])
        return self._entity_number(hash((claim.document, words)))

    def _entity_number(self, key: int) -> int:
        number = len(self.entities)
        known = self.entities.add((key,), number)
        return number if known == -1 else known


class _Watched:
    """An open file that reports the share that has been read, over several passes."""

    def __init__(self, file: BinaryIO, size: int, passes: int, tell: Tell) -> None:
        self._file = file
        self._size = max(1, size)
        self._passes = passes
        self._begun = -1  # the first pass only looks at the beginning
        self._tell = tell

    def read(self, size: int = -1) -> bytes:
        block = self._file.read(size)
        done = max(0, self._begun - 1) + self._file.tell() / self._size
        self._tell(0.8 * min(1.0, done / self._passes) if self._begun > 0 else 0.0)
        return block

    def seek(self, offset: int) -> int:
        self._begun += 1
        return self._file.seek(offset)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True


COLUMNS = (
    "line",
    "document_id",
    "predicate_id",
    "subject_begin",
    "subject_end",
    "object_begin",
    "object_end",
    "a_begin",
    "a_end",
    "b_begin",
    "b_end",
    "confidence",
    "subject_type",
    "object_type",
    "subject_canonical_begin",
    "subject_canonical_end",
    "object_canonical_begin",
    "object_canonical_end",
    "subject_link",
    "object_link",
    "provenance",
    "subject_entity",
    "object_entity",
    "is_dev",
)

_STAGE = """
    CREATE TEMPORARY TABLE claims (
        line int, document_id bigint, predicate_id int, subject_begin int, subject_end int,
            object_begin int,
        object_end int, a_begin int, a_end int, b_begin int, b_end int, confidence float8,
            subject_type text,
        object_type text, subject_canonical_begin int, subject_canonical_end int,
            object_canonical_begin int,
        object_canonical_end int, subject_link text, object_link text, provenance int[],
            subject_entity int,
        object_entity int, is_dev boolean
    ) ON COMMIT DROP
"""
_PAIRS = (
    """
    CREATE TEMPORARY TABLE pairs ON COMMIT DROP AS
    SELECT d.*, t.id AS target_id FROM (
        SELECT *, """
    + KEY_SQL.format(
        corpus="%(corpus)s",
        kind="'pair'",
        document="document_id",
        a_begin="a_begin",
        a_end="a_end",
        b_begin="b_begin",
        b_end="b_end",
    )
    + """ AS key FROM (SELECT DISTINCT document_id, a_begin, a_end, b_begin, b_end, is_dev
        FROM claims) AS places
    ) AS d LEFT JOIN instances_target t ON t.key = d.key
"""
)
_TARGETS = f"""
    INSERT INTO instances_target (corpus_id, document_id, kind, a_begin, a_end, b_begin, b_end,
        key, u, is_dev)
    SELECT %(corpus)s, document_id, 'pair', a_begin, a_end, b_begin, b_end, key,
           {U_SQL.format(hash_key="%(hash_key)s", key="key")}, is_dev
    FROM pairs WHERE target_id IS NULL ORDER BY key
    ON CONFLICT (key) DO NOTHING
"""
_FOUND = (
    "UPDATE pairs SET target_id = t.id FROM instances_target t WHERE t.key = pairs.key AND"
    " target_id IS NULL"
)
_INSTANCES = """
    INSERT INTO instances_instance
        (target_id, document_id, subject_begin, subject_end, predicate_id, object_begin, object_end)
    SELECT p.target_id, c.document_id, c.subject_begin, c.subject_end, c.predicate_id,
        c.object_begin, c.object_end
    FROM claims c JOIN pairs p USING (document_id, a_begin, a_end, b_begin, b_end)
    LEFT JOIN instances_instance i USING
        (document_id, subject_begin, object_begin, subject_end, object_end, predicate_id)
    WHERE i.id IS NULL
    ORDER BY c.document_id, c.subject_begin, c.object_begin, c.subject_end, c.object_end,
        c.predicate_id
    ON CONFLICT DO NOTHING
"""
_PREDICTIONS = """
    WITH of_predicate AS (SELECT is_dev, predicate_id, count(*) AS n FROM claims GROUP BY 1, 2),
    facts AS (SELECT is_dev, subject_entity, count(*) AS n FROM claims
        GROUP BY is_dev, subject_entity, predicate_id, object_entity),
    of_subject AS (SELECT is_dev, subject_entity, sum(n) AS n, count(*) AS facts FROM facts
        GROUP BY 1, 2)
    INSERT INTO submissions_prediction
        (submission_id, instance_id, predicate_id, confidence, subject_type, object_type,
         subject_canonical_begin, subject_canonical_end, object_canonical_begin,
         object_canonical_end, subject_link, object_link, provenance, subject_entity,
         object_entity, same_predicate, same_subject, subject_facts, line, is_dev)
    SELECT %(submission)s, i.id, c.predicate_id, c.confidence, c.subject_type, c.object_type,
        c.subject_canonical_begin, c.subject_canonical_end, c.object_canonical_begin,
        c.object_canonical_end, c.subject_link, c.object_link, c.provenance, c.subject_entity,
        c.object_entity, c.same_predicate, c.same_subject, c.subject_facts, c.line,
        c.is_dev
    FROM (
        SELECT claims.*, r.n AS same_predicate, s.n AS same_subject, s.facts AS subject_facts
        FROM claims JOIN of_predicate r USING (is_dev, predicate_id)
        JOIN of_subject s USING (is_dev, subject_entity)
        OFFSET 0 -- counts are joined first: PostgreSQL expects one row of the join by six columns
    ) AS c
    JOIN instances_instance i USING (document_id, subject_begin, object_begin, subject_end,
        object_end, predicate_id)
    ORDER BY c.document_id, c.subject_begin, c.object_begin, i.id
"""
_COUNTS = """
    SELECT count(DISTINCT line), count(DISTINCT document_id),
           (SELECT count(*) FROM (SELECT subject_entity FROM claims UNION SELECT object_entity
               FROM claims) AS e)
    FROM claims
"""
_NULL = r"\N"
STEPS = (("pairs", _PAIRS), ("targets", _TARGETS), ("found", _FOUND), ("instances", _INSTANCES))


def store_claims(
    submission_id: int, corpus: Corpus, claims: Iterable[RelationClaim]
) -> dict[str, int]:
    """Store claims, and return how many relations, lines, documents and entities were stored. Runs
    inside the caller's transaction.
    """
    assert isinstance(claims, Reading)
    parameters: dict[str, Any] = {
        "corpus": corpus.pk,
        "hash_key": corpus.hash_key,
        "submission": submission_id,
    }
    predicates = dict(Predicate.objects.filter(corpus=corpus).values_list("name", "pk"))
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL work_mem = '128MB'")
        cursor.execute(_STAGE)
    relations = copy_lines("claims", COLUMNS, _copy_lines(claims, predicates))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE claims")
        for name, statement in STEPS:
            cursor.execute(statement, parameters)
            if name == "pairs":
                cursor.execute("ANALYZE pairs")
        cursor.execute(_PREDICTIONS, parameters)
        assert cursor.rowcount == relations, (
            f"{cursor.rowcount} of {relations} predictions were stored"
        )
        cursor.execute(_COUNTS)
        lines, documents, entities = cursor.fetchone()
        cursor.execute("DROP TABLE claims, pairs")
    return {
        "relations": relations,
        "used_lines": lines,
        "documents": documents,
        "entities": entities,
    }


def _copy_lines(claims: Reading, predicates: dict[str, int]) -> Iterator[str]:
    """Yield the claims as lines for COPY, with their columns in the order of `COLUMNS`."""
    entity, document_of = claims.entity, claims.documents.pk
    dev = claims.documents.dev
    for claim in claims:
        subject, object_ = claim.subject, claim.object
        a, b = (subject, object_) if subject <= object_ else (object_, subject)
        (a_begin, a_end), (b_begin, b_end) = a, b
        canonical, other = claim.subject_canonical, claim.object_canonical
        link, other_link = claim.subject_link, claim.object_link
        provenance = ",".join([f"{begin},{end}" for begin, end in claim.provenance])
        yield (
            f"{claim.line}\t{document_of(claim.document)}\t{predicates[claim.predicate]}"
            f"\t{subject[0]}\t{subject[1]}\t{object_[0]}\t{object_[1]}"
            f"\t{a_begin}\t{a_end}\t{b_begin}\t{b_end}"
            f"\t{_NULL if claim.confidence is None else claim.confidence}"
            f"\t{escape_for_copy(claim.subject_type)}\t{escape_for_copy(claim.object_type)}"
            f"\t{canonical[0]}\t{canonical[1]}\t{other[0]}\t{other[1]}"
            f"\t{escape_for_copy(link) if link else ''}"
            f"\t{escape_for_copy(other_link) if other_link else ''}"
            f"\t{{{provenance}}}"
            f"\t{entity(claim, claim.subject_entity, link, canonical)}"
            f"\t{entity(claim, claim.object_entity, other_link, other)}"
            f"\t{'t' if claim.document in dev else 'f'}"
        )
