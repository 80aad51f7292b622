"""Reads the pool: everything that the sampled submissions of a track state, as sparse arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from kbpo.corpus.fetch import fetch
from kbpo.pool.probabilities import Floats, Ids
from kbpo.scores.read import read_scores
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of

Matrix: TypeAlias = "sparse.csr_array"
OTHERS = 11
"""Columns that are read before the weights."""


@dataclass(frozen=True)
class Pool:
    """The union of what some submissions state: u instances on t targets, m submissions."""

    systems: list[int]
    teams: list[int]
    """Team of every submission."""
    instance: Ids
    """(u,) instance ids, ascending"""
    target: Ids
    """(u,) code of the target, an index into `target_id`"""
    target_id: Ids
    """(t,)"""
    u: Floats
    """(t,) the targets' random numbers"""
    document: Ids
    """(u,) document ids; 0 where a kind has none"""
    predicate: Ids
    """(u,) the stratum of each: of relations the predicate's id"""
    types: NDArray[np.str_]
    """(u,) types of subject and object, as the first submission says that states it"""
    subject: Ids
    """(u,) code of the subject's entity within its document: its canonical mention, as that
    submission says"""
    object: Ids
    """(u,) the same of the object; the codes are those of subjects"""
    p: dict[str, Matrix]
    """kind -> (u, m) probabilities; columns sum to 1"""
    confidence: Matrix
    """(u, m) confidences; 1 where the system gives none"""
    features: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """(u, k) what else a kind tells the model of each; empty if that is nothing"""
    scorers: list[int] = field(default_factory=list)
    """Metrics and judges in use that say anything of what is in the pool"""
    scores: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """(u, scorers) what they say; NaN where one says nothing"""
    input: Ids = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """(u,) code of what each was made for"""
    text: Matrix | None = None
    """(u, words) the weights of words in each, where the model is to see which say the same"""

    @cached_property
    def member(self) -> Matrix:
        """(u, m): 1 where the submission states the instance: gives it any weight. A stored zero is
        none.
        """
        first, *others = (_positive(one) for one in self.p.values())
        for one in others:
            first = first + one
        return sparse.csr_array(first, dtype=np.float64)

    def by_target(self, kind: str) -> Matrix:
        """(t, m): Σ_{x∈τ} p_i(x)."""
        shape = (self.target_id.size, self.instance.size)
        chooser = sparse.csr_array(
            (np.ones(self.target.size), (self.target, np.arange(self.target.size))), shape=shape
        )
        return sparse.csr_array(chooser @ self.p[kind])


def _positive(p: Matrix) -> Matrix:
    """Where the entries of a matrix are positive. A copy: what is done to it in place must not
    reach the other.
    """
    found = sparse.csr_array(p, copy=True)
    found.data = found.data > 0
    found.eliminate_zeros()
    return found


def read_pool(track: Track, submissions: Sequence[int], distributions: Sequence[str] = ()) -> Pool:
    """The pool of some submissions of a track, in their order, under the distributions that the
    track shows, or others of its kind.
    """
    kind, names = kind_of(track), list(distributions or track.distributions)
    said = kind.pool
    weights = ", ".join(kind.weights(name) for name in names)
    rows = fetch(
        f"SELECT p.submission_id, p.instance_id, i.target_id, t.u, {said.document}, {said.stratum},"
        f" {said.types}, coalesce(p.confidence, 1.0), {said.subject}, {said.object}, {said.input},"
        f" {weights}"
        " FROM submissions_prediction p JOIN instances_instance i ON i.id = p.instance_id"
        " JOIN instances_target t ON t.id = i.target_id"
        " WHERE p.submission_id = ANY(%s) ORDER BY p.instance_id, p.submission_id",
        [list(submissions)],
    )
    columns = list(zip(*rows, strict=True)) if rows else [()] * (OTHERS + len(names))
    instance, first, row = np.unique(
        np.array(columns[1], dtype=np.int64), return_index=True, return_inverse=True
    )
    target_id, at, code = np.unique(
        np.array(columns[2], dtype=np.int64)[first], return_index=True, return_inverse=True
    )
    position = {submission: j for j, submission in enumerate(submissions)}
    column = np.array([position[one] for one in columns[0]], dtype=np.int64)
    shape = (instance.size, len(submissions))

    def table(values: Sequence[float]) -> Matrix:
        return sparse.csr_array((np.array(values, dtype=np.float64), (row, column)), shape=shape)

    document = np.array(columns[4], dtype=np.int64)[first]
    entity = entities(document, *(np.array(columns[at], dtype=np.int64)[first] for at in (8, 9)))
    teams = dict(
        fetch(
            "SELECT id, team_id FROM submissions_submission WHERE id = ANY(%s)", [list(submissions)]
        )
    )
    scores = read_scores(track.corpus, instance)
    return Pool(
        systems=list(submissions),
        teams=[teams[one] for one in submissions],
        instance=instance,
        target=code.astype(np.int64),
        target_id=target_id,
        u=np.array(columns[3], dtype=np.float64)[first][at],
        document=document,
        predicate=np.array(columns[5], dtype=np.int64)[first],
        types=np.array(columns[6], dtype=np.str_)[first],
        subject=entity[0],
        object=entity[1],
        p={name: _normalised(table(columns[OTHERS + k])) for k, name in enumerate(names)},
        confidence=table(columns[7]),
        features=kind.features(instance),
        scorers=scores.scorers,
        scores=scores.value,
        input=np.unique(np.array(columns[10], dtype=np.int64)[first], return_inverse=True)[1],
        text=kind.words_in(instance),
    )


def entities(document: Ids, subject: Ids, object_: Ids) -> tuple[Ids, Ids]:
    """Codes of subjects and of objects, one code an entity of a document, from numbers of their
    canonical mentions.
    """
    mentions = np.column_stack(
        [np.concatenate([document, document]), np.concatenate([subject, object_])]
    )
    code = np.unique(mentions, axis=0, return_inverse=True)[1].ravel().astype(np.int64)
    return code[: document.size], code[document.size :]


def _normalised(weights: Matrix) -> Matrix:
    totals = np.asarray(weights.sum(axis=0)).ravel()
    return sparse.csr_array(weights @ sparse.diags_array(1 / np.where(totals > 0, totals, 1.0)))
