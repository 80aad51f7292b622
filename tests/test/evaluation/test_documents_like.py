"""Numbers of relations about documents like these: held against leaving one document out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from estimators.distributions import KINDS, prediction_probabilities
from scoring.data import Data
from scoring.documents import Annotated, Facts
from scoring.inclusion import Inclusion
from scoring.inputs import estimates_for_similar_inputs
from scoring.pool import Pool
from scoring.score import default_estimates, iterate_scores

DOCUMENTS, SYSTEMS = 40, 2
RNG = np.random.default_rng(5)
N = 1200
DOCUMENT = np.sort(RNG.permutation(np.arange(N) % DOCUMENTS))
PREDICATE = RNG.choice(6, size=N, p=[0.3, 0.25, 0.2, 0.15, 0.07, 0.03])
SUBJECT, OBJECT = DOCUMENT * 9 + RNG.integers(4, size=N), DOCUMENT * 9 + RNG.integers(9, size=N)
LEVEL = 0.25 + 0.5 * RNG.random(DOCUMENTS)[DOCUMENT]
TRUE = (RNG.random(N) < LEVEL).astype(float)
MEMBER = RNG.random((N, SYSTEMS)) < [0.7, 0.5]
MISSED = RNG.poisson(4, size=DOCUMENTS)


def weight(kind: str, column: int, rows: Any) -> Any:
    """The probabilities of a system's predictions in some rows."""
    own = rows[MEMBER[rows, column]]
    p = np.zeros(N)
    p[own] = prediction_probabilities(
        kind, subject=SUBJECT[own], predicate=PREDICATE[own], object=OBJECT[own]
    )
    return p


def data(pi: float = 1.0, read: int = DOCUMENTS) -> Data:
    """All predictions in one board, each a target, of which some are judged."""
    everything = np.arange(N)
    p = {
        kind: sparse.csr_array(np.column_stack([weight(kind, j, everything) for j in range(2)]))
        for kind in KINDS
    }
    drawn = np.random.default_rng(1).random(N) < pi
    judged = np.flatnonzero(drawn)
    ones, none = np.ones(N), np.zeros(N, dtype=np.int64)
    pool = Pool(
        systems=[0, 1], teams=[0, 1], instance=everything, target=everything, target_id=everything,
        u=np.zeros(N), document=DOCUMENT + 1, stratum=PREDICATE, types=none, subject=SUBJECT,
        object=OBJECT, p=p, confidence=sparse.csr_array(MEMBER.astype(float)),
    )  # fmt: skip
    facts = Facts(
        fact=everything, in_scope=ones > 0, pool_weight=ones, predicted=MEMBER,
        document=np.repeat(np.arange(read), MISSED[:read]),
        stratum=np.zeros(MISSED[:read].sum(), dtype=np.int64),
        found=np.zeros(MISSED[:read].sum(), dtype=np.bool_), n_annotated=read,
        n_documents=DOCUMENTS, inside=none - 1, marked=none > 0,
        code=np.full(MISSED[:read].sum(), -1), links=np.zeros((MISSED[:read].sum(), 2), np.str_),
        missed=MISSED[:read],
    )  # fmt: skip
    documents = (np.arange(read) + 1).tolist()
    return Data(
        pool=pool, shown=np.ones(2, dtype=np.bool_), judged=judged,
        f={"it": np.repeat(TRUE[judged, None], 2, axis=1)}, draws={},
        inclusion=Inclusion(np.full(N, pi), drawn, np.full(N, pi), 1.0), g={"it": ones / 2},
        rho={"it": 0.0}, base="it", unweighed="instance", facts=facts,
        documents=Annotated(documents, documents), closed_documents=True, mark=-ones,
        mean="precision", population="these",
    )  # fmt: skip


def number(quantity: str, kind: str, column: int, left_out: int) -> float:
    """A number of a system where all is known and a document is not there."""
    rows = np.flatnonzero(left_out != DOCUMENT)
    precision = float(weight(kind, column, rows) @ TRUE)
    any_of_them = rows[MEMBER[rows].any(axis=1)]
    truth = TRUE[any_of_them].sum() + MISSED[np.arange(DOCUMENTS) != left_out].sum()
    recall = float(TRUE[rows[MEMBER[rows, column]]].sum() / truth)
    if quantity == "precision":
        return precision
    return recall if quantity == "recall" else 2 * precision * recall / (precision + recall)


def test_variances_are_those_of_leaving_one_document_out() -> None:
    known = data()
    these = default_estimates(known, ("it",), ("it",))
    like = estimates_for_similar_inputs(known, these)
    assert {quantity for quantity, _, _ in like} == {
        "precision",
        "recall",
        "instance_recall",
        "f1",
    }
    for (quantity, _, kind), (estimate, design) in like.items():
        if quantity == "instance_recall":
            continue
        left = np.array(
            [[number(quantity, kind, j, d) for j in range(2)] for d in range(DOCUMENTS)]
        )
        jackknife = np.cov(left.T) * (DOCUMENTS - 1) ** 2 / DOCUMENTS
        assert estimate.variance == pytest.approx(np.diagonal(jackknife), rel=0.2), quantity + kind
        joint = np.asarray(design.covariance(estimate.influence))
        apart = [1, -1] @ joint @ [1, -1]
        assert apart == pytest.approx([1, -1] @ jackknife @ [1, -1], rel=0.25), "paired by document"


def test_it_is_wider_than_about_these_documents_and_a_board_has_both() -> None:
    some = data(pi=0.5, read=20)
    these = default_estimates(some, ("it",), ("it",))
    for key, (estimate, _) in estimates_for_similar_inputs(some, these).items():
        narrow, wide = (
            one.confidence_interval(0.8, method="wilson") for one in (these[key][0], estimate)
        )
        assert (np.subtract(*wide[::-1]) > np.subtract(*narrow[::-1])).all(), key
        assert np.asarray(estimate.value) == pytest.approx(np.asarray(these[key][0].value))
    methods = {
        score.method
        for score in iterate_scores(
            some, these, estimates_for_similar_inputs(some, these), ("it",), ("it",)
        )
    }
    assert methods == {"centred", "centred_like"}
