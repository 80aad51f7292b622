"""The platforms there are: one line each, named by string so that no client library is imported
before it is used.
"""

from __future__ import annotations

from decimal import Decimal

from django.utils.module_loading import import_string

from annotation.platforms.base import Platform

PLATFORMS = {
    "pool": "annotation.platforms.pool.platform.Pool",
    "simulated": "annotation.platforms.simulated.platform.Simulated",
    "mturk": "annotation.platforms.mturk.platform.MTurk",
}
OUR_PAGES = ("pool", "simulated")


def platform_of(name: str) -> Platform:
    """Return the platform of that name. Raises KeyError if there is none."""
    found: Platform = import_string(PLATFORMS[name])()
    return found


def fee_rate_of(name: str) -> Decimal:
    """Return what a platform takes on top of a reward. Raises KeyError if there is no such
    platform.
    """
    return platform_of(name).capabilities.fee_rate


def frame_sites() -> list[str]:
    """Return the sites that show our task pages in a frame, of all platforms."""
    sites: list[str] = []
    for name in other_names():
        for site in platform_of(name).capabilities.frame_sites:
            sites.append(site)
    return sites


def local_names() -> list[str]:
    """Return the platforms that are our own pages."""
    return list(OUR_PAGES)


def other_names() -> list[str]:
    """Return the platforms that must be called."""
    return [name for name in PLATFORMS if name not in OUR_PAGES]
