"""The registry of platforms: one line each, named by string, so that no client library is imported
before it is used.
"""

from __future__ import annotations

from decimal import Decimal

from django.utils.module_loading import import_string

from annotation.platforms.base import Platform

OUR_PAGES = {
    "pool": "annotation.platforms.pool.platform.Pool",
    "simulated": "annotation.platforms.simulated.platform.Simulated",
}
"""Platforms that are our own pages, without an API to call"""
MARKETPLACES = {
    "mturk": "annotation.platforms.mturk.platform.MTurk",
}


def platform_names() -> list[str]:
    """Return the names of all platforms."""
    return [*OUR_PAGES, *MARKETPLACES]


def platform_by_name(name: str) -> Platform:
    """Return the platform with this name. Raises KeyError for an unknown name."""
    found: Platform = import_string((OUR_PAGES | MARKETPLACES)[name])()
    return found


def platform_fee_rate(name: str) -> Decimal:
    """Return a platform's fee as a share of the reward. Raises KeyError for an unknown platform."""
    return platform_by_name(name).capabilities.fee_rate


def frame_sites() -> list[str]:
    """Return the sites of all platforms that show our task pages in a frame."""
    return [
        site for name in MARKETPLACES for site in platform_by_name(name).capabilities.frame_sites
    ]


def local_platform_names() -> list[str]:
    """Return the names of platforms that are our own pages."""
    return list(OUR_PAGES)


def marketplace_names() -> list[str]:
    """Return the names of platforms with an API to call."""
    return list(MARKETPLACES)
