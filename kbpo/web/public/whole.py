"""All that somebody needs to take part in a track, as one file: texts, schema, guidelines, baseline
and licence. It is made while it is sent.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified, StreamingHttpResponse
from django.template.loader import render_to_string
from django.urls import path, reverse
from rest_framework.request import Request

from kbpo.corpus.export import gzipped, mention_lines
from kbpo.submissions.limits import limits_in_words
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of, n_inputs
from kbpo.web.api.downloads import MENTIONS, downloadable, texts_name
from kbpo.web.expensive import export
from kbpo.web.http import address_of
from kbpo.web.public.client import install_command
from kbpo.web.public.guidelines import as_file
from kbpo.web.public.track import (
    ARCHIVES,
    MADE_OFTEN,
    baseline_command,
    made_too_often,
    reads_offline,
)
from kbpo.web.table import zipped

File = tuple[str, Iterator[bytes]]
LICENCE_UNSAID = "The licence of these texts is not stated: ask before you use them elsewhere."


class TooMany(Exception):
    """One address has had it made too often; the text is a sentence for people."""


def answer(request: HttpRequest | Request, slug: str) -> HttpResponse | StreamingHttpResponse:
    """Return all of a track as a zip file, streamed; 304 where the requester has it already.

    Raises Http404 where its texts are not to be downloaded, and TooMany.
    """
    track = downloadable(slug)
    head = _head(track)
    tag = f'"{_digest(track, head)}"'
    if request.headers.get("If-None-Match") == tag:
        return HttpResponseNotModified(headers={"ETag": tag})
    if not ARCHIVES.count(address_of(request)):  # all texts are read for it
        raise TooMany(MADE_OFTEN)
    return StreamingHttpResponse(
        zipped((f"{track.slug}/{name}", blocks) for name, blocks in _files(track, head)),
        content_type="application/zip",
        headers={
            "Content-Disposition": f'attachment; filename="{track.slug}.zip"',
            "ETag": tag,
        },
    )


def _head(track: Track) -> dict[str, bytes]:
    """What is small: its file -> what it says."""
    corpus, kind = track.corpus, kind_of(track)
    head = {"guidelines.html": as_file(track)}
    head["LICENCE.txt"] = f"{corpus.name}\n\n{corpus.licence or LICENCE_UNSAID}\n"
    if kind.words.schema:
        head["schema.json"] = json.dumps(corpus.schema, indent=1, ensure_ascii=False) + "\n"
    if baseline := kind.baseline():
        head["baseline.py"] = baseline.read_text(encoding="utf-8")
    command = baseline_command(track)
    files = [*head, *(name for name, _ in large_files(track))]
    context = {
        "track": track,
        "corpus": corpus,
        "words": kind.words,
        "n_inputs": n_inputs(track),
        "limit": limits_in_words(track),
        "site": settings.SITE_URL.rstrip("/"),
        "page": reverse("track", args=[track.slug]),
        "install_command": install_command(),
        "offline": reads_offline(track),
        "command": command,
        "file": "baseline.jsonl" if command else "FILE",
        "files": files,
    }
    return {"README.md": render_to_string("track_readme.md", context).encode()} | {
        name: text.encode() for name, text in head.items()
    }


def large_files(track: Track) -> Iterator[File]:
    """Yields the name and the blocks of each file of a track that is made while it is sent."""
    yield texts_name(track), gzipped(kind_of(track).input_lines())
    if track.corpus.has_mentions:
        yield MENTIONS, gzipped(mention_lines(track.corpus))


def _files(track: Track, head: dict[str, bytes]) -> Iterator[File]:
    for name, text in head.items():
        yield name, iter([text])
    yield from large_files(track)


def _digest(track: Track, head: dict[str, bytes]) -> str:
    """What is other where any file is: of the texts themselves their corpus has a digest."""
    digest = hashlib.sha256(f"{track.corpus.digest}/{n_inputs(track)}".encode())
    for name, text in head.items():
        digest.update(f"{name}/{len(text)}/".encode() + text)
    return digest.hexdigest()


@export
def download(request: HttpRequest, slug: str) -> HttpResponse | StreamingHttpResponse:
    """All of a track as one file."""
    try:
        return answer(request, slug)
    except TooMany:
        return made_too_often(request)


urlpatterns = [path("tracks/<slug:slug>/all.zip", download, name="track-zip")]
