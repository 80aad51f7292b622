"""The server of our own: a real one, killed for real, in a directory that only we may enter."""

import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg2
import pytest
from processes import wait_for

from kbpo import embedded, environment
from kbpo.embedded.__main__ import main
from kbpo.embedded.postgres import SOCKET_LIMIT, is_alive


@pytest.fixture(scope="module")
def var(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the servers of this file live; their names of places have blanks and quotes in them."""
    place = tmp_path_factory.mktemp("servers") / "it's a $place"
    place.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KBPO_VAR", str(place))
        patch.setenv("KBPO_EMBEDDED_FSYNC", "false")
        embedded.database_url()
        yield place
        embedded.delete_server_data()


@pytest.fixture
def running(var: Path) -> str:
    """The address of the running server."""
    return embedded.database_url()


def ask(question: str) -> object:
    """The first value of the answer to an SQL question."""
    settings = environment.database_settings(embedded.database_url())
    connection = psycopg2.connect(
        host=settings["HOST"],
        port=settings["PORT"],
        dbname=settings["NAME"],
        user=settings["USER"],
        password=settings["PASSWORD"],
    )
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute(question)
            return cursor.fetchone()[0] if cursor.description else None
    finally:
        connection.close()


def processes(var: Path) -> list[psutil.Process]:
    """Every process of the server."""
    postgres = embedded.Postgres(var)
    return postgres.processes(postgres.data)


def kill(some: list[psutil.Process]) -> None:
    """Kills processes; PostgreSQL's own come and go, and die with their postmaster."""
    for process in some:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def postmaster(var: Path) -> psutil.Process:
    """The PostgreSQL server's first process."""
    return psutil.Process(
        int((embedded.Postgres(var).data / "postmaster.pid").read_text().split()[0])
    )


def start_elsewhere() -> subprocess.Popen[bytes]:
    """Another process that starts the servers."""
    return subprocess.Popen(
        [sys.executable, "-m", "kbpo.embedded", "start"], cwd=embedded.ROOT, stdout=subprocess.PIPE
    )


def test_the_server_answers_at_its_address(running: str) -> None:
    assert ask("SELECT current_database()") == "kbpo"
    assert ask("SHOW server_encoding") == "UTF8"
    assert embedded.server_status() == {"postgres": True}


def test_money_is_safe_by_default(running: str) -> None:
    assert ask("SHOW synchronous_commit") == "on"


def test_nothing_listens_on_the_network(running: str, var: Path) -> None:
    listening = []
    for process in processes(var):
        with suppress(psutil.NoSuchProcess):  # it had nothing to do any more, and listens nowhere
            listening += [one for one in process.net_connections("inet") if one.status == "LISTEN"]
    assert len(processes(var)) > 3
    assert listening == []
    assert ask("SHOW listen_addresses") == ""


def test_only_the_owner_may_enter_and_read(running: str, var: Path) -> None:
    postgres = embedded.Postgres(var)
    for private in (
        postgres.home,
        postgres.data,
        postgres.sockets,
        postgres.home / "password",
    ):
        assert stat.S_IMODE(private.stat().st_mode) & 0o077 == 0, private


def test_a_wrong_password_does_not_get_in(running: str, var: Path) -> None:
    with pytest.raises(psycopg2.OperationalError, match="password authentication failed"):
        psycopg2.connect(
            host=str(embedded.Postgres(var).sockets),
            port=5432,
            user="kbpo",
            password="x",
            dbname="kbpo",
        )


def test_everything_comes_back_after_everything_is_killed(running: str, var: Path) -> None:
    ask("CREATE TABLE IF NOT EXISTS remains AS SELECT 42 AS n")
    kill(processes(var))
    assert embedded.database_url() == running
    assert ask("SELECT n FROM remains") == 42


def test_processes_that_ask_at_once_get_one_server(running: str, var: Path) -> None:
    embedded.stop_server()
    assert processes(var) == []
    starters = [start_elsewhere() for _ in range(3)]
    assert [starter.wait(180) for starter in starters] == [0, 0, 0]
    running_now = processes(var)
    first = [one for one in running_now if _is_first(one, running_now)]
    assert len(first) == 1
    assert ask("SELECT 1") == 1


def test_a_directory_that_others_may_enter_is_refused(running: str, var: Path) -> None:
    for home in (embedded.Postgres(var).home,):
        home.chmod(0o755)
        try:
            with pytest.raises(embedded.EmbeddedError, match="open to other users"):
                embedded.database_url()
        finally:
            home.chmod(0o700)


def test_a_directory_that_everybody_may_write_to_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o777)
    monkeypatch.setenv("KBPO_VAR", str(tmp_path))
    with pytest.raises(embedded.EmbeddedError, match="chmod o-w"):
        embedded.database_url()


@pytest.mark.soak
def test_a_starter_killed_while_it_makes_the_cluster_is_followed_by_a_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a place whose path is too long for a socket, too."""
    var = tmp_path / ("long" * 25)
    monkeypatch.setenv("KBPO_VAR", str(var))
    monkeypatch.setenv("KBPO_EMBEDDED_FSYNC", "false")
    try:
        starter = start_elsewhere()
        while not list(embedded.Postgres(var).home.glob("draft-*/base")):
            assert starter.poll() is None, "it is not through before initdb is"
            time.sleep(0.005)
        starter.kill()
        starter.communicate()
        assert not embedded.Postgres(var).data.exists()
        embedded.database_url()
        assert ask("SELECT 1") == 1
        assert embedded.server_status() == {"postgres": True}
        assert len(str(embedded.Postgres(var).sockets)) < SOCKET_LIMIT < len(str(var))
    finally:
        embedded.delete_server_data()
    assert not embedded.Postgres(var).sockets.exists()
    assert not embedded.Postgres(var).home.exists()


def test_the_command_says_what_runs(running: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status"]) == 0
    assert capsys.readouterr().out == "postgres: running\n"
    assert main(["dance"]) == 2


def test_stop_ends_what_a_killed_demo_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBPO_VAR", str(tmp_path))
    sleep = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    demo = (  # a parent that starts a process, records it and is killed
        "import os, subprocess, sys; from pathlib import Path; from kbpo import embedded;"
        f"child = subprocess.Popen([sys.executable, '-c', {sleep!r}], stdin=subprocess.PIPE,"
        " start_new_session=True);"
        "embedded.record_process(Path(os.environ['KBPO_VAR']), 'web', child.pid);"
        "print(child.pid, flush=True); os.read(0, 1)"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", demo], **pipes) as parent:
        assert parent.stdout is not None
        left = psutil.Process(int(parent.stdout.readline()))
        wait_for(lambda: left.children(), "a process of the demo to start one")
        started = [left, *left.children()]
        parent.kill()
    has_other_worker = psutil.Process().create_time() - 1
    (tmp_path / "processes" / "worker").write_text(f"{os.getpid()} {has_other_worker}")
    embedded.stop_server()
    wait_for(lambda: not any(is_alive(process) for process in started), "them to end")
    assert not list((tmp_path / "processes").iterdir())


def _is_first(process: psutil.Process, of: list[psutil.Process]) -> bool:
    """Whether none of the others started the process; one that has ended meanwhile was no
    server.
    """
    try:
        return process.parent() not in of
    except psutil.NoSuchProcess:
        return False
