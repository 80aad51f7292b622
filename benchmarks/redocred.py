"""Reads the Re-DocRED systems and their gold standard into arrays, for studies that repeat sampling
and estimation.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
DATA = Path(os.environ.get("KBPO_SHARED_DATA", ROOT.parent / "shared" / "data")) / "redocred"

from scipy import sparse  # noqa: E402

from estimators.distributions import prediction_probabilities  # noqa: E402
from scoring.documents import Annotated, Facts  # noqa: E402
from scoring.pool import Pool as ServicePool  # noqa: E402

KINDS = ("instance", "relation", "entity", "entity_relation")
COLUMNS = 6


@dataclass(frozen=True)
class Pool:
    """Systems over the union of their instances (the first `u` rows) and all gold instances."""

    names: list[str]
    teams: list[str]
    keys: list[tuple[str, ...]]
    """(u + missed) instances: first those that a system predicts, then gold instances that none
    predicts"""
    true: NDArray[np.float64]
    member: NDArray[np.bool_]
    """(u + missed, m)"""
    p: dict[str, NDArray[np.float64]]
    """kind -> (u + missed, m), columns sum to 1"""
    document: NDArray[np.int64]
    target: NDArray[np.int64]
    """Code of the unordered pair of mentions"""
    predicate: NDArray[np.int64]
    confidence: NDArray[np.float64]
    """(u + missed, m), NaN where not predicted"""
    n_documents: int
    types: NDArray[np.int64]
    """(u + missed, 2) codes of subject and object type"""

    @property
    def n_predicted(self) -> int:
        """Return the number of instances that some system predicts."""
        return int(self.member.any(axis=1).sum())

    def precision(self, kind: str) -> NDArray[np.float64]:
        """Return the true precision of every system."""
        return np.asarray(self.true @ self.p[kind])

    def recall(self) -> NDArray[np.float64]:
        """Return the true recall of every system."""
        return np.asarray((self.true[:, None] * self.member).sum(axis=0) / self.true.sum())


def has_data() -> bool:
    """Return whether the data are available; print a message if not."""
    if DATA.exists():
        return True
    print(f"skipped: there is no {DATA}; set KBPO_SHARED_DATA to the folder that holds redocred/")
    return False


def read_rows(path: Path) -> list[list[str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        next(file)
        return [line.rstrip("\n").split("\t") for line in file]


def system_names(limit: int | None = None) -> list[str]:
    """Return system names; with a limit, spread over the teams."""
    found = sorted(json.loads((DATA / "truth.json").read_text())["systems"])
    if limit is None or limit >= len(found):
        return found
    by_run = sorted(found, key=lambda name: (name.split("_")[1], name))
    return sorted(by_run[:limit])


def read_systems(chosen: list[str]) -> Pool:
    """Return the pool of some systems."""
    gold = {tuple(row[:COLUMNS]) for row in read_rows(DATA / "gold.tsv.gz")}
    claims = {name: read_rows(DATA / "systems" / f"{name}.instances.tsv.gz") for name in chosen}
    predicted = sorted({tuple(row[:COLUMNS]) for claim in claims.values() for row in claim})
    keys = predicted + sorted(gold - set(predicted))
    at = {key: i for i, key in enumerate(keys)}
    kind_of_mention, documents = _read_mentions()
    member = np.zeros((len(keys), len(chosen)), dtype=np.bool_)
    confidence = np.full((len(keys), len(chosen)), np.nan)
    p = {kind: np.zeros((len(keys), len(chosen))) for kind in KINDS}
    predicate_code = _encode([key[3] for key in keys])
    for j, name in enumerate(chosen):
        links = _entity_links(name)
        index = np.array([at[tuple(row[:COLUMNS])] for row in claims[name]])
        member[index, j] = True
        confidence[index, j] = [float(row[8]) for row in claims[name]]
        subject = _encode([links[row[0], row[1], row[2]] for row in claims[name]])
        object_ = _encode([links[row[0], row[4], row[5]] for row in claims[name]])
        for kind in KINDS:
            p[kind][index, j] = prediction_probabilities(
                kind, subject=subject, predicate=predicate_code[index], object=object_
            )
    pairs = [(k[0], *sorted([(int(k[1]), int(k[2])), (int(k[4]), int(k[5]))])) for k in keys]
    return Pool(
        names=chosen,
        teams=[name.split("_")[0] for name in chosen],
        keys=keys,
        true=np.array([key in gold for key in keys], dtype=np.float64),
        member=member,
        p=p,
        document=np.array([documents[key[0]] for key in keys], dtype=np.int64),
        target=_encode(pairs),
        predicate=predicate_code,
        confidence=confidence,
        n_documents=len(documents),
        types=np.stack(
            [
                _encode([kind_of_mention[k[0], k[a], k[b]] for k in keys])
                for a, b in ((1, 2), (4, 5))
            ],
            axis=1,
        ),
    )


def entity_codes(keys: list[tuple[str, ...]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the codes of subject and object of each prediction; each entity of a document has one
    code.
    """
    table = read_rows(DATA / "mentions.tsv.gz")
    entity = {(row[0], row[1], row[2]): (row[0], row[4]) for row in table}
    code: dict[tuple[str, str], int] = {}
    subject, object_ = (
        np.array([code.setdefault(entity[key[0], key[at], key[at + 1]], len(code)) for key in keys])
        for at in (1, 4)
    )
    return subject, object_


