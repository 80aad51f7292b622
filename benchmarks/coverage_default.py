"""Measures whether intervals keep their coverage under the design of a new track, with 0, 20 and
100 documents read, by people who are always right and by people who err.

    python benchmarks/coverage_default.py --repeats 300

In each repetition the runs arrive in random order. Each raises thresholds in stages, as the service
does (`kbpo/sampling/designs/`), until its guaranteed number is as narrow as asked. Some documents
were drawn at random before and are closed: what is marked in them is true, all else is false;
recall uses them to count the facts that no run predicts. Judgments are the gold standard's, or a
majority of three people who are right 85 times in 100; then an expert checks a random fifth of what
was drawn (`checked`). When all runs are judged, the service's own `scoring.score` and
`scoring.corrected` compute every number of the board, and each is compared with the exact truth.

Every repetition is stored in `benchmarks/out/` as soon as it is done. An interrupted run prints
what there is; started again, or in a second process, it continues from there, and with `--repeats
0` it only prints. Each repetition has its own seed, so that the numbers do not depend on where it
was interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import django
import numpy as np
import redocred
from redocred import KINDS, Pool
from scipy import sparse
from scipy.stats import norm

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbpo.settings")
django.setup()

from estimators import crossfit, horvitz_thompson, model  # noqa: E402
from estimators.features import Features  # noqa: E402
from estimators.poisson import next_planned_variance, planned_variance, water_fill  # noqa: E402
from kbpo.sampling import guess as guesses  # noqa: E402
from kbpo.sampling.designs.base import CLOSE  # noqa: E402
from kbpo.sampling.designs.poisson import FIRST, STAGES  # noqa: E402
from scoring.corrected import METHOD as CHECKED  # noqa: E402
from scoring.corrected import compute_corrections  # noqa: E402
from scoring.data import Data  # noqa: E402
from scoring.documents import NO_MARK  # noqa: E402
from scoring.double_sampling import Checks, Corrected  # noqa: E402
from scoring.inclusion import Inclusion  # noqa: E402
from scoring.pool import Pool as ServicePool  # noqa: E402
from scoring.score import default_estimates, iterate_scores  # noqa: E402

LEVEL, MARGIN = 0.8, 0.03
GUARANTEED = "entity_relation"
METHODS = {"centred": "ours", CHECKED: "checked", "simple": "simple", "joint": "joint"}
SHARE_CHECKED = 0.2
QUANTITIES = {"precision": "P", "recall": "R", "f1": "F1"}
Array = np.ndarray[Any, Any]


class Setting(NamedTuple):
    """One simulated setting: how often people are right, and how many documents are read in
    full.
    """

    accuracy: float
    documents: int

    @property
    def name(self) -> str:
        people = "always right" if self.accuracy == 1 else f"right {self.accuracy:.0%}"
        return f"{self.documents} documents, people {people}"


class Columns(NamedTuple):
    """Some of the runs: the pool of the instances that they predict, and the inputs of the
    model.
    """

    pool: ServicePool
    predicted: Array
    """Rows of the whole pool that at least one of the runs predicts"""
    features: Features
    fold: Array


class Runs:
    """The runs and all data that the repetitions share."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.whole = redocred.service_pool(pool)
        self.truth = redocred.truths(pool)
        keys = (int(one) for one in self.whole.target_id)
        self.fold = crossfit.keyed_folds(keys, guesses.FOLDS, key=b"coverage")
        self._columns: dict[tuple[int, ...], Columns] = {}

    @property
    def n(self) -> int:
        return len(self.pool.names)

    def of(self, columns: tuple[int, ...]) -> Columns:
        """Return the pool and the model's inputs for the runs with these numbers, in ascending
        order.
        """
        if columns not in self._columns:
            at, whole = list(columns), self.whole
            pool = replace(
                whole,
                systems=at,
                teams=[whole.teams[one] for one in at],
                p={kind: sparse.csr_array(p[:, at]) for kind, p in whole.p.items()},
                confidence=sparse.csr_array(whole.confidence[:, at]),
            )
            predicted = np.flatnonzero(np.asarray(pool.member.sum(axis=1)).ravel() > 0)
            told = guesses.claims_of_rows(pool, predicted).features()
            fold = self.fold[pool.target[predicted]]
            self._columns[columns] = Columns(pool, predicted, told, fold)
        return self._columns[columns]


