"""Draws a random number for each target, for one use on one track: secret, constant, independent of
every other use.
"""

from __future__ import annotations

from estimators.poisson import uniforms
from kbpo.tracks.models import Track
from scoring.arrays import Floats, Ids


def numbers(track: Track, use: str, targets: Ids) -> Floats:
    """Return (n,) a number in [0, 1) for each target."""
    return uniforms(
        (f"{use}:{target}" for target in targets.tolist()), key=track.secret.encode()[:64]
    )
