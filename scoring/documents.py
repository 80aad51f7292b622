"""The documents that people annotated whole: which count, and the facts in them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoring.arrays import Bools, Floats

NO_MARK, NEVER = -1.0, 2.0
"""Of a target that is judged, or open; and of one that was asked about in vain and marked later"""


@dataclass(frozen=True, eq=False)
class Annotated:
    """The documents that count, by ascending number."""

    documents: list[int]
    first: list[int]
    """Those that are a uniform sample of the corpus: all of them, or the first of two stages"""
    inclusion: Floats | None = None
    """Probability of each, given the first stage; None: a uniform sample, n of D"""


@dataclass(frozen=True)
class Facts:
    """The facts that recall is computed from."""

    fact: NDArray[np.int64]
    """(u,) code of the fact that the instance says"""
    in_scope: NDArray[np.bool_]
    """(u,) both mentions lie within the track's scope"""
    pool_weight: NDArray[np.float64]
    """(u,) 1 / number of instances that are counted and predict the same fact; 0 where it is not
    counted: out of the scope, or only submissions predict it that have not entered yet. A
    submission enters the pool whose true facts are counted when a batch of it has settled, so that
    nothing that nobody was asked about moves the recall of others"""
    predicted: NDArray[np.bool_]
    """(u, m) the submission predicts the fact"""
    document: NDArray[np.int64]
    """(t,) code 0 … n_annotated − 1 of the document of each true fact found by annotation"""
    stratum: NDArray[np.int64]
    """(t,) number of its stratum"""
    found: NDArray[np.bool_]
    """(t,) some submission that has entered predicts that fact"""
    n_annotated: int
    n_documents: int
    inside: NDArray[np.int64]
    """(u,) code of the annotated document that the instance lies in; −1: in none"""
    marked: NDArray[np.bool_]
    """(u,) annotation of its document found the fact that it predicts"""
    code: NDArray[np.int64]
    """(t,) its code in `fact`; -1 if no instance here predicts it"""
    links: NDArray[np.str_]
    """(t, 2) what people linked its ends to; empty where they did not"""
    missed: NDArray[np.int64]
    """(n_annotated,) true instances of each annotated document that annotation found and no
    submission that has entered predicts: a fact that is marked at three pairs of mentions is three
    instances"""

    @property
    def counted(self) -> Bools:
        """Return (u,) whether the instance counts for recall if it is true: in the scope, and
        predicted by a submission that has entered.
        """
        return self.pool_weight > 0

    @cached_property
    def shares(self) -> dict[bool, Any]:
        """Return the cache of `Shares.of_facts`, a mapping: whether each fact counts once -> its
        `Shares`. It is empty at first.
        """
        return {}
