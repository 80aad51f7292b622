"""Names what files call the runs of a track, in and out: so that a file that one service wrote is
read by another that has the same runs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from kbpo.submissions.models import Submission
from kbpo.submissions.receive import NOT_TAKEN
from kbpo.tracks.models import Track


@dataclass(frozen=True)
class RunNames:
    """The names of runs in files."""

    written: dict[int, str]
    """Of each run, in the order of their arrival, what a file is written with"""
    read: dict[str, str]
    """What else a file may call one -> what it is written with"""


def run_names(track: Track, *, public: bool = False) -> RunNames:
    """Return the names of a track's runs in files: the run's name, preceded by its team's where
    several teams chose the same. A run can also be referred to by its team and name, and on this
    service by its number.

    The `public` names are those of the runs on the board, as everybody knows them.
    """
    runs = Submission.objects.filter(track=track).exclude(status__in=NOT_TAKEN)
    runs = (runs.on_board() if public else runs).select_related("team").order_by("pk")
    written = {run.pk: run.public_name if public else run.name for run in runs}
    full = {run.pk: run.full_name if public else run.own_name for run in runs}
    for longer in (full, {pk: f"{name} ({pk})" for pk, name in full.items()}):
        counted = Counter(written.values())
        written = {pk: name if counted[name] == 1 else longer[pk] for pk, name in written.items()}
    also: dict[str, set[str]] = {}
    for run in runs:
        for name in (full[run.pk], str(run.pk), f"run {run.pk}", f"{run.name} ({run.pk})"):
            also.setdefault(name, set()).add(written[run.pk])
    taken = set(written.values())
    read = {
        name: meant.pop() for name, meant in also.items() if len(meant) == 1 and name not in taken
    }
    return RunNames(written, read)
