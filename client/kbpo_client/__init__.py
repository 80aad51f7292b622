"""Speaks to an on-demand evaluation service: submit, watch, read scores."""

from kbpo_client.client import Client, Refused, Unreachable

__all__ = ["Client", "Refused", "Unreachable"]
