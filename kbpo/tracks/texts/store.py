"""Stores outputs of systems, each as a target by its content, with one instance and one prediction.

New targets are inserted in key order, so that two files with common ones wait for each other
without a deadlock.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import IntegrityError, connection, transaction

from formats.inputs import InputRecord, read_inputs
from formats.messages import Report
from formats.opening import Limits, open_text
from kbpo.corpus.load import CannotLoad, draw_development_part, first_warnings, refuse_errors
from kbpo.corpus.models import Corpus, CorpusUpload, Part, unique_slug
from kbpo.corpus.sql import copy_rows, fetch_rows
from kbpo.corpus.upload import Found, process_uploads, store_corpus_of_upload
from kbpo.instances.targets import CONTENT_KEY_SQL, U_SQL
from kbpo.tracks.texts.models import Input

DEV_SHARE, MOST_DEV = 0.1, 50
"""Share of inputs in the development part, and its greatest number of inputs"""


def tick() -> int:
    """Check uploaded inputs by a trial load, or load those that an admin confirmed; return how
    many.
    """
    return process_uploads(CorpusUpload, _load_upload, filters={"what": CorpusUpload.What.INPUTS})


def _load_upload(upload: CorpusUpload) -> Found:
    share = DEV_SHARE if upload.dev_share is None else upload.dev_share
    corpus = load_inputs(upload.name, Path(upload.file.path), upload.notes, dev_share=share)
    store_corpus_of_upload(upload, corpus)
    inputs = Input.objects.filter(corpus=corpus)
    return {
        "inputs": inputs.count(),
        "of the development part": inputs.filter(part=Part.DEV).count(),
        "with a reference": inputs.exclude(references=[]).count(),
    }


def load_inputs(
    name: str, path: Path, notes: list[str] | None = None, *, dev_share: float = DEV_SHARE
) -> Corpus:
    """Load a corpus of inputs and return it; sentences about ignored parts are added to `notes`. If
    no input states its part, `dev_share` of them become the development part. Raises CannotLoad
    with the wrong lines, in which case nothing is stored.
    """
    slug = unique_slug(name, Corpus.objects.all(), "corpus")
    if not slug:
        raise CannotLoad("A corpus needs a name with letters or digits.")
    report, limits = Report(), Limits()
    try:
        lines = open_text(path, limits.for_corpus(), report)
        inputs = list(read_inputs(lines, limits, report))
    except OSError as problem:
        raise CannotLoad(f"{path} cannot be read: {problem.strerror}.") from problem
    refuse_errors(report, path)
    if notes is not None:
        notes += first_warnings(report, path)
    if not inputs:
        raise CannotLoad(f"Nothing was loaded: {path.name} has no input.")
    try:
        with transaction.atomic():
            corpus = Corpus.objects.create(name=name, slug=slug, schema={})
            dev = {record.input_id for record in inputs if record.part == Part.DEV}
            if not any(record.part for record in inputs):
                dev = _draw_development_keys(inputs, corpus.hash_key, dev_share)
            Input.objects.bulk_create(
                (
                    Input(
                        corpus=corpus,
                        key=input_record.input_id,
                        source=input_record.source,
                        question=input_record.question,
                        passages=list(input_record.passages),
                        references=list(input_record.references),
                        prompt=input_record.prompt,
                        split=input_record.split,
                        part=Part.DEV if input_record.input_id in dev else Part.TEST,
                    )
                    for input_record in inputs
                ),
                batch_size=1000,
            )
    except IntegrityError as problem:
        raise CannotLoad(f"There is a corpus {name} already. Choose another name.") from problem
    return corpus


def _draw_development_keys(inputs: Sequence[InputRecord], key: str, share: float) -> set[str]:
    """Return the keys of the development part; inputs with the same source, passage or cluster are
    in the same part.
    """
    group_of: dict[object, list[str]] = {}
    for record in inputs:
        shared = record.cluster or record.source or tuple(record.passages) or record.input_id
        group_of.setdefault(shared, []).append(record.input_id)
    return draw_development_part(
        list(group_of.values()), key, share=share, minimum=1, maximum=MOST_DEV
    )


@dataclass(frozen=True, slots=True)
class Claim:
    """One output of a system. `text` identifies it within its kind on the corpus; `content` is the
    payload data, if its kind has no table.
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


def store_text_claims(
    submission_id: int, corpus: Corpus, kind: str, claims: Iterable[Claim], dev: Iterable[str] = ()
) -> int:
    """Store the claims of a file and return the number of distinct ones; of equal claims the first
    line is used. `kind` is the kind of their targets, `dev` the inputs of the development part.
    Runs inside the caller's transaction.
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
    copy_rows("said", ("line", "text", "content", "confidence"), _instance_rows(claims))
    with connection.cursor() as cursor:
        for statement in (_KEYS, _TARGETS, _FOUND, _INSTANCES, _PREDICTIONS):
            cursor.execute(statement, parameters)
        stored = int(cursor.rowcount)
        cursor.execute("DROP TABLE said")
    return stored


def target_contents(instances: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Return instance -> the content of its target, if it has one, in primary-key order."""
    contents_of = fetch_rows(
        "SELECT i.id, t.content FROM instances_instance i JOIN instances_target t ON"
        " t.id = i.target_id WHERE i.id = ANY(%s) AND t.content IS NOT NULL ORDER BY i.id",
        [list(instances)],
    )
    return {pk: json.loads(content) for pk, content in contents_of}


def _instance_rows(claims: Iterable[Claim]) -> Iterator[tuple[Any, ...]]:
    for claim in claims:
        content = None if claim.content is None else json.dumps(claim.content, ensure_ascii=False)
        yield claim.line, claim.text, content, claim.confidence
