"""How well recall is known from 20, 50 and 100 annotated documents, by estimator, on 28 real runs.

usage: python benchmarks/recall_documents.py [REPEATS]        (default: 300)

Each repeat makes 150 independent draws of every run (their targets are the labels of precision) and
annotates n_d of 500 documents, at random. The model is told of the runs what the service's is told
of its submissions.

direct            true facts of the run over true facts, in the annotated documents alone
θν common         the published product, one mixture for all runs (Chaganty 2018, A.1.2)
θν per system     with a mixture for each run (3.4.3); what its draws cannot reach counts as nothing
totals            T_i / (T + M): difference estimates with g from the labels, M from the documents
… regression      M by regression on the document's length and its Σ g
… document route  the documents' own labels of what was predicted count too, as clusters

`error` is the root mean square error over runs and repeats, in points; `documents` how many
documents the direct ratio would need for the same error; coverage is that of nominal 80 %
(Student's t for the number of documents, except for the products, whose published interval is
normal).

KBPO_SHARED_DATA names the folder that holds redocred/ if it is not ../shared/data.
"""

import gzip
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import redocred, tables
from benchmarks.arrivals import worlds
from benchmarks.our_rule import claims
from estimators import horvitz_thompson, model
from estimators import recall as recalls
from estimators.design import Design
from estimators.estimate import Estimate
from estimators.features import Features
from estimators.pool import joint_recall

DOCUMENTS, DRAWS, LEVEL, FOLDS, LEARNT = (20, 50, 100), 150, 0.8, 5, 1000
WAYS = (
    "direct",
    "θν common",
    "θν per system",
    "totals",
    "totals, regression",
    "totals, document route",
)


@dataclass(frozen=True)
class World:
    """Statements of the pool, one row each, and the documents: true facts that nobody predicts, and
    length.
    """

    P: np.ndarray
    member: np.ndarray
    true: np.ndarray
    target: np.ndarray
    document: np.ndarray
    missed: np.ndarray
    length: np.ndarray
    pi: np.ndarray
    cumulative: np.ndarray
    features: Features

    @property
    def recall(self) -> np.ndarray:
        """The true recall of every run."""
        return self.true @ self.member / (self.true.sum() + self.missed.sum())


@dataclass(frozen=True)
class Labels:
    """One sample of draws, and the model learnt from their targets' labels."""

    draws: np.ndarray
    asked: np.ndarray
    g: np.ndarray


def load() -> World:
    """Return the world of all runs."""
    pool = redocred.read(redocred.names())
    n = pool.n_predicted
    P, member = pool.p["instance"][:n], pool.member[:n].astype(float)
    target = np.unique(pool.target[:n], return_inverse=True)[1]
    return World(
        P=P,
        member=member,
        true=pool.true[:n],
        target=target,
        document=pool.document[:n],
        missed=np.bincount(pool.document[n:], minlength=pool.n_documents).astype(float),
        length=lengths(),
        pi=horvitz_thompson.inclusion_iid(P, np.full(P.shape[1], DRAWS), target=target),
        cumulative=np.cumsum(P, axis=0),
        features=claims(worlds()["instance"], np.arange(n), list(range(P.shape[1]))).features(),
    )


