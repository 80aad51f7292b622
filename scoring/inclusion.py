"""How the targets of a pool were sampled, and the probability that each has a label in use.

A target enters only through its own draw: its keyed random number lies below its threshold
(probability t), or one of the draws with replacement contains it (d). A share ρ of the questions of
samples is answered, by stratum. So

    a = 1 − (1 − t)(1 − d),    π = a ρ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from scoring.arrays import Bools, Floats, Ids

LEAST_ASKED = 20
"""Number of questions below which strata are pooled."""


def union_probability(*chances: Floats) -> Floats:
    """Return the probability that at least one of several independent events happened."""
    none: Floats = np.asarray(1.0)
    for chance in chances:
        none = none * (1 - chance)
    return np.asarray(1 - none)


def probability_at_least_once(chance: Floats, n: int) -> Floats:
    """Return the probability that an event happens at least once in n independent trials."""
    return np.asarray(1 - (1 - chance) ** n)


@dataclass(frozen=True)
class Inclusion:
    """How the targets of a pool were sampled, shape (t,)."""

    asked: Floats
    """a: probability that a sample contains the target, whether or not it was answered"""
    drawn: Bools
    """Whether a sample contains the target, and its judgment is used now"""
    threshold: Floats
    """Highest threshold so far (poisson), answered or not; 0: none set"""
    released: float
    """Released share of the open batches: 1 if everything drawn is answered"""

    def at_time_of_answers(
        self, u: Floats, threshold: Floats, known: Bools
    ) -> tuple[Inclusion, Bools]:
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

    def select_targets(self, targets: Ids) -> Inclusion:
        """Return the inclusion data restricted to some targets."""
        return replace(
            self,
            asked=self.asked[targets],
            drawn=self.drawn[targets],
            threshold=self.threshold[targets],
        )


def response_rate(stratum: Ids, target: Ids, known: Bools) -> Floats:
    """Return the response rate ρ of every target: the share of questions of its stratum that got an
    answer.

    Answered questions stand for those of their own stratum that nobody could answer, so that it
    does no harm if some relations are harder to answer than others. A stratum is what is said of a
    target. Strata with few questions, or with no answer, are pooled.

    Parameters
    ----------
    stratum : (t,) array of int
        The stratum of every target of the pool.
    target : (n,) array of int
        The target of each question, an index into `stratum`.
    known : (n,) array of bool
        Whether the question got an answer.

    Returns
    -------
    (t,) array of float
        1 where nothing was asked, or where no question got an answer.
    """
    if not known.any():
        return np.broadcast_to(1.0, stratum.shape)
    code, size = stratum[target], int(stratum.max(initial=-1)) + 1
    n = np.bincount(code, minlength=size)
    answered = np.bincount(code, weights=known, minlength=size)
    few = (n < LEAST_ASKED) | (answered == 0)
    share = np.divide(answered, n, out=np.ones(n.size), where=n > 0)
    if answered[few].sum() > 0:
        share[few] = answered[few].sum() / n[few].sum()
    else:  # nothing there was answered: all others represent it
        share[few] = known.mean()
    if (share == share[0]).all():  # one number, not one for each of millions of targets
        return np.broadcast_to(share[0], stratum.shape)
    return np.asarray(share[stratum])
