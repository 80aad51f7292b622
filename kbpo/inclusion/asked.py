"""Who was asked about which targets. Whoever asks people tells it, and stands above this room:
hence by name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from typing import TypeAlias

from django.utils.module_loading import import_string

TELLER = "annotation.workers.asked.asked_about"
Teller: TypeAlias = Callable[[Collection[int], datetime], set[int]]


def asked_about(people: Collection[int], until: datetime) -> set[int]:
    """Return the targets about which any of these people had a question in hand by a moment."""
    teller: Teller = import_string(TELLER)
    return teller(people, until)
