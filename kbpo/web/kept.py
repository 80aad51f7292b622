"""A Redis cache that tolerates failures, and cached pages and parts of pages."""

from __future__ import annotations

import functools
import gzip
import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.cache import cache
from django.core.cache.backends.redis import RedisCache, RedisCacheClient
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.template.loader import render_to_string
from django.utils.cache import patch_vary_headers
from django.utils.safestring import SafeString, mark_safe
from redis import Redis
from redis.exceptions import ConnectionError as Away
from redis.exceptions import RedisError

from kbpo.tracks.stamps import cached_with_stamps, current_stamps

if TYPE_CHECKING:
    from kbpo.tracks.models import Track

log = logging.getLogger(__name__)

RETRY_SECONDS = 5.0
"""Seconds for which Redis is not contacted after it did not answer"""


class KeptClient(RedisCacheClient):
    """Reuses one client for each server, since creating one is slower than a request."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._client = functools.cache(Redis)  # called with the connections to a server


class ForgivingCache(RedisCache):
    """A Redis cache that behaves as empty while Redis cannot be reached."""

    away_until = 0.0
    """Time on this process's monotonic clock until which Redis is not contacted"""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._class = KeptClient

    def get(self, key: str, default: Any = None, version: int | None = None) -> Any:
        """Return the cached value; the default if it is missing or Redis cannot be reached."""
        return self._call_or_default(super().get, key, default, version, instead=default)

    def get_many(self, keys: Any, version: int | None = None) -> dict[str, Any]:
        """Return the cached values; none while Redis cannot be reached."""
        return dict(self._call_or_default(super().get_many, keys, version, instead={}))

    def set(self, key: str, value: Any, *args: Any, **kwargs: Any) -> None:
        """Store the value, if Redis is available."""
        self._call_or_default(super().set, key, value, *args, **kwargs)

    def add(self, key: str, value: Any, *args: Any, **kwargs: Any) -> bool:
        """Store the value if the key is new, and return whether it was; raises while Redis cannot
        be reached.
        """
        return bool(self._call_or_raise(super().add, key, value, *args, **kwargs))

    def delete(self, key: str, version: int | None = None) -> bool:
        """Delete the key, and return whether it existed; raises while Redis cannot be reached."""
        return bool(self._call_or_raise(super().delete, key, version))

    def has_key(self, key: str, version: int | None = None) -> bool:
        """Return whether the key exists; raises while Redis cannot be reached."""
        return bool(self._call_or_raise(super().has_key, key, version))

    def _call_or_default(
        self, call: Callable[..., Any], *args: Any, instead: Any = None, **kwargs: Any
    ) -> Any:
        try:
            return self._call_or_raise(call, *args, **kwargs)
        except (RedisError, OSError):
            return instead

    def _call_or_raise(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if time.monotonic() < ForgivingCache.away_until:
            raise Away("Redis did not answer a moment ago")
        try:
            return call(*args, **kwargs)
        except (RedisError, OSError) as problem:
            ForgivingCache.away_until = time.monotonic() + RETRY_SECONDS
            log.warning("Redis does not answer, so nothing is kept: %s", problem)
            raise


CSRF_PLACEHOLDER = "token-of-whoever-reads-this"
"""Placeholder in cached forms for each reader's own CSRF token"""


def row_values(*rows: Model) -> list[Any]:
    """Return all values of some rows, for a cache key."""
    return [getattr(row, field.attname) for row in rows for field in row._meta.concrete_fields]


def cached_part(
    request: HttpRequest,
    template: str,
    context: Callable[[], Mapping[str, Any]],
    fingerprint: object,
    seconds: int | None = None,
) -> SafeString:
    """Return a part of a page from the cache; it is rendered with `context` if nothing is cached
    for `fingerprint`. It is kept for `seconds`, at most PAGES_KEPT_SECONDS. It may depend on the
    visitor only through `fingerprint`.
    """
    most = settings.PAGES_KEPT_SECONDS
    where = repr([settings.VERSION, request.scheme, request.get_host(), template, fingerprint])
    key = f"part:{sha256(where.encode()).hexdigest()}"
    drawn: str | None = cache.get(key) if most else None
    if drawn is None:
        drawn = render_to_string(template, {**context(), "csrf_token": CSRF_PLACEHOLDER})
        if most:
            cache.set(key, str(drawn), most if seconds is None else min(most, seconds))
    if CSRF_PLACEHOLDER in drawn:
        drawn = drawn.replace(CSRF_PLACEHOLDER, get_token(request))
    return mark_safe(drawn)  # as it was rendered


ACCEPTS_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))")
_TRACKS: dict[str, int] = {}
"""Slug of an address -> the track that this process found last for it"""