def lengths() -> np.ndarray:
    """Return the number of tokens of every document."""
    with gzip.open(redocred.DATA / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        return np.array([len(json.loads(line)["tokens"]) for line in file], dtype=float)


def sample(world: World, rng: np.random.Generator) -> Labels:
    """Return draws of every run, with what g makes of them."""
    draws = np.concatenate(
        [
            np.searchsorted(column, rng.random(DRAWS) * column[-1], side="right")
            for column in world.cumulative.T
        ]
    )
    asked = np.zeros(world.target.max() + 1, dtype=bool)
    asked[world.target[draws]] = True
    rows = np.flatnonzero(asked[world.target])
    label = np.full(world.true.size, np.nan)
    some = rng.choice(rows, min(LEARNT, rows.size), replace=False)
    label[some] = world.true[some]
    fold = rng.integers(0, FOLDS, asked.size)[world.target]
    return Labels(draws, asked, model.fit(world.features, label, fold).g)


def direct(world: World, drawn: np.ndarray) -> Estimate:
    """Return the ratio of what the annotated documents hold, documents being the sample."""
    n, D = drawn.size, world.missed.size
    place = np.full(D, -1)
    place[drawn] = np.arange(n)
    rows = np.flatnonzero((place[world.document] >= 0) & (world.true == 1))
    found = np.zeros((n, world.member.shape[1]))
    np.add.at(found, place[world.document[rows]], world.member[rows])
    facts = np.bincount(place[world.document[rows]], minlength=n) + world.missed[drawn]
    value = found.sum(axis=0) / facts.sum()
    residual = (found - facts[:, None] * value) / facts.sum()
    variance = Design(np.full(n, n / D), cluster=np.arange(n), beta=n / D).variance(residual)
    return Estimate(value, variance, np.full(value.size, n), residual, degrees_of_freedom=n - 1.0)


def product(world: World, labels: Labels, drawn: np.ndarray, support: str) -> Estimate:
    """Return θ̂ν̂, documents as clusters."""
    rows = labels.draws
    place = np.full(world.missed.size, -1)
    place[drawn] = np.arange(drawn.size)
    inside = np.flatnonzero((place[world.document] >= 0) & (world.true == 1))
    missed = np.repeat(np.arange(drawn.size), world.missed[drawn].astype(int))
    document = np.concatenate([place[world.document[inside]], missed])
    by_any = np.concatenate([np.ones(inside.size), np.zeros(missed.size)])
    return joint_recall(
        world.P[rows],
        np.repeat(np.arange(world.P.shape[1]), DRAWS),
        world.true[rows],
        world.P.T @ world.P,
        world.member[rows],
        by_any,
        support=support,
        ddof=1,
        document=document,
        n_annotated=drawn.size,
        n_documents=world.missed.size,
    )


def totals(
    world: World,
    labels: Labels,
    drawn: np.ndarray,
    *,
    regression: bool = False,
    document_route: bool = False,
):
    """Return T_i / (T + M)."""
    n, D, g = drawn.size, world.missed.size, labels.g
    place = np.full(D, -1)
    place[drawn] = np.arange(n)
    inside = place[world.document]
    known = labels.asked[world.target] | ((inside >= 0) & document_route)
    rows = np.flatnonzero(known)
    pi = recalls.with_document_route(world.pi[rows], n / D) if document_route else world.pi[rows]
    about = np.column_stack([world.length, np.bincount(world.document, weights=g, minlength=D)])
    return recalls.recall(
        world.member[rows],
        pi,
        world.true[rows],
        g[rows],
        g @ world.member,
        g.sum(),
        world.missed[drawn],
        D,
        target=np.unique(world.target[rows], return_inverse=True)[1],
        document=inside[rows] if document_route else None,
        features=about[drawn] if regression else None,
        feature_totals=about.sum(axis=0) if regression else None,
    ).recall


def estimates(world: World, labels: Labels, drawn: np.ndarray) -> dict[str, Estimate]:
    """Return the Estimate of every way."""
    return {
        "direct": direct(world, drawn),
        "θν common": product(world, labels, drawn, "common"),
        "θν per system": product(world, labels, drawn, "per_system"),
        "totals": totals(world, labels, drawn),
        "totals, regression": totals(world, labels, drawn, regression=True),
        "totals, document route": totals(world, labels, drawn, document_route=True),
    }


def measure(
    world: World, n_drawn: int, repeats: int, rng: np.random.Generator
) -> list[list[object]]:
    """Return a row for each way."""
    truth, D = world.recall, world.missed.size
    errors: dict = {way: [] for way in WAYS}
    hits: dict = {way: [] for way in WAYS}
    for _ in range(repeats):
        labels = sample(world, rng)
        drawn = rng.choice(D, n_drawn, replace=False)
        for way, found in estimates(world, labels, drawn).items():
            low, high = found.confidence_interval(
                LEVEL, method="wald" if way.startswith("θν") else "t"
            )
            errors[way].append(found.value - truth)
            hits[way].append((low <= truth) & (truth <= high))
    table: list[list[object]] = []
    reference = np.mean(np.square(errors["direct"]))
    for way in WAYS:
        error, covered = np.array(errors[way]), np.array(hits[way])
        loss = np.mean(error**2)
        equivalent = 1 / (loss / reference * (1 / n_drawn - 1 / D) + 1 / D)
        bias = error.mean(axis=0)
        table.append(
            [
                n_drawn,
                way,
                float(100 * np.sqrt(loss)),
                float(100 * bias.mean()),
                float(100 * np.abs(bias).max()),
                float(equivalent),
                float(covered.mean()),
                float(covered.mean(axis=0).min()),
            ]
        )
    return table


def main(repeats: int) -> None:
    """Print the table and write it as CSV."""
    if not redocred.available():
        return
    started = time.perf_counter()
    rng, world = np.random.default_rng(17), load()
    table = [row for n_drawn in DOCUMENTS for row in measure(world, n_drawn, repeats, rng)]
    print(f"Recall of {world.P.shape[1]} runs, {DRAWS} draws each; {repeats} repeats\n")
    tables.show(
        "recall_documents",
        [
            "annotated",
            "estimator",
            "error (points)",
            "mean bias",
            "largest |bias|",
            "documents",
            "80 %",
            "least",
        ],
        table,
    )
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
