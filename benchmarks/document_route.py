"""How often an 80 % interval of recall is right when the annotated documents' own labels count too.

usage: python benchmarks/document_route.py [REPEATS]        (default: 300)

Each repeat asks every target of the pool of 28 real runs with probability π₁ and annotates n_d of
500 documents. Recall is estimated from what was asked alone, with the documents' labels of pool
targets by the document route but treated as independent, and with the clusters' variance. Coverage
is that of value ± z·√V (Student's t for the number of documents).

The second table is about precision, all of it from whole documents: how many times the variance is
that of as many targets drawn one by one, mean, least and largest over runs. Plans suppose 2
(`kbpo/sampling/designs/state.py`).
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import arrivals, predicted, tables
from estimators import recall as recalls
from estimators.design import Design

LEVEL = 0.8
DOCUMENTS = (20, 50, 100)
QUESTIONS = (1000, 4000)
WAYS = ("asked alone", "document route, independent", "document route, clusters")


def sample(pool, g, n_drawn, pi_1, rng, *, document_route):
    """Return recall of all runs from one sample of targets and documents."""
    code = np.full(pool.missed.size, -1)
    drawn = rng.choice(pool.missed.size, n_drawn, replace=False)
    code[drawn] = np.arange(n_drawn)
    asked = (rng.random(pool.n_targets) < pi_1)[pool.target]
    inside = code[pool.document]
    rows = np.flatnonzero(asked | (inside >= 0)) if document_route else np.flatnonzero(asked)
    pi = recalls.with_document_route(pi_1, n_drawn / pool.missed.size) if document_route else pi_1
    return recalls.recall(
        pool.membership[rows],
        np.full(rows.size, pi),
        pool.true[rows],
        g[rows],
        g @ pool.membership,
        g.sum(),
        pool.missed[drawn],
        pool.missed.size,
        target=np.unique(pool.target[rows], return_inverse=True)[1],
        document=inside[rows] if document_route else None,
    )


def independent(found):
    """Return the variance of recall if labels by the document route were taken for independent
    ones.
    """
    n_targets = found.totals.pool.influence.size
    cluster = found.design.cluster.copy()
    cluster[:n_targets] = -1
    return Design(found.design.pi, cluster=cluster, beta=found.design.beta).variance(
        found.recall.influence
    )


def measure(pool, g, n_drawn, questions, repeats, rng):
    """Return a row for each way: mean, least and largest coverage over runs, half-width, and spread
    of the values.
    """
    pi_1 = questions / pool.n_targets
    values = {way: [] for way in WAYS}
    variances = {way: [] for way in WAYS}
    for _ in range(repeats):
        alone = sample(pool, g, n_drawn, pi_1, rng, document_route=False)
        folded = sample(pool, g, n_drawn, pi_1, rng, document_route=True)
        for way, found, variance in (
            (WAYS[0], alone, alone.recall.variance),
            (WAYS[1], folded, independent(folded)),
            (WAYS[2], folded, folded.recall.variance),
        ):
            values[way].append(found.recall.value)
            variances[way].append(variance)
    t = (
        recalls.Estimate(0.0, 1.0, 1, np.zeros(1), degrees_of_freedom=n_drawn - 1)
        .confidence_interval(LEVEL, "t")
        .high
    )
    reference = np.var(values[WAYS[0]], axis=0)
    for way in WAYS:
        value, half = np.array(values[way]), t * np.sqrt(variances[way])
        coverage = np.mean(np.abs(value - pool.recall) <= half, axis=0)
        gain = np.mean(reference / np.var(value, axis=0))
        bias = np.abs(value.mean(axis=0) - pool.recall).mean()
        yield [
            f"{n_drawn} documents, {questions} questions",
            way,
            float(coverage.mean()),
            float(coverage.min()),
            float(coverage.max()),
            float(half.mean()),
            float(bias),
            float(gain),
        ]


def together(pool, g):
    """Return a row for each distribution and guess: how much more variance judgments by documents
    leave.
    """
    for kind, world in arrivals.worlds().items():
        for name, guess in (("g", g[:, None]), ("none", world.precision)):
            error = world.true[:, None] - guess
            terms = world.P * (error - np.sum(world.P * error, axis=0))
            by_target, by_document = (
                np.array([np.bincount(code, weights=column) for column in terms.T])
                for code in (world.target, pool.document)
            )
            ratio = (by_document**2).sum(axis=1) / (by_target**2).sum(axis=1)
            yield [kind, name, float(ratio.mean()), float(ratio.min()), float(ratio.max())]


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    rng = np.random.default_rng(20)
    pool = predicted.load()
    g = pool.model(rng)
    table = [
        row for n in DOCUMENTS for q in QUESTIONS for row in measure(pool, g, n, q, repeats, rng)
    ]
    header = [
        "sample",
        "variance",
        "coverage",
        "least",
        "largest",
        "half-width",
        "|bias|",
        "efficiency",
    ]
    print(
        f"{len(pool.systems)} runs, {pool.true.size} instances, {repeats} repeats, nominal"
        f" {LEVEL}\n"
    )
    tables.show("document_route", header, table)
    print("\nPrecision from whole documents: variance over that of targets drawn one by one\n")
    tables.show(
        "fold_in_together",
        ["distribution", "model", "mean", "least", "largest"],
        list(together(pool, g)),
    )


if __name__ == "__main__":
    main()
