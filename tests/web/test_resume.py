"""A demo goes on as it was begun, says so where something else is asked, and forgets nothing that
is not its own.
"""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
from rehearsal.demonstrate import ANNOTATORS, NAME, RATERS, Demo, DemoFailed, demo_study, people

pytestmark = pytest.mark.django_db


def of_the_demo(toy: Any, **fields: Any) -> Track:
    """The toy's track and corpus as if they were the demo's."""
    Corpus.objects.filter(pk=toy.corpus.pk).update(name=NAME)
    Track.objects.filter(pk=toy.track.pk).update(name=NAME, **fields)
    return Track.objects.get(pk=toy.track.pk)


def test_what_is_asked_counts_before_a_demo_is_begun(tmp_path: Path) -> None:
    assert resume.resume(tmp_path / "a", {}) == resume.DEFAULTS
    assert resume.resume(tmp_path / "a", {"platform": "mturk"})["platform"] == "mturk", (
        "nothing was begun yet"
    )


@pytest.mark.parametrize("kept", [True, False])
def test_a_demo_goes_on_with_its_track_and_refuses_another(
    toy: Any, tmp_path: Path, kept: bool
) -> None:
    if kept:
        resume.resume(tmp_path, {"platform": "mturk", "design": "poisson", "read": 2})
    of_the_demo(toy, platform="mturk", design="poisson")
    on = resume.resume(tmp_path, {})
    read = 2 if kept else 0
    assert (on["platform"], on["design"], on["read"]) == ("mturk", "poisson", read)
    assert resume.resume(tmp_path, {"platform": "mturk"}) == on
    for name, value in (("platform", "pool"), ("design", "iid"), ("read", 5)):
        with pytest.raises(DemoFailed, match=f"begun with --{name} {on[name]}; add --reset"):
            resume.resume(tmp_path, {name: value})
    (tmp_path / resume.OPTIONS).write_text("{half")
    assert resume.resume(tmp_path, {})["platform"] == "mturk", "the track knows it without the file"


@pytest.mark.parametrize("ours", ["nothing", "track"])
def test_a_reset_refuses_to_empty_a_database_that_holds_more_than_the_demo(
    toy: Any, tmp_path: Path, ours: str
) -> None:
    if ours == "track":  # a corpus without a track is somebody's work as well
        Track.objects.filter(pk=toy.track.pk).update(name=NAME)
    other = (toy.track if ours == "nothing" else toy.corpus).name
    (tmp_path / "file").write_text("stays")
    with pytest.raises(DemoFailed, match=f"Nothing was deleted: the database also holds “{other}”"):
        resume.forget(tmp_path)
    assert Track.objects.count() == 1 and (tmp_path / "file").exists()


def test_a_reset_refuses_on_a_server(toy: Any, tmp_path: Path, settings: Any) -> None:
    of_the_demo(toy)
    settings.LOCAL = False
    with pytest.raises(DemoFailed, match="Nothing was deleted: KBPO_LOCAL is false"):
        resume.forget(tmp_path)
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
    resume.forget(files)
    assert not Track.objects.exists() and not User.objects.exists() and cache.get("board") is None
    assert [path for path in (tmp_path / "media").rglob("*") if path.is_file()] == [
        stranger
    ] and not files.exists()


def test_the_login_that_is_printed_is_not_one_of_the_crowd(tmp_path: Path) -> None:
    study = demo_study(tmp_path)
    people(study.systems)
    command = Demo(lambda text: None, study, port=1)._commands()["annotators"]
    first = command[command.index("--user") + 1]
    crowd = {first, *(f"{first}{number}" for number in range(2, ANNOTATORS + 1))}
    logins = set(User.objects.filter(is_annotator=True).values_list("username", flat=True))
    assert logins == crowd | {"annotator"} and len(logins) == ANNOTATORS + 1


