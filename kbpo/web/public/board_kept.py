"""Boards that everybody shares: a page is drawn once and kept compressed while it holds."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers

from kbpo.tracks.stamps import cached_with_stamps, stamps_of
from kbpo.web.public.board_view import SWITCHES, track_of

ACCEPTS_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))")
_TRACKS: dict[str, int] = {}
"""Slug of an address -> the track that this process drew last for it"""


def shared(request: HttpRequest, slug: str, draw: Callable[[str], HttpResponse]) -> HttpResponse:
    """A page that is the same for everybody, drawn by `draw` where none is kept."""
    if not settings.PAGES_KEPT_SECONDS:
        return draw(slug)
    key = _key(request)
    page, stamps = _kept(key, slug)
    if page is None or page.stamps != stamps:
        track = track_of(slug)
        if track is None:
            return draw(slug)
        stamps = stamps_of(track.pk)  # before anything of it is read
        page = _Shared.of(draw(track.slug), track.pk, stamps)
        cache.set(key, page, timeout=settings.PAGES_KEPT_SECONDS)
        _TRACKS[slug] = track.pk
    return page.answer(request)


def _kept(key: str, slug: str) -> tuple[_Shared | None, tuple[str, ...]]:
    """Return the page that is kept, and the stamps that its track has now. Redis is asked once,
    where the track is the one that this process knows of that address.
    """
    guess = _TRACKS.get(slug)
    page, stamps = (cache.get(key), ()) if guess is None else cached_with_stamps(key, guess)
    if page is None:
        return None, ()
    if page.track != guess:
        _TRACKS[slug] = page.track
        stamps = stamps_of(page.track)
    return page, stamps


@dataclass(frozen=True)
class _Shared:
    """A board's page for readers who are nobody in particular, compressed once. It holds as long as
    the stamps of its track are those that it was drawn under; what else it tells (labels that wait,
    names of teams, money) is PAGES_KEPT_SECONDS old at most.
    """

    track: int
    stamps: tuple[str, ...]
    etag: str
    packed: bytes

    @classmethod
    def of(cls, drawn: HttpResponse, track: int, stamps: tuple[str, ...]) -> _Shared:
        """The page that was drawn under these stamps."""
        etag = f'W/"{sha256(drawn.content).hexdigest()[:32]}"'
        return cls(track, stamps, etag, gzip.compress(drawn.content, 6))

    def answer(self, request: HttpRequest) -> HttpResponse:
        """The page; whole for the rare reader who cannot unpack it."""
        headers = {"ETag": self.etag}
        if ACCEPTS_GZIP.search(request.headers.get("Accept-Encoding", "")):
            headers["Content-Encoding"] = "gzip"
            answer = HttpResponse(self.packed, headers=headers)
        else:
            answer = HttpResponse(gzip.decompress(self.packed), headers=headers)
        patch_vary_headers(answer, ["Accept-Encoding"])
        return answer


def _key(request: HttpRequest) -> str:
    """Return what a shared page is kept under: its address, with the switches alone, so that nobody
    fills the cache by asking.
    """
    asked = [(name, request.GET[name][:20]) for name in SWITCHES if name in request.GET]
    parts = [settings.VERSION, request.build_absolute_uri(request.path), asked]
    return f"board:{sha256(repr(parts).encode()).hexdigest()}"
