"""Puts away uploaded files that no submission refers to: a few at a time, into a trash folder, and
back out of it if a submission turns out to refer to them.

A service that was started on another database than its files belong to must not cost a single
file. So nothing is moved while there are no submissions, or while most files belong to none, and
what was moved lies in the trash for a month.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path

from django.conf import settings
from django.core.cache import cache

from kbpo import clock
from kbpo.submissions.keep import FOLDER
from kbpo.submissions.models import Submission

log = logging.getLogger(__name__)

TRASH = "trash"
UNTOUCHED = timedelta(days=1)
"""How long ago a file was written, at the least: its row is made right after it."""
KEPT_IN_TRASH = timedelta(days=30)
AT_ONCE = 0.03
"""The largest share of all files that one call moves, and deletes (but one file at the least)"""
SUSPICIOUS = 0.5
"""With more than this share of several files unknown, the database is the wrong one."""


def put_away() -> int:
    """Return how many files were moved to the trash: old ones that no submission refers to."""
    root = Path(settings.MEDIA_ROOT)
    uploads = _files(root / FOLDER)  # before the rows: a file comes first, and its row second
    trash = _files(root / TRASH)
    if not uploads and not trash:
        return 0
    referred = set(Submission.objects.values_list("file", flat=True))
    if not referred:
        if uploads:
            log.warning(
                "There are %s uploads and no submission: is this their database? None is moved.",
                len(uploads),
            )
        return 0
    _restore(root, trash, referred)
    now = clock.now()
    written_before = now.timestamp() - UNTOUCHED.total_seconds()
    orphans = []
    for path in uploads:
        if _name(path, root) not in referred and _written_at(path) < written_before:
            orphans.append(path)
    if len(uploads) > 1 and len(orphans) > SUSPICIOUS * len(uploads):
        log.error(
            "%s of %s uploads belong to no submission: is this their database? None is moved.",
            len(orphans),
            len(uploads),
        )
        return 0
    at_most = max(1, int(AT_ONCE * (len(uploads) + len(trash))))
    _empty(root, trash, now.date(), at_most)
    moved = sorted(orphans, key=_written_at)[:at_most]
    for path in moved:
        _move(path, root / TRASH / f"{now:%Y-%m-%d}" / path.relative_to(root))
    return len(moved)


def put_away_now_and_then() -> int:
    """Return how many files were moved; at most once an hour, and none while the cache is away."""
    try:
        due = cache.add("submissions.orphans", 1, 3600)
    except Exception:
        return 0
    try:
        return put_away() if due else 0
    except OSError as problem:  # a disk that fails must not keep uploads from being read
        log.warning("Orphaned uploads could not be put away: %s", problem)
        return 0


def _restore(root: Path, trash: list[Path], referred: set[str]) -> None:
    for path in trash:
        name = str(path.relative_to(root / TRASH).relative_to(_day(path, root)))
        if name in referred and not (root / name).exists():
            _move(path, root / name)
            log.warning("%s was in the trash, and a submission refers to it: it is back.", name)


def _empty(root: Path, trash: list[Path], today: date, at_most: int) -> None:
    """Delete what lay in the trash for a month, a few at a time."""
    last_day = str(today - KEPT_IN_TRASH)
    expired = [path for path in trash if _day(path, root) < last_day]
    for path in sorted(expired)[:at_most]:
        path.unlink(missing_ok=True)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _name(path: Path, root: Path) -> str:
    return str(path.relative_to(root))


def _day(path: Path, root: Path) -> str:
    """Return the day on which a file was moved to the trash: the name of its folder there."""
    return path.relative_to(root / TRASH).parts[0]


def _written_at(path: Path) -> float:
    """Return when the file was written; never, that is in the far future, if it is gone."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return float("inf")


def _move(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        path.replace(to)
