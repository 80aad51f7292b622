"""The platforms there are: one line each, named by string so that no client library is imported before it is used."""

from __future__ import annotations

from django.utils.module_loading import import_string

from annotation.platforms.base import Platform

PLATFORMS = {
    "pool": "annotation.platforms.pool.Pool",
    "simulated": "annotation.platforms.simulated.Simulated",
}


def platform_of(name: str) -> Platform:
    """The platform of that name. Raises KeyError if there is none."""
    found: Platform = import_string(PLATFORMS[name])()
    return found
