"""The share of questions that got an answer, told by stratum."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kbpo.sampling.probabilities import Floats, Ids

LEAST_ASKED = 20
"""Of fewer questions the share that was answered is not told by themselves."""


def share_answered(stratum: Ids, asked: Ids, known: NDArray[np.bool_], untold: float) -> Floats:
    """(t,) the share in the stratum of each target, from the targets of questions and whether each
    was answered.

    Strata of which too little was asked to tell, or of which nothing was answered, are one
    together. 1 if nothing was asked, `untold` if nothing was answered.
    """
    if not asked.size:
        return np.ones(stratum.size)
    code = stratum[asked]
    n, answers = (
        np.bincount(code, weights=w, minlength=stratum.max(initial=-1) + 1) for w in (None, known)
    )
    few = (n < LEAST_ASKED) | (answers == 0)
    share = np.divide(answers, n, out=np.ones(n.size), where=n > 0)
    if answers[few].sum() > 0:
        share[few] = answers[few].sum() / n[few].sum()
    elif known.any():  # nothing there was answered: all others have to stand for it
        share[few] = known.mean()
    else:
        share[:] = untold
    return np.asarray(share[stratum])
