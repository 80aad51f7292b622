"""The registry of kinds of track: one line each, named by string so that no kind is imported before
it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.utils.module_loading import import_string

if TYPE_CHECKING:
    from kbpo.tracks.base import Track
    from kbpo.tracks.models import Track as TrackRow

KINDS = {
    "kbp": "kbpo.tracks.kbp.track.KbpTrack",
    "generation": "kbpo.tracks.texts.shipped.GenerationTrack",
    "answers": "kbpo.tracks.texts.shipped.AnswersTrack",
}

FORM = "form-"
"""Prefix of the kind of a track with a declared form; the form's name follows."""


def track_classes() -> dict[str, type[Track]]:
    """Return the kinds of track, each with its class, those of declared forms last."""
    declared: dict[str, type[Track]] = import_string(
        "kbpo.tracks.texts.declared.declared_track_classes"
    )()
    return {name: track_class(name) for name in KINDS} | declared


def track_class(kind: str) -> type[Track]:
    """Return the class of a kind. Raises KeyError for an unknown kind."""
    if kind.startswith(FORM):
        declared: type[Track] = import_string("kbpo.tracks.texts.declared.track_class_of_form")(
            kind.removeprefix(FORM)
        )
        return declared
    behaviour: type[Track] = import_string(KINDS[kind])
    return behaviour


def count_inputs_by_track(tracks: Sequence[TrackRow]) -> dict[int, int]:
    """Return track -> its number of inputs of systems, with at most one query for each kind."""
    found: dict[int, int] = {}
    for kind in {track.kind for track in tracks}:
        mine = [track for track in tracks if track.kind == kind]
        counted = track_class(kind).n_inputs_of([track.corpus for track in mine])
        found |= {track.pk: counted[track.corpus_id] for track in mine}
    return found


def count_inputs(track: TrackRow, *, test: bool = False) -> int:
    """Return the number of inputs of systems, or of those in the test part."""
    return track_class(track.kind).n_inputs_of([track.corpus], test=test)[track.corpus_id]


def kind_of(track: TrackRow) -> Track:
    """Return the object that implements a track's kind, for this track. Raises KeyError for an
    unknown kind.
    """
    return track_class(track.kind)(track)
