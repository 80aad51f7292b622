"""Reads the pool: all predictions of the sampled submissions of a track in the test part, as sparse
arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from estimators.sums import encode_pairs
from kbpo.corpus.cache import Arrays, cached_arrays
from kbpo.corpus.sql import fetch_arrays, fetch_rows
from kbpo.sampling.models import SamplingDistribution
from kbpo.scores.read import read_scores
from kbpo.submissions.models import predictions_state
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from scoring.arrays import Floats, Ids, Matrix
from scoring.pool import Pool, columns_as_arrays


def read_pool(track: Track, submissions: Sequence[int], distributions: Sequence[str] = ()) -> Pool:
    """Return the pool of some submissions of a track, in their order, under the track's
    distributions or other distributions of its kind.
    """
    kind, names = kind_of(track), list(distributions or track.distributions)
    columns = _prediction_columns(kind, names)
    state = predictions_state(submissions)
    fixed = () if state is None else (track.pk, *state, *columns.items())
    predicted = cached_arrays(
        f"pool-{track.pk}",
        fixed or None,
        lambda: _prediction_arrays(kind, names, submissions),
    )
    for name in ("column", "begin"):  # shared by all tables: never sorted in place
        predicted[name].flags.writeable = False
    instance = predicted["instance_id"]
    shape = (instance.size, len(submissions))

    def probability_table(name: str) -> Matrix:
        parts = (predicted[name], predicted["column"], predicted["begin"])
        return sparse.csr_array(parts, shape=shape)

    teams = dict(
        fetch_rows(
            "SELECT id, team_id FROM submissions_submission WHERE id = ANY(%s)", [list(submissions)]
        )
    )
    scores = read_scores(track, instance)
    features, words = kind.features(instance)
    pool = Pool(
        systems=list(submissions),
        teams=[teams[submission] for submission in submissions],
        instance=instance,
        target=predicted["target"],
        target_id=predicted["target_id"],
        u=predicted["u"],
        document=predicted["document"],
        stratum=predicted["stratum"],
        types=predicted["types"],
        subject=predicted["subject"],
        object=predicted["object"],
        p={name: probability_table(f"p {name}") for name in names},
        confidence=probability_table("confidence"),
        features=features,
        scorers=scores.scorers,
        scores=scores.value,
        input=predicted["input"],
        text=words,
        fixed=fixed,
    )
    if not fixed:
        return pool
    return replace(
        pool, by_system=cached_arrays(f"systems-{track.pk}", fixed, lambda: columns_as_arrays(pool))
    )


def _prediction_arrays(kind: Kind, names: Sequence[str], submissions: Sequence[int]) -> Arrays:
    """Return the arrays that depend on the predictions only: a row for each instance, and the
    entries of the sparse tables by `begin` and `column`.
    """
    column, predictions = _read_prediction_rows(kind, names, submissions)
    instance, first_prediction, row = np.unique(
        predictions["instance_id"], return_index=True, return_inverse=True
    )
    target_id, first_row, code = np.unique(
        predictions["target_id"][first_prediction], return_index=True, return_inverse=True
    )
    document = predictions["document"][first_prediction]
    subject, object_ = entity_codes(
        document, predictions["subject"][first_prediction], predictions["object"][first_prediction]
    )
    order = np.lexsort((column, row))
    ordered = column[order]
    tables = {"confidence": predictions["confidence"][order]}
    for name in names:
        weight = predictions[f"p {name}"]
        totals = np.bincount(column, weights=weight, minlength=len(submissions))
        tables[f"p {name}"] = weight[order] * (1 / np.where(totals > 0, totals, 1.0))[ordered]
    return {
        "instance_id": instance,
        "target": code.astype(np.int64),
        "target_id": target_id,
        "u": predictions["u"][first_prediction][first_row],
        "document": document,
        "stratum": predictions["stratum"][first_prediction],
        "types": _type_codes(
            kind,
            predictions["types"][first_prediction],
            instance,
            np.array(submissions)[column[first_prediction]],
        ),
        "subject": subject,
        "object": object_,
        "input": np.unique(predictions["input"][first_prediction], return_inverse=True)[1],
        "begin": np.searchsorted(row[order], np.arange(instance.size + 1)).astype(np.int32),
        "column": ordered.astype(np.int32),
        **tables,
    }


def _type_codes(kind: Kind, hashed: Ids, instance: Ids, submission: Ids) -> Ids:
    """Return (u,) codes of types in the alphabetical order of their names, from the hashes of types
    and statements.
    """
    _, sample, code = np.unique(hashed, return_index=True, return_inverse=True)
    named_types = fetch_rows(
        f"SELECT predicted.place, {kind.pool.types}"
        " FROM unnest(%s::bigint[], %s::bigint[]) WITH ORDINALITY"
        " AS predicted(submission, instance, place)"
        " JOIN submissions_prediction p ON p.submission_id = predicted.submission"
        " AND p.instance_id = predicted.instance"
        " JOIN instances_instance i ON i.id = p.instance_id"
        " JOIN instances_target t ON t.id = i.target_id ORDER BY predicted.place",
        [submission[sample].tolist(), instance[sample].tolist()],
    )
    ranks = np.argsort(np.argsort(np.array([name for _, name in named_types], dtype=np.str_)))
    return np.asarray(ranks[code], dtype=np.int64)


def _read_prediction_rows(
    kind: Kind, distributions: Sequence[str], submissions: Sequence[int]
) -> tuple[Ids, dict[str, NDArray[Any]]]:
    """Return, for each prediction of some submissions, the position of its submission, and its
    values by name. Submissions and their predictions are ordered by primary key, since an order
    chosen by PostgreSQL would change the model and the draws.

    Submissions are read one at a time, so that the memory of only one is duplicated.
    """
    columns = _prediction_columns(kind, distributions)
    owners, parts = list[Ids](), list[dict[str, NDArray[Any]]]()
    for submission in sorted(submissions):
        part = fetch_arrays(
            columns,
            "FROM submissions_prediction p JOIN instances_instance i ON i.id = p.instance_id"
            " JOIN instances_target t ON t.id = i.target_id"
            " WHERE p.submission_id = %s AND NOT p.is_dev ORDER BY p.id",
            [submission],
            reals=("u", "confidence", *(f"p {name}" for name in distributions)),
        )
        parts.append(part)
        owners.append(np.full(part["instance_id"].size, submissions.index(submission)))
    none: dict[str, NDArray[Any]] = {name: np.zeros(0, dtype=np.int64) for name in columns}
    together = {}
    for name in columns:
        together[name] = np.concatenate([none[name], *(part.pop(name) for part in parts)])
    return np.concatenate([np.zeros(0, dtype=np.int64), *owners]), together


def _prediction_columns(kind: Kind, distributions: Sequence[str]) -> dict[str, str]:
    """Return name -> SQL of each value that is read for a prediction."""
    sources = kind.pool
    return {
        "instance_id": "p.instance_id",
        "target_id": "i.target_id",
        "u": "t.u",
        "document": sources.document,
        "stratum": sources.stratum,
        "types": f"hashtextextended({sources.types}, 0)",
        "confidence": "coalesce(p.confidence, 1.0)",
        "subject": sources.subject,
        "object": sources.object,
        "input": sources.input,
        **{f"p {name}": kind.measures.distributions[name].weight for name in distributions},
    }


def entity_codes(document: Ids, subject: Ids, object_: Ids) -> tuple[Ids, Ids]:
    """Return codes of subjects and of objects, one code for each entity of a document, from
    canonical mentions.
    """
    code = encode_pairs(np.tile(document, 2), np.concatenate([subject, object_]))
    return code[: document.size], code[document.size :]


def pairwise_overlaps(kind: str, systems: list[int]) -> Floats:
    """Return the overlap Σ_x p_i p_j of every pair of systems, shape (m, m)."""
    column = {system: j for j, system in enumerate(systems)}
    table = np.zeros((len(systems), len(systems)))
    stored = SamplingDistribution.objects.filter(kind=kind, submission__in=systems)
    for system, overlap_with in stored.values_list("submission_id", "overlaps"):
        for other in overlap_with.keys() & {str(system) for system in systems}:
            i, j = column[system], column[int(other)]
            table[i, j] = table[j, i] = overlap_with[other]
    return table
