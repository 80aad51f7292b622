"""The single judgments of a track as a file: what people said here and what was imported, in and
out.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.db import transaction
from django.http import StreamingHttpResponse

from annotation.labels.single import single_ratings
from formats.messages import Report
from formats.opening import Source
from kbpo.accounts.audit import COMMAND, note
from kbpo.accounts.models import User
from kbpo.tracks.content.judgments import (
    Imported,
    Single,
    export_judgments,
    import_judgments,
    predicted_targets,
    text_kind,
)
from kbpo.tracks.models import Track


def judgment_lines(track: Track, *, public: bool = False) -> Iterator[str]:
    """Return the lines, with the header; what everybody may see alone if asked. Raises CannotImport
    for a track whose judgments are no ratings.
    """
    text_kind(track)
    return export_judgments(track, _given_here(track, public=public), public=public)


def judgment_file(track: Track, *, public: bool = False) -> StreamingHttpResponse:
    """Return the same as a download."""
    return StreamingHttpResponse(
        judgment_lines(track, public=public),
        content_type="text/tab-separated-values; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{track.slug}-judgments.tsv"'},
    )


@transaction.atomic
def bring(
    track: Track,
    source: Source,
    report: Report,
    who: User | None,
    *,
    partly: bool = False,
    is_public: bool | None = None,
) -> Imported:
    """Return what became of a file of judgments that somebody imports. They are public where
    `is_public` says so, by default on a study alone. Raises CannotImport.
    """
    text_kind(track)
    done = import_judgments(
        track,
        source,
        report,
        _given_here(track),
        partly=partly,
        is_public=track.is_study if is_public is None else is_public,
    )
    note(
        "import judgments",
        f"track:{track.slug}",
        who=who,
        why=COMMAND if who is None else "",
        after=done.sentence,
        track=track.slug,
    )
    return done


def _given_here(track: Track, *, public: bool = False) -> Iterator[Single]:
    return (Single(*rating) for rating in single_ratings(predicted_targets(track), public=public))
