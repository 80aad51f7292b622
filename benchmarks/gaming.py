"""What is printed for a team that deletes what it was shown to be wrong and uploads the rest again.

usage: python -m benchmarks.gaming [REPEATS]        (default: 300)

Each of the 28 real runs is judged to ±3 % at 80 %, its labels are shown, and what was shown to be wrong is deleted.
*Reused* prints the second upload from the labels there are, as if they were a sample of it; *seen domain* counts the
labels that were visible for themselves only and asks for the rest, at the conditional probabilities.
"""

import sys

import numpy as np

from benchmarks import stated, tables
from estimators.horvitz_thompson import centred, hajek
from estimators.poisson import water_fill
from estimators.seen import recondition, threshold

LEVEL = 0.8
TARGET = (0.03 / 1.2816) ** 2
DOUBT = 0.25


class Upload:
    """One run: which of its instances are true, and the target of each."""

    def __init__(self, pool, system):
        rows = np.flatnonzero(pool.membership[:, system])
        self.true = pool.true[rows]
        self.target = np.unique(pool.target[rows], return_inverse=True)[1]
        size = np.full(rows.size, 1 / rows.size)
        self.pi = water_fill(size, np.zeros(rows.size), DOUBT, target_variance=TARGET, target=self.target)


def resubmit(upload, rng):
    """Return truth, the reused and the honest estimate of the second upload, and how many new targets were asked."""
    u = rng.random(upload.target.max() + 1)[upload.target]
    visible = u < upload.pi
    kept = np.flatnonzero(~visible | (upload.true == 1))
    u, visible, true, pi_old = u[kept], visible[kept], upload.true[kept], upload.pi[kept]
    target = np.unique(upload.target[kept], return_inverse=True)[1]
    p = np.full(kept.size, 1 / kept.size)
    reused = hajek(p[visible], pi_old[visible], true[visible], target=target[visible])
    conditional = np.ones(kept.size)
    conditional[~visible] = water_fill(
        p[~visible], np.zeros((~visible).sum()), DOUBT, target_variance=TARGET, target=target[~visible]
    )
    pi_new = np.where(visible, 1.0, threshold(conditional, np.where(visible, 0.0, pi_old)))
    labelled = visible | (u < pi_new)
    pi = np.where(visible, 1.0, recondition(pi_new, np.where(visible, 0.0, pi_old)))
    half = np.full(labelled.sum(), 0.5)
    honest = centred(
        p[labelled], pi[labelled], true[labelled], half, 0.5, target=target[labelled], exact=visible[labelled]
    )
    return p @ true, reused, honest, np.unique(target[labelled & ~visible]).size


def measure(upload, repeats, rng):
    """Return mean truth, prints, coverages and new questions over the repeats."""
    found = []
    for _ in range(repeats):
        truth, reused, honest, asked = resubmit(upload, rng)
        row = [truth, reused.value, honest.value]
        for estimate in (reused, honest):
            low, high = estimate.confidence_interval(LEVEL, method="wilson")
            row.append(low <= truth <= high)
        found.append([*row, asked])
    return np.array(found, dtype=float).mean(axis=0)


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    rng = np.random.default_rng(23)
    pool = stated.load()
    table = []
    for i, name in enumerate(pool.systems):
        upload = Upload(pool, i)
        means = [float(x) for x in measure(upload, repeats, rng)]
        table.append([name, float(upload.true.mean()), *means])
    table.append(["mean", *np.mean([row[1:] for row in table], axis=0).tolist()])
    print(f"{repeats} repeats a run, intervals at {LEVEL}\n")
    header = ["run", "first upload", "second, true", "printed reused", "printed seen domain"]
    tables.show("gaming", [*header, "coverage reused", "coverage seen domain", "new questions"], table)


if __name__ == "__main__":
    main()
