"""The kinds of track there are: one line each, named by string so that no kind is imported before
it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.module_loading import import_string

if TYPE_CHECKING:
    from kbpo.tracks.base import Track
    from kbpo.tracks.models import Track as TrackRow

KINDS = {
    "kbp": "kbpo.tracks.kbp.track.KbpTrack",
}


def kind_of(track: TrackRow) -> Track:
    """The behaviour of a track row. Raises KeyError if its kind is not in the registry."""
    behaviour: Track = import_string(KINDS[track.kind])(track)
    return behaviour