@dataclass
class Board:
    """One simulated board: labels, read documents and random numbers, which are fixed, and the
    thresholds (inclusion probabilities) so far.
    """

    runs: Runs
    label: Array
    """The crowd's label of every instance; documents use the gold standard"""
    documents: Array
    u: Array
    pi: Array
    """(t,) thresholds"""
    fitted: model.Model | None = None

    @classmethod
    def of(cls, runs: Runs, setting: Setting, rng: Any) -> Board:
        """Return a board on which no run has arrived yet, with labels and random numbers drawn by
        `rng`.
        """
        pool, t = runs.pool, runs.whole.target_id.size
        documents = np.sort(rng.choice(pool.n_documents, setting.documents, replace=False))
        said = redocred.judged(pool, setting.accuracy, rng)[: runs.whole.instance.size]
        read = np.isin(runs.whole.document, documents)
        label = np.where(read, pool.true[: said.size], said)
        return cls(runs, label, documents, rng.random(t), np.zeros(t))

    @property
    def drawn(self) -> Array:
        """Return (t,) whether each target was asked about and judged."""
        return np.asarray(self.u < self.pi)

    def guess(self, columns: tuple[int, ...]) -> tuple[Array, float]:
        """Return the model's expected label of every instance, and the correlation of its errors
        within a target.
        """
        some, whole = self.runs.of(columns), self.runs.whole
        g = np.full(whole.instance.size, 0.5)
        known = np.where(
            self.drawn[whole.target[some.predicted]], self.label[some.predicted], np.nan
        )
        if np.count_nonzero(~np.isnan(known)) < guesses.LEAST:
            return g, 1.0
        self.fitted = model.fit_ridge_logistic(some.features, known, some.fold, start=self.fitted)
        g[some.predicted] = self.fitted.g
        judged = some.predicted[~np.isnan(known)]
        member = some.pool.member[judged]
        rho = model.error_correlation(self.label[judged], g[judged], whole.target[judged], member)
        return g, rho

    def data(self, columns: tuple[int, ...]) -> Data:
        """Return the data that the service reads when these runs have arrived and all drawn targets
        are judged.
        """
        t, whole = self.pi.size, self.runs.whole
        g, rho = self.guess(columns)
        chance = Inclusion(asked=self.pi, drawn=self.drawn, threshold=self.pi, released=1.0)
        judged = np.flatnonzero(self.drawn[whole.target])
        return Data(
            pool=replace(self.runs.of(columns).pool, u=self.u),
            shown=np.ones(len(columns), dtype=np.bool_),
            judged=judged,
            f={"relation": np.tile(self.label[judged][:, None], (1, len(columns)))},
            draws={},
            inclusion=chance,
            g={"relation": g},
            rho={"relation": rho},
            base="relation",
            unweighed="instance",
            facts=redocred.facts_of(self.runs.pool, whole, self.documents, list(columns)),
            documents=redocred.read_documents(self.documents),
            closed_documents=True,
            mark=np.full(t, NO_MARK),
            mean="precision",
        )

    def checks(self, data: Data, rng: Any) -> Checks:
        """Return an expert's checks of a random fifth of the drawn targets."""
        whole, m = self.runs.whole, len(data.pool.systems)
        names = whole.target[data.judged]
        target = np.unique(names)
        drawn = data.inclusion.drawn[target]
        checked = drawn & (rng.random(target.size) < SHARE_CHECKED)
        seen = checked[np.searchsorted(target, names)]
        true = np.where(seen, self.runs.pool.true[data.judged], np.nan)
        return Checks(
            target=target,
            rounds=np.array([1]),
            pi=np.where(drawn, self.pi[target], 0.0)[None, :],
            e=np.where(drawn, SHARE_CHECKED, 0.0)[None, :],
            checked=checked,
            by_crowd=np.ones(target.size, dtype=np.bool_),
            imported=np.zeros(target.size, dtype=np.bool_),
            f={"relation": np.tile(true[:, None], (1, m))},
            since=np.ones(m, dtype=np.bool_),
        )

    def judge_until_narrow(self, columns: tuple[int, ...], run: int, target: float) -> None:
        """Ask about one of these runs until its number is as narrow as asked."""
        whole = self.runs.whole
        weight = whole.p[GUARANTEED][:, [run]].toarray().ravel()
        mine = np.flatnonzero(weight)
        p, (own, row) = weight[mine], np.unique(whole.target[mine], return_inverse=True)
        g, rho = self.guess(columns)
        goal = FIRST * target
        for _ in range(STAGES):
            v = np.full(p.size, 0.25)
            if (g != 0.5).any():
                v = model.expected_error(p, g[mine], row, correlation=rho)
            raised = np.zeros(own.size)
            raised[row] = water_fill(p, self.pi[own][row], v, target_variance=goal, target=row)
            self.pi[own] = np.clip(raised, self.pi[own], 1.0)
            g, rho = self.guess(columns)
            expected = self.anticipated(columns, mine, p, row, g, rho)
            if expected <= CLOSE * target or (self.pi[own] >= 1).all():
                return
            v = model.expected_error(p, g[mine], row, correlation=rho)
            planned = planned_variance(p, self.pi[own][row], v, target=row)
            goal = next_planned_variance(planned, expected, target_variance=target, most=FIRST)

    def anticipated(
        self, columns: tuple[int, ...], mine: Array, p: Array, row: Array, g: Array, rho: float
    ) -> float:
        """Return the variance that the model expects of a run's estimate, computed as the service
        does.
        """
        whole, predicted = self.runs.whole, self.runs.of(columns).predicted
        if not self.drawn[whole.target[mine]].any():
            return float("inf")
        judged = predicted[self.drawn[whole.target[predicted]]]
        return float(
            horvitz_thompson.anticipated_variance(
                p,
                self.pi[whole.target[mine]],
                g[mine],
                self.label[judged],
                g[judged],
                target=row,
                correlation=rho,
            )
        )


