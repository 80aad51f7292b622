"""The published formulas in plain Python on dictionaries, one loop a sum, as one would write them
down from the text.

A system's predictions are a dictionary from instance to probability, its draws a list of instances.
What is needed again is kept (q of a draw, say), but nothing is vectorised. Chaganty 2018, sections
3.4.3, 3.6.1 and appendix A.1.4.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from random import Random

Weights = dict[int, float]
Facts = Mapping[int, tuple[int, int, int]]
"""Instance to codes of subject, predicate and object"""


def entity_relation(facts: Facts) -> Weights:
    """Return p(x) ∝ |subj-relns(x)| / (|subj(x)| · |rel(x)|) of one system's predictions."""
    by_subject: Counter[int] = Counter()
    by_predicate: Counter[int] = Counter()
    said = defaultdict(set)
    for subject, predicate, object_ in facts.values():
        by_subject[subject] += 1
        by_predicate[predicate] += 1
        said[subject].add((predicate, object_))
    weight = {x: len(said[s]) / (by_subject[s] * by_predicate[r]) for x, (s, r, _) in facts.items()}
    total = sum(weight.values())
    return {x: w / total for x, w in weight.items()}


def overlap(p: Weights, q: Weights) -> float:
    """Return Σ_x p(x) q(x)."""
    if len(q) < len(p):
        p, q = q, p
    return sum(mass * q[x] for x, mass in p.items() if x in q)


def mixture(shared: list[float], n: list[int]) -> list[float]:
    """Return w_ij ∝ n_j Σ_x p_i p_j of one system i."""
    pull = [count * one for count, one in zip(n, shared, strict=True)]
    total = sum(pull)
    return [one / total for one in pull]


def importance(
    i: int, weight: list[float], p: list[Weights], draws: list[list[int]]
) -> Iterator[list[float]]:
    """Yield, system by system, w_j p_i(x) / (n_j q_i(x)) of each draw x."""
    mixed = [(w, p[j]) for j, w in enumerate(weight) if w > 0]
    for j, some in enumerate(draws):
        terms = []
        for x in some:
            own = p[i].get(x, 0.0)
            q = sum(w * one.get(x, 0.0) for w, one in mixed) if own else 1.0
            terms.append(weight[j] * own / (len(some) * q))
        yield terms


def joint(terms: Iterable[list[float]], labels: list[list[int]]) -> tuple[float, float]:
    """Return the joint precision of the system that these terms are of, and its variance (theorem
    2).
    """
    value = variance = 0.0
    for some, right in zip(terms, labels, strict=True):
        products = [term * f for term, f in zip(some, right, strict=True)]
        total = sum(products)
        value += total
        variance += sum((term - total / len(products)) ** 2 for term in products)
    return value, variance


def resample(n: int, chance: Random) -> list[int]:
    """Return how often each of n draws is taken, when n are taken with replacement."""
    times = [0] * n
    for one in chance.choices(range(n), k=n):
        times[one] += 1
    return times


def resampled(terms: list[list[float]], labels: list[list[int]], taken: list[list[int]]) -> float:
    """Return the joint precision when each draw is taken as often as that."""
    return sum(
        term * f * times
        for some, right, often in zip(terms, labels, taken, strict=True)
        for term, f, times in zip(some, right, often, strict=True)
    )


class Newcomer:
    """What the planned variance of a new system needs, made once: its ratios q_old / p_m, and those
    of the draws.
    """

    def __init__(
        self, p: list[Weights], shared: list[float], draws: list[list[int]], labels: list[list[int]]
    ) -> None:
        self.shared, self.n = shared, [len(some) for some in draws]
        self.old = mixture(shared[:-1], self.n)
        new = p[-1]
        self.support = [(mass, self._ratio(x, p)) for x, mass in new.items()]
        self.terms = [
            [self._ratio(x, p) for x, f in zip(some, right, strict=True) if f and x in new]
            for some, right in zip(draws, labels, strict=True)
        ]

    def _ratio(self, x: int, p: list[Weights]) -> float:
        return sum(w * one.get(x, 0.0) for w, one in zip(self.old, p, strict=False)) / p[-1][x]

    def variance(self, n: int) -> float:
        """Return Σ_j (w_j²/n_j) V_j + (w_m²/n) Σ_x p_m (p_m/q)² for n draws of the new system."""
        if n == 0 and min(ratio for _, ratio in self.support) == 0:
            return float("inf")
        pull = sum(count * one for count, one in zip(self.n, self.shared, strict=False))
        weight = n * self.shared[-1] / (n * self.shared[-1] + pull)
        total = 0.0
        if n:
            total = (
                weight**2
                / n
                * sum(mass / (weight + (1 - weight) * ratio) ** 2 for mass, ratio in self.support)
            )
        for w, count, ratios in zip(self.old, self.n, self.terms, strict=True):
            h = [1 / (weight + (1 - weight) * ratio) for ratio in ratios]
            mean, square = sum(h) / count, sum(one**2 for one in h) / count
            total += ((1 - weight) * w) ** 2 / count * max(square - mean**2, 0.0)
        return total
