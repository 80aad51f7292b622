"""Files that no submission refers to are put away, and a wrong database costs none."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbpo.submissions import orphans
from kbpo.submissions.models import Submission

Upload = Callable[..., Submission]
DAY = 86_400


def make_old(path: Path, days: float = 2) -> Path:
    os.utime(path, (time.time() - days * DAY,) * 2)
    return path


def orphan(uploads: Path, name: str) -> Path:
    path = uploads / "uploads" / "2026" / "01" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"orphan")
    return make_old(path)


def in_trash(uploads: Path) -> list[Path]:
    return [path for path in (uploads / "trash").rglob("*") if path.is_file()]


@pytest.fixture
def eighteen(upload: Upload, uploads: Path) -> list[Path]:
    """Eighteen uploads, two days old, each with its submission."""
    return [make_old(Path(upload(bytes([n])).file.path)) for n in range(18)]


def test_what_nothing_refers_to_moves_to_the_trash_after_a_day(
    upload: Upload, uploads: Path
) -> None:
    kept = make_old(Path(upload(b"x").file.path))
    fresh = kept.with_name("fresh.part")
    fresh.write_bytes(b"")
    lost = orphan(uploads, "lost")
    assert orphans.put_away() == 1
    assert kept.exists() and fresh.exists() and not lost.exists()
    assert [path.read_bytes() for path in in_trash(uploads)] == [b"orphan"]
    assert orphans.put_away() == 0


def test_an_empty_database_costs_no_file(eighteen: list[Path], uploads: Path, caplog: Any) -> None:
    Submission.objects.all().delete()
    assert orphans.put_away() == 0
    assert all(path.exists() for path in eighteen)
    assert "is this their database?" in caplog.text


@pytest.mark.parametrize("unknown", [2, 5, 8])
def test_the_database_of_another_service_costs_a_small_one_no_file(
    unknown: int, upload: Upload, uploads: Path
) -> None:
    lost = [orphan(uploads, f"theirs{n}") for n in range(unknown)]
    upload(b"the only one of the other service")
    assert orphans.put_away() == 0
    assert all(path.exists() for path in lost)


def test_a_file_in_the_trash_comes_back_when_a_submission_refers_to_it(
    eighteen: list[Path], uploads: Path
) -> None:
    row = Submission.objects.order_by("pk").first()
    assert row is not None
    name, path = row.file.name, Path(row.file.path)
    Submission.objects.filter(pk=row.pk).update(file="uploads/elsewhere")
    assert orphans.put_away() == 1
    assert not path.exists()
    Submission.objects.filter(pk=row.pk).update(file=name)
    orphans.put_away()
    assert path.read_bytes() == b"\x00"
    assert not in_trash(uploads)


def test_the_trash_is_emptied_a_month_later_a_few_files_at_a_time(
    eighteen: list[Path], uploads: Path
) -> None:
    for n in range(5):
        path = uploads / "trash" / "2020-01-01" / "uploads" / f"old{n}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    recent = orphan(uploads, "recent")
    orphans.put_away()
    assert len(in_trash(uploads)) == 4 + 1
    for _ in range(10):
        orphans.put_away()
    assert not recent.exists()
    assert [path.name for path in in_trash(uploads)] == ["recent"]
