"""A second run's intervals hold where people gave up many questions, also of what its team had seen
given up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from scoring.by_thresholds import ByThresholds
from scoring.combine import Chances
from scoring.data import Data
from scoring.default import Centred
from scoring.inclusion import Disclosed, Inclusion
from scoring.pool import Pool

N, PREDICTED, TRUE, REPEATS = 300, 200, 0.5, 400
Array = np.ndarray[Any, Any]


def happen(
    rng: Array, early: float, late: float, answered: float, rows: int = 1
) -> tuple[Data, float]:
    """What the service would have read of a run of a team all of whose earlier run had been asked
    with `early`, and the truth; of what a question was given up nothing is ever known. Of several
    rows a target the later run predicts one.
    """
    number, t = np.arange(N), N // rows
    target = number // rows
    true, u, predicted = (
        rng.random(N) < TRUE,
        rng.random(t),
        (number < PREDICTED) & (number % rows == 0),
    )
    of_predicted = np.arange(t) < PREDICTED // rows
    now = np.where(of_predicted, late, early)
    drawn, known = u < now, rng.random(N) < answered
    judged = np.flatnonzero(drawn[target])
    verdict = np.where(known, true, np.nan)[judged]
    nothing, nowhere = np.zeros(t), np.full(t, -1)
    p = sparse.csr_array(np.column_stack([np.full(N, 1 / N), predicted / predicted.sum()]))
    pool = Pool(
        systems=[1, 2],
        teams=[1, 1],
        instance=number,
        target=target,
        target_id=np.arange(t),
        u=u,
        document=target,
        stratum=np.zeros(N, dtype=np.int64),
        types=np.full(N, "PER|GPE"),
        subject=number,
        object=number,
        p={"instance": p},
        confidence=p,
    )
    chance = Inclusion(
        chances=Chances(now, nothing, nothing, nothing),
        drawn=drawn,
        counts=drawn,
        cluster=nowhere,
        of_document=0.0,
        n_clusters=0,
        threshold=now,
        released=1.0,
    )
    seen = Disclosed(
        certainty=of_predicted & (u < early),
        unjudged=of_predicted & (u >= early),
        threshold=np.full(t, early),
        drawn=nothing,
        inside=nothing > 0,
        document=nothing,
    )
    data = Data(
        pool=pool,
        shown=np.ones(2, dtype=bool),
        judged=judged,
        f={"relation": np.tile(verdict[:, None], 2)},
        draws={},
        inclusion=chance,
        g={"relation": np.full(N, 0.6)},
        rho={"relation": 0.0},
        base="relation",
        unweighed="instance",
        facts=None,
        disclosed={1: seen},
        disclosed_drawn={1: seen},
        own={1: chance},
    )
    return data, float(true[predicted].mean())


def test_all_predictions_about_a_pair_have_one_probability() -> None:
    """What is not known of another prediction about a pair, which the run does not predict, does
    not matter to it.
    """
    rng: Any = np.random.default_rng(7)
    data, truth = happen(rng, 0.5, 1.0, 0.6, rows=2)
    pi = Centred(data).pi_of(1)
    assert (pi[::2] == pi[1::2]).all()
    first = np.isnan(data.f["relation"][:, 0]) & (data.judged % 2 == 0)
    lost = data.disclosed[1].certainty & np.isin(np.arange(N // 2), data.judged[first] // 2)
    assert (pi[::2][lost] == 0.5).all() and (
        pi[::2][data.disclosed[1].certainty & ~lost] == 1
    ).all()
    found = Centred(data).precision("instance", "relation")
    assert abs(found.value[1] - truth) < 4 * np.sqrt(found.variance[1])


def test_what_is_known_of_everything_is_certain_and_what_agrees_by_luck_is_not() -> None:
    rng: Any = np.random.default_rng(5)
    whole, truth = happen(rng, 1.0, 1.0, 1.0)
    found = ByThresholds(whole).precision("instance", "relation", "joint")
    assert found.value[1] == pytest.approx(truth)
    assert found.variance[1] == pytest.approx(0) and found.anticipated[1] == pytest.approx(0)
    data, _ = happen(rng, 0.1, 0.3, 1.0)
    data = replace(
        data,
        f={"relation": np.ones_like(data.f["relation"])},
        disclosed={},
        own={},
        disclosed_drawn={},
    )
    data = replace(data, alone={1: np.where(np.arange(N) < PREDICTED, 0.2, 0.0)})
    for method, pi in (("joint", data.inclusion.chances.threshold), ("simple", data.alone[1])):
        found = ByThresholds(data).precision("instance", "relation", method)
        n = int((data.pool.u < pi)[:PREDICTED].sum())
        n_effective = n / (1 - pi[0])  # all weigh the same
        p = (n_effective + 0.5) / (n_effective + 1)
        assert found.value[1] == pytest.approx(1) and found.n[1] == n
        assert found.anticipated[1] == pytest.approx(p * (1 - p) / n_effective)


@pytest.mark.soak
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("early", "late", "answered"), [(0.5, 1.0, 0.6), (0.6, 0.9, 0.6), (0.5, 0.9, 0.9)]
)
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
