"""Features of predictions for the model g that need no judgments: which systems predict them, with
which confidence, and so on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from estimators import checks
from estimators.checks import FloatArray, IntArray

Matrix: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix

RIDGE = {
    "1": 0.0, "system": 2.0, "standing": 2.0, "votes": 2.0, "predicate": 6.0, "types": 10.0,
    "crowd": 10.0, "judge": 2.0,
    "number": 40.0,
}  # fmt: skip
"""Penalty of each family of columns: 1 over the expected variance of its coefficients. Chosen on 28
real systems, where twice or half as much costs 1 to 2 % more variance. Distances and lengths of
texts, as ``numbers``, and a column for each frequent word between and next to the two names, with
and without the predicate, did not improve the model there."""
LEAST_ROWS = 50
"""Predicates and types with fewer rows get no column, since hardly any of the rows would be
labelled.
"""


@dataclass(frozen=True, eq=False)
class Features:
    """Features of every prediction of the pool.

    Attributes
    ----------
    matrix : scipy.sparse.csr_array, shape (n, d)
        Column 0 is the constant.
    penalty : (d,) array
        Ridge penalty of each column; 0 for the constant.
    names : tuple of str
        Names of the columns, equal for equal codes: an earlier fit is carried over by them.

    Examples
    --------
    >>> import numpy as np
    >>> found = prediction_features(np.array([[1, 0], [1, 1]]), target=[0, 1])
    >>> found.matrix.shape[1] == found.penalty.size == len(found.names), found.penalty[0].item()
    (True, 0.0)
    """

    matrix: sparse.csr_array
    penalty: FloatArray
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Claims:
    """The free inputs of the model for a pool: n predictions of m systems. All attributes are
    required.

    The service and the benchmark replays both pass their pools to the model in this form, so that
    they cannot diverge.

    Attributes
    ----------
    membership, target, team, confidence, predicate, types, subject, object, numbers, scores
        As for :func:`prediction_features`.

    Examples
    --------
    >>> import numpy as np
    >>> pool = Claims(
    ...     membership=np.array([[1, 0], [1, 1]]),
    ...     target=np.arange(2),
    ...     team=np.arange(2),
    ...     confidence=np.zeros((2, 2)),
    ...     predicate=np.array([4, 5]),
    ...     types=np.zeros(2, int),
    ...     subject=np.array([1, 1]),
    ...     object=np.array([2, 3]),
    ... )
    >>> pool.features().matrix.shape[0]
    2
    """

    membership: Matrix
    target: IntArray
    team: IntArray
    confidence: Matrix
    predicate: IntArray
    types: IntArray
    subject: IntArray
    object: IntArray
    numbers: FloatArray | None = None
    scores: FloatArray | None = None

    def features(self) -> Features:
        """Return the features of every prediction."""
        return prediction_features(
            self.membership,
            target=self.target,
            team=self.team,
            confidence=self.confidence,
            predicate=self.predicate,
            types=self.types,
            subject=self.subject,
            object=self.object,
            numbers=self.numbers,
            scores=self.scores,
        )


class _Columns(NamedTuple):
    family: str
    codes: list[str]
    matrix: sparse.csr_array


def prediction_features(
    membership: Matrix,
    *,
    target: ArrayLike,
    team: ArrayLike | None = None,
    confidence: Matrix | None = None,
    predicate: ArrayLike | None = None,
    types: ArrayLike | None = None,
    subject: ArrayLike | None = None,
    object: ArrayLike | None = None,
    numbers: ArrayLike | None = None,
    scores: ArrayLike | None = None,
) -> Features:
    """Return the features of every prediction of the pool.

    In the order of their worth on real systems: one 0/1 column for each system; one for each system
    with the rank of its confidence among its own (the fit calibrates different scales); the scores
    of judges, calibrated in the same way; the logarithms of how many systems and teams agree, and
    of what else is said of the target, of the subject and of the object; one column a frequent
    predicate; one a frequent pair of types; numbers of any kind.

    Parameters
    ----------
    membership : (n, m) array or scipy.sparse
        Which systems predict each of the n predictions of the pool; every row is predicted by one
        at least.
    target : (n,) integer array
        Target of each row.
    team : (m,) integer array, optional
        Team of each system; every system is a team of its own if left out.
    confidence : (n, m) array or scipy.sparse, optional
        Confidence of each statement, on any scale; read only where ``membership`` is positive. NaN,
        or nothing stored in a sparse one: none given.
    predicate, types : (n,) integer array, optional
        Codes of the predicate and of the pair of types.
    subject, object : (n,) integer array, optional
        Codes of the entities (within the document), to count the rivals of a statement.
    numbers : (n, k) array, optional
        Anything else: distance, length, frequency. Standardised here.
    scores : (n, k) array, optional
        What judges (programs that have read the text) say of each row, on any scale; NaN where one
        has not said anything. A row's score must not depend on whether people were asked about it.

    Returns
    -------
    Features

    Raises
    ------
    ValueError
        If shapes disagree, codes are no codes, or a number is not finite.

    Examples
    --------
    >>> found = prediction_features([[1, 0], [1, 1]], target=[0, 0])
    >>> found.names[:3], found.matrix.toarray()[:, :3].tolist()
    (('1', 'system 0', 'system 1'), [[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    """
    predicted = _check_membership(membership)
    n, m = predicted.shape
    code = checks.check_codes("target", target, n)
    teams = np.arange(m) if team is None else checks.check_codes("team", team, m)
    parts = [
        _Columns("1", [""], sparse.csr_array(np.ones((n, 1)))),
        _Columns("system", [f" {j}" for j in range(m)], predicted),
        _vote_columns(predicted, teams),
        _agreement_columns(predicted, code, predicate, subject, object),
    ]
    if confidence is not None:
        parts.append(_confidence_ranks(predicted, confidence))
    for family, codes in (("predicate", predicate), ("types", types)):
        if codes is not None:
            parts.append(_indicator_columns(family, checks.check_codes(family, codes, n)))
    if scores is not None:
        parts.append(_judge_score_columns(np.asarray(scores, dtype=np.float64), n))
    if numbers is not None:
        parts.append(_numeric_columns(checks.check_finite("numbers", numbers), n))
    return Features(
        matrix=sparse.csr_array(sparse.hstack([part.matrix for part in parts], format="csr")),
        penalty=np.concatenate(
            [np.full(part.matrix.shape[1], RIDGE[part.family]) for part in parts]
        ),
        names=tuple(part.family + code for part in parts for code in part.codes),
    )


def _check_membership(membership: Matrix) -> sparse.csr_array:
    predicted = sparse.csr_array(
        membership, dtype=np.float64, copy=True
    )  # what follows changes it in place
    checks.check_non_negative("membership", predicted.data)
    predicted.eliminate_zeros()
    predicted.sum_duplicates()
    for row in np.flatnonzero(np.diff(predicted.indptr) == 0):
        raise ValueError(f"membership must have a system in every row; row {row} has none")
    predicted.data[:] = 1.0
    return predicted


def _vote_columns(predicted: sparse.csr_array, team: IntArray) -> _Columns:
    """Return the logarithms of the number of systems, and of teams, that predict each row."""
    chooser = sparse.csr_array((np.ones(team.size), (np.arange(team.size), team)))
    systems, teams = (
        np.diff(predicted.indptr),
        np.diff(sparse.csr_array(predicted @ chooser).indptr),
    )
    return _Columns(
        "votes", [" systems", " teams"], sparse.csr_array(np.log(np.column_stack([systems, teams])))
    )


def _agreement_columns(
    predicted: sparse.csr_array,
    target: IntArray,
    predicate: ArrayLike | None,
    subject: ArrayLike | None,
    object: ArrayLike | None,
) -> _Columns:
    """Return the number of predictions that share the row's target, its predicate, and together
    with the predicate its subject and its object.
    """
    n = target.size
    votes = np.diff(predicted.indptr).astype(np.float64)
    on_target = np.bincount(target, weights=votes)[target]
    columns = {
        " rows of target": np.log(np.bincount(target)[target]),
        " votes on target": np.log(on_target),
        " share of target": np.log(votes / on_target),
    }
    if predicate is not None:
        relation = checks.check_codes("predicate", predicate, n)
        rows_of_relation = np.bincount(relation)[relation]
        columns[" rows of predicate"] = np.log(rows_of_relation)
        columns[" votes a row of predicate"] = np.log(
            np.bincount(relation, weights=votes)[relation] / rows_of_relation
        )
        for name, entity in (("subject", subject), ("object", object)):
            if entity is not None:
                slot = (
                    checks.check_codes(name, entity, n) * (int(relation.max(initial=0)) + 1)
                    + relation
                )
                slot = np.unique(slot, return_inverse=True)[1]
                columns[f" votes on {name} and predicate"] = np.log(
                    np.bincount(slot, weights=votes)[slot]
                )
    table = np.column_stack([_standardise(column) for column in columns.values()])
    return _Columns("crowd", list(columns), sparse.csr_array(table))


def _confidence_ranks(predicted: sparse.csr_array, confidence: Matrix) -> _Columns:
    """Return the rank of each confidence within its system, from −1 (least) to 1 (most), with 0 in
    the middle.
    """
    place = predicted.tocsc()
    place.sort_indices()
    sure = _confidences_in_order(place, confidence)
    for j in range(predicted.shape[1]):
        span = slice(place.indptr[j], place.indptr[j + 1])
        place.data[span] = _scaled_mid_ranks(sure[span])
    return _Columns("standing", [f" {j}" for j in range(predicted.shape[1])], place.tocsr())


def _confidences_in_order(by_system: sparse.csc_array, confidence: Matrix) -> FloatArray:
    """Return the confidence of each statement, in the order in which ``by_system`` stores them; NaN
    for none.
    """
    n, m = by_system.shape
    row, system = (
        by_system.indices.astype(np.int64),
        np.repeat(np.arange(m), np.diff(by_system.indptr)),
    )
    entries = (
        sparse.csc_array(confidence, dtype=np.float64)
        if sparse.issparse(confidence)
        else np.asarray(confidence)
    )
    if entries.shape != by_system.shape:
        raise ValueError(
            f"confidence must have the shape of membership, {by_system.shape}; got {entries.shape}"
        )
    if isinstance(entries, np.ndarray):
        return np.asarray(entries[row, system], dtype=np.float64)
    entries.sort_indices()
    stored = entries.indices + n * np.repeat(np.arange(m), np.diff(entries.indptr))
    wanted = row + n * system
    place = np.minimum(np.searchsorted(stored, wanted), max(stored.size - 1, 0))
    if not stored.size:
        return np.full(wanted.size, np.nan)
    return np.where(stored[place] == wanted, entries.data[place], np.nan)


def _scaled_mid_ranks(values: FloatArray) -> FloatArray:
    """Return ranks scaled to (−1, 1); equal values share their middle rank; 0 for NaN."""
    out, defined = np.zeros(values.size), ~np.isnan(values)
    _, place, count = np.unique(values[defined], return_inverse=True, return_counts=True)
    out[defined] = (2 * (np.cumsum(count) - count / 2) / max(int(defined.sum()), 1) - 1)[place]
    return out


def _indicator_columns(family: str, code: IntArray) -> _Columns:
    """Return one 0/1 column for each code that enough rows have."""
    frequent = np.flatnonzero(np.bincount(code) >= LEAST_ROWS)
    column = np.full(int(code.max(initial=-1)) + 1, -1)
    column[frequent] = np.arange(frequent.size)
    rows = np.flatnonzero(column[code] >= 0)
    shape = (code.size, frequent.size)
    matrix = sparse.csr_array((np.ones(rows.size), (rows, column[code[rows]])), shape=shape)
    return _Columns(family, [f" {code}" for code in frequent], matrix)


def _judge_score_columns(values: FloatArray, n: int) -> _Columns:
    """Return each judge's score, and whether the judge gave one."""
    if values.ndim != 2 or values.shape[0] != n or np.isinf(values).any():
        raise ValueError(f"scores must be ({n}, k), finite or NaN; got shape {values.shape}")
    columns, names = [np.zeros((n, 0))], []
    for place, column in enumerate(values.T):
        scored = ~np.isnan(column)
        scaled = np.zeros(n)
        scaled[scored] = _standardise(column[scored])
        columns += [scaled[:, None], _standardise(scored.astype(np.float64))[:, None]]
        names += [f" {place}", f" {place} is known"]
    return _Columns("judge", names, sparse.csr_array(np.hstack(columns)))


def _numeric_columns(values: FloatArray, n: int) -> _Columns:
    if values.ndim != 2 or values.shape[0] != n:
        raise ValueError(f"numbers must have shape ({n}, k); got {values.shape}")
    table = (
        np.column_stack([_standardise(column) for column in values.T])
        if values.shape[1]
        else np.zeros((n, 0))
    )
    return _Columns("number", [f" {j}" for j in range(values.shape[1])], sparse.csr_array(table))


def _standardise(column: FloatArray) -> FloatArray:
    """Return the column with mean 0 and standard deviation 1; 0 if the column is constant."""
    column = checks.scale_to_avoid_overflow(column)
    above = column - column.min(initial=np.inf)  # exactly 0 where the column is constant
    spread = float(above.std()) if above.size else 0.0
    scaled: FloatArray = (above - above.mean()) / spread if spread > 0 else np.zeros(above.size)
    return scaled
