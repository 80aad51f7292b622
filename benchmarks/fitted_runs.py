"""Measures how much a team gains by fitting its runs to the scores that an open board prints.

    python benchmarks/fitted_runs.py --repeats 60

A team has a run and makes four more of random halves of it. Each is judged as on a shared track: by
thresholds in stages, to ±3 points, and its precision is printed to a tenth of a point. Two teams do
their best with the printed numbers:

- regression: a prediction scores how much better the runs with it did than those without it; the
  fifth run keeps the better half;
- climbing: each run changes a fifth of the best run so far, and the best of five counts.

The gain is the printed precision of the run that counts less its true precision, in standard errors
of that run. A team that reads nothing gains 0 on average; the best of five that are equally good
prints about one standard error too much.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import coverage_default
import numpy as np
import redocred
from coverage_default import LEVEL, MARGIN, Board, Runs, Setting
from redocred import KINDS, Pool
from scipy.stats import norm

from scoring.score import default_estimates, iterate_scores

coverage_default.GUARANTEED = "instance"
RUNS, OTHERS = 5, 3
Array = np.ndarray[Any, Any]


class Team:
    """A team that makes five runs of the predictions of one system, on a board with others."""

    def __init__(self, pool: Pool, rng: Any) -> None:
        self.rng, self.pool = rng, pool
        self.base = np.flatnonzero(pool.member[:, 0])
        # The last column never arrives: with it the targets are numbered alike all the time.
        columns = [1 + at for at in range(OTHERS)] + [0] * (RUNS + 1)
        self.pool = replace(
            pool,
            names=[f"run {at}" for at in range(len(columns))],
            teams=["others"] * OTHERS + ["team"] * (RUNS + 1),
            member=pool.member[:, columns],
            confidence=np.where(pool.member[:, columns], pool.confidence[:, columns], np.nan),
            p={kind: _uniform_weights(pool.member[:, columns]) for kind in KINDS},
        )
        self.board = Board.of(Runs(self.pool), Setting(1.0, 0), rng)
        for other in range(OTHERS):
            self._add_run(other)

    def _add_run(self, run: int) -> None:
        target = (MARGIN / norm.ppf(0.5 + LEVEL / 2)) ** 2
        self.board.judge_until_narrow(tuple(range(run + 1)), run, target)

    def submit(self, number: int, kept: Array) -> tuple[float, float, float]:
        """Return the printed precision of a run, its standard error and its true precision."""
        column, member = OTHERS + number, self.pool.member.copy()
        member[:, column] = False
        member[self.base[kept], column] = True
        self.pool = replace(
            self.pool,
            member=member,
            confidence=np.where(member, self.pool.confidence, np.nan),
            p={kind: _uniform_weights(member) for kind in KINDS},
        )
        self.board.runs = Runs(self.pool)
        self._add_run(column)
        data = self.board.data(tuple(range(column + 1)))
        found = default_estimates(data, ("relation",), ())
        [score] = [
            one
            for one in iterate_scores(data, found, {}, ("relation",), ())
            if (one.quantity, one.distribution, one.column) == ("precision", "instance", column)
        ]
        error = (score.high80 - score.low80) / (2 * norm.ppf(0.5 + LEVEL / 2))
        return round(score.value, 3), error, float(self.pool.true[self.base[kept]].mean())


def gain_by_regression(team: Team) -> float:
    """Return the gain of a team that fits its fifth run to four printed scores of random halves."""
    n = team.base.size
    halves = team.rng.random((RUNS - 1, n)) < 0.5
    printed = np.array([team.submit(at, half)[0] for at, half in enumerate(halves)])
    worth = (printed - printed.mean()) @ np.where(halves, 1.0, -1.0) + 1e-9 * team.rng.random(n)
    value, error, truth = team.submit(RUNS - 1, worth >= np.median(worth))
    return (value - truth) / error


def gain_by_climbing(team: Team) -> float:
    """Return the gain of a team that changes its best run so far, and is ranked by its best."""
    n = team.base.size
    best = team.rng.random(n) < 0.5
    value, error, truth = team.submit(0, best)
    for at in range(1, RUNS):
        changed = np.where(team.rng.random(n) < 0.2, ~best, best)
        told = team.submit(at, changed)
        if told[0] > value:
            best, (value, error, truth) = changed, told
    return (value - truth) / error


def _uniform_weights(member: Array) -> Array:
    return np.asarray(member / np.maximum(member.sum(axis=0), 1))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    if not redocred.available():
        return
    pool = redocred.read(redocred.names(1 + OTHERS))
    for attack in (gain_by_regression, gain_by_climbing):
        gains = np.array(
            [
                attack(Team(pool, np.random.default_rng([chosen.seed, at])))
                for at in range(chosen.repeats)
            ]
        )
        print(
            f"{attack.__name__}: gain {gains.mean():.2f} ±"
            f" {gains.std(ddof=1) / gains.size**0.5:.2f} standard errors, {gains.size} repeats"
        )


if __name__ == "__main__":
    main()
