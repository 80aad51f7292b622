"""The documents that people read in full: which are used, and the facts in them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoring.arrays import Bools, Floats

NO_MARK, NEVER = -1.0, 2.0
"""Values of a target that is judged or open; and of one that was marked after its question ended
unanswered
"""


@dataclass(frozen=True, eq=False)
class Annotated:
    """The annotated documents that are used for recall, by ascending number."""

    documents: list[int]
    first: list[int]
    """Documents that are a uniform sample of the corpus: all of them, or the first of two stages"""
    inclusion: Floats | None = None
    """Probability of each, conditional on the first stage; None: a uniform sample, n of D"""


@dataclass(frozen=True)
class Facts:
    """The facts from which recall is computed."""

    fact: NDArray[np.int64]
    """(u,) code of the fact that the instance states"""
    in_scope: NDArray[np.bool_]
    """(u,) whether both mentions lie within the track's scope"""
    pool_weight: NDArray[np.float64]
    """(u,) 1 / number of counted instances that predict the same fact; 0 if the instance is not
    counted: out of scope, or predicted only by submissions that have not entered. A submission
    enters the pool of counted true facts when one of its batches is settled, so that facts without
    questions do not change the recall of others"""
    predicted: NDArray[np.bool_]
    """(u, m) whether the submission predicts the fact"""
    document: NDArray[np.int64]
    """(t,) code 0 … n_annotated − 1 of the document of each true fact found by annotation"""
    stratum: NDArray[np.int64]
    """(t,) number of its stratum"""
    found: NDArray[np.bool_]
    """(t,) whether a submission that has entered predicts the fact"""
    n_annotated: int
    n_documents: int
    inside: NDArray[np.int64]
    """(u,) code of the annotated document of the instance; −1: none"""
    marked: NDArray[np.bool_]
    """(u,) whether annotation of its document found the fact that it predicts"""
    code: NDArray[np.int64]
    """(t,) code of the fact in `fact`; -1 if no instance predicts it"""
    links: NDArray[np.str_]
    """(t, 2) links of subject and object by people; empty if there are none"""
    missed: NDArray[np.int64]
    """(n_annotated,) number of true instances of each annotated document that annotation found and
    no submission that has entered predicts; a fact that is marked at three pairs of mentions is
    three instances"""

    @property
    def counted(self) -> Bools:
        """Return (u,) whether the instance counts for recall if it is true: it is in scope, and a
        submission whose facts are counted predicts it.
        """
        return self.pool_weight > 0

    @cached_property
    def shares(self) -> dict[bool, Any]:
        """Return the cache of `Shares.get_or_compute`: whether each fact counts once -> its
        `Shares`. It is empty at first.
        """
        return {}
