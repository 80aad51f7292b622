"""The platform of simulated workers. The server treats them as people of the pool: they log in and
answer through its pages. Only the name differs, which separates their workers and HITs;
`rehearsal/annotators.py` is the crowd.
"""

from __future__ import annotations

from typing import ClassVar

from annotation.platforms.pool.platform import Pool


class Simulated(Pool):
    """The pool, with programs as workers."""

    name: ClassVar[str] = "simulated"
