"""A second run's intervals hold where people gave up many questions, also of what its team had seen given up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from kbpo.evaluation.by_thresholds import ByThresholds
from kbpo.evaluation.centred import Centred
from kbpo.evaluation.data import Data
from kbpo.sampling.inclusion import Inclusion
from kbpo.sampling.pool import Pool
from kbpo.sampling.seen import Seen

N, STATED, TRUE, REPEATS = 300, 200, 0.5, 400
Array = np.ndarray[Any, Any]


def happen(rng: Array, early: float, late: float, answered: float) -> tuple[Data, float]:
    """What the service would have read of a run of a team all of whose earlier run had been asked with `early`, and the
    truth; of what a question was given up nothing is ever known."""
    true, u, stated = rng.random(N) < TRUE, rng.random(N), np.arange(N) < STATED
    now = np.where(stated, late, early)
    drawn, known = u < now, rng.random(N) < answered
    judged = np.flatnonzero(drawn)
    verdict = np.where(known, true, np.nan)[judged]
    number, nothing, nowhere = np.arange(N), np.zeros(N), np.full(N, -1)
    p = sparse.csr_array(np.column_stack([np.full(N, 1 / N), stated / STATED]))
    pool = Pool(
        systems=[1, 2], teams=[1, 1], instance=number, target=number, target_id=number, u=u, document=number,
        predicate=np.zeros(N, dtype=np.int64), types=np.full(N, "PER|GPE"), subject=number, object=number,
        p={"instance": p}, confidence=p,
    )  # fmt: skip
    chance = Inclusion(
        pi=now, by_threshold=now, by_draw=nothing, drawn=drawn, counts=drawn, cluster=nowhere, beta=nothing,
        of_document=0.0, n_clusters=0, threshold=now, before=nothing, released=1.0,
    )  # fmt: skip
    seen = Seen(
        exact=stated & (u < early), unjudged=stated & (u >= early), threshold=np.full(N, early), drawn=nothing,
        inside=nothing > 0, beta=0.0,
    )  # fmt: skip
    data = Data(
        pool=pool, shown=np.ones(2, dtype=bool), judged=judged, f={"relation": np.tile(verdict[:, None], 2)}, draws={},
        inclusion=chance, g={"relation": np.full(N, 0.6)}, rho={"relation": 0.0}, facts=None, seen={1: seen},
        seen_drawn={1: seen}, own={1: chance},
    )  # fmt: skip
    return data, float(true[stated].mean())


@pytest.mark.statistical
@pytest.mark.parametrize(("early", "late", "answered"), [(0.5, 1.0, 0.6), (0.6, 0.9, 0.6), (0.5, 0.9, 0.9)])
def test_the_interval_of_a_second_run_holds(early: float, late: float, answered: float) -> None:
    rng: Any = np.random.default_rng(3)
    inside, error, by_thresholds = [], [], []
    for _ in range(REPEATS):
        data, truth = happen(rng, early, late, answered)
        found = Centred(data).precision("instance", "relation")
        error.append(found.value[1] - truth)
        inside.append(abs(error[-1]) <= 1.2816 * np.sqrt(found.variance[1]))
        joint = ByThresholds(data).precision("instance", "relation", "joint")
        by_thresholds.append(abs(joint.value[1] - truth) <= 1.2816 * np.sqrt(joint.variance[1]))
    assert abs(np.mean(error)) < 4 * np.std(error) / REPEATS**0.5
    for some in (inside, by_thresholds):
        assert abs(np.mean(some) - 0.8) < 0.06
