"""Creates the releases that were ordered, as a step of the pipeline, so that no request waits for
one.
"""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from pathlib import Path

from django.core.files import File
from django.db import transaction
from django.db.models import Max

from kbpo import clock
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.models import User
from kbpo.queue import handle_rows, wake_step
from kbpo.releases.models import Release
from kbpo.releases.write import CannotRelease, check_is_public, write_release
from kbpo.tracks.models import Track

LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""Time of every file in the ZIP file, so that equal tables give equal bytes"""


@transaction.atomic
def order_release(track: Track, who: User) -> Release:
    """Order a release and return it; if one is already ordered, return that one. Raises
    CannotRelease.
    """
    locked = Track.objects.select_for_update(of=("self",), no_key=True).get(pk=track.pk)
    check_is_public(locked)
    waiting = locked.releases.filter(status=Release.Status.ORDERED).first()
    if waiting is not None:
        return waiting
    last = locked.releases.aggregate(last=Max("number"))["last"] or 0
    made = Release.objects.create(track=locked, number=last + 1, status="ordered")
    write_audit_entry(
        "order release", f"track:{track.slug}", who=who, after=str(made.number), track=track.slug
    )
    wake_step("release")
    return made


def tick() -> int:
    """Create ordered releases; return how many were created or refused."""
    return handle_rows(Release, Release.Status.ORDERED, _make_release)


def _make_release(release: Release) -> None:
    with tempfile.TemporaryDirectory(prefix="kbpo-release-") as place:
        directory = Path(place) / "release"
        try:
            manifest = write_release(release.track, directory)
        except CannotRelease as refusal:
            release.move(Release.Status.REFUSED, str(refusal))
            return
        has_parquet = any(directory.glob("*.parquet"))
        packed = Path(place) / release.file_name
        zip_directory(directory, packed)
        with packed.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            release.file.save(release.file_name, File(file), save=False)
    release.move(
        Release.Status.MADE,
        file=release.file.name,
        size=release.file.size,
        digest=digest,
        has_parquet=has_parquet,
        rows=manifest["rows"],
        made_at=clock.now(),
    )


def zip_directory(directory: Path, path: Path) -> None:
    """Write the directory's files to a ZIP file."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(directory.iterdir()):
            entry = zipfile.ZipInfo(file.name, LONG_AGO)
            entry.compress_type = zipfile.ZIP_DEFLATED
            with file.open("rb") as source, archive.open(entry, "w", force_zip64=True) as target:
                while block := source.read(1 << 20):
                    target.write(block)
