"""A document says of every page, file and button of researchers and readers where the
API has it, or that it has it not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.urls import get_resolver, resolve

from kbpo.web.api import urls

DOCUMENT = Path(settings.BASE_DIR) / "docs/api.md"
OURS = ("kbpo.web.public", "kbpo.web.research")
ADDRESS = re.compile(r"`(/[^`\s]*)`")


def named(patterns: Any) -> Iterator[str]:
    """Yields the names of the addresses of researchers and readers, also where a class answers."""
    for one in patterns:
        if hasattr(one, "url_patterns"):
            yield from named(one.url_patterns)
            continue
        view = getattr(one.callback, "view_class", one.callback)
        if view.__module__.startswith(OURS) and not (one.name or "").startswith("api-"):
            yield one.name


def test_every_page_of_researchers_says_where_the_api_has_it() -> None:
    told = [resolve(address).url_name for address in ADDRESS.findall(DOCUMENT.read_text())]
    pages = [name for name in told if name and not name.startswith("api-")]
    assert set(named(get_resolver().url_patterns)) <= set(pages)
    assert sorted(pages) == sorted(set(pages)), "each stands in one place"


def test_every_address_of_the_api_that_a_page_has_is_named() -> None:
    told = {resolve(address).url_name for address in ADDRESS.findall(DOCUMENT.read_text())}
    there = {one.name for one in urls.urlpatterns}
    of_no_page = {"api-schema", "api-unscored", "api-scores", "api-track-judgments"}
    assert there - told == of_no_page