def test_the_demo_leaves_questions_to_people(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toy: Any
) -> None:
    def told(**options: Any) -> list[str]:
        study = demo_study(tmp_path, **options)
        demo = Demo(lambda text: None, study, port=1)
        done: list[str] = []

        @contextmanager
        def crowd(*which: str) -> Iterator[None]:
            done.append(f"{which} come")
            yield
            done.append("they leave")

        def note(verb: str) -> Callable[[list[dict[str, str]]], None]:
            return lambda some: done.append(f"{verb} {[study.systems.index(one) for one in some]}")

        monkeypatch.setattr(Demo, "track", of_the_demo(toy))
        monkeypatch.setattr(demo, "_processes", crowd)
        monkeypatch.setattr(demo, "submit_all", note("judged"))
        monkeypatch.setattr(demo, "_submit_to_people", note("left"))
        monkeypatch.setattr(demo, "_upload_texts", lambda one: done.append(f"{one.kind} comes"))
        monkeypatch.setattr(
            demo, "_confirm_texts", lambda one, runs: done.append(f"{one.kind} is confirmed")
        )
        monkeypatch.setattr(demo, "_finish", lambda submitted: None)
        monkeypatch.setattr(demo, "_close", lambda one: done.append(f"{one.kind} is closed"))
        monkeypatch.setattr(demo, "_order_reading", lambda: done.append("documents"))
        demo.judge_all()
        return done

    come = ["('annotators', 'raters') come"]
    come += [f"{kind} {what}" for what in ("comes", "is confirmed") for kind in RATERS]
    end = ["generation is closed", "they leave"]
    assert told(systems=3) == [*come, "judged [0, 1]", *end, "left [2]", "documents"]
    assert told(systems=3, annotators=0) == ["left [0, 1, 2]"]
    assert told(systems=1) == [*come, "judged [0]", *end]
    at_market = ["('annotators',) come", "judged [0, 1]", "they leave"]
    assert told(systems=2, platform="mturk") == at_market


def test_the_demo_makes_no_admin_with_a_known_password_on_a_server(
    settings: Any, capsys: Any
) -> None:
    settings.LOCAL = False
    before = User.objects.count()
    with pytest.raises(SystemExit):
        call_command("demo", "--no-serve")
    assert "KBPO_LOCAL is false" in capsys.readouterr().err
    assert User.objects.count() == before and not User.objects.filter(username="admin").exists()


def test_a_demo_says_which_of_its_processes_ended_and_what_it_said_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.VAR = tmp_path
    monkeypatch.setattr("rehearsal.demonstrate.LOOKS", 0.05)
    study = demo_study(tmp_path / "files")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        demo = Demo(lambda text: None, study, port=free.getsockname()[1])
    sleeps = [sys.executable, "-c", "import time; print('last words', flush=True); time.sleep(99)"]
    monkeypatch.setattr(demo, "_commands", lambda: dict.fromkeys(("web", "worker"), sleeps))
    with demo.running():
        demo.check()
        log = tmp_path / "demo/log/worker.log"
        while not log.read_text():
            time.sleep(0.05)
        demo._up["worker"].kill()
        with pytest.raises(DemoFailed) as failed:
            demo.watch()
    said = str(failed.value)
    assert "process worker of the demo ended by itself (killed by signal 9)" in said
    assert said.endswith(f"The end of {log}:\n\nlast words")
    assert all(process.poll() is not None for process in demo._up.values()), "all is stopped"


def test_a_demo_says_the_errors_of_its_simulated_annotators(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.VAR = tmp_path
    log = tmp_path / "demo/log/annotators.log"
    log.parent.mkdir(parents=True)
    log.write_text("of another day\n")
    said: list[str] = []
    demo = Demo(said.append, demo_study(tmp_path / "files"), port=1)
    errs = [sys.executable, "-c", "print('simulated2: KeyError: \\'b\\'')"]
    demo._start("annotators", errs).wait()
    for _ in range(2):
        demo.check()
    assert said == ["  annotators: simulated2: KeyError: 'b'"]
    with log.open("a") as file:
        file.write("".join(f"simulated: {number}\n" for number in range(30)) + "half a line")
    demo.check()
    assert len(said) == 21 and said[-1] == f"  More of this kind stands in {log}"
