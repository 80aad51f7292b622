"""What two systems predict both and what only one of them predicts, and how much of each part is
right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from estimators.horvitz_thompson import hajek
from scoring.arrays import Floats, Ids, Matrix
from scoring.data import Data
from scoring.default import Centred

KEY = "parts"
"""Where the parts of all pairs stand among an evaluation's comparisons."""
MOST = 45
"""More systems than this have too many pairs to be stored."""
BLOCK = 2**16
"""Predictions that are counted at once"""


@dataclass(frozen=True)
class Part:
    """Predictions that both systems predict, or only one, and the share of them that is right
    (None: nothing is judged).
    """

    n: int
    value: float | None = None
    low80: float | None = None
    high80: float | None = None
    n_labels: int = 0


def parts(data: Data, criterion: str, scored: set[int]) -> dict[str, dict[str, Any]]:
    """For all pairs of scored systems: [n, share, low, high, judgments] of what both predict,
    and of what each of them predicts and the other does not, under "first|second" and in this
    order: both, first, second.

    Every prediction counts the same. What both predict may be right for one and wrong for the
    other, which links its names differently: then it counts half.
    """
    columns = [number for number, system in enumerate(data.systems) if system in scored]
    if not 2 <= len(columns) <= MOST or not data.judged.size:
        return {}
    sizes = _sizes(data.pool.member)[np.ix_(columns, columns)]
    arranged = Centred(data, criterion)
    predicted = data.pool.member[arranged.row].toarray()[:, columns] > 0
    label = arranged.verdicts[:, columns]
    shares: dict[str, Any] = {}
    for i in range(len(columns)):
        shared = _shares(
            arranged, predicted * predicted[:, [i]], sizes[i], (label + label[:, [i]]) / 2
        )
        only = _shares(
            arranged,
            predicted[:, [i]] & ~predicted,
            sizes[i, i] - sizes[i],
            label[:, [i]] + 0 * predicted,
        )
        for k in range(len(columns)):
            if k != i:
                shares[f"{i}|{k}"] = [shared[k], only[k]]
    pairs = {
        f"{data.systems[columns[i]]}|{data.systems[columns[k]]}": [
            *shares[f"{i}|{k}"],
            shares[f"{k}|{i}"][1],
        ]
        for i in range(len(columns))
        for k in range(i + 1, len(columns))
    }
    return {KEY: {"criterion": criterion, "pairs": pairs}}


def _sizes(member: Matrix) -> Ids:
    """(m, m) how many predictions each two systems both predict."""
    sizes = np.zeros((member.shape[1], member.shape[1]))
    for begin in range(0, member.shape[0], BLOCK):
        block = (member[begin : begin + BLOCK].toarray() > 0).astype(np.float32)
        sizes += block.T @ block  # whole numbers that a float32 holds: there are fewer rows
    return sizes.astype(np.int64)


def part_of(stored: dict[str, Any], first: int, second: int) -> list[Part]:
    """The three parts of a pair (both, first, second) as an evaluation stored them; empty if it did
    not.
    """
    pairs = stored.get(KEY, {}).get("pairs", {})
    if stored_parts := pairs.get(f"{first}|{second}"):
        return [Part(*part) for part in stored_parts]
    if stored_parts := pairs.get(f"{second}|{first}"):
        return [Part(*stored_parts[0]), Part(*stored_parts[2]), Part(*stored_parts[1])]
    return []


def _shares(arranged: Centred, inside: Any, sizes: Ids, label: Floats) -> list[list[Any]]:
    """Of each column of `inside` (rows that count × systems): size, share right, its 80 % interval,
    judgments.
    """
    estimate = hajek(
        inside / np.maximum(sizes, 1),
        arranged.row_pi,
        label,
        target=arranged.targets[1],
        n_targets=arranged.targets[0].size,
        design=arranged.design,
    )
    low, high = (np.asarray(end) for end in estimate.confidence_interval(0.80, method="wilson"))
    n, value = np.asarray(estimate.n), np.asarray(estimate.value)
    return [
        [int(size), float(value[k]), float(low[k]), float(high[k]), int(n[k])]
        if np.isfinite(value[k])
        else [int(size), None, None, None, 0]
        for k, size in enumerate(sizes)
    ]
