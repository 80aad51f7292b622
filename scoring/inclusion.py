"""How the targets of a pool were sampled, and with which probability each has a label that counts.

A target enters only through its own draw: its keyed random number lies below its threshold
(probability t), or one of the draws with replacement holds it (d). Of what samples ask a share ρ is
answered, by stratum. So

    a = 1 − (1 − t)(1 − d),    π = a ρ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from scoring.arrays import Bools, Floats, Ids


def union_probability(*chances: Floats) -> Floats:
    """Return the probability that at least one of several independent things happened."""
    none: Floats = np.asarray(1.0)
    for chance in chances:
        none = none * (1 - chance)
    return np.asarray(1 - none)


def repeated(chance: Floats, n: int) -> Floats:
    """Return the probability that something happens at least once in n independent trials."""
    return np.asarray(1 - (1 - chance) ** n)


@dataclass(frozen=True)
class Inclusion:
    """How the targets of a pool were sampled, shape (t,)."""

    asked: Floats
    """a: probability that a sample holds the target, whether or not anybody could answer"""
    drawn: Bools
    """A sample holds it, and its judgment counts now"""
    threshold: Floats
    """Highest threshold so far (poisson), answered or not; 0: never considered"""
    released: float
    """Share of the open batches that is released: 1 when everything drawn is answered"""

    def after(self, u: Floats, threshold: Floats, known: Bools) -> tuple[Inclusion, Bools]:
        """Return the inclusion given the answers up to a moment, and (t,) which targets were
        answered by then. Those are certain; the others have the probability of being drawn since.

        Questions are answered in the order of u over their threshold, so those whose labels were
        known at that moment are a sample whose probability is a share of the threshold.

        Parameters
        ----------
        u : ndarray, shape (t,)
            Random numbers of the targets.
        threshold : ndarray, shape (t,)
            Highest threshold of each target at that moment.
        known : ndarray of bool, shape (t,)
            Whether each target had a label at that moment.

        References
        ----------
        The conditional probability of a Poisson sample whose thresholds are raised:
        P(u < π | u ≥ s) = (π − s)/(1 − s).
        """
        drawn = known & (u < threshold)
        share = float((u[drawn] / threshold[drawn]).max(initial=0.0))
        before = share * threshold
        certain: Bools = drawn | (u < before)
        since = np.maximum(self.asked - before, 0.0) / np.where(before < 1, 1 - before, 1.0)
        return replace(self, asked=np.where(certain, 1.0, since)), certain

    def of(self, targets: Ids) -> Inclusion:
        """Return the inclusion of some of the targets."""
        return replace(
            self,
            asked=self.asked[targets],
            drawn=self.drawn[targets],
            threshold=self.threshold[targets],
        )
