"""Names what agreement was measured on, and makes it ready to be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from annotation.interfaces.registry import interface_of
from annotation.quality.agreement import Measured
from annotation.quality.fewer import OfSoMany
from kbpo.web.components.drawing import Interval


def name_of(interface: str, what: str) -> str:
    """Return what one kind of unit is called on pages."""
    called = interface_of(interface).agreement.names.get(what)
    return called or f"{interface}, {what}".replace("_", " ").capitalize()


def published_of(measured: Measured | OfSoMany) -> tuple[str, float] | None:
    """Return what the literature reached of that with three people, if it tells: the same kind of
    unit.
    """
    return interface_of(measured.interface).agreement.published.get(measured.what)


def agreement_lines(measured: Sequence[Measured]) -> list[dict[str, Any]]:
    """Return what was measured, each with its name and the interval of α."""
    return [
        {
            "name": name_of(agreement.interface, agreement.what),
            "told": agreement,
            "interval": Interval(
                agreement.alpha,
                agreement.low80,
                agreement.high80,
                agreement.low95,
                agreement.high95,
            ),
        }
        for agreement in measured
    ]
