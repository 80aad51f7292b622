"""From the desk's button to a stranger's own computation of the board."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from django.core.files.base import ContentFile
from django.test import Client
from kbpo_client.commands import main

from annotation.models import Worker
from kbpo.evaluation.run import tick as estimate
from kbpo.releases.make import tick
from kbpo.releases.models import Release
from kbpo.sampling.open_track import close_track
from kbpo.submissions.models import Submission
from tests.conftest import Toy
from tests.test.web.conftest import judged

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["judged"]
DESK = "/desk/tracks/toy/"


def test_a_release_is_ordered_made_downloaded_and_rescored(
    live_server: Any,
    toy: Toy,
    judged: Submission,
    as_user: Callable[..., Client],
    settings: Any,
    tmp_path: Path,
) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"
    estimate()
    judged.refresh_from_db()
    assert judged.status == "scored", judged.reason
    admin = as_user("Admin")
    refused = admin.post(DESK, {"verb": "release"})
    assert refused.status_code == 409 and "Close it first" in refused.content.decode()
    assert not Release.objects.exists()

    close_track(toy.track)
    for _ in range(2):  # twice: one is made at a time
        assert admin.post(DESK, {"verb": "release"}).status_code == 302
    assert "Being made" in admin.get(DESK).content.decode()
    assert Client().get("/tracks/toy/releases/1/").status_code == 404
    assert tick() == 1 and tick() == 0
    row = Release.objects.get()
    assert (row.status, row.reason) == ("made", "")
    about = Client().get("/tracks/toy/about/").content.decode()
    assert "toy-release-1.zip" in about
    with zipfile.ZipFile(row.file) as packed:
        has_parquet = any(name.endswith(".parquet") for name in packed.namelist())
    assert ("Zip of JSON Lines and Parquet" in about) is has_parquet
    assert "/tracks/toy/releases/1/" in admin.get(DESK).content.decode()

    def kbpo(*words: object) -> Any:
        return CliRunner().invoke(main, ["--url", live_server.url, *map(str, words)])

    fetched = kbpo("release", "toy", "--to", tmp_path)
    assert fetched.exit_code == 0, fetched.output
    found = kbpo("rescore", tmp_path / "toy-release-1.zip")
    assert found.exit_code == 0, found.output
    assert "agree to 10 significant digits" in found.output
    _names_nobody(tmp_path / "toy-release-1.zip")
    whole = (tmp_path / "toy-release-1.zip").read_bytes()
    row.file.storage.delete(row.file.name)
    row.file.storage.save(row.file.name, ContentFile(whole[:-1] + b"?"))
    damaged = kbpo("release", "toy", "--to", tmp_path)
    assert damaged.exit_code == 1 and "arrived damaged" in damaged.output
    assert (tmp_path / "toy-release-1.zip").read_bytes() == whole, "what was there is lost"
    assert not list(tmp_path.glob("*.part"))
    missing = kbpo("release", "toy", "--number", 7)
    assert missing.exit_code == 1 and "there are: 1" in missing.output
    nothing = kbpo("rescore", tmp_path / "nothing.zip")
    assert nothing.exit_code == 2 and "does not exist" in nothing.output


def _names_nobody(path: Path) -> None:
    """Answers of the two people who were asked, under codes that are not theirs."""
    with zipfile.ZipFile(path) as archive:
        rows = [json.loads(line) for line in archive.read("answers.jsonl").splitlines()]
        everything = b"".join(archive.read(name) for name in archive.namelist()).decode(
            errors="replace"
        )
    handles = list(Worker.objects.values_list("handle", flat=True))
    assert len({row["worker"] for row in rows}) == 2 and len(handles) == 3
    assert not [handle for handle in handles if handle in everything]
    assert {len(row["day"]) for row in rows} == {len("2026-01-31")}
    assert "published without your name" in everything
