"""A server in a private directory: its processes are found by where they work."""

import hashlib
import importlib.util
import os
import shutil
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from kbpo.embedded.account import Account, EmbeddedError, check_private

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
        """Return the server's directory: in `var/`, or where the symbolic link there leads."""
        return (self.var / self.name).resolve()

    @property
    def sockets(self) -> Path:
        """Return the directory of the socket: the server's own, or a short one where its path is
        too long for a socket.
        """
        if len(os.fsencode(self.home)) <= SOCKET_LIMIT:
            return self.home
        return Path(tempfile.gettempdir(), f"kbpo-{self.name}-{digest(self.home)}")

    @property
    def account(self) -> Account:
        """Return the account that the server runs as."""
        return Account.current()

    def check(self) -> None:
        """Refuse directories that others can write: a process in them could pass for the server."""
        for directory in (self.home, self.sockets):
            if directory.exists():
                check_private(directory, directory.lstat(), self.account)

    @abstractmethod
    def answers(self) -> bool:
        """Return whether the server does its work."""

    @abstractmethod
    def url(self) -> str:
        """Return the address of the server."""

    @abstractmethod
    def start(self) -> None:
        """Bring the server up, whatever state it was left in."""

    @abstractmethod
    def stop(self) -> None:
        """End the server, its data safe on the disk."""

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
        """Return the living processes of this server: its program, at work in the directory. Pid
        files may be stale.
        """
        return [
            process
            for process in psutil.process_iter()
            if works_in(process, self.program, directory)
        ]

    def wait(self, alive: Callable[[], bool]) -> bool:
        """Return whether the server answers before it dies or our patience ends."""
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


def works_in(process: psutil.Process, program: str, directory: Path) -> bool:
    """Return whether the process runs the program with the directory as its own; the dead and other
    people's do not.
    """
    try:
        return process.name() == program and Path(process.cwd()) == directory
    except (psutil.Error, OSError):
        return False


def end(processes: list[psutil.Process], *, grace: float) -> None:
    """End the processes: politely for `grace` seconds, then not."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.terminate() if grace else process.kill()
    deadline = time.monotonic() + (grace or 10)
    while left := [process for process in processes if lives(process)]:
        if time.monotonic() > deadline:
            return end(left, grace=0) if grace else None
        time.sleep(0.02)
    return None


def lives(process: psutil.Process) -> bool:
    """Return whether the process still runs; a zombie does not, though a lazy parent (many a
    container's) keeps its id.
    """
    try:
        return bool(process.is_running()) and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def package(name: str) -> Path:
    """Return the directory of an installed package; it is not imported, its binaries are all we
    want.
    """
    found = importlib.util.find_spec(name)
    if found is None or not found.submodule_search_locations:
        raise EmbeddedError(
            f"The package {name} is not installed. Run: make venv, or set DATABASE_URL."
        )
    return Path(found.submodule_search_locations[0])


def digest(path: Path) -> str:
    """Return a short name for the path."""
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:10]
