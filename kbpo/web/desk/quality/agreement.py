"""Prepares measures of agreement for pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from annotation.interfaces.registry import interface_of
from annotation.quality.agreement import Measured
from kbpo.web.components.drawing import Interval


def name_of(interface: str, what: str) -> str:
    """Return the name of a kind of unit."""
    called = interface_of(interface).agreement.names.get(what)
    return called or f"{interface}, {what}".replace("_", " ").capitalize()


def agreement_lines(measured: Sequence[Measured]) -> list[dict[str, Any]]:
    """Return each measure with its name and the interval of α."""
    return [
        {
            "name": name_of(agreement.interface, agreement.what),
            "told": agreement,
            "published": interface_of(agreement.interface).agreement.published.get(agreement.what),
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
