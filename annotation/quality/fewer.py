"""What Fleiss' κ would have been, had fewer people judged: for 2 … k of those who did.

So many of each question's people are drawn at random, again and again; the value is the mean over
the draws. κ compares people two by two, so the value hardly depends on how many they are; the
interval, over draws and questions, tells how well so many people would have measured it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from annotation.interfaces.base import Unit
from annotation.quality.agreement import SEED, Row, by_kind, kept
from estimators.agreement import fleiss_kappa
from estimators.bootstrap import resample_weights
from estimators.checks import FloatArray, IntArray
from estimators.votes import tally
from kbpo.money.purpose import Purpose
from kbpo.tracks.models import Track

DRAWS = 50
LATEST = 500  # questions


@dataclass(frozen=True)
class OfSoMany:
    """κ on one kind of unit of one interface, had so many people answered each question; None where
    undefined.
    """

    interface: str
    what: str
    workers: int
    kappa: float | None
    low80: float | None
    high80: float | None
    questions: int


def by_number(*, track: Track | None = None, payer: Purpose | None = None) -> list[OfSoMany]:
    """κ of 2 … k people in a batch, or on the latest questions of a track: a line for each kind of
    unit and number.
    """
    return kept(
        "fewer",
        lambda rows: [
            line for name, what, mine in by_kind(rows) for line in lines(name, what, mine)
        ],
        track=track,
        payer=payer,
        latest=LATEST,
    )


def lines(interface: str, what: str, rows: Iterable[Row]) -> list[OfSoMany]:
    """κ of 2 … k people on one kind of unit, k being the most that answered one question."""
    said: dict[tuple[int, Unit], dict[int, str]] = defaultdict(dict)
    for row in rows:
        said[row.question, row.unit][row.worker] = row.value
    votes = [
        (question, worker, at, value)
        for at, ((question, _), some) in enumerate(said.items())
        for worker, value in some.items()
    ]
    if not votes:
        return []
    pairs, pair = np.unique(np.array([vote[:2] for vote in votes]), axis=0, return_inverse=True)
    pair = pair.reshape(-1)
    _, question = np.unique(pairs[:, 0], return_inverse=True)
    people = np.bincount(question)
    unit, (_, code) = (
        np.array([one[2] for one in votes]),
        np.unique([one[3] for one in votes], return_inverse=True),
    )
    curve = []
    for k in range(2, int(people.max()) + 1):
        enough = people >= k
        use = enough[question[pair]]
        values = _draws(question, pair[use], unit[use], code[use], k)
        known = values[np.isfinite(values[:, 0]), 0]
        spread = values[np.isfinite(values[:, 1]), 1]
        some = enough.sum() > 1 and spread.size > 0
        curve.append(
            OfSoMany(
                interface,
                what,
                k,
                float(known.mean()) if known.size else None,
                float(np.quantile(spread, 0.1)) if some else None,
                float(np.quantile(spread, 0.9)) if some else None,
                int(enough.sum()),
            )
        )
    return curve


def _draws(
    question: IntArray, pair: IntArray, unit: IntArray, code: IntArray, k: int
) -> FloatArray:
    """κ of each draw of k people for every question: of the questions as they are, and of questions
    drawn anew.
    """
    rng = np.random.default_rng(SEED)
    _, unit = np.unique(unit, return_inverse=True)
    n_units, n_pairs = int(unit.max()) + 1, question.size
    cluster = np.zeros(n_units, dtype=np.int64)
    cluster[unit] = question[pair]
    _, cluster = np.unique(cluster, return_inverse=True)
    anew = resample_weights(n_units, DRAWS, rng=rng, cluster=cluster)
    first = np.concatenate([[0], np.cumsum(np.bincount(question))])
    found = np.empty((DRAWS, 2))
    for at in range(DRAWS):
        seats = np.empty(n_pairs, dtype=np.int64)
        order = np.lexsort((rng.random(n_pairs), question))
        seats[order] = np.arange(n_pairs) - first[question[order]]
        drawn = seats[pair] < k
        weights = np.stack([np.ones(n_units), anew[at]])
        table = tally(unit[drawn], code[drawn], (n_units, int(code.max()) + 1))
        found[at] = fleiss_kappa(table, weights=weights)
    return found