def run_repetition(
    runs: Runs, setting: Setting, half_width: float, seed: list[int]
) -> dict[str, Any]:
    """Return the results of one repetition: targets asked, and for each number and run the error,
    the width of the 80 % interval, and whether the 80 and the 95 % interval contain the truth; None
    where none is printed.
    """
    seeds = [*seed, setting.documents, round(1000 * setting.accuracy)]
    rng, dice = np.random.default_rng(seeds), np.random.default_rng([*seeds, 1])
    board = Board.of(runs, setting, rng)
    target = (half_width / norm.ppf(0.5 + LEVEL / 2)) ** 2
    arrived: list[int] = []
    for run in rng.permutation(runs.n).tolist():
        arrived.append(run)
        board.judge_until_narrow(tuple(sorted(arrived)), run, target)
    data = board.data(tuple(range(runs.n)))
    told: dict[str, list[Any]] = defaultdict(lambda: [None] * runs.n)
    found = default_estimates(data, ("relation",), ("relation",))
    told_by = list(iterate_scores(data, found, {}, ("relation",), ("relation",)))
    if setting.accuracy < 1:
        checked = Corrected.from_data(data, board.checks(data, dice))
        told_by += compute_corrections(checked, ("relation",), ("relation",)).scores
    for one in told_by:
        if one.quantity not in QUANTITIES or np.isnan(one.value):
            continue
        truth = runs.truth[one.quantity, one.distribution][one.column]
        held = one.low80 <= truth <= one.high80, one.low95 <= truth <= one.high95
        told[f"{one.quantity}|{one.distribution}|{one.method}"][one.column] = [
            round(float(one.value - truth), 6),
            round(one.high80 - one.low80, 6),
            *map(int, held),
        ]
    return {"asked": int((board.u < board.pi).sum()), "told": told}


class Kept:
    """The finished repetitions, one on each line of a file."""

    def __init__(self, path: Path) -> None:
        self.path, self.read = path, 0
        self.found: dict[Setting, dict[int, Any]] = defaultdict(dict)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        self.read_new_results()

    def read_new_results(self) -> None:
        """Read the repetitions that other processes finished meanwhile."""
        with self.path.open() as file:
            file.seek(self.read)
            for line in file:
                if not line.endswith("\n"):
                    break
                one = json.loads(line)
                self.found[Setting(one["accuracy"], one["documents"])][one["repeat"]] = one
                self.read += len(line)

    def add(self, setting: Setting, repeat: int, told: dict[str, Any]) -> None:
        """Append a repetition to the file."""
        with self.path.open("a") as file:
            file.write(json.dumps({**setting._asdict(), "repeat": repeat, **told}) + "\n")
        self.read_new_results()


class Line(NamedTuple):
    """The coverage, bias and width of one printed number in one setting, over repetitions
    and runs.
    """

    cover: float
    error: float
    """Monte-Carlo standard error of the coverage; runs of one repetition share their labels"""
    cover95: float
    worst: float
    bias: float
    bias_error: float
    width: float
    printed: float

    @property
    def holds(self) -> bool:
        """Return whether the coverage of the 80 % interval is sufficient, within two standard
        errors.
        """
        return (
            self.printed > 0
            and self.cover + 2 * self.error >= LEVEL
            and (self.cover >= LEVEL - MARGIN)
        )


