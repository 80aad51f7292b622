"""Does PRMSE rank systems right, whoever rated them? The simulation of its publication, done again.

usage: python benchmarks/prmse_simulation.py [REPEATS]        (default: 200, for the table by N)

10,000 true scores N(3.844, sd 0.74) cut to [1, 6]; four groups of 50 raters whose ratings go
together with r = 0.40, 0.55, 0.65, 0.80, rounded and cut; 25 systems in five classes of quality.
Printed: R² and PRMSE of one system against the mean of two raters of each group; the ranks of five
systems, the better ones judged by the worse raters; metrics against the mean of 1 … 50 raters; the
spread of PRMSE by the number of responses with two ratings. After Loukina et al. 2020, section 4;
errors and systems are drawn anew here.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import tables
from estimators.prmse import agreement_with, prmse

N, MEAN, SPREAD, LOW, HIGH = 10_000, 3.844, 0.74, 1, 6
GROUPS = {0.40: 1.14, 0.55: 0.99, 0.65: 0.91, 0.80: 0.83}  # correlation of raters: sd of ratings
RATERS = 50
CLASSES = {"poor": 0.40, "low": 0.55, "medium": 0.65, "high": 0.80, "perfect": 0.99}  # true R2
EACH = 5  # systems a class
DOUBLE = (100, 1000, 10_000)


def rate(truth, sd, rng):
    """Return (N, 50) ratings with this standard deviation: true score plus error, rounded and cut.

    Rounding to whole numbers adds a variance of about 1/12, so the error before rounding has less.
    """
    noise = np.sqrt(max(sd**2 - truth.var() - 1 / 12, 0.0))
    return np.clip(np.round(truth[:, None] + rng.normal(0, noise, (truth.size, RATERS))), LOW, HIGH)


def score(truth, explained, rng):
    """Return a machine's scores that explain this share of the variance of the true scores."""
    return truth + rng.normal(0, truth.std() * np.sqrt(1 - explained), truth.size)


def world(rng):
    """Return the true scores, the ratings of each group, and the systems of each class."""
    truth = np.clip(rng.normal(MEAN, SPREAD, N), LOW, HIGH)
    ratings = {r: rate(truth, sd, rng) for r, sd in GROUPS.items()}
    systems = {
        name: [score(truth, explained, rng) for _ in range(EACH)]
        for name, explained in CLASSES.items()
    }
    return truth, ratings, systems


def by_group(truth, ratings, machine):
    """Return a row a group: what one system is said to be worth."""
    for r, human in ratings.items():
        two = human[:, :2]
        beside = agreement_with(two, machine, low=LOW, high=HIGH, reference="mean")
        yield [
            f"raters at {r:.2f}",
            beside.rater_correlation,
            beside.pearson,
            beside.qwk,
            beside.r2,
            prmse(two, machine).value,
        ]
    exact = 1 - ((truth - machine) ** 2).mean() / truth.var()
    yield ["true scores", "", float(np.corrcoef(truth, machine)[0, 1]), "", exact, exact]


def places(values):
    """Return ranks, 1 the best."""
    return (np.argsort(np.argsort(-np.array(values))) + 1).tolist()


def ranks(truth, ratings, systems):
    """Return a row a system: the better it is, the worse are its raters,
    and where each metric ranks it.
    """
    names = list(CLASSES)
    groups = sorted(GROUPS, reverse=True)
    judged = [groups[min(k, len(groups) - 1)] for k in range(len(names))]
    found = {"r": [], "qwk": [], "R2": [], "PRMSE": [], "true": []}
    for name, group in zip(names, judged, strict=True):
        machine, two = systems[name][0], ratings[group][:, :2]
        beside = agreement_with(two, machine, low=LOW, high=HIGH)
        found["r"].append(beside.pearson)
        found["qwk"].append(beside.qwk)
        found["R2"].append(beside.r2)
        found["PRMSE"].append(prmse(two, machine).value)
        found["true"].append(1 - ((truth - machine) ** 2).mean() / truth.var())
    placed = {key: places(values) for key, values in found.items()}
    for k, (name, group) in enumerate(zip(names, judged, strict=True)):
        row = [placed[key][k] for key in found]
        yield [f"{name}, raters at {group:.2f}", *row, found["PRMSE"][k], found["true"][k]]


def by_raters(ratings, machine):
    """Return a row a number of raters: agreement with their mean grows, PRMSE stays."""
    human = ratings[0.40]
    for k in (1, 2, 5, 10, 50):
        beside = agreement_with(human[:, :k], machine, low=LOW, high=HIGH, reference="mean")
        value = prmse(human[:, : max(k, 2)], machine).value
        yield [f"mean of {k}", beside.pearson, beside.qwk, beside.r2, value]


def spread_by_double(ratings, machine, repeats, rng):
    """Return a row a number of responses with two ratings:
    the range of PRMSE over random subsets.
    """
    for n in DOUBLE:
        row = [n]
        for human in ratings.values():
            values = []
            for _ in range(repeats):
                pair = rng.choice(RATERS, 2, replace=False)
                partial = human[:, pair].copy()
                partial[rng.permutation(N)[n:], 1] = np.nan
                values.append(prmse(partial, machine).value)
            row += [float(np.nanmax(values) - np.nanmin(values)), float(np.nanstd(values))]
        yield row


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    rng = np.random.default_rng(17)
    truth, ratings, systems = world(rng)
    machine = systems["high"][0]
    print(f"{N:,} responses, seed 17, {repeats} repeats; one system of class high\n")
    header = ["against", "r(H1, H2)", "r", "QWK", "R2", "PRMSE"]
    tables.show("prmse_groups", header, list(by_group(truth, ratings, machine)))
    print("\nranks of five systems, the better one judged by the worse raters\n")
    header = ["system", "by r", "by QWK", "by R2", "by PRMSE", "true rank", "PRMSE", "true"]
    tables.show("prmse_ranks", header, list(ranks(truth, ratings, systems)))
    print("\nagainst the mean of more raters (of the group at 0.40)\n")
    tables.show(
        "prmse_raters", ["reference", "r", "QWK", "R2", "PRMSE"], list(by_raters(ratings, machine))
    )
    print(f"\nrange and sd of PRMSE over {repeats} subsets, by responses with two ratings\n")
    header = ["with two ratings", *(f"{k} at {r:.2f}" for r in GROUPS for k in ("range", "sd"))]
    tables.show("prmse_double", header, list(spread_by_double(ratings, machine, repeats, rng)))


if __name__ == "__main__":
    main()
