"""Speaks to an on-demand evaluation service: submit, watch, read scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kbpo_client.client import Client, Refused, Unreachable

__all__ = ["Client", "Refused", "Unreachable"]


def __getattr__(name: str) -> Any:
    """Return what the package offers, loaded where it is asked for: else the command line could not
    be stopped while it begins.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kbpo_client import client

    return getattr(client, name)
