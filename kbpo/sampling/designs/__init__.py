"""The registry of sampling designs: one module and one line each."""

from __future__ import annotations

from kbpo.sampling.designs.base import Design
from kbpo.sampling.designs.iid import Iid
from kbpo.sampling.designs.poisson import Poisson
from kbpo.tracks.models import Track

DESIGNS: dict[str, Design] = {"iid": Iid(), "poisson": Poisson()}


def design_of(track: Track) -> Design:
    """Return the sampling design of a track."""
    return DESIGNS[track.design]
