"""Do the intervals keep their promise? Real systems on real documents, against truths computed from the gold standard.

    python benchmarks/coverage_redocred.py            repeats sampling and estimation (about 10 minutes)
    python benchmarks/coverage_redocred.py --journey  first runs the whole HTTP journey once (see journey_redocred.py)

Every repetition draws all batches anew (design iid), judges them with the gold standard (or with three people who are
right 85 times in 100, by majority), annotates 100 random documents, and calls the service's own `evaluation.score`.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import redocred
from numpy.typing import NDArray
from redocred import KINDS, ROOT, Pool

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbpo.settings")
import django

django.setup()

from kbpo.evaluation.data import Data, Draws  # noqa: E402
from kbpo.evaluation.score import scores  # noqa: E402
from kbpo.tracks.base import Facts  # noqa: E402

OUT = ROOT / "benchmarks" / "out"
LEVELS = {"80": ("low80", "high80"), "95": ("low95", "high95")}


@dataclass
class Tally:
    """Errors and hits of one number of one system over the repetitions."""

    errors: list[float] = field(default_factory=list)
    hits: dict[str, list[bool]] = field(default_factory=lambda: {"80": [], "95": []})
    widths: list[float] = field(default_factory=list)


def sample(pool: Pool, n: int, other: float, rng: np.random.Generator) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """kind -> (instance, owner) of every draw: n from the guaranteed distribution, a share of it from the others."""
    drawn = {}
    for kind in KINDS:
        size = n if kind == "entity_relation" else int(np.ceil(n * other))
        instance = np.concatenate(
            [rng.choice(len(pool.keys), size, p=pool.p[kind][:, j]) for j in range(len(pool.names))]
        )
        drawn[kind] = (instance, np.repeat(np.arange(len(pool.names)), size))
    return drawn


def judged(pool: Pool, accuracy: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """The label that three people's majority gives every instance, each right with the given probability."""
    if accuracy >= 1:
        return pool.true
    right = (rng.random((len(pool.keys), 3)) < accuracy).sum(axis=1) >= 2
    return np.where(right, pool.true, 1 - pool.true)


def data_of(pool: Pool, overlap: dict[str, Any], drawn: Any, label: Any, documents: Any, *, m: int) -> Data:
    """What the service would have read from its database."""
    instance = np.unique(np.concatenate([one for one, _ in drawn.values()]))
    f = np.tile(label[instance][:, None], (1, m))
    P = {kind: pool.p[kind][instance] for kind in KINDS}
    draws = {}
    for kind, (one, owner) in drawn.items():
        row = np.searchsorted(instance, one)
        draws[kind] = Draws(kind, row, owner, P[kind][row], overlap[kind])
    inside = np.flatnonzero(np.isin(pool.document, documents) & (pool.true == 1))
    code = np.searchsorted(documents, pool.document[inside])
    return Data(
        track=SimpleNamespace(),  # type: ignore[arg-type]
        systems=list(range(m)),
        shown=np.ones(m, dtype=np.bool_),
        instance=instance,
        target=pool.target[instance],
        f={"relation": f, "linking": np.ones_like(f), "correct": f},
        member=pool.member[instance],
        draws=draws,
        everything=P,
        facts=Facts(
            in_scope=np.ones(instance.size, dtype=np.bool_),
            pool_weight=np.ones(instance.size),
            stated=pool.member[instance],
            document=code,
            found=pool.member[inside].any(axis=1),
            n_annotated=documents.size,
            n_documents=pool.n_documents,
        ),
    )


def study(pool: Pool, *, repeats: int, n: int, other: float, accuracy: float, seed: int) -> dict[Any, Tally]:
    """(quantity, distribution, method, system) -> tally."""
    rng = np.random.default_rng(seed)
    m = len(pool.names)
    truth: dict[tuple[str, str], Any] = {("precision", kind): pool.precision(kind) for kind in KINDS}
    truth["recall", "instance"] = pool.recall()
    for kind in KINDS:
        p, r = pool.precision(kind), pool.recall()
        truth["f1", kind] = 2 * p * r / (p + r)
    overlap = {kind: pool.p[kind].T @ pool.p[kind] for kind in KINDS}
    tallies: dict[Any, Tally] = {}
    for _ in range(repeats):
        drawn = sample(pool, n, other, rng)
        documents = np.sort(rng.choice(pool.n_documents, 100, replace=False))
        data = data_of(pool, overlap, drawn, judged(pool, accuracy, rng), documents, m=m)
        for score in scores(data, ("relation",), ("relation",)):
            tally = tallies.setdefault((score.quantity, score.distribution, score.method, score.column), Tally())
            true = truth[score.quantity, score.distribution][score.column]
            tally.errors.append(score.value - true)
            tally.widths.append(score.high80 - score.low80)
            for level, (low, high) in LEVELS.items():
                tally.hits[level].append(getattr(score, low) <= true <= getattr(score, high))
    return tallies


def report(pool: Pool, tallies: dict[Any, Tally], name: str) -> list[list[Any]]:
    """Prints a line a number, averaged over systems; returns the rows of single systems."""
    print(f"\n{name}")
    print(f"{'':34}{'mean error':>11}{'± s.e.':>9}{'worst |z|':>10}{'80 %':>8}{'95 %':>8}{'width 80':>10}")
    lines = []
    for key in sorted({key[:3] for key in tallies}):
        some = [tallies[(*key, column)] for column in range(len(pool.names))]
        errors = np.array([tally.errors for tally in some])
        means = errors.mean(axis=1)
        each = errors.std(axis=1, ddof=1) / np.sqrt(errors.shape[1])
        over = errors.mean(axis=0)
        z = np.abs(means / each).max()
        covers = [float(np.mean([tally.hits[level] for tally in some])) for level in LEVELS]
        width = float(np.mean([tally.widths for tally in some]))
        error, se = over.mean(), over.std(ddof=1) / np.sqrt(over.size)
        print(f"{' '.join(key):34}{error:11.5f}{se:9.5f}{z:10.1f}{covers[0]:8.3f}{covers[1]:8.3f}{width:10.4f}")
        lines += [
            [
                name,
                *key,
                pool.names[c],
                means[c],
                each[c],
                np.mean(t.hits["80"]),
                np.mean(t.hits["95"]),
                np.mean(t.widths),
            ]
            for c, t in enumerate(some)
        ]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=457)
    parser.add_argument("--other", type=float, default=0.25)
    parser.add_argument("--seed", type=int, default=1)
    said = parser.parse_args()
    if not redocred.available():
        return
    pool = redocred.read(redocred.names(said.systems))
    began = time.perf_counter()
    lines = []
    for accuracy, name in ((1.0, "perfect workers"), (0.85, "workers who are right 85 % of the time, majority of 3")):
        found = study(pool, repeats=said.repeats, n=said.draws, other=said.other, accuracy=accuracy, seed=said.seed)
        lines += report(pool, found, f"{name}; {said.repeats} repetitions")
    OUT.mkdir(parents=True, exist_ok=True)
    with (OUT / "coverage_redocred.csv").open("w", newline="") as file:
        head = [
            "workers",
            "quantity",
            "distribution",
            "method",
            "system",
            "bias",
            "se",
            "cover80",
            "cover95",
            "width80",
        ]
        csv.writer(file).writerows([head, *lines])
    print(f"\n{time.perf_counter() - began:.0f} s; single systems in {OUT / 'coverage_redocred.csv'}", file=sys.stderr)


if __name__ == "__main__":
    main()
