"""The share of questions that got an answer, by stratum.

Answered questions stand for those of their own stratum that nobody could answer, so that it does no
harm if some relations are harder to answer than others. A stratum is what is said of a target.
Strata with few questions, or with no answer, are pooled.
"""

from __future__ import annotations

import numpy as np

from scoring.arrays import Bools, Floats, Ids

LEAST_ASKED = 20
"""Strata with fewer questions are pooled."""


def response_rate(stratum: Ids, target: Ids, known: Bools) -> Floats:
    """Return ρ of every target: the share of questions of its stratum that got an answer.

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
    else:  # nothing there was answered: all others have to stand for it
        share[few] = known.mean()
    if (share == share[0]).all():  # one number, not one for each of millions of targets
        return np.broadcast_to(share[0], stratum.shape)
    return np.asarray(share[stratum])
