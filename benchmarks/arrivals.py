"""Replays the 28 real runs as a board on which they arrive one after the other, and measures the
cost and effect of each arrival.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import norm

from benchmarks import redocred

KINDS = ("instance", "entity_relation")
LEVEL, HALF_WIDTH = 0.8, 0.03
Z = norm.ppf(0.5 + LEVEL / 2)
TARGET = (HALF_WIDTH / Z) ** 2


@dataclass(frozen=True)
class World:
    """Every prediction that some run makes, one row each; the arrays are those of
    :class:`redocred.Pool`.
    """

    P: np.ndarray
    member: np.ndarray
    true: np.ndarray
    target: np.ndarray
    team: np.ndarray
    confidence: np.ndarray
    predicate: np.ndarray
    types: np.ndarray
    """Codes of the pair of types of subject and object"""
    subject: np.ndarray
    object: np.ndarray
    scores: np.ndarray | None = None
    """(rows, judges) scores of the judges"""

    @property
    def precision(self) -> np.ndarray:
        """Return the true precision of every run."""
        return self.true @ self.P

    @property
    def n_targets(self) -> int:
        """Return the number of targets of the pool."""
        return int(self.target.max()) + 1


@dataclass(frozen=True)
class Arrival:
    """The counts, error and variance at the moment when the interval of a new run has become narrow
    enough.
    """

    paid: int
    instances: int
    targets: int
    error: float
    variance: float
    covered: bool
    stages: int = 1
    exact: float = np.nan
    """The true variance under the final thresholds, which `variance` estimates"""


Path = list[Arrival]


def load_worlds() -> dict[str, World]:
    """Return the runs under each distribution."""
    pool = redocred.read_systems(redocred.system_names())
    predicted = slice(0, pool.n_predicted)
    subject, object_ = redocred.entity_codes(pool.keys[predicted])
    one = World(
        P=pool.p["instance"][predicted],
        member=pool.member[predicted],
        true=pool.true[predicted],
        target=np.unique(pool.target[predicted], return_inverse=True)[1],
        team=np.unique(pool.teams, return_inverse=True)[1],
        confidence=pool.confidence[predicted],
        predicate=pool.predicate[predicted],
        types=np.unique(pool.types[predicted], axis=0, return_inverse=True)[1].ravel(),
        subject=subject,
        object=object_,
    )
    return {kind: replace(one, P=pool.p[kind][predicted]) for kind in KINDS}
