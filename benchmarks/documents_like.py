"""Measures the coverage of intervals of relations for documents like the judged ones.

usage: python benchmarks/documents_like.py [REPEATS] (default: 1,000)

Real runs (../shared/data/redocred), documents resampled with replacement: 100 or 200 of them, of
which some are read in full, at random; people are always right. Each pair of mentions is judged
with a chance that grows with its weight (`judged` in the mean), or all are; `g`: a guess that is
right four times in five. Printed is the mean over runs of how often an 80 % interval holds what the
run has over all documents ("like"), beside that about the documents that were drawn ("these").
"""

import sys
from collections import defaultdict
from dataclasses import replace

import numpy as np
import redocred

from benchmarks import tables
from estimators.distributions import prediction_probabilities
from scoring.data import Data
from scoring.documents import NO_MARK
from scoring.inclusion import Inclusion
from scoring.inputs import estimates_for_similar_inputs
from scoring.score import default_estimates

LEVEL, RUNS, READ = 0.8, 6, 40
SAME = 1e-9  # an end that is the truth holds it, whatever is rounded


def resample_documents(pool, entities, drawn):
    """Return the pool of resampled documents, renumbered, each as often as it was drawn."""
    rows_of = defaultdict(list)
    for row, document in enumerate(pool.document.tolist()):
        rows_of[document].append(row)
    rows = np.array([row for document in drawn for row in rows_of[document]])
    code = np.repeat(np.arange(drawn.size), [len(rows_of[document]) for document in drawn])
    first = np.argsort(~pool.member[rows].any(axis=1), kind="stable")  # predicted ones come first
    rows, code = rows[first], code[first]
    subject, object_ = (code * (one.max() + 1) + one[rows] for one in entities)
    p = {kind: np.zeros((rows.size, len(pool.names))) for kind in redocred.KINDS}
    for j in range(len(pool.names)):
        own = np.flatnonzero(pool.member[rows, j])
        facts = {"subject": subject[own], "predicate": pool.predicate[rows[own]]}
        for kind in p:
            p[kind][own, j] = prediction_probabilities(kind, object=object_[own], **facts)
    return replace(
        pool, keys=[pool.keys[row] for row in rows], true=pool.true[rows],
        member=pool.member[rows], p=p, document=code, predicate=pool.predicate[rows],
        target=code * (pool.target.max() + 1) + pool.target[rows],
        confidence=pool.confidence[rows], types=pool.types[rows], n_documents=drawn.size,
    )  # fmt: skip


def board_data(pool, share, guessed, rng):
    """Return the data of a board of these documents."""
    whole = redocred.service_pool(pool)
    n, t = whole.instance.size, whole.target_id.size
    most = np.max([np.asarray(p.toarray()).max(axis=1) for p in whole.p.values()], axis=0)
    of_target = np.sqrt(np.bincount(whole.target, most**2, minlength=t))
    pi = np.minimum(1.0, of_target / of_target.mean() * share) if share < 1 else np.ones(t)
    drawn = rng.random(t) < pi
    judged = np.flatnonzero(drawn[whole.target])
    read = np.sort(rng.choice(pool.n_documents, READ, replace=False))
    g = np.full(n, 0.5)
    if guessed:
        g = np.where(rng.random(n) < 0.8, pool.true[:n], 1 - pool.true[:n]) * 0.6 + 0.2
    return Data(
        pool=whole, shown=np.ones(len(pool.names), dtype=np.bool_), judged=judged,
        f={"relation": np.tile(pool.true[judged][:, None], (1, len(pool.names)))}, draws={},
        inclusion=Inclusion(asked=pi, drawn=drawn, threshold=pi, released=1.0),
        g={"relation": g}, rho={"relation": 1.0}, base="relation", unweighed="instance",
        facts=redocred.facts_of(pool, whole, read, list(range(len(pool.names)))),
        documents=replace(redocred.read_documents(read), documents=read.tolist()),
        closed_documents=True, mark=np.full(t, NO_MARK), mean="precision", population="these",
    )  # fmt: skip


def share_of_covering_intervals(estimate, truth):
    """Return the share of runs whose interval contains the truth."""
    low, high = estimate.confidence_interval(LEVEL, method="wilson")
    return np.mean((np.asarray(low) <= truth + SAME) & (truth <= np.asarray(high) + SAME))


def measure_coverage(pool, n, share, guessed, repeats):
    """Return quantity, distribution -> coverage for documents like these, and for these
    documents.
    """
    rng, found = np.random.default_rng([n, repeats, int(100 * share), guessed]), defaultdict(list)
    entities, everything = redocred.entities(pool.keys), redocred.truths(pool)
    for _ in range(repeats):
        drawn = resample_documents(pool, entities, rng.integers(pool.n_documents, size=n))
        data = board_data(drawn, share, guessed, rng)
        these, truth = default_estimates(data, ("relation",), ("relation",)), redocred.truths(drawn)
        for key, (estimate, _) in estimates_for_similar_inputs(data, these).items():
            name = key[0], key[2]
            found[name].append([share_of_covering_intervals(estimate, everything[name])])
            found[name][-1].append(share_of_covering_intervals(these[key][0], truth[name]))
    return {name: np.mean(ratios, axis=0).tolist() for name, ratios in found.items()}


def main() -> None:
    """Print the table of coverages."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    if not redocred.available():
        return
    pool, rows = redocred.read(redocred.names(RUNS)), []
    for n, share, guessed in ((100, 0.1, 0), (100, 0.1, 1), (100, 1.0, 0), (200, 0.1, 1)):
        for name, pair in measure_coverage(pool, n, share, guessed, repeats).items():
            rows.append([n, share, "g" if guessed else "", *name, *pair])
            print(*rows[-1], flush=True)
    header = ["documents", "judged", "model", "number", "distribution", "like", "these"]
    tables.print_and_write("documents_like", header, rows)


if __name__ == "__main__":
    main()
