"""A demo goes on as it was begun, says so where something else is asked, and forgets nothing that
is not its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.core.files.base import ContentFile
from django.core.management import call_command

from kbpo.accounts.models import Team, User
from kbpo.corpus.models import Corpus
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from rehearsal import resume
from rehearsal.demonstrate import NAME, DemoFailed

pytestmark = pytest.mark.django_db


def of_the_demo(toy: Any, **fields: Any) -> Track:
    """The toy's track and corpus as if they were the demo's."""
    Corpus.objects.filter(pk=toy.corpus.pk).update(name=NAME)
    Track.objects.filter(pk=toy.track.pk).update(name=NAME, **fields)
    return Track.objects.get(pk=toy.track.pk)


def test_a_demo_goes_on_with_its_track_and_refuses_another(toy: Any) -> None:
    of_the_demo(toy, platform="mturk", design="poisson")
    on = resume.resume_options({})
    assert (on["platform"], on["design"], on["systems"]) == ("mturk", "poisson", 5)
    assert resume.resume_options({"platform": "mturk"}) == on
    for name, value in (("platform", "pool"), ("design", "iid")):
        with pytest.raises(DemoFailed, match=f"begun with --{name} {on[name]}; add --reset"):
            resume.resume_options({name: value})


@pytest.mark.parametrize("ours", ["nothing", "track"])
def test_a_reset_refuses_to_empty_a_database_that_holds_more_than_the_demo(
    toy: Any, tmp_path: Path, ours: str
) -> None:
    if ours == "track":  # a corpus without a track is somebody's work as well
        Track.objects.filter(pk=toy.track.pk).update(name=NAME)
    other = (toy.track if ours == "nothing" else toy.corpus).name
    (tmp_path / "file").write_text("stays")
    with pytest.raises(DemoFailed, match=f"Nothing was deleted: the database also holds “{other}”"):
        resume.delete_demo(tmp_path)
    assert Track.objects.count() == 1 and (tmp_path / "file").exists()


def test_a_reset_refuses_on_a_server(toy: Any, tmp_path: Path, settings: Any) -> None:
    of_the_demo(toy)
    settings.LOCAL = False
    with pytest.raises(DemoFailed, match="Nothing was deleted: KBPO_LOCAL is false"):
        resume.delete_demo(tmp_path)
    assert Track.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_reset_empties_database_cache_uploads_and_files(
    toy: Any, tmp_path: Path, settings: Any
) -> None:
    track = of_the_demo(toy)
    settings.MEDIA_ROOT = tmp_path / "media"
    user = User.objects.create_user("researcher-of-the-demo")
    team = Team.objects.earliest("pk")
    sent = Submission(
        track=track,
        team=team,
        user=user,
        name="run 1",
        file_name="run.tsv",
        file_size=1,
        file_digest="x",
    )
    sent.file.save("run.tsv", ContentFile(b"x"), save=True)
    stranger = tmp_path / "media" / "stranger.txt"
    stranger.write_text("not the demo's")
    files = tmp_path / "demo"
    files.mkdir()
    cache.set("board", "old")
    resume.delete_demo(files)
    assert not Track.objects.exists() and not User.objects.exists() and cache.get("board") is None
    assert [path for path in (tmp_path / "media").rglob("*") if path.is_file()] == [
        stranger
    ] and not files.exists()


def test_the_demo_makes_no_admin_with_a_known_password_on_a_server(
    settings: Any, capsys: Any
) -> None:
    settings.LOCAL = False
    before = User.objects.count()
    with pytest.raises(SystemExit):
        call_command("demo", "--no-serve")
    assert "KBPO_LOCAL is false" in capsys.readouterr().err
    assert User.objects.count() == before and not User.objects.filter(username="admin").exists()
