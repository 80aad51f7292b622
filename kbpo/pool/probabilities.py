"""Reads p_i(x) from PostgreSQL: the weights of a track's distributions, divided by their stored
normalisers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from estimators.poisson import keyed_uniforms
from kbpo.corpus.sql import fetch_arrays, fetch_rows
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from scoring.arrays import Floats, Ids


def submission_support(submission: Submission, kind: str) -> tuple[Ids, Ids, Floats]:
    """Return the ids of a submission's instances (ascending) in the test part, the ids of their
    targets, and their probabilities p_i(x).
    """
    weight = kind_of(submission.track).measures.distributions[kind].weight
    predictions = fetch_arrays(
        {"x": "p.instance_id", "target": "i.target_id", "weight": weight},
        "FROM submissions_prediction p JOIN instances_instance i ON i.id = p.instance_id"
        " WHERE p.submission_id = %s AND NOT p.is_dev ORDER BY p.instance_id",
        [submission.pk],
        reals=["weight"],
    )
    return (
        predictions["x"],
        predictions["target"],
        predictions["weight"] / predictions["weight"].sum(),
    )


def instance_probabilities(
    track: Track, kind: str, instances: Ids, submissions: Sequence[int]
) -> Floats:
    """Return the matrix P (n, m) of the probability of each instance under each submission's
    distribution; 0 if it is not predicted.

    Only existing rows are read; `instances` may repeat.
    """
    unique, position = np.unique(instances, return_inverse=True)
    table = np.zeros((unique.size, len(submissions)))
    column = {submission: j for j, submission in enumerate(submissions)}
    for instance, submission, p in _weighted_predictions(
        track, kind, unique.tolist(), list(submissions)
    ):
        table[np.searchsorted(unique, instance), column[submission]] = p
    return np.asarray(table[position], dtype=np.float64)


def target_probabilities(
    track: Track, kind: str, targets: Ids, submissions: Sequence[int]
) -> Floats:
    """Return (t, m) the probability that one draw of each submission hits each target: Σ_{x∈τ}
    p_i(x).
    """
    table = np.zeros((targets.size, len(submissions)))
    order = np.argsort(targets)
    ascending = targets[order]
    column = {submission: j for j, submission in enumerate(submissions)}
    weight = kind_of(track).measures.distributions[kind].weight
    hit_probabilities = fetch_rows(
        f"SELECT i.target_id, p.submission_id, sum(({weight}) / d.total) FROM instances_instance i"
        " JOIN submissions_prediction p ON p.instance_id = i.id"
        " JOIN sampling_samplingdistribution d ON d.submission_id = p.submission_id AND d.kind = %s"
        " WHERE i.target_id = ANY(%s) AND p.submission_id = ANY(%s) GROUP BY 1, 2",
        [kind, targets.tolist(), list(submissions)],
    )
    for target, submission, p in hit_probabilities:
        table[order[np.searchsorted(ascending, target)], column[submission]] = p
    return table


def _weighted_predictions(
    track: Track, kind: str, instances: list[int], submissions: list[int]
) -> Iterable[tuple[int, int, float]]:
    weight = kind_of(track).measures.distributions[kind].weight
    return fetch_rows(
        f"SELECT p.instance_id, p.submission_id, ({weight}) / d.total FROM submissions_prediction p"
        " JOIN sampling_samplingdistribution d ON d.submission_id = p.submission_id AND d.kind = %s"
        " WHERE p.instance_id = ANY(%s) AND p.submission_id = ANY(%s)",
        [kind, instances, submissions],
    )


def random_numbers(track: Track, use: str, targets: Ids) -> Floats:
    """Return (n,) a number in [0, 1) for each target."""
    return keyed_uniforms(
        (f"{use}:{target}" for target in targets.tolist()), key=track.secret.encode()[:64]
    )
