"""Our own annotators, in our own pages. The database is the platform, so nothing here can be in
doubt.
"""

from __future__ import annotations

from typing import ClassVar

from annotation.platforms.base import Capabilities, Platform


class Pool(Platform):
    """Questions are up as soon as their HIT is open; answers arrive through our pages; payment is a
    list to be paid.
    """

    name: ClassVar[str] = "pool"
    capabilities: ClassVar[Capabilities] = Capabilities("our own annotators", max_assignments=100)
