"""The formula: from the chances of three routes to the probability that a target has a label.

A target comes in by its threshold (t), by draws (d) or with an annotated document (c), each
independent of the others. What a sample asks is answered with probability ρ, what an exhaustive
follow-up of documents asks with ρ′; b is the part of a from before the follow-up asked:

    a = 1 − (1 − t)(1 − d)
    π = (1 − c) a ρ + c [b ρ + (1 − b) ρ′]        and 1 for what was disclosed

For a team to which judgments were disclosed, t, d, c and b are each given that the route had not
brought the target in by then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from scoring.arrays import Bools, Floats, Ids

TINY = 1e-9
"""A smaller probability is an error of rounding."""


def any_of(*chances: Floats) -> Floats:
    """Return the probability that at least one of several independent things happened."""
    none: Floats = np.asarray(1.0)
    for chance in chances:
        none = none * (1 - chance)
    return np.asarray(1 - none)


def since(now: Floats, then: Floats) -> Floats:
    """Return the probability that something happened by now, given that it had not by then.

    `now` and `then` are its probabilities by the two moments. 0 where nothing was added since: then
    it cannot happen any more.
    """
    then = np.minimum(then, 1 - TINY)
    chance = (np.maximum(now, then) - then) / (1 - then)
    return np.where(chance > TINY, chance, 0.0)


def raised(wanted: Floats, then: Floats) -> Floats:
    """Return the probability by now which makes `wanted` of what had not happened by then: the
    inverse of `since`.
    """
    return np.asarray(then + wanted * (1 - then))


def repeated(chance: Floats, n: int) -> Floats:
    """Return the probability that something happens at least once in n independent trials."""
    return np.asarray(1 - (1 - chance) ** n)


def besides(wanted: Floats, other: Floats) -> Floats:
    """Return the probability that a thing must have so that it or an independent other one happens
    with the one that is `wanted`; 1 where the other is certain, negative where it is likelier.
    """
    open_ = 1 - other
    return np.divide(wanted - other, open_, out=np.ones(open_.size), where=open_ > 0)


@dataclass(frozen=True)
class Chances:
    """The probability by each route that a target came in, whether or not anybody could answer;
    shape (t,).
    """

    threshold: Floats
    """Its random number lies below"""
    draw: Floats
    """It was drawn, with replacement"""
    document: Floats
    """Its document was annotated whole; 0 where that is no route"""
    before: Floats
    """It had been asked, and labelled, before a follow-up would have asked about it in its
    document: what samples ask of it later has been asked already"""

    @property
    def asked(self) -> Floats:
        """The probability that a sample holds the target, whatever its document is: a."""
        return any_of(self.threshold, self.draw)

    def of(self, targets: Ids) -> Chances:
        """Return the same of some of the targets."""
        return Chances(
            self.threshold[targets],
            self.draw[targets],
            self.document[targets],
            self.before[targets],
        )

    def without_documents(self) -> Chances:
        """Return the same where documents bring nothing in."""
        return replace(self, document=np.zeros(self.document.size))


@dataclass(frozen=True)
class Response:
    """The share of questions that people could answer, by the stratum of each target, (t,)."""

    sample: Floats
    """ρ, of what samples ask"""
    follow_up: Floats
    """ρ′, of what exhaustive follow-ups ask"""
    closed: bool = False
    """What is not marked in annotated documents is false: all of it is known there"""
    covered: Bools | None = None
    """(t,) Targets that a follow-up covered: where documents are no route, it has asked all the
    same, and samples did not ask again"""

    def is_like(self, other: Response) -> bool:
        """Whether as much was answered of everything."""
        alike = np.array_equal(self.sample, other.sample)
        return alike and np.array_equal(self.follow_up, other.follow_up)

    def in_document(self, before: Floats) -> Floats:
        """Return the probability that a target is known, given that its document was annotated and
        that this is a route for it.
        """
        if self.closed:
            return np.ones(before.size)
        return before * self.sample + (1 - before) * self.follow_up

    def elsewhere(self, chances: Chances) -> Floats:
        """Return the probability that a target is known, given that its document is no route."""
        probability = chances.asked * self.sample
        if self.covered is None:
            return probability
        # What others asked for themselves alone may have labelled it where no sample held it.
        before = np.minimum(chances.before, chances.asked)
        by_both = before * self.sample + (chances.asked - before) * self.follow_up
        return np.where(self.covered & (chances.document == 0), by_both, probability)


def combine(chances: Chances, response: Response, disclosed: Bools | None = None) -> Floats:
    """Return π: the probability that each target has a label that counts, shape (t,).

    `disclosed` (t,) are certainty units: their labels were shown to the team before it decided, so
    that for it they are no chance.
    """
    inside = response.in_document(chances.before)
    pi = (1 - chances.document) * response.elsewhere(chances) + chances.document * inside
    return pi if disclosed is None else np.where(disclosed, 1.0, pi)