def _entity_links(name: str) -> dict[tuple[str, str, str], str]:
    """Return (document, begin, end) -> the system's own entity, from its knowledge base."""
    found = {}
    with gzip.open(
        DATA / "systems" / f"{name}.kb.tsv.gz", "rt", encoding="utf-8", newline="\n"
    ) as file:
        for line in file:
            row = line.rstrip("\n").split("\t")
            if len(row) > 3 and row[1] == "mention":
                document, _, span = row[3].rpartition(":")
                begin, end = span.split("-")
                found[document, begin, str(int(end) + 1)] = row[0]
    return found


def _read_mentions() -> tuple[dict[tuple[str, str, str], str], dict[str, int]]:
    table = read_rows(DATA / "mentions.tsv.gz")
    kinds = {(row[0], row[1], row[2]): row[3] for row in table}
    with gzip.open(DATA / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        documents = {json.loads(line)["id"]: at for at, line in enumerate(file)}
    return kinds, documents


def _encode(values: list[object]) -> NDArray[np.int64]:
    seen: dict[object, int] = {}
    return np.array([seen.setdefault(value, len(seen)) for value in values], dtype=np.int64)


def judged_labels(pool: Pool, accuracy: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the majority label of three people for every instance, each right with the given
    probability.
    """
    if accuracy >= 1:
        return pool.true
    right = (rng.random((len(pool.keys), 3)) < accuracy).sum(axis=1) >= 2
    return np.where(right, pool.true, 1 - pool.true)


def facts_for_recall(pool: Pool, whole: ServicePool, documents: Any, columns: list[int]) -> Facts:
    """Return the input of recall when some runs are on the board and some documents were read."""
    predicted = whole.instance.size
    true = np.flatnonzero(np.isin(pool.document, documents) & (pool.true == 1))
    found = pool.member[true][:, columns].any(axis=1)
    code = np.searchsorted(documents, pool.document[true])
    return Facts(
        fact=np.arange(predicted),
        in_scope=np.ones(predicted, dtype=np.bool_),
        pool_weight=np.ones(predicted),
        predicted=pool.member[:predicted][:, columns],
        document=code,
        stratum=pool.predicate[true],
        found=found,
        n_annotated=documents.size,
        n_documents=pool.n_documents,
        inside=np.full(predicted, -1, dtype=np.int64),
        marked=np.zeros(predicted, dtype=np.bool_),
        code=np.where(true < predicted, true, -1),
        links=np.zeros((true.size, 2), dtype=np.str_),
        missed=np.bincount(code[~found], minlength=documents.size),
    )


def annotated_documents(documents: Any) -> Annotated:
    """Return the documents that were read, numbered from 0."""
    return Annotated(list(range(documents.size)), list(range(documents.size)))


def true_numbers(pool: Pool) -> dict[tuple[str, str], Any]:
    """Return (quantity, distribution) -> the true number of every system."""
    recall = pool.recall()  # each fact is predicted once here
    truth: dict[tuple[str, str], Any] = {("recall", "instance"): recall}
    truth["instance_recall", "instance"] = recall
    for kind in KINDS:
        precision = pool.precision(kind)
        truth["precision", kind] = precision
        truth["f1", kind] = 2 * precision * recall / (precision + recall)
    return truth


def as_service_pool(pool: Pool) -> ServicePool:
    """Return the pool in the service's form, with predicted instances only."""
    predicted, m = pool.n_predicted, len(pool.names)
    target_id, code = np.unique(pool.target[:predicted], return_inverse=True)
    member = pool.member[:predicted]
    subject, object_ = entity_codes(pool.keys[:predicted])
    confidence = np.where(member, np.nan_to_num(pool.confidence[:predicted], nan=1.0), 0.0)
    return ServicePool(
        systems=list(range(m)),
        teams=[sorted(set(pool.teams)).index(team) for team in pool.teams],
        instance=np.arange(predicted),
        target=code.astype(np.int64),
        target_id=target_id,
        u=np.zeros(target_id.size),
        document=pool.document[:predicted],
        stratum=pool.predicate[:predicted],
        types=np.array([f"{a}|{b}" for a, b in pool.types[:predicted]], dtype=np.str_),
        subject=subject,
        object=object_,
        p={kind: sparse.csr_array(pool.p[kind][:predicted]) for kind in KINDS},
        confidence=sparse.csr_array(confidence),
    )
