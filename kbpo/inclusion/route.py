"""What a route is: one way in which targets get labels, independent of the other ways."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

import numpy as np
from django.db.models import Q

from kbpo.submissions.models import GONE
from scoring.arrays import Bools, Floats, Ids

Private: TypeAlias = Mapping[int, Ids]
"""Submission -> targets that were asked about for it alone: for others they are no sample, since
what it asked may depend on judgments that its team could see."""
NOTHING: Private = {}


@dataclass(frozen=True)
class Moment:
    """A moment in the past, and what had been judged by then, shape (t,)."""

    when: datetime
    judged: Bools
    """It had a label, or was given up"""
    marked: Bools
    """Only readers of its document had judged it, and not all that is predicted there was judged"""
    inside: Bools
    """In documents that had been annotated whole: for their sake people may have been asked"""
    then: Bools
    """Some system predicted it by then"""

    def without_marks(self) -> Moment:
        """Return the same as if readers had marked nothing."""
        return replace(self, marked=np.zeros_like(self.marked), then=self.then & ~self.marked)

    def share(self, asked: Bools) -> Floats:
        """Return the share of what open batches had asked that was answered; 0 for what readers
        marked, which is not asked.
        """
        asked = asked & ~self.marked & self.then
        among = asked & ~self.inside if (asked & ~self.inside).any() else asked
        return np.where(self.marked, 0.0, self.judged[among].mean() if among.any() else 1.0)


def under_way() -> Q:
    """Return the condition that a batch has settled, or is of a run that takes part: of the others
    nobody is asked any more.
    """
    return Q(settled_at__isnull=False) | ~Q(submission__status__in=GONE)


class Route(ABC):
    """One way in which the targets of a pool come in: get labels. Every array is (t,)."""

    @abstractmethod
    def chance(self) -> Floats:
        """Return the probability that each target has come in by now."""

    @abstractmethod
    def at(self, moment: Moment) -> Floats:
        """Return the probability that each target had come in, and was judged, by a moment."""

    @abstractmethod
    def realised(self) -> Bools:
        """Return whether each target has come in by now."""
