"""Do the intervals keep their promise? Real systems on real documents, against truths computed from
the gold standard.

    python benchmarks/coverage_redocred.py

The whole HTTP journey on the same data is run once by `journey_redocred.py`.

Every repetition draws all batches anew (design iid), judges them with the gold standard (or with
three people who are right 85 times in 100, by majority), annotates 100 random documents, and calls
the service's own `evaluation.score`. For the default estimators ("centred") the annotated documents
are closed: their labels of pool targets fold in.
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

from estimators.documents import folded_in  # noqa: E402
from estimators.horvitz_thompson import inclusion_iid  # noqa: E402
from kbpo.evaluation.data import Data, Draws  # noqa: E402
from kbpo.evaluation.score import default_estimates, scores  # noqa: E402
from kbpo.pool.pool import Pool as ServicePool  # noqa: E402
from kbpo.sampling.annotated import Annotated  # noqa: E402
from kbpo.sampling.fold_in import FoldIn  # noqa: E402
from kbpo.sampling.guess import guess  # noqa: E402
from kbpo.sampling.inclusion import Inclusion  # noqa: E402
from kbpo.tracks.recall import Facts  # noqa: E402

OUT = ROOT / "benchmarks" / "out"
LEVELS = {"80": ("low80", "high80"), "95": ("low95", "high95")}


@dataclass
class Tally:
    """Errors and hits of one number of one system over the repetitions."""

    errors: list[float] = field(default_factory=list)
    hits: dict[str, list[bool]] = field(default_factory=lambda: {"80": [], "95": []})
    widths: list[float] = field(default_factory=list)


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
    m, stated = len(pool.names), whole.instance.size
    targets = np.unique(whole.target[np.unique(np.concatenate([one for one, _ in drawn.values()]))])
    missed = np.ones(whole.target_id.size)
    for kind, (_, owner) in drawn.items():
        missed *= 1 - inclusion_iid(
            whole.by_target(kind).toarray(), np.bincount(owner, minlength=m)
        )
    counts = np.zeros(whole.target_id.size, dtype=np.bool_)
    counts[targets] = True
    beta = documents.size / pool.n_documents
    cluster = np.full(whole.target_id.size, -1, dtype=np.int64)
    inside = np.isin(whole.document, documents)
    cluster[whole.target[inside]] = np.searchsorted(documents, whole.document[inside])
    chance = Inclusion(
        pi=folded_in(1 - missed, beta),
        by_threshold=np.zeros(whole.target_id.size),
        by_draw=1 - missed,
        drawn=counts,
        counts=counts | (cluster >= 0),
        cluster=cluster,
        beta=np.full(whole.target_id.size, beta),
        of_document=beta,
        n_clusters=documents.size,
        threshold=np.zeros(whole.target_id.size),
        before=np.zeros(whole.target_id.size),
        released=1.0,
    )
    judged = np.flatnonzero(chance.counts[whole.target])
    f = np.tile(label[judged][:, None], (1, m))
    known = np.full(stated, np.nan)
    known[judged] = label[judged]
    found = guess(whole, known, key="coverage", seen={})
    true = np.flatnonzero(np.isin(pool.document, documents) & (pool.true == 1))
    member = pool.member[:stated]
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
        facts=Facts(
            fact=np.arange(stated),
            in_scope=np.ones(stated, dtype=np.bool_),
            pool_weight=np.ones(stated),
            stated=member,
            document=np.searchsorted(documents, pool.document[true]),
            predicate=pool.predicate[true],
            found=pool.member[true].any(axis=1),
            n_annotated=documents.size,
            n_documents=pool.n_documents,
            inside=np.full(stated, -1, dtype=np.int64),
            marked=np.zeros(stated, dtype=np.bool_),
            code=np.full(true.size, -1, dtype=np.int64),
            links=np.zeros((true.size, 2), dtype=np.str_),
            missed=np.bincount(
                np.searchsorted(documents, pool.document[true[~pool.member[true].any(axis=1)]]),
                minlength=documents.size,
            ),
        ),
        documents=Annotated(list(range(documents.size)), list(range(documents.size))),
        fold=FoldIn(list(range(documents.size)), closed=True),
    )


def service_pool(pool: Pool) -> ServicePool:
    """The pool as the service holds it: stated instances only."""
    stated, m = pool.n_stated, len(pool.names)
    target_id, code = np.unique(pool.target[:stated], return_inverse=True)
    member = pool.member[:stated]
    subject, object_ = redocred.entities(pool.keys[:stated])
    confidence = np.where(member, np.nan_to_num(pool.confidence[:stated], nan=1.0), 0.0)
    return ServicePool(
        systems=list(range(m)),
        teams=[sorted(set(pool.teams)).index(team) for team in pool.teams],
        instance=np.arange(stated),
        target=code.astype(np.int64),
        target_id=target_id,
        u=np.zeros(target_id.size),
        document=pool.document[:stated],
        predicate=pool.predicate[:stated],
        types=np.array([f"{a}|{b}" for a, b in pool.types[:stated]], dtype=np.str_),
        subject=subject,
        object=object_,
        p={kind: sparse.csr_array(pool.p[kind][:stated]) for kind in KINDS},
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
    truth: dict[tuple[str, str], Any] = {
        ("precision", kind): pool.precision(kind) for kind in KINDS
    }
    truth["recall", "instance"] = truth["instance_recall", "instance"] = (
        pool.recall()
    )  # each fact is stated once here
    for kind in KINDS:
        p, r = pool.precision(kind), pool.recall()
        truth["f1", kind] = 2 * p * r / (p + r)
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
            true = truth[score.quantity, score.distribution][score.column]
            tally.errors.append(score.value - true)
            tally.widths.append(score.high80 - score.low80)
            for level, (low, high) in LEVELS.items():
                tally.hits[level].append(getattr(score, low) <= true <= getattr(score, high))
    return tallies


def report(pool: Pool, tallies: dict[Any, Tally], name: str) -> list[list[Any]]:
    """Prints a line a number, averaged over systems; returns the rows of single systems."""
    print(f"\n{name}")
    print(
        f"{'':34}{'mean error':>11}{'± s.e.':>9}{'worst |z|':>10}{'80 %':>8}{'95 %':>8}{'width 80':>10}"
    )
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
        print(
            f"{' '.join(key):34}{error:11.5f}{se:9.5f}{z:10.1f}{covers[0]:8.3f}{covers[1]:8.3f}{width:10.4f}"
        )
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
