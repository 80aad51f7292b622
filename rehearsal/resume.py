"""Resumes the demo with its options, or deletes it if the database has no other data."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection

from kbpo.corpus.models import Corpus
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from rehearsal.demonstrate import NAME, DemoFailed
from rehearsal.newspaper.texts import ANSWERS, SUMMARIES

DEFAULTS: dict[str, Any] = {
    "systems": 5, "platform": "pool", "design": "iid",
}  # fmt: skip
OURS = (NAME, SUMMARIES, ANSWERS)
"""Names of the demo's tracks and of their corpora"""


def resume_options(requested: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the demo: those of its track if it exists, else the requested ones,
    else the defaults. Raises DemoFailed if an option differs from the track's.
    """
    track = Track.objects.filter(name=NAME).first()
    before = {"platform": track.platform, "design": track.design} if track else {}
    other = [name for name, value in requested.items() if before.get(name, value) != value]
    if other:
        begun = " ".join(f"--{name} {before[name]}" for name in other)
        raise DemoFailed(
            f"This demo was begun with {begun}; add --reset to forget it and begin another one."
        )
    return DEFAULTS | requested | before


def delete_demo(directory: Path) -> None:
    """Empty the database, the cache and the directory, and delete the uploads. Raises DemoFailed if
    the database has other data.
    """
    if not settings.LOCAL:
        raise DemoFailed(
            "Nothing was deleted: KBPO_LOCAL is false, so this is a server, and --reset"
            " empties a database."
        )
    if other := _name_of_foreign_data():
        raise DemoFailed(
            f"Nothing was deleted: the database also holds “{other}”, which is not the demo's, and"
            " --reset would empty it. Name another database in DATABASE_URL; `make clean` deletes"
            " all that was made in this directory."
        )
    call_command("migrate", verbosity=0)
    uploads = [
        Path(settings.MEDIA_ROOT) / name
        for name in Submission.objects.values_list("file", flat=True)
        if name
    ]
    call_command("flush", interactive=False, verbosity=0)
    cache.clear()
    for path in uploads:
        path.unlink(missing_ok=True)
    shutil.rmtree(directory, ignore_errors=True)


def _name_of_foreign_data() -> str:
    """Return the name of a track or a corpus that is not the demo's; empty if there is none, or no
    table yet.
    """
    tables = connection.introspection.table_names()
    for model in (Track, Corpus):
        if model._meta.db_table in tables:
            other = (
                model._default_manager.exclude(name__in=OURS).values_list("name", flat=True).first()
            )
            if other is not None:
                return str(other)
    return ""
