"""How often a question may be asked."""

from __future__ import annotations

MOST_ANSWERS = 9
"""To one question, in all: beyond, a marketplace's fee doubles."""
MOST_IF_UNSURE = 5
"""To one question, however divided people are."""
