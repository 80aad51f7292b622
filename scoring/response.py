"""The share of questions that got an answer, told by stratum.

Those that were answered stand for those of their own stratum that nobody could answer, so that it
does no harm if some relations are harder to answer than others. A stratum is what is said of a
target; those of which too little was asked to tell, or of which nothing was answered, are one
together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scoring.arrays import Bools, Floats, Ids

LEAST_ASKED = 20
"""Of fewer questions the share that was answered is not told by themselves."""


@dataclass(frozen=True)
class Answers:
    """The questions whose targets count, n rows, and which of them got an answer."""

    stratum: Ids
    """(t,) of every target of the pool"""
    target: Ids
    """(n,) the target of each row, an index into the pool's"""
    known: Bools
    """(n,) somebody answered"""
    not_asked: Bools
    """(n,) nobody had to be asked: only readers marked it"""
    sampled: Bools
    """(n,) a sample asked it, nobody else did, and it counts for everybody"""
    followed_up: Bools
    """(n,) a follow-up asked it"""


def of_samples(answers: Answers) -> Floats:
    """Return ρ (t,): the share of what samples asked that got an answer; 1 without a question."""
    return _share(answers, answers.sampled, 1.0)


def of_follow_ups(answers: Answers, untold: float) -> Floats:
    """Return ρ′ (t,): the share of what follow-ups of documents asked that got an answer; 1 without
    a question, `untold` if none was answered.
    """
    return _share(answers, answers.followed_up, untold)


def _share(answers: Answers, which: Bools, untold: float) -> Floats:
    """(t,) the share of some questions; what nobody had to be asked about says nothing."""
    which = which & ~answers.not_asked
    stratum, asked, got_answer = answers.stratum, answers.target[which], answers.known[which]
    if not asked.size:
        return np.broadcast_to(1.0, stratum.shape)
    code, size = stratum[asked], stratum.max(initial=-1) + 1
    n = np.bincount(code, minlength=size)
    answered = np.bincount(code, weights=got_answer, minlength=size)
    few = (n < LEAST_ASKED) | (answered == 0)
    share = np.divide(answered, n, out=np.ones(n.size), where=n > 0)
    if answered[few].sum() > 0:
        share[few] = answered[few].sum() / n[few].sum()
    elif got_answer.any():  # nothing there was answered: all others have to stand for it
        share[few] = got_answer.mean()
    else:
        share[:] = untold
    if share.size and (share == share[0]).all():  # of millions of targets no million numbers
        return np.broadcast_to(share[0], stratum.shape)
    return np.asarray(share[stratum])
