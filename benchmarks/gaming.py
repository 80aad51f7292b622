"""What a team gains by deleting what it was shown to be wrong and uploading again: printed against
true precision.

usage: python benchmarks/gaming.py [REPEATS]        (default: 300)

Nine real runs, each alone on the board and without a model (g is one constant, the share that is
right of what was asked anew), weighted by instance: no other team's judgments help or disturb.
Round 0 is honest: thresholds to ± 3 points at 80 %, the labels shown to the team. In every further
round it deletes what it knows to be wrong and uploads the rest again.

labels reused   every label counts with the probability it was asked with, as for anybody's labels:
                the plan sees enough of them and asks nothing, and what is left of them is right
seen domain     what the team could see counts for itself alone; what it saw unjudged is known to
                have u ≥ π, and is asked anew with the conditional probability, to the same width

`printed` and `true` are means over runs and repeats, `least` the coverage of the worst run.

KBPO_SHARED_DATA names the folder that holds redocred/ if it is not ../shared/data.
"""

import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import redocred, tables
from benchmarks.arrivals import LEVEL, TARGET, worlds
from estimators import horvitz_thompson, poisson, seen
from estimators.estimate import Estimate

RUNS, ROUNDS = 9, 3
WAYS = ("labels reused", "seen domain")


@dataclass
class Upload:
    """What is left of a run: labels and target codes, and of each target (by code) π, u and whether
    it is judged.
    """

    true: np.ndarray
    target: np.ndarray
    pi: np.ndarray
    u: np.ndarray
    judged: np.ndarray

    @property
    def p(self) -> np.ndarray:
        """Every instance counts the same."""
        return np.full(self.true.size, 1 / self.true.size)

    def without_the_wrong(self) -> "Upload":
        """Return what is left when the team has deleted what it was shown to be wrong."""
        kept = (self.true == 1) | ~self.judged[self.target]
        return replace(self, true=self.true[kept], target=self.target[kept])


def raised(upload: Upload, rows: np.ndarray, pi_old: np.ndarray) -> np.ndarray:
    """Return the thresholds of these rows for the variance that is wanted."""
    code = np.unique(upload.target[rows], return_inverse=True)[1]
    return poisson.water_fill(upload.p[rows], pi_old, 0.25, target_variance=TARGET, target=code)


def reused(upload: Upload) -> tuple[Estimate, int]:
    """Return the estimate in which all labels count alike, and how many targets were asked for
    it.
    """
    everything = np.arange(upload.true.size)
    upload.pi[upload.target] = raised(upload, everything, upload.pi[upload.target])
    new = poisson.select(upload.u, upload.pi) & ~upload.judged
    new &= np.bincount(upload.target, minlength=new.size) > 0
    upload.judged |= new
    rows = np.flatnonzero(upload.judged[upload.target])
    target = np.unique(upload.target[rows], return_inverse=True)[1]
    found = horvitz_thompson.hajek(
        upload.p[rows], upload.pi[upload.target[rows]], upload.true[rows], target=target
    )
    return found, int(new.sum())


def apart(upload: Upload) -> tuple[Estimate, int]:
    """Return the estimate with what the team could see apart, and how many targets were asked for
    it.
    """
    visible = upload.judged[upload.target]
    unseen = np.flatnonzero(~visible)
    conditional = np.zeros(upload.true.size)
    conditional[unseen] = raised(upload, unseen, np.zeros(unseen.size))
    old = upload.pi.copy()
    upload.pi[upload.target[unseen]] = seen.threshold(
        conditional[unseen], old[upload.target[unseen]]
    )
    new = poisson.select(upload.u, upload.pi) & ~upload.judged
    upload.judged |= new
    rows = np.flatnonzero(upload.judged[upload.target])
    exact = visible[rows]
    chance = np.ones(rows.size)
    chance[~exact] = conditional[rows[~exact]]
    target = np.unique(upload.target[rows], return_inverse=True)[1]
    p, label = upload.p, upload.true[rows]
    fresh, sampled = label[~exact], p[rows][~exact] / chance[~exact]
    g = (sampled @ fresh + 0.5 * p[0]) / (sampled.sum() + p[0]) if fresh.size else 0.5
    guess = np.full(rows.size, g)
    found = horvitz_thompson.centred(
        p[rows], chance, label, guess, g, target=target, certainty=exact
    )
    code = np.unique(upload.target[unseen], return_inverse=True)[1]
    constant = np.full(unseen.size, g)
    floor = horvitz_thompson.anticipated_variance(
        p[unseen],
        np.maximum(conditional[unseen], 1e-12),
        constant,
        fresh,
        guess[~exact],
        target=code,
    )
    return replace(found, anticipated=floor), int(new.sum())


def play(
    way: str, true: np.ndarray, target: np.ndarray, u: np.ndarray
) -> list[tuple[float, float, bool, int]]:
    """Return (printed, true, covered, asked) of every round."""
    n = int(target.max()) + 1
    upload = Upload(true, target, np.zeros(n), u, np.zeros(n, dtype=bool))
    rounds = []
    for at in range(ROUNDS + 1):
        found, asked = (reused if way == "labels reused" or at == 0 else apart)(upload)
        low, high = found.confidence_interval(LEVEL, method="wilson")
        truth = float(upload.true.mean())
        rounds.append((float(found.value), truth, bool(low <= truth <= high), asked))
        upload = upload.without_the_wrong()
    return rounds


def main(repeats: int) -> None:
    """Print the table and write it as CSV."""
    if not redocred.available():
        return
    started = time.perf_counter()
    rng = np.random.default_rng(11)
    world = worlds()["instance"]
    chosen = np.linspace(0, world.P.shape[1] - 1, RUNS).round().astype(int)
    runs = []
    for i in chosen:
        own = np.flatnonzero(world.member[:, i])
        runs.append((world.true[own], np.unique(world.target[own], return_inverse=True)[1]))
    games = {
        way: np.array(
            [
                [play(way, true, target, rng.random(target.max() + 1)) for true, target in runs]
                for _ in range(repeats)
            ]
        )
        for way in WAYS
    }
    table: list[list[object]] = []
    for way, game in games.items():
        for at in range(ROUNDS + 1):
            printed, truth, covered, asked = np.moveaxis(game[:, :, at], -1, 0)
            table.append(
                [
                    way,
                    at,
                    float(printed.mean()),
                    float(truth.mean()),
                    float((printed - truth).mean()),
                    float(np.abs((printed - truth).mean(axis=0)).max()),
                    float(covered.mean()),
                    float(covered.mean(axis=0).min()),
                    float(asked.mean()),
                ]
            )
    print(
        f"Deleting what was shown to be wrong; {RUNS} runs, {repeats} repeats, nominal"
        f" {LEVEL:.0%}\n"
    )
    tables.show(
        "gaming",
        [
            "rule",
            "round",
            "printed",
            "true",
            "difference",
            "largest of a run",
            "coverage",
            "least",
            "questions",
        ],
        table,
    )
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
