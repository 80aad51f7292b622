"""Client of an on-demand evaluation service: submit runs, follow them, read scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kbpo_client.client import Client, Refused, Unreachable

__all__ = ["Client", "Refused", "Unreachable"]


def __getattr__(name: str) -> Any:
    """Return a name of the package, imported on first use, so that the command line starts fast and
    can be interrupted.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kbpo_client import client

    return getattr(client, name)