def summarise_number(some: list[Any], key: str) -> Line | None:
    """Return the summary of one number over repetitions; None if it was never printed."""
    empty = [np.nan] * 4
    runs = max((len(one["told"][key]) for one in some if key in one["told"]), default=0)
    if not runs:
        return None
    table = np.array(
        [
            [empty if each is None else each for each in one["told"].get(key, [None] * runs)]
            for one in some
        ],
        dtype=np.float64,
    )
    known = ~np.isnan(table[:, :, 0]).all(axis=1)
    by_repeat = np.nanmean(table[known], axis=1)
    spread = by_repeat.std(axis=0, ddof=1) if known.sum() > 1 else np.full(4, np.nan)
    error = spread / np.sqrt(known.sum())
    by_run = [each[~np.isnan(each)].mean() for each in table[:, :, 2].T if not np.isnan(each).all()]
    return Line(
        cover=float(np.nanmean(table[:, :, 2])),
        error=float(error[2]),
        cover95=float(np.nanmean(table[:, :, 3])),
        worst=float(min(by_run)),
        bias=float(np.nanmean(table[:, :, 0])),
        bias_error=float(error[0]),
        width=float(np.nanmean(table[:, :, 1])),
        printed=float((~np.isnan(table[:, :, 0])).mean()),
    )


def printed_numbers() -> Iterator[tuple[str, str]]:
    """Yield (quantity, distribution) of each printed number."""
    for kind in KINDS:
        yield "precision", kind
    yield "recall", "instance"
    for kind in KINDS:
        yield "f1", kind


def print_report(kept: Kept, title: str) -> None:
    """Print a table for each setting, and one of the intervals that keep their coverage."""
    print(f"\n{title}")
    believed: dict[tuple[str, str], dict[Setting, str]] = defaultdict(dict)
    for setting, repeats in sorted(kept.found.items(), key=lambda one: (-one[0][0], one[0][1])):
        some = list(repeats.values())
        asked = np.mean([one["asked"] for one in some])
        print(f"\n{setting.name}: {len(some)} repetitions, {asked:.0f} targets asked\n")
        print("| number | method | 80 % | ± | 95 % | worst run | bias | ± | width | printed |")
        print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
        for quantity, kind in printed_numbers():
            good = []
            for method, name in METHODS.items():
                told = summarise_number(some, f"{quantity}|{kind}|{method}")
                if told is None:
                    continue
                good += [f"{name} {told.cover:.2f}" + ("" if told.holds else " ✗")]
                cells = [
                    f"{QUANTITIES[quantity]} `{kind}`" if quantity != "recall" else "R",
                    name,
                    *(f"{one:.3f}" for one in told[:4]),
                    *(f"{100 * one:.2f}" for one in told[4:7]),
                    f"{told.printed:.0%}",
                ]
                print("| " + " | ".join(cells) + " |")
            believed[quantity, kind][setting] = ", ".join(good) or "–"
    settings = sorted(kept.found, key=lambda one: (-one.accuracy, one.documents))
    print(f"\nCoverage of nominal {LEVEL:.0%} intervals; ✗: do not believe this one\n")
    print("| number | " + " | ".join(one.name for one in settings) + " |")
    print("|---|" + "---|" * len(settings))
    for (quantity, kind), cells in believed.items():
        name = "R" if quantity == "recall" else f"{QUANTITIES[quantity]} `{kind}`"
        print(f"| {name} | " + " | ".join(cells.get(one, "") for one in settings) + " |")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--systems", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=300)
    parser.add_argument("--documents", type=int, nargs="+", default=[0, 20, 100])
    parser.add_argument("--accuracy", type=float, nargs="+", default=[1.0, 0.85])
    parser.add_argument("--half-width", type=float, default=0.03)
    parser.add_argument("--seed", type=int, default=1)
    said = parser.parse_args()
    if not redocred.available():
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    name = f"coverage_default_{said.systems}_{said.half_width}_{said.seed}.jsonl"
    kept = Kept(redocred.ROOT / "benchmarks" / "out" / name)
    try:
        run_missing_repetitions(said, kept)
    except KeyboardInterrupt:
        print("\ninterrupted: this is what there is", file=sys.stderr)
    print_report(
        kept, f"{said.systems} runs to ±{100 * said.half_width:g} points, thresholds in stages"
    )


def run_missing_repetitions(said: argparse.Namespace, kept: Kept) -> None:
    """Run the missing repetitions, all settings in turn."""
    settings = [Setting(a, n) for a in said.accuracy for n in said.documents]
    todo = [
        (at, one) for at in range(said.repeats) for one in settings if at not in kept.found[one]
    ]
    if not todo:
        return
    runs, began = Runs(redocred.read(redocred.names(said.systems))), time.perf_counter()
    for done, (at, setting) in enumerate(todo, 1):
        kept.read_new_results()
        if at in kept.found[setting]:
            continue
        kept.add(setting, at, run_repetition(runs, setting, said.half_width, [said.seed, at]))
        each = (time.perf_counter() - began) / done
        if done % 10 == 0 or done == len(todo):
            left = each * (len(todo) - done) / 60
            progress = f"{done} of {len(todo)}, {each:.1f} s each, {left:.0f} minutes to go"
            print(progress, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
