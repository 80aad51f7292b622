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
from kbpo.embedded.server import SOCKET_LIMIT, lives

pytestmark = pytest.mark.kill


@pytest.fixture(scope="module")
def var(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the servers of this file live; their names of places have blanks and quotes in them."""
    place = tmp_path_factory.mktemp("servers") / "it's a $place"
    place.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KBPO_VAR", str(place))
        patch.setenv("KBPO_EMBEDDED_FSYNC", "false")
        embedded.ensure()
        yield place
        embedded.wipe()


@pytest.fixture
def running(var: Path) -> dict[str, str]:
    """The addresses of the running servers."""
    return embedded.ensure()


def ask(question: str) -> object:
    """The first value of the answer to an SQL question."""
    settings = environment.database(embedded.database_url())
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


def test_the_server_answers_at_its_address(running: dict[str, str]) -> None:
    assert ask("SELECT current_database()") == "kbpo"
    assert ask("SHOW server_encoding") == "UTF8"
    assert embedded.status() == {"postgres": True}


def test_money_is_safe_by_default(running: dict[str, str]) -> None:
    assert ask("SHOW synchronous_commit") == "on"


def test_nothing_listens_on_the_network(running: dict[str, str], var: Path) -> None:
    listening = []
    for process in processes(var):
        with suppress(psutil.NoSuchProcess):  # it had nothing to do any more, and listens nowhere
            listening += [one for one in process.net_connections("inet") if one.status == "LISTEN"]
    assert len(processes(var)) > 3
    assert listening == []
    assert ask("SHOW listen_addresses") == ""


def test_only_the_owner_may_enter_and_read(running: dict[str, str], var: Path) -> None:
    postgres = embedded.Postgres(var)
    for private in (
        postgres.home,
        postgres.data,
        postgres.sockets,
        postgres.home / "password",
    ):
        assert stat.S_IMODE(private.stat().st_mode) & 0o077 == 0, private


def test_a_wrong_password_does_not_get_in(running: dict[str, str], var: Path) -> None:
    with pytest.raises(psycopg2.OperationalError, match="password authentication failed"):
        psycopg2.connect(
            host=str(embedded.Postgres(var).sockets),
            port=5432,
            user="kbpo",
            password="x",
            dbname="kbpo",
        )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_reaches_neither_socket(running: dict[str, str], var: Path) -> None:
    for place in (embedded.Postgres(var).sockets / ".s.PGSQL.5432",):
        probe = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
        python = (
            Path("/usr/bin/python3")
            if Path("/usr/bin/python3").exists()
            else Path(sys.executable).resolve()
        )
        if not embedded.Account(1, 1).can_enter(python.parent):
            pytest.skip("another user finds no Python here")
        tried = subprocess.run(
            [python, "-c", probe, place],
            user=1,
            group=1,
            extra_groups=[],
            capture_output=True,
            text=True,
            cwd="/",
        )
        assert "PermissionError" in tried.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another account for PostgreSQL")
def test_as_root_postgres_is_another_account_and_parents_stay_as_they_were(
    var: Path, running: dict[str, str]
) -> None:
    assert postmaster(var).uids().real != 0
    assert stat.S_IMODE(var.parent.stat().st_mode) == 0o700
    assert var.parent.stat().st_uid == 0


def test_committed_data_survive_a_killed_postmaster(running: dict[str, str], var: Path) -> None:
    ask("CREATE TABLE survivors AS SELECT generate_series(1, 1000) AS n")
    postmaster(var).kill()
    assert embedded.ensure()["database_url"] == running["database_url"]
    assert ask("SELECT count(*) FROM survivors") == 1000


def test_a_query_that_outlives_the_postmaster_does_not_block_recovery(
    running: dict[str, str], var: Path
) -> None:
    busy = psycopg2.connect(
        host=str(embedded.Postgres(var).sockets),
        port=5432,
        user="kbpo",
        dbname="kbpo",
        async_=True,
        password=(embedded.Postgres(var).home / "password").read_text(),
    )
    while busy.poll() != psycopg2.extensions.POLL_OK:
        time.sleep(0.01)
    busy.cursor().execute("DO $$ DECLARE n int := 0; BEGIN LOOP n := (n + 1) % 7; END LOOP; END $$")
    busy.poll()
    time.sleep(0.2)
    postmaster(var).kill()
    embedded.ensure()
    assert ask("SELECT 1") == 1


def test_a_server_with_no_connection_to_spare_is_left_alone(
    running: dict[str, str], var: Path
) -> None:
    server, first = embedded.Postgres(var), postmaster(var)
    held = []
    try:
        with pytest.raises(psycopg2.OperationalError, match="too many clients"):
            while True:
                held.append(server.connect())
        assert embedded.ensure() == running
    finally:
        for connection in held:
            connection.close()
    assert postmaster(var) == first


def test_a_server_that_refuses_our_password_is_left_alone(
    running: dict[str, str], var: Path
) -> None:
    server, first = embedded.Postgres(var), postmaster(var)
    password = (server.home / "password").read_text()
    server.account.write(server.home / "password", "wrong")
    try:
        with pytest.raises(embedded.EmbeddedError, match=r"refuses us.*password"):
            embedded.ensure()
    finally:
        server.account.write(server.home / "password", password)
    assert postmaster(var) == first


def test_a_missing_database_is_made_without_a_restart(running: dict[str, str], var: Path) -> None:
    server, first = embedded.Postgres(var), postmaster(var)
    connection = server.connect("postgres")
    connection.autocommit = True
    connection.cursor().execute("DROP DATABASE kbpo WITH (FORCE)")
    connection.close()
    embedded.ensure()
    assert ask("SELECT current_database()") == "kbpo"
    assert postmaster(var) == first


def test_everything_comes_back_after_everything_is_killed(
    running: dict[str, str], var: Path
) -> None:
    ask("CREATE TABLE IF NOT EXISTS remains AS SELECT 42 AS n")
    kill(processes(var))
    assert embedded.ensure() == running
    assert ask("SELECT n FROM remains") == 42


@pytest.mark.soak
def test_a_starter_killed_on_its_way_leaves_nothing_in_the_way(
    running: dict[str, str], var: Path
) -> None:
    for moment in (0.3, 0.45, 0.6):
        embedded.stop()
        starter = start_elsewhere()
        time.sleep(moment)
        starter.kill()
        starter.communicate()
        embedded.ensure()
        assert ask("SELECT 1") == 1


def test_processes_that_ask_at_once_get_one_server(running: dict[str, str], var: Path) -> None:
    embedded.stop()
    assert processes(var) == []
    starters = [start_elsewhere() for _ in range(3)]
    assert [starter.wait(180) for starter in starters] == [0, 0, 0]
    running_now = processes(var)
    first = [one for one in running_now if _is_first(one, running_now)]
    assert len(first) == 1
    assert ask("SELECT 1") == 1


def test_the_pid_of_somebody_else_in_the_pid_file_stops_nothing(
    running: dict[str, str], var: Path
) -> None:
    server = embedded.Postgres(var)
    postmaster(var).kill()
    bystander = subprocess.Popen(["sleep", "60"], **_as(server.account))
    try:
        lines = (server.data / "postmaster.pid").read_text().splitlines()
        server.account.write(
            server.data / "postmaster.pid", "\n".join([str(bystander.pid), *lines[1:], ""])
        )
        embedded.ensure()
        assert ask("SELECT 1") == 1
        assert bystander.poll() is None, "the bystander lives"
    finally:
        bystander.kill()
        bystander.wait()


def test_a_lost_socket_is_made_again(running: dict[str, str], var: Path) -> None:
    (embedded.Postgres(var).sockets / ".s.PGSQL.5432").unlink()
    embedded.ensure()
    assert ask("SELECT 1") == 1


def test_a_directory_that_others_may_enter_is_refused(running: dict[str, str], var: Path) -> None:
    for home in (embedded.Postgres(var).home,):
        home.chmod(0o755)
        try:
            with pytest.raises(embedded.EmbeddedError, match="open to other users"):
                embedded.ensure()
        finally:
            home.chmod(0o700)


def test_a_directory_that_everybody_may_write_to_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o777)
    monkeypatch.setenv("KBPO_VAR", str(tmp_path))
    with pytest.raises(embedded.EmbeddedError, match="chmod o-w"):
        embedded.ensure()


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
        embedded.ensure()
        assert ask("SELECT 1") == 1
        assert embedded.status() == {"postgres": True}
        assert len(str(embedded.Postgres(var).sockets)) < SOCKET_LIMIT < len(str(var))
    finally:
        embedded.wipe()
    assert not embedded.Postgres(var).sockets.exists()
    assert not embedded.Postgres(var).home.exists()


@pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can make a directory that is another user's"
)
def test_a_socket_directory_of_somebody_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBPO_VAR", str(tmp_path / ("long" * 25)))
    squatted = embedded.Postgres(tmp_path / ("long" * 25)).sockets
    squatted.mkdir(mode=0o700)
    try:
        os.chown(squatted, 1, 1)
        for verb in (embedded.database_url, embedded.stop, embedded.wipe):
            with pytest.raises(embedded.EmbeddedError, match="belongs to user id 1"):
                verb()
        assert squatted.exists()
    finally:
        squatted.rmdir()


def test_the_command_says_what_runs(
    running: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
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
        "embedded.record(Path(os.environ['KBPO_VAR']), 'web', child.pid);"
        "print(child.pid, flush=True); os.read(0, 1)"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", demo], **pipes) as parent:
        assert parent.stdout is not None
        left = psutil.Process(int(parent.stdout.readline()))
        wait_for(lambda: left.children(), "a process of the demo to start one")
        started = [left, *left.children()]
        parent.kill()
    somebody_else = psutil.Process().create_time() - 1
    (tmp_path / "processes" / "worker").write_text(f"{os.getpid()} {somebody_else}")
    embedded.stop()
    wait_for(lambda: not any(lives(process) for process in started), "them to end")
    assert not list((tmp_path / "processes").iterdir())


def _is_first(process: psutil.Process, of: list[psutil.Process]) -> bool:
    """Whether none of the others started the process; one that has ended meanwhile was no
    server.
    """
    try:
        return process.parent() not in of
    except psutil.NoSuchProcess:
        return False


def _as(account: embedded.Account) -> dict[str, object]:
    """How to start a process as the account."""
    if account == embedded.Account.current():
        return {}
    return {"user": account.uid, "group": account.gid, "extra_groups": []}
