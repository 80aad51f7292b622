"""What chance cannot tell of leaked answers: pairs of texts, and half of the answers used.

usage: python benchmarks/leaked_choices.py [REPEATS]        (default: 2000; 10 s)

pairs   Two runs are judged against each other on so many inputs, people prefer either text by the
        toss of a coin. A third run writes nothing itself: for each input it takes the text of one
        of them, by a coin, but where it used an answer the one that was preferred. So half of its
        pairs are ties of a text with itself. Believed, all labels count alike, and eight pairs are
        asked anew; as it is scored, what was judged counts for itself, and of what was not as much
        is asked as the half-width takes. `anew`: the same, held against what people would say who
        were asked anew and decide one pair in five otherwise.

half    A run of which so many answers were read: half of what was wrong is deleted, and of what was
        not judged as large a share, blindly. What it has of the old answers looks better by so many
        points than all that it says; how often so many new answers tell the two apart at 0.001,
        two-sided, at the first look, beside one earlier run or (Holm) 27.
"""

import sys
from pathlib import Path

import numpy as np
from scipy.stats import hypergeom, norm

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import tables

Z = float(norm.ppf(0.9))
ANEW, OTHERWISE, ALPHA = 8, 0.2, 0.001
BOARDS = ((300, 0.10), (1000, 0.05), (3000, 0.03), (300, 0.03))
USED = (1.0, 0.5, 0.0)
NEW = (8, 32, 100, 300, 3000)


def threshold(n: int, weight: float, half_width: float) -> float:
    """Return π of n pairs of equal weight at which they leave a half-width at 80 %."""
    return 1 / (1 + 4 * (half_width / Z) ** 2 / (n * weight**2)) if n else 1.0


def third_run(
    n: int, half_width: float, used: float, rng: np.random.Generator
) -> tuple[float, ...]:
    """Return of one third run its error if believed, its error as it is scored, whether the
    interval holds, what is asked, and its error against what people would say anew.
    """
    pi = threshold(n, 1 / n, half_width)
    judged, right = rng.random(n) < pi, rng.random(n) < 0.5
    right |= judged & (rng.random(n) < used)
    known = judged | (rng.random(n) < min(1.0, ANEW / max(n * (1 - pi), ANEW)))
    truth, weight, rest = 0.25 + right.mean() / 2, 1 / (2 * n), int((~judged).sum())
    new = threshold(rest, weight, half_width)
    fresh = ~judged & (rng.random(n) < new)
    k, share = int(fresh.sum()), float(right[fresh].mean()) if fresh.any() else 0.5
    scored = 0.25 + weight * (right[judged].sum() + rest * share)
    spread = max(share * (1 - share), 0.25 / (k + 1))
    error = weight * rest * np.sqrt(spread * (1 - new) / max(k, 1))
    anew = 0.25 + (right != (rng.random(n) < OTHERWISE)).mean() / 2
    believed = 0.25 + right[known].mean() / 2
    return believed - truth, scored - truth, abs(scored - truth) <= Z * error, k, scored - anew


def told(
    judged: int, precision: float, new: int, runs: int, repeats: int, rng: np.random.Generator
) -> float:
    """Return how often new answers tell that half of the wrong was left out of the old ones."""
    right = rng.binomial(judged, precision, repeats)
    old = right + rng.binomial(judged - right, 0.5)
    both = right + rng.binomial(new, precision, repeats)
    law = hypergeom(old + new, both, old)
    p = 2 * np.minimum(law.cdf(right), law.sf(right - 1))
    return float(np.mean(2 * runs * p <= ALPHA))


def main(repeats: int) -> None:
    """Print the tables and write them as CSV."""
    rng = np.random.default_rng(14)
    table: list[list[object]] = []
    for n, half_width in BOARDS:
        for used in USED:
            of = np.array([third_run(n, half_width, used, rng) for _ in range(repeats)])
            believed, scored, holds, asked, anew = of.mean(axis=0)
            share = threshold(n, 1 / n, half_width)
            row = [n, half_width, share, used, 100 * believed, 100 * scored, holds, asked]
            table.append([*row, 100 * anew])
    head = ["inputs", "half-width", "judged", "used", "believed", "scored", "80 % holds", "asks"]
    print("Pairs: mean error in points, if believed and as it is scored")
    tables.show("leaked_choices_pairs", [*head, "anew"], table)
    table = []
    for judged in (110, 280):
        for precision in (0.41, 0.6, 0.8):
            looks = precision / (precision + (1 - precision) / 2) - precision
            for runs in (1, 27):
                shares = [told(judged, precision, new, runs, repeats, rng) for new in NEW]
                table.append([judged, precision, 100 * looks, runs, *shares])
    print("\nHalf of the answers used: how often so many new ones tell it")
    head = ["judged", "precision", "points", "earlier runs", *(f"{new:,} new" for new in NEW)]
    tables.show("leaked_choices_half", head, table)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
