"""How the targets of a pool came in, and what of that teams could see when they
decided on a run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from scoring.arrays import Bools, Floats, Ids
from scoring.combine import Chances, any_of, raised, since


@dataclass(frozen=True)
class Inclusion:
    """How the targets of a pool came in, for everybody or for one team, shape (t,)."""

    chances: Chances
    drawn: Bools
    """A sample holds it, and its judgment counts now"""
    counts: Bools
    """That, or it came in with its document"""
    cluster: Ids
    """Position of its document among those that are a route; −1: in none of them, or they are no
    route for it"""
    of_document: float
    """Probability with which each of the documents was annotated"""
    n_clusters: int
    threshold: Floats
    """Highest threshold so far (poisson), answered or not; 0: never considered"""
    released: float
    """Share of the open batches that is released: 1 when everything drawn is answered"""

    def of(self, targets: Ids) -> Inclusion:
        """Return the same of some of the targets."""
        return replace(
            self,
            chances=self.chances.of(targets),
            drawn=self.drawn[targets],
            counts=self.counts[targets],
            cluster=self.cluster[targets],
            threshold=self.threshold[targets],
        )

    def without_documents(self) -> Inclusion:
        """Return the same if no document brought anything in."""
        return replace(
            self,
            chances=self.chances.without_documents(),
            counts=self.drawn,
            cluster=np.full(self.drawn.size, -1),
            of_document=0.0,
            n_clusters=0,
        )


@dataclass(frozen=True, eq=False)
class History:
    """The state of which targets a team could see, and when."""

    when: datetime
    known: Bools
    """(t,) predicted by an earlier submission of the team, public, or asked of its people"""


@dataclass(frozen=True)
class Disclosed:
    """What the team of one submission could see of a pool's targets when it decided, shape (t,)."""

    certainty: Bools
    """Certainty units: judged (or given up) by then, and predicted by the team before; or asked of
    its people by then"""
    unjudged: Bools
    """Stated by the team before, and neither judged nor asked of its people by then"""
    threshold: Floats
    """Design poisson: below this number all u were judged by then (in an open batch: the share that
    was answered)"""
    drawn: Floats
    """Design iid: the probability that a target would have been drawn, for anybody whose draws
    count, and judged"""
    inside: Bools
    """In a document that had been annotated by then"""
    document: Floats
    """The probability with which its document had been annotated by then, if the team could know"""
    history: History | None = None
    """When it decided, and the state of which targets it could see, whether or not it predicts them
    still"""
    read: tuple[int, ...] = ()
    """The documents that had been annotated by then, if the team could know"""
    leaked: bool = False
    """The run seems to be made from others' answers: whatever it predicts teaches the model
    nothing"""

    @classmethod
    def nothing(cls, n: int) -> Disclosed:
        """Return that a team could see nothing of n targets."""
        none, zero = np.zeros(n, dtype=np.bool_), np.zeros(n)
        return cls(none, none, zero, zero, none, zero)

    @property
    def is_nothing(self) -> bool:
        """Whether it could see nothing."""
        states = self.certainty, self.unjudged, self.inside
        return not self.read and not any(state.any() for state in states)

    @property
    def known(self) -> Bools:
        """Stated by the team before, or public: it could see whether they were judged."""
        return self.certainty | self.unjudged

    def of(self, targets: Ids) -> Disclosed:
        """Return the same of some of the targets."""
        return Disclosed(
            self.certainty[targets],
            self.unjudged[targets],
            self.threshold[targets],
            self.drawn[targets],
            self.inside[targets],
            self.document[targets],
            self.history,
            self.read,
            self.leaked,
        )

    def with_documents(self, by_document: Floats, unasked: Bools) -> Disclosed:
        """Return the same with what documents that were annotated by then bring in now: that is
        certain too. Not so the targets of which the submission predicts something that nobody was
        asked there.

        A plan must not be made with these: thresholds would depend on which documents were drawn.
        """
        certain = self.inside & (by_document > 0) & ~unasked
        return replace(self, certainty=self.certainty | certain, unjudged=self.unjudged & ~certain)

    def given(self, now: Chances) -> Chances:
        """Return the chances of targets that are not certain, each route given that it had not
        brought them in by then.
        """
        asked_then = any_of(self.threshold, self.drawn)
        return Chances(
            threshold=self.given_threshold(now.threshold),
            draw=np.where(self.unjudged, since(now.draw, self.drawn), now.draw),
            document=self.given_document(now.document),
            before=np.where(self.unjudged, since(now.before, asked_then), now.before),
        )

    def given_threshold(self, now: Floats) -> Floats:
        """Return thresholds given that the unjudged targets lie above those of then; or random
        numbers, which are uniform again.
        """
        return np.where(self.unjudged, since(now, self.threshold), now)

    def given_document(self, now: Floats) -> Floats:
        """Return the chances of documents given that those of then are known."""
        return since(now, np.where(now > 0, self.document, 0.0))

    def raised(self, own: Floats, thresholds: Floats) -> Floats:
        """Return the thresholds that give the submission these probabilities of its own: nowhere
        below what they are.
        """
        base = np.where(self.unjudged, self.threshold, 0.0)
        return np.where(self.certainty, thresholds, np.maximum(thresholds, raised(own, base)))
