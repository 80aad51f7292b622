"""Reads the pool: everything that the sampled submissions of a track state, as sparse arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from kbpo.corpus.fetch import fetch
from kbpo.scores.read import read_scores
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from scoring.arrays import Ids
from scoring.arrays import Matrix as Matrix
from scoring.pool import Pool as Pool

OTHERS = 11
"""Columns that are read before the weights."""


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
