"""Simulated workers are people of the pool as far as the server can tell: they log in and answer
through its pages.

So this platform adds nothing to `pool` but its name, which keeps their workers and HITs apart;
`rehearsal/annotators.py` is the crowd.
"""

from __future__ import annotations

from typing import ClassVar

from annotation.platforms.pool.platform import Pool


class Simulated(Pool):
    """The pool, for workers who are programs."""

    name: ClassVar[str] = "simulated"
