"""The platform of our own annotators, on our own pages. The database is the platform, so no outcome
is unknown.
"""

from __future__ import annotations

from typing import ClassVar

from annotation.platforms.base import Capabilities, Platform


class Pool(Platform):
    """Offers questions as soon as their HIT is open; answers arrive through our pages; admins pay
    from a list.
    """

    name: ClassVar[str] = "pool"
    capabilities: ClassVar[Capabilities] = Capabilities("our own annotators", max_assignments=100)
