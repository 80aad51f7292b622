"""Inclusions that are written down, not computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from scoring.combine import Chances, Response, combine
from scoring.inclusion import Disclosed, Inclusion


def inclusion(by_threshold: Any, by_draw: Any, by_document: Any = 0.0) -> Inclusion:
    """The inclusion of targets that come in by a threshold, by draws, or with their documents."""
    asked, drawn = np.asarray(by_threshold, dtype=float), np.asarray(by_draw, dtype=float)
    document = np.broadcast_to(np.asarray(by_document, dtype=float), asked.shape)
    return Inclusion(
        chances=Chances(asked, drawn, document, np.zeros(asked.size)),
        drawn=np.ones(asked.size, dtype=bool),
        counts=np.ones(asked.size, dtype=bool),
        cluster=np.full(asked.size, -1),
        of_document=float(document.max(initial=0.0)),
        n_clusters=0,
        threshold=asked,
        released=1.0,
    )


def by_threshold(pi: Any) -> Inclusion:
    """The inclusion of targets that come in by a threshold alone."""
    return inclusion(pi, np.zeros(np.size(pi)))


def pi_of(chances: Chances, disclosed: Any = None) -> Any:
    """The probability of each target if whatever is asked is answered."""
    everything = np.ones(chances.threshold.size)
    return combine(chances, Response(everything, everything), disclosed)


def own(seen: Disclosed, now: Inclusion) -> Any:
    """The same for a team to which something was disclosed."""
    return pi_of(seen.given(now.chances), seen.certainty)
