"""Do the intervals keep their promise? Real systems on real documents, against truths computed from
the gold standard.

    python benchmarks/coverage_redocred.py

The whole HTTP journey on the same data is run once by `journey_redocred.py`.

Every repetition draws all batches anew (design iid), judges them with the gold standard (or with
three people who are right 85 times in 100, by majority), annotates 100 random documents, and calls
the service's own `scoring.score`. For the default estimators ("centred") the annotated documents
are closed: their labels of pool targets come by the document route.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import redocred
from numpy.typing import NDArray
from redocred import KINDS, ROOT, Pool

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbpo.settings")
import django

django.setup()

from scipy import sparse  # noqa: E402

from estimators.horvitz_thompson import inclusion_iid  # noqa: E402
from kbpo.sampling.guess import Lesson  # noqa: E402
from scoring.data import Data, Draws  # noqa: E402
from scoring.documents import NO_MARK, Annotated, Facts  # noqa: E402
from scoring.inclusion import Inclusion  # noqa: E402
from scoring.pool import Pool as ServicePool  # noqa: E402
from scoring.score import Score, default_estimates, scores  # noqa: E402

OUT = ROOT / "benchmarks" / "out"
LEVELS = {"80": ("low80", "high80"), "95": ("low95", "high95")}


@dataclass
class Tally:
    """Errors and hits of one number of one system over the repetitions."""

    errors: list[float] = field(default_factory=list)
    hits: dict[str, list[bool]] = field(default_factory=lambda: {"80": [], "95": []})
    widths: list[float] = field(default_factory=list)
    undefined: int = 0

    def add(self, score: Score, true: float) -> None:
        """Nothing; one repetition more. Where nothing is printed nothing can be wrong."""
        if np.isnan(score.value):
            self.undefined += 1
            return
        self.errors.append(score.value - true)
        self.widths.append(score.high80 - score.low80)
        for level, (low, high) in LEVELS.items():
            self.hits[level].append(getattr(score, low) <= true <= getattr(score, high))


def sample(
    pool: Pool, n: int, other: float, rng: np.random.Generator
) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """kind -> (instance, owner) of every draw: n from the guaranteed distribution, a share of it
    from the others.
    """
    drawn = {}
    for kind in KINDS:
        size = n if kind == "entity_relation" else int(np.ceil(n * other))
        instance = np.concatenate(
            [rng.choice(len(pool.keys), size, p=pool.p[kind][:, j]) for j in range(len(pool.names))]
        )
        drawn[kind] = (instance, np.repeat(np.arange(len(pool.names)), size))
    return drawn


def judged(pool: Pool, accuracy: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """The label that three people's majority gives every instance, each right with the given
    probability.
    """
    if accuracy >= 1:
        return pool.true
    right = (rng.random((len(pool.keys), 3)) < accuracy).sum(axis=1) >= 2
    return np.where(right, pool.true, 1 - pool.true)


def data_of(
    pool: Pool, whole: ServicePool, drawn: Any, overlap: dict[str, Any], label: Any, documents: Any
) -> Data:
    """What the service would have read from its database, had it drawn and judged this."""
    m, predicted = len(pool.names), whole.instance.size
    targets = np.unique(whole.target[np.unique(np.concatenate([one for one, _ in drawn.values()]))])
    missed = np.ones(whole.target_id.size)
    for kind, (_, owner) in drawn.items():
        missed *= 1 - inclusion_iid(
            whole.by_target(kind).toarray(), np.bincount(owner, minlength=m)
        )
    counts = np.zeros(whole.target_id.size, dtype=np.bool_)
    counts[targets] = True
    chance = Inclusion(
        asked=1 - missed, drawn=counts, threshold=np.zeros(counts.size), released=1.0
    )
    judged = np.flatnonzero(counts[whole.target])
    f = np.tile(label[judged][:, None], (1, m))
    known = np.full(predicted, np.nan)
    known[judged] = label[judged]
    found = Lesson(whole, "coverage").guess(known)
    return Data(
        pool=whole,
        shown=np.ones(m, dtype=np.bool_),
        judged=judged,
        f={"relation": f, "linking": np.ones_like(f), "correct": f},
        draws={
            k: Draws(k, row, owner, whole.p[k][row].toarray(), overlap[k])
            for k, (row, owner) in drawn.items()
        },
        inclusion=chance,
        g={"relation": found.g},
        rho={"relation": found.rho},
        base="relation",
        unweighed="instance",
        found_also={"correct": "linking"},
        facts=facts_of(pool, whole, documents, list(range(m))),
        documents=read_documents(documents),
        closed_documents=True,
        mark=np.full(counts.size, NO_MARK),
        mean="precision",
    )


def facts_of(pool: Pool, whole: ServicePool, documents: Any, columns: list[int]) -> Facts:
    """What recall needs where some runs are on the board and some documents were read."""
    predicted = whole.instance.size
    true = np.flatnonzero(np.isin(pool.document, documents) & (pool.true == 1))
    found = pool.member[true][:, columns].any(axis=1)
    code = np.searchsorted(documents, pool.document[true])
    return Facts(
        fact=np.arange(predicted),
        in_scope=np.ones(predicted, dtype=np.bool_),
        pool_weight=np.ones(predicted),
        predicted=pool.member[:predicted][:, columns],
        document=code,
        stratum=pool.predicate[true],
        found=found,
        n_annotated=documents.size,
        n_documents=pool.n_documents,
        inside=np.full(predicted, -1, dtype=np.int64),
        marked=np.zeros(predicted, dtype=np.bool_),
        code=np.where(true < predicted, true, -1),
        links=np.zeros((true.size, 2), dtype=np.str_),
        missed=np.bincount(code[~found], minlength=documents.size),
    )


def read_documents(documents: Any) -> Annotated:
    """The documents that were read, numbered from 0."""
    return Annotated(list(range(documents.size)), list(range(documents.size)))


def truths(pool: Pool) -> dict[tuple[str, str], Any]:
    """(quantity, distribution) -> the true number of every system."""
    recall = pool.recall()  # each fact is predicted once here
    truth: dict[tuple[str, str], Any] = {("recall", "instance"): recall}
    truth["instance_recall", "instance"] = recall
    for kind in KINDS:
        precision = pool.precision(kind)
        truth["precision", kind] = precision
        truth["f1", kind] = 2 * precision * recall / (precision + recall)
    return truth


def service_pool(pool: Pool) -> ServicePool:
    """The pool as the service holds it: predicted instances only."""
    predicted, m = pool.n_predicted, len(pool.names)
    target_id, code = np.unique(pool.target[:predicted], return_inverse=True)
    member = pool.member[:predicted]
    subject, object_ = redocred.entities(pool.keys[:predicted])
    confidence = np.where(member, np.nan_to_num(pool.confidence[:predicted], nan=1.0), 0.0)
    return ServicePool(
        systems=list(range(m)),
        teams=[sorted(set(pool.teams)).index(team) for team in pool.teams],
        instance=np.arange(predicted),
        target=code.astype(np.int64),
        target_id=target_id,
        u=np.zeros(target_id.size),
        document=pool.document[:predicted],
        stratum=pool.predicate[:predicted],
        types=np.array([f"{a}|{b}" for a, b in pool.types[:predicted]], dtype=np.str_),
        subject=subject,
        object=object_,
        p={kind: sparse.csr_array(pool.p[kind][:predicted]) for kind in KINDS},
        confidence=sparse.csr_array(confidence),
    )


def study(
    pool: Pool,
    *,
    repeats: int,
    default_repeats: int,
    n: int,
    other: float,
    accuracy: float,
    seed: int,
) -> dict[Any, Tally]:
    """(quantity, distribution, method, system) -> tally."""
    rng = np.random.default_rng(seed)
    truth = truths(pool)
    overlap = {kind: pool.p[kind].T @ pool.p[kind] for kind in KINDS}
    whole = service_pool(pool)
    tallies: dict[Any, Tally] = {}
    for repeat in range(repeats):
        drawn = sample(pool, n, other, rng)
        documents = np.sort(rng.choice(pool.n_documents, 100, replace=False))
        data = data_of(pool, whole, drawn, overlap, judged(pool, accuracy, rng), documents)
        default = (
            default_estimates(data, ("relation",), ("relation",))
            if repeat < default_repeats
            else {}
        )
        for score in scores(data, default, ("relation",), ("relation",)):
            tally = tallies.setdefault(
                (score.quantity, score.distribution, score.method, score.column), Tally()
            )
            tally.add(score, truth[score.quantity, score.distribution][score.column])
    return tallies


def report(pool: Pool, tallies: dict[Any, Tally], name: str) -> list[list[Any]]:
    """Prints a line a number, averaged over systems; returns the rows of single systems."""
    print(f"\n{name}")
    print(
        f"{'':34}{'mean error':>11}{'± s.e.':>9}{'80 %':>8}{'worst':>8}{'95 %':>8}{'width 80':>10}"
        f"{'printed':>9}"
    )
    lines = []
    for key in sorted({key[:3] for key in tallies}):
        some = [tallies[(*key, column)] for column in range(len(pool.names))]
        told = [tally for tally in some if tally.errors]
        if not told:
            print(f"{' '.join(key):34}{'never printed':>20}")
            continue
        errors = np.concatenate([tally.errors for tally in told])
        covers = [np.mean(np.concatenate([one.hits[level] for one in told])) for level in LEVELS]
        worst = min(float(np.mean(tally.hits["80"])) for tally in told)
        width = float(np.mean(np.concatenate([tally.widths for tally in told])))
        asked = errors.size + sum(tally.undefined for tally in some)
        error, se = errors.mean(), errors.std(ddof=1) / np.sqrt(errors.size)
        print(
            f"{' '.join(key):34}{error:11.5f}{se:9.5f}{covers[0]:8.3f}{worst:8.3f}{covers[1]:8.3f}"
            f"{width:10.4f}{errors.size / asked:9.0%}"
        )
        lines += [
            [
                name,
                *key,
                pool.names[at],
                np.mean(tally.errors),
                np.std(tally.errors, ddof=1) / np.sqrt(len(tally.errors)),
                np.mean(tally.hits["80"]),
                np.mean(tally.hits["95"]),
                np.mean(tally.widths),
            ]
            for at, tally in enumerate(some)
            if len(tally.errors) > 1
        ]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--systems", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument(
        "--default-repeats",
        type=int,
        default=1000,
        help="Of the default estimators, which fit a model",
    )
    parser.add_argument(
        "--accuracy", type=float, nargs="+", default=[1.0, 0.85], help="Of the workers; 1: perfect"
    )
    parser.add_argument("--draws", type=int, default=457)
    parser.add_argument("--other", type=float, default=0.25)
    parser.add_argument("--seed", type=int, default=1)
    said = parser.parse_args()
    if not redocred.available():
        return
    pool = redocred.read(redocred.names(said.systems))
    began = time.perf_counter()
    lines = []
    for accuracy in said.accuracy:
        name = (
            "perfect workers"
            if accuracy == 1
            else f"workers right {accuracy:.0%} of the time, majority of 3"
        )
        found = study(
            pool,
            repeats=said.repeats,
            default_repeats=said.default_repeats,
            n=said.draws,
            other=said.other,
            accuracy=accuracy,
            seed=said.seed,
        )
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
    print(
        f"\n{time.perf_counter() - began:.0f} s; single systems in {OUT / 'coverage_redocred.csv'}",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
