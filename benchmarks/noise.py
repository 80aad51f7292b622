"""How far crowd errors bend precision, and what repairs it: majority, Dawid-Skene, and a few expert
checks.

usage: python benchmarks/noise.py [REPEATS]        (default: 300)

The 28 real runs; about 3,000 targets are asked, each instance of a target by three of 30 workers.
*Even* workers are right 85 times in 100. *Plausible* workers are too, on average, but accept false
statements the more often the more runs make them (and doubt true ones that few make). An expert
checks 20 % of the labelled targets, at random or by weight × doubt. Precision is micro
(`instance`), intervals at 80 %.
"""

import sys
from pathlib import Path

import numpy as np
from scipy.special import expit, logit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import predicted, tables
from estimators.horvitz_thompson import centred
from estimators.noise import expert_probabilities, ppi
from estimators.votes import dawid_skene

LEVEL, QUESTIONS, CHECKED = 0.8, 3000, 0.2
WORKERS, VOTES, ACCURACY = 30, 3, 0.85


class Setting:
    """The pool with weights, model, inclusion probabilities and the chance that a worker is wrong
    about each row.
    """

    def __init__(self, pool, rng):
        self.pool = pool
        self.p = pool.membership / pool.membership.sum(axis=0)
        self.truth = pool.true @ self.p
        self.g = pool.model(rng)
        self.total_g = self.g @ self.p
        size = np.sqrt((self.p**2).sum(axis=1) * np.maximum(self.g * (1 - self.g), 0.06))
        each = np.zeros(pool.n_targets)
        np.maximum.at(each, pool.target, size)
        self.pi = np.minimum(1, each * QUESTIONS / each.sum())[pool.target]

    def error(self, kind):
        """Return each row's chance of a wrong answer."""
        if kind == "even":
            return np.full(self.g.size, 1 - ACCURACY)
        popular = np.log1p(self.pool.membership.sum(axis=1))
        popular = (popular - popular.mean()) / popular.std()
        lure = np.where(self.pool.true == 1, -popular, popular)
        shift = np.linspace(-8, 4, 400)
        mean = np.array([expit(0.6 * lure + s) @ self.pi / self.pi.sum() for s in shift])
        return expit(0.6 * lure + np.interp(1 - ACCURACY, mean, shift))


def answers(rows, error, setting, rng):
    """Return votes (rows, 3) of right or wrong people, and who cast them."""
    who = np.argsort(rng.random((rows.size, WORKERS)), axis=1)[:, :VOTES]
    wrong = rng.random((rows.size, VOTES)) < error[rows, None]
    return np.where(wrong, 1 - setting.pool.true[rows, None], setting.pool.true[rows, None]), who


def posterior(votes, who):
    """Return Dawid and Skene's probability that each row is true."""
    unit = np.repeat(np.arange(len(votes)), VOTES)
    found = dawid_skene(votes.ravel(), unit, who.ravel(), n_classes=2, tolerance=1e-4)
    by_vote = found.posterior[:, 1]
    right = np.corrcoef(by_vote, votes.mean(axis=1))[0, 1] >= 0
    return by_vote if right else 1 - by_vote


def checked(setting, rows, code, crowd, e, rng):
    """Return the corrected estimate with experts who check each target with its probability e."""
    seen = (rng.random(e.size) < e)[code]
    expert = np.where(seen, setting.pool.true[rows], np.nan)
    return ppi(
        setting.p[rows],
        setting.pi[rows],
        crowd,
        setting.g[rows],
        expert,
        e[code],
        setting.total_g,
        target=code,
    )


def doubtful(setting, rows, code, votes):
    """Return check probabilities by weight × doubt; doubt from the votes, the model and the
    workers' accuracy.
    """
    balance = 2 * votes.sum(axis=1) - VOTES
    chance = expit(logit(setting.g[rows]) + balance * logit(ACCURACY))
    doubt = np.zeros(code.max() + 1)
    np.maximum.at(doubt, code, chance * (1 - chance))
    a = np.zeros((doubt.size, setting.p.shape[1]))
    np.add.at(a, code, setting.p[rows] / setting.pi[rows, None])
    return expert_probabilities(a, doubt, budget=CHECKED * doubt.size)


def once(setting, error, rng):
    """Return each method's estimate from one sample of targets, workers and checks."""
    pool = setting.pool
    u = rng.random(pool.n_targets)[pool.target]
    rows = np.flatnonzero(u < setting.pi)
    code = np.unique(pool.target[rows], return_inverse=True)[1]
    votes, who = answers(rows, error, setting, rng)
    crowd = (votes.mean(axis=1) > 0.5).astype(float)
    sample = setting.p[rows], setting.pi[rows]
    rest = setting.g[rows], setting.total_g
    at_random = np.full(code.max() + 1, CHECKED)
    return {
        "truth (no noise)": centred(*sample, pool.true[rows], *rest, target=code),
        "majority of 3": centred(*sample, crowd, *rest, target=code),
        "Dawid-Skene": centred(*sample, posterior(votes, who), *rest, target=code),
        "experts at random": checked(setting, rows, code, crowd, at_random, rng),
        "experts by weight × doubt": checked(
            setting, rows, code, crowd, doubtful(setting, rows, code, votes), rng
        ),
    }


def measure(setting, kind, repeats, rng):
    """Return a row for each method: bias (mean, worst run), error and coverage over runs."""
    error = setting.error(kind)
    values, hits = {}, {}
    for _ in range(repeats):
        for name, estimate in once(setting, error, rng).items():
            low, high = estimate.confidence_interval(LEVEL, method="wilson")
            values.setdefault(name, []).append(estimate.value)
            hits.setdefault(name, []).append((low <= setting.truth) & (setting.truth <= high))
    for name, found in values.items():
        bias = np.mean(found, axis=0) - setting.truth
        rmse = np.sqrt(np.mean((np.array(found) - setting.truth) ** 2, axis=0))
        coverage = np.mean(hits[name], axis=0)
        yield [
            kind,
            name,
            float(np.abs(bias).mean()),
            float(np.abs(bias).max()),
            float(rmse.mean()),
            float(coverage.mean()),
            float(coverage.min()),
        ]


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    rng = np.random.default_rng(22)
    setting = Setting(predicted.load(), rng)
    table = [row for kind in ("even", "plausible") for row in measure(setting, kind, repeats, rng)]
    print(f"28 runs, about {QUESTIONS} targets asked, {repeats} repeats, nominal {LEVEL}\n")
    header = [
        "workers",
        "labels",
        "mean |bias|",
        "worst |bias|",
        "rmse",
        "coverage",
        "least coverage",
    ]
    tables.show("noise", header, table)


if __name__ == "__main__":
    main()
