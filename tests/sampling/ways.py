"""Inclusions that are written down, not computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from kbpo.sampling.inclusion import Inclusion


def inclusion(by_threshold: Any, by_draw: Any, beta: float = 0.0) -> Inclusion:
    """The inclusion of targets that come in by a threshold, by draws, or with their documents."""
    asked, drawn = np.asarray(by_threshold, dtype=float), np.asarray(by_draw, dtype=float)
    return Inclusion(
        pi=1 - (1 - asked) * (1 - drawn) * (1 - beta),
        by_threshold=asked,
        by_draw=drawn,
        drawn=np.ones(asked.size, dtype=bool),
        counts=np.ones(asked.size, dtype=bool),
        cluster=np.full(asked.size, -1),
        beta=np.full(asked.size, beta),
        of_document=beta,
        n_clusters=0,
        threshold=asked,
        before=np.zeros(asked.size),
        released=1.0,
    )


def by_threshold(pi: Any) -> Inclusion:
    """The inclusion of targets that come in by a threshold alone."""
    return inclusion(pi, np.zeros(np.size(pi)))
