"""A tiny universe of instances and systems, and every sample that can be drawn from it with its
probability.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np
from hypothesis import strategies as st

from estimators import distributions


def shares(weights: list[list[int]]) -> np.ndarray:
    """Return P (N, m) from a list of integer weights a system; a system with no weight predicts the
    first instance.
    """
    columns = [np.array(column) if any(column) else np.eye(len(column))[0] for column in weights]
    return np.column_stack([distributions.normalise(column) for column in columns])


def samples(P: np.ndarray, n: tuple[int, ...]) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    """Yield (probability, instances drawn, systems they were drawn from) of every possible sample
    of n_j draws.
    """
    system = np.repeat(np.arange(len(n)), n)
    for drawn in product(range(len(P)), repeat=len(system)):
        rows = np.array(drawn, dtype=np.int64)
        probability = float(P[rows, system].prod())
        if probability > 0:
            yield probability, rows, system


def universes(n_instances: int = 3, m: int = 2) -> st.SearchStrategy[tuple[np.ndarray, np.ndarray]]:
    """Return a strategy of (P, truth): m distributions over a few instances, zeros among them, and
    0/1 truths.
    """
    column = st.lists(st.integers(0, 4), min_size=n_instances, max_size=n_instances)
    truth = st.lists(st.integers(0, 1), min_size=n_instances, max_size=n_instances)
    return st.tuples(st.lists(column, min_size=m, max_size=m).map(shares), truth.map(np.array))