def cached_page(
    request: HttpRequest,
    slug: str,
    parameters: Sequence[str],
    find_track: Callable[[str], Track | None],
    draw: Callable[[str], HttpResponse],
) -> HttpResponse:
    """Return the cached page of a track for anonymous visitors; `draw` renders it if it is not
    cached or out of date. It may depend on these parameters of the address only.
    """
    if not settings.PAGES_KEPT_SECONDS:
        return draw(slug)
    key = _page_key(request, parameters)
    page, stamps = _read_cached_page(key, slug)
    if page is None or page.stamps != stamps:
        track = find_track(slug)
        if track is None:
            return draw(slug)
        stamps = current_stamps(track.pk)  # before anything of it is read
        page = _CachedPage.of(draw(track.slug), track.pk, stamps)
        cache.set(key, page, timeout=settings.PAGES_KEPT_SECONDS)
        _TRACKS[slug] = track.pk
    return page.answer(request)


def _read_cached_page(key: str, slug: str) -> tuple[_CachedPage | None, tuple[str, ...]]:
    """Return the cached page and the current stamps (change markers) of its track. One request to
    Redis is enough if this process knows the track of the address.
    """
    guess = _TRACKS.get(slug)
    page, stamps = (cache.get(key), ()) if guess is None else cached_with_stamps(key, guess)
    if page is None:
        return None, ()
    if page.track != guess:
        _TRACKS[slug] = page.track
        stamps = current_stamps(page.track)
    return page, stamps


@dataclass(frozen=True)
class _CachedPage:
    """A compressed page of a track for anonymous visitors. It is valid while the track's stamps
    (change markers in the cache) are the same; everything else on it (open questions, team names,
    money) is at most PAGES_KEPT_SECONDS old.
    """

    track: int
    stamps: tuple[str, ...]
    etag: str
    packed: bytes

    @classmethod
    def of(cls, drawn: HttpResponse, track: int, stamps: tuple[str, ...]) -> _CachedPage:
        """Return the cache entry for a page that was rendered while the track had these stamps
        (change markers in the cache).
        """
        etag = f'W/"{sha256(drawn.content).hexdigest()[:32]}"'
        return cls(track, stamps, etag, gzip.compress(drawn.content, 6))

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Return the response, uncompressed for the rare client without gzip."""
        headers = {"ETag": self.etag}
        if ACCEPTS_GZIP.search(request.headers.get("Accept-Encoding", "")):
            headers["Content-Encoding"] = "gzip"
            answer = HttpResponse(self.packed, headers=headers)
        else:
            answer = HttpResponse(gzip.decompress(self.packed), headers=headers)
        patch_vary_headers(answer, ["Accept-Encoding"])
        return answer


def _page_key(request: HttpRequest, parameters: Sequence[str]) -> str:
    """Return the cache key of a page: its address with these parameters only, so that nobody can
    fill the cache.
    """
    asked = [(name, request.GET[name][:20]) for name in parameters if name in request.GET]
    parts = [settings.VERSION, request.build_absolute_uri(request.path), asked]
    return f"page:{sha256(repr(parts).encode()).hexdigest()}"
